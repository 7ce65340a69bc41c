package session_test

import (
	"os"
	"testing"

	"github.com/assay-eval/assay/internal/agent/bridge/agenttest"
)

// asAgent is the first argument of a test binary that acts as an agent.
const asAgent = "act-as-an-agent"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == asAgent {
		agenttest.Act(os.Args[2])
		return
	}
	cache, err := os.MkdirTemp("", "assay-session-*")
	if err != nil {
		panic(err)
	}
	os.Setenv("XDG_CACHE_HOME", cache) // all tests share the built-in library
	code := m.Run()
	os.RemoveAll(cache)
	os.Exit(code)
}
