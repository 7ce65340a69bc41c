package anthropic_test

import (
	"testing"

	"github.com/assay-eval/assay/internal/model/protocol/anthropic"
	"github.com/assay-eval/assay/internal/model/wire/wiretest"
)

func TestReplies(t *testing.T) {
	t.Parallel()
	wiretest.CheckReplies(t, anthropic.Protocol, "replies.txt")
}
