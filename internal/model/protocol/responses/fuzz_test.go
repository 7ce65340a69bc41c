package responses_test

import (
	"regexp"
	"testing"

	"github.com/assay-eval/assay/internal/model/protocol/responses"
	"github.com/assay-eval/assay/internal/model/wire/wiretest"
)

func always(body string) *wiretest.Canned { return &wiretest.Canned{Body: body} }

func FuzzReply(f *testing.F) {
	wiretest.FuzzReply(f, responses.Protocol, hello, regexp.MustCompile(`^$`))
}

// BenchmarkChat measures the CPU of a request with 30 tools and 18 messages.
func BenchmarkChat(b *testing.B) {
	wiretest.BenchmarkChat(b, always(hello).Provider(b, responses.Protocol))
}
