package sim_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/sim"
)

// TestToolsOfAgents checks that models know tools that an agent has renamed, as Semantic Kernel
// does, and that calls have new IDs if an agent joins replies, as Mastra 0.24 does.
func TestToolsOfAgents(t *testing.T) {
	t.Parallel()
	models := sim.New(catalog, sim.Latency{})
	req := assay.Request{Model: "sim/optimal", Messages: []assay.Message{{
		Role: assay.User, Content: `{"ref": "` + "\n\n## Task\n\nLog an event: the tests are green.",
	}}}
	for _, tool := range catalog.All() {
		req.Functions = append(req.Functions, assay.Function{
			Name: "assay-" + tool.Name, Description: tool.Description,
		})
	}
	for _, id := range []string{"call_1_0", "call_2_0", "call_3_0"} {
		resp, err := models.Chat(t.Context(), &req)
		if err != nil || len(resp.Message.Calls) != 1 {
			t.Fatalf("%+v: %v", resp.Message, err)
		}
		call := resp.Message.Calls[0]
		if call.Name != "assay-"+logger || call.ID != id {
			t.Errorf("the call is %s of %s, want %s of assay-%s", call.ID, call.Name, id, logger)
		}
		if len(req.Messages) == 1 {
			req.Messages = append(req.Messages, assay.Message{Role: assay.Assistant})
		}
		req.Messages[1].Calls = append(req.Messages[1].Calls, call)
		req.Messages = append(req.Messages, assay.Message{
			Role: assay.ToolRole, CallID: id,
			Content: `{"tool":"` + logger + `","success":false,"error":"TIMEOUT: it took too long"}`,
		})
	}
}

// TestSearchesInOtherOrder checks that a model reads the answers of parallel searches in the order
// of its calls, however they arrive. Semantic Kernel sends them in the order in which they ended.
func TestSearchesInOtherOrder(t *testing.T) {
	t.Parallel()
	for _, swap := range []bool{false, true} {
		k := newTalk(t, "sim/listed", assay.Discover, assay.Baseline, task(fetcher, parser))
		searches := k.next(t).Calls
		if len(searches) != 2 {
			t.Fatalf("the model begins with %+v, want two searches", searches)
		}
		k.add(searches, found(fetcher), found(parser))
		if n := len(k.req.Messages); swap {
			k.req.Messages[n-1], k.req.Messages[n-2] = k.req.Messages[n-2], k.req.Messages[n-1]
		}
		if got := executes(assay.Discover, k.next(t)); len(got) != 1 || got[0] != fetcher {
			t.Errorf("swapped %t: the model calls %v, want %s", swap, got, fetcher)
		}
	}
}

// TestDemandedArguments checks that a call has the arguments that the request demands, because some
// frameworks make optional arguments required.
func TestDemandedArguments(t *testing.T) {
	t.Parallel()
	k := newTalk(t, "sim/listed", assay.Listed, assay.Baseline, task(fetcher, parser))
	tool, _ := catalog.Tool(fetcher)
	var all []string
	for _, p := range tool.Parameters {
		all = append(all, p.Name)
	}
	demand := func(names []string) map[string]any {
		schema, err := json.Marshal(map[string]any{"type": "object", "required": names})
		if err != nil {
			t.Fatal(err)
		}
		k.req.Functions = slices.Clone(k.req.Functions) // all conversations share them
		for i, f := range k.req.Functions {
			if f.Name == fetcher {
				k.req.Functions[i].Parameters = schema
			}
		}
		var args map[string]any
		if err := json.Unmarshal([]byte(k.next(t).Calls[0].Arguments), &args); err != nil {
			t.Fatal(err)
		}
		return args
	}
	own, every := demand(nil), demand(all)
	if len(own) == len(all) || len(every) != len(all) {
		t.Errorf("calls have %v and %v, want the second with %v", own, every, all)
	}
	for name, value := range own {
		if !reflect.DeepEqual(every[name], value) {
			t.Errorf("argument %s is %v, want %v", name, every[name], value)
		}
	}
}
