package gemini_test

import (
	"regexp"
	"testing"

	"github.com/assay-eval/assay/internal/model/protocol/gemini"
	"github.com/assay-eval/assay/internal/model/wire/wiretest"
)

func always(body string) *wiretest.Canned { return &wiretest.Canned{Body: body} }

func FuzzReply(f *testing.F) {
	wiretest.FuzzReply(f, gemini.Protocol, hello, regexp.MustCompile(`"call_1_`))
}

// BenchmarkChat measures the CPU of a request with 30 tools and 18 messages.
func BenchmarkChat(b *testing.B) {
	wiretest.BenchmarkChat(b, always(hello).Provider(b, gemini.Protocol))
}
