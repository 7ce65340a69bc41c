package sim_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/task/world"
)

// TestFollowingPlan asks the agents for their next step after a history. In a conversation with a
// plan, the tool setting makes no difference.
func TestFollowingPlan(t *testing.T) {
	t.Parallel()
	const stop = "TASK_COMPLETED"
	steps := []string{fetcher, logger, transformer}
	fullNames := strings.NewReplacer(
		"fetcher", fetcher, "logger", logger, "parser", parser, "transformer", transformer)
	for _, tc := range []struct {
		model, history, want string
	}{
		{sim.Listed, "", fetcher},
		{sim.Listed, "fetcher-", fetcher},
		{sim.Listed, "fetcher- fetcher- fetcher-", fetcher},
		{sim.Listed, "fetcher+", logger},
		{sim.Listed, "fetcher+ logger- . logger+", transformer},
		{sim.Listed, "logger+ transformer+", fetcher},
		{sim.Listed, "fetcher+ fetcher-", logger},
		{sim.Listed, "fetcher!", fetcher},
		{sim.Listed, "fetcher+ logger+ transformer+", stop},

		{sim.Obedient, "", fetcher},
		{sim.Obedient, "fetcher-", fetcher},
		{sim.Obedient, "fetcher- fetcher+ logger-", logger},
		{sim.Obedient, "fetcher+ . logger+", transformer},
		{sim.Obedient, "fetcher!", logger},
		{sim.Obedient, "fetcher+ logger+ transformer+", stop},
		{sim.Obedient, "fetcher+ logger! transformer+", stop},

		{sim.Optimal, "", fetcher},
		{sim.Optimal, "fetcher-", fetcher},
		// The transformer needs the parser, which is not a step of the plan.
		{sim.Optimal, "fetcher+ logger+", parser},
		{sim.Optimal, "fetcher+ logger+ parser-", parser},
		{sim.Optimal, "fetcher+ logger+ parser+", transformer},
		// With one reply left, there is no time for the parser.
		{sim.Optimal, "fetcher+ logger+ . . . . . . .", transformer},
		{sim.Optimal, "fetcher+ logger+ parser- parser- transformer+", stop},
		// Five failed calls in a row end the episode.
		{sim.Optimal, "fetcher- fetcher- fetcher- fetcher- fetcher-", stop},
		{sim.Optimal, ". . . . . . . . . . .", fetcher},
	} {
		for _, setting := range settings {
			history := fullNames.Replace(tc.history)
			got := newTalk(t, tc.model, setting, assay.Optimal, task(steps...)).play(history).next(t)
			if tc.want == stop {
				if !claims(got) {
					t.Errorf("%s, %s, after %q: %+v, want a claim to be done",
						tc.model, setting, tc.history, got)
				}
				continue
			}
			tools := executes(setting, got)
			if !slices.Equal(tools, []string{tc.want}) || len(got.Calls) != 1 || got.Content != "" {
				t.Errorf("%s, %s, after %q: %+v, want a call of %s",
					tc.model, setting, tc.history, got, tc.want)
			}
		}
	}
}

// TestOptimalWeighsDependencies checks that the number of replies and the chance of a call decide
// whether a missing dependency is worth a call.
func TestOptimalWeighsDependencies(t *testing.T) {
	t.Parallel()
	models := sim.New(catalog, sim.Latency{})
	for _, tc := range []struct{ replies, chance, want string }{
		{"1", "80", transformer},
		{"2", "80", parser},
		{"2", "20", transformer},
		{"9", "80", parser},
	} {
		k := newTalk(t, sim.Optimal, assay.Listed, assay.Optimal, task(transformer))
		for i, change := range [][2]string{
			{"at most 10 replies", "at most " + tc.replies + " replies"},
			{"about 80 %", "about " + tc.chance + " %"},
		} {
			m := &k.req.Messages[i]
			if !strings.Contains(m.Content, change[0]) {
				t.Fatalf("the prompt does not contain %q: %s", change[0], m.Content)
			}
			m.Content = strings.Replace(m.Content, change[0], change[1], 1)
		}
		resp, err := models.Chat(t.Context(), &k.req)
		if got := executes(k.setting, resp.Message); err != nil ||
			!slices.Equal(got, []string{tc.want}) {
			t.Errorf("with %s replies and a chance of %s %%: calls %v (%v), want %s",
				tc.replies, tc.chance, got, err, tc.want)
		}
	}
}

// TestFindingTools asks the agents without a plan under the tool setting discover. They search once
// for each part of the description and use the best match.
func TestFindingTools(t *testing.T) {
	t.Parallel()
	for _, model := range []string{sim.Listed, sim.Optimal, sim.Obedient} {
		k := newTalk(t, model, assay.Discover, assay.Baseline, task(fetcher, parser))
		first := k.next(t)
		var queries []string
		for _, c := range first.Calls {
			var args struct{ Query string }
			if err := json.Unmarshal([]byte(c.Arguments), &args); err != nil ||
				c.Name != "tool_search" {
				t.Fatalf("%s begins with %+v, want searches", model, c)
			}
			queries = append(queries, args.Query)
		}
		want := []string{
			"Fetch the feed from the web address https://a.example.com/feed",
			"parse the raw text into structured records",
		}
		if !slices.Equal(queries, want) {
			t.Errorf("%s searches for %q, want %q", model, queries, want)
		}
		k.add(first.Calls, found(fetcher, logger), found(parser))
		if got := k.next(t); !slices.Equal(executes(k.setting, got), []string{fetcher}) {
			t.Errorf("%s goes on with %+v, want %s", model, got, fetcher)
		}
		k.play(fetcher + "+")
		if got := k.next(t); !slices.Equal(executes(k.setting, got), []string{parser}) {
			t.Errorf("%s goes on with %+v, want %s", model, got, parser)
		}
		if got := k.play(parser + "+").next(t); !claims(got) {
			t.Errorf("%s goes on with %+v, want a claim to be done", model, got)
		}
	}
}

// TestFindingNothing checks that an agent gives up if no search finds a tool.
func TestFindingNothing(t *testing.T) {
	t.Parallel()
	for _, model := range []string{sim.Listed, sim.Optimal, sim.Obedient} {
		k := newTalk(t, model, assay.Discover, assay.Baseline, task(fetcher, parser))
		first := k.next(t)
		k.add(first.Calls, found(), found())
		if got := k.next(t); !claims(got) {
			t.Errorf("%s goes on with %+v, want a claim to be done", model, got)
		}
	}
}

// TestChoosingFunctions asks without a plan under the tool setting listed. The agents call the
// function that fits each part best, with its required arguments.
func TestChoosingFunctions(t *testing.T) {
	t.Parallel()
	for _, model := range []string{sim.Listed, sim.Optimal, sim.Obedient} {
		k := newTalk(t, model, assay.Listed, assay.CoT, task(fetcher, parser))
		for _, want := range []string{fetcher, parser} {
			got := k.next(t)
			if !slices.Equal(executes(k.setting, got), []string{want}) {
				t.Fatalf("%s calls %+v, want %s", model, got.Calls, want)
			}
			var args map[string]any
			wantArgs := map[string]any{"source": "data/input.json"}
			if want == parser { // it refers to the earlier result
				wantArgs = map[string]any{
					"data": map[string]any{"ref": fetcher}, "input_format": "json",
				}
			}
			err := json.Unmarshal([]byte(got.Calls[0].Arguments), &args)
			if err != nil || !cmp.Equal(args, wantArgs) {
				t.Errorf("%s calls %s with %s", model, want, got.Calls[0].Arguments)
			}
			k.play(want + "+ .")
		}
		if got := k.next(t); !claims(got) {
			t.Errorf("%s ends with %+v, want a claim to be done", model, got)
		}
	}
}

// TestArgumentsFitSchema calls every built-in tool as a function.
func TestArgumentsFitSchema(t *testing.T) {
	t.Parallel()
	for _, tool := range catalog.All() {
		got := newTalk(t, sim.Obedient, assay.Listed, assay.Optimal, task(tool.Name)).next(t)
		var args map[string]any
		if len(got.Calls) != 1 || got.Calls[0].Name != tool.Name ||
			json.Unmarshal([]byte(got.Calls[0].Arguments), &args) != nil {
			t.Fatalf("%s is called by %+v", tool.Name, got)
		}
		for _, p := range tool.Parameters {
			v, given := args[p.Name]
			if given != p.Required {
				t.Errorf("%s: %s is given: %v, required: %v", tool.Name, p.Name, given, p.Required)
			}
			types := map[string]string{
				"string": "string", "number": "float64", "object": "map[string]interface {}",
			}
			if given && fmt.Sprintf("%T", v) != types[p.Type] {
				t.Errorf("%s: %s is %v, want a %s", tool.Name, p.Name, v, p.Type)
			}
		}
	}
}

// TestReplyDependsOnConversationOnly gives random conversations to two Models, many times at once.
func TestReplyDependsOnConversationOnly(t *testing.T) {
	t.Parallel()
	one, two := sim.New(catalog, sim.Latency{}), sim.New(catalog, sim.Latency{})
	words := []string{".", "~" + parser + "," + logger}
	for _, tool := range []string{fetcher, logger, parser, transformer} {
		words = append(words, tool+"+", tool+"-", tool+"!")
	}
	rapid.Check(t, func(rt *rapid.T) {
		model := rapid.SampledFrom(sim.Names).Draw(rt, "model")
		setting := rapid.SampledFrom(settings).Draw(rt, "setting")
		variant := rapid.SampledFrom(assay.PlainVariants).Draw(rt, "variant")
		k := newTalk(t, model, setting, variant, task(fetcher, transformer))
		history := rapid.SliceOfN(rapid.SampledFrom(words), 0, 9).Draw(rt, "history")
		k.play(strings.Join(history, " "))
		want, err := one.Chat(t.Context(), &k.req)
		if err != nil {
			rt.Fatal(err)
		}
		if want.ServedModel != k.req.Model || want.Waits.Requests != 1 ||
			want.Message.Role != assay.Assistant ||
			want.Usage.InputTokens <= 0 || want.Usage.OutputTokens <= 0 {
			rt.Fatalf("response %+v", want)
		}
		var wg sync.WaitGroup
		others := make([]*assay.Response, 6)
		for i := range others {
			wg.Go(func() { others[i], _ = []*sim.Models{one, two}[i%2].Chat(t.Context(), &k.req) })
		}
		wg.Wait()
		for _, got := range others {
			if !cmp.Equal(got.Message, want.Message) || got.Usage != want.Usage {
				rt.Fatalf("the same conversation gets different replies:\n%s", cmp.Diff(want, got))
			}
		}
	})
}

func TestNames(t *testing.T) {
	t.Parallel()
	for _, name := range sim.Names {
		if !sim.Is(name) {
			t.Errorf("Is(%q) = false", name)
		}
	}
	if sim.Is("sim/unheard-of") || sim.Is("") {
		t.Error("Is accepts an unknown model")
	}
	_, err := sim.New(catalog, sim.Latency{}).Chat(t.Context(),
		&assay.Request{Model: "sim/unheard-of"})
	if f := assay.AsFault(err); f == nil || f.Kind != assay.NotFound ||
		!strings.Contains(f.Detail, "sim/unheard-of") {
		t.Errorf("an unknown model gives %v, want a fault of kind %s", err, assay.NotFound)
	}
}

// FuzzChat gives every agent conversations with arbitrary text.
func FuzzChat(f *testing.F) {
	f.Add("You have at most 10 replies.",
		"## Task\n\nParse it, then log it.\n\n## Plan\n\n1. a\n2. b\n\nprobability of about 80 %",
		"tool_call", `{"tool":"a","success":true}`)
	f.Add("at most 99999999999999999999 replies", "## Task\n\n", "tool_search",
		`{"tools":[{"name":"a"},{}]}`)
	f.Add("at most 0 replies", "## Plan\n1. a\n1. a\nprobability of about ... %", "a",
		`{"success":false,"tool":["a"]}`)
	f.Add("", "## Task\n\n. and ; then :", "", "not JSON")
	f.Fuzz(func(t *testing.T, system, user, name, answer string) {
		if strings.Count(user, "\n") > 50 {
			t.Skip("a policy's size grows with the plan")
		}
		models := sim.New(catalog, sim.Latency{})
		discover := episode.Functions(world.PilotName, assay.Discover, catalog)
		for _, model := range sim.Names {
			for _, functions := range [][]assay.Function{discover, {{Name: name}}, nil} {
				req := assay.Request{Model: model, Functions: functions, Messages: []assay.Message{
					{Role: assay.System, Content: system},
					{Role: assay.User, Content: user},
					{
						Role: assay.Assistant,
						Calls: []assay.ToolCall{
							{ID: "a", Name: name}, {ID: "a", Name: "tool_search"},
						},
					},
					{Role: assay.ToolRole, CallID: "a", Content: answer},
					{Role: assay.ToolRole, CallID: "b", Content: answer},
				}}
				resp, err := models.Chat(t.Context(), &req)
				empty := resp.Message.Content == "" && len(resp.Message.Calls) == 0
				if err != nil || resp.Message.Role != assay.Assistant || empty {
					t.Fatalf("%s: %+v, %v", model, resp, err)
				}
			}
		}
	})
}
