package bridge_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/assay-eval/assay/internal/agent/bridge/agenttest"
)

// asAgent is the first argument of a test binary that acts as an agent.
const asAgent = "act-as-an-agent"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == asAgent {
		agenttest.Act(os.Args[2])
		return
	}
	goleak.VerifyTestMain(m, // a package of Gemini's client starts this one when it is imported
		goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"))
}
