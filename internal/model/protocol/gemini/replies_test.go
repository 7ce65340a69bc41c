package gemini_test

import (
	"testing"

	"github.com/assay-eval/assay/internal/model/protocol/gemini"
	"github.com/assay-eval/assay/internal/model/wire/wiretest"
)

func TestReplies(t *testing.T) {
	t.Parallel()
	wiretest.CheckReplies(t, gemini.Protocol, "replies.txt")
}
