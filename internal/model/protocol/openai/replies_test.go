package openai_test

import (
	"testing"

	"github.com/assay-eval/assay/internal/model/protocol/openai"
	"github.com/assay-eval/assay/internal/model/wire/wiretest"
)

func TestReplies(t *testing.T) {
	t.Parallel()
	wiretest.CheckReplies(t, openai.Protocol, "completions.txt", "faults.txt", "limits.txt", "quotas.txt", "strangers.txt")
}
