package responses_test

import (
	"testing"

	"github.com/assay-eval/assay/internal/model/protocol/responses"
	"github.com/assay-eval/assay/internal/model/wire/wiretest"
)

func TestReplies(t *testing.T) {
	t.Parallel()
	wiretest.CheckReplies(t, responses.Protocol, "replies.txt")
}
