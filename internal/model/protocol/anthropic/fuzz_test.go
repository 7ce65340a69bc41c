package anthropic_test

import (
	"regexp"
	"testing"

	"github.com/assay-eval/assay/internal/model/protocol/anthropic"
	"github.com/assay-eval/assay/internal/model/wire/wiretest"
)

func FuzzReply(f *testing.F) {
	wiretest.FuzzReply(f, anthropic.Protocol, hello, regexp.MustCompile(`"content":\[\]`))
}

// BenchmarkChat measures the CPU of a request with 30 tools and 18 messages.
func BenchmarkChat(b *testing.B) {
	wiretest.BenchmarkChat(b, always(hello).Provider(b, anthropic.Protocol))
}
