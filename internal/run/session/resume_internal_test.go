package session

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/durable"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/store"
	"github.com/assay-eval/assay/internal/task/environment/environmenttest"
	"github.com/assay-eval/assay/internal/task/world"
)

// A mortal is a model whose reply depends on how many it has given in the conversation.
type mortal struct {
	replies []assay.Message
	// dies is called instead of the reply to the request after so many, if it is set.
	after int
	dies  func()
	asked int
}

func (m *mortal) Chat(ctx context.Context, req *assay.Request) (*assay.Response, error) {
	given := 0
	for _, msg := range req.Messages {
		if msg.Role == assay.Assistant {
			given++
		}
	}
	if m.dies != nil && given == m.after {
		m.dies()
		<-ctx.Done()
		return &assay.Response{}, ctx.Err()
	}
	m.asked++
	return &assay.Response{
		Message: m.replies[given%len(m.replies)], ServedModel: "m", Finish: fmt.Sprint("stop", given%2),
		Usage: assay.Usage{InputTokens: 100 + len(req.Messages), OutputTokens: 1 + given},
	}, nil
}

// sessionAt returns a session whose model is p, with what the journal at a path has left.
func sessionAt(path string, p assay.Provider) (*Session, error) {
	config := lane.Config{
		Name: "gw/K/m", Provider: p, Orders: "m", Limits: lane.Limits{Concurrency: 2},
		Price: lane.Price{Input: 1, Output: 2},
	}
	pools := &job.Pools{
		ByModel: map[string]*lane.Pool{"m": lane.NewPool("m", []lane.Config{config}, lane.Options{
			Request: time.Hour,
		})},
		Configs: map[string][]lane.Config{"m": {config}},
	}
	s := newSession(&job.Job{Experiment: &plan.Experiment{Name: "e", Models: []string{"m"}}},
		Options{Store: path}, pools)
	s.id = "r"
	left, err := store.ReadJournal(path + ".bills")
	if err != nil {
		return nil, err
	}
	left.Continue(store.JournalEntry{Run: "r", Experiment: "e"}, func(e error) { err = e })
	s.journal = left
	return s, err
}

// A stage is a library with a task of it.
type stage struct {
	world    string
	catalog  *assay.Catalog
	task     assay.Task
	variants []string
}

func stages(t *testing.T) (all []stage) {
	t.Helper()
	listed := assay.NewCatalog([]assay.Tool{
		{
			Name: "file_reader", Category: "file", Operation: "reader", Description: "Read a file.",
			Errors: []assay.ToolError{{Code: "TIMEOUT", Description: "It took too long."}},
		},
		{
			Name: "row_parser", Category: "row", Operation: "parser", Description: "Parse rows.",
			Errors:       []assay.ToolError{{Code: "TIMEOUT", Description: "It took too long."}},
			Dependencies: []string{"file_reader"},
		},
	})
	for _, w := range world.Simulated {
		all = append(all, stage{w, listed, assay.Task{
			ID: "rows", Type: "simple_task", Difficulty: "easy", Description: "Read the file, parse the rows.",
			Inputs: json.RawMessage(`{"source":"a.csv"}`), Expected: json.RawMessage(`{"success":true}`),
			Required: []string{"file_reader", "row_parser"},
		}, []string{assay.Baseline, assay.Optimal, assay.CoT}})
	}
	till := []assay.Tool{
		{
			Name: "pay", Effect: "pays", Schema: json.RawMessage(
				`{"properties":{"euros":{"type":"number"}},"required":["euros"],"type":"object"}`),
		},
		{Name: "flaky", Reliability: .5, Faults: "before=1", Schema: json.RawMessage(`{"type":"object"}`)},
	}
	all = append(all, stage{world.OwnName, assay.NewCatalog(till).With(assay.Script{
		Name: "t.star", Source: "def pay(state, euros):\n    state['paid'] = state.get('paid', 0) + euros\n" +
			"    return state['paid']\n\ndef flaky(state):\n    return True\n",
	}, nil), assay.Task{
		ID: "pay", Description: "Pay 25 euros.", Tools: []string{"pay", "flaky"}, State: json.RawMessage(`{}`),
		Judge: &assay.Judge{State: json.RawMessage(`{"paid":25}`)},
	}, []string{assay.Baseline}})
	web := httptest.NewServer(environmenttest.Handler(""))
	shop := assay.NewCatalog([]assay.Tool{till[0], {Name: "refund", Schema: till[0].Schema}}).With(
		assay.Script{}, &assay.MCPServer{
			OpenEnv: true, URL: web.URL, Concurrency: 4,
			Answer: json.RawMessage(`{"type":"message","content":"{answer}"}`),
		})
	t.Cleanup(func() {
		if err := shop.Close(); err != nil {
			t.Error(err)
		}
		web.Close()
	})
	for _, id := range []string{"chat", "refund"} {
		all = append(all, stage{world.OpenEnv, shop, assay.Task{
			ID: assay.TaskID(id), Description: "Pay half of 50 euros.", Tools: []string{"pay", "refund"},
			Reset: json.RawMessage(`{"task_id":"` + id + `"}`), Judge: &assay.Judge{Success: "reward >= 1"},
		}, []string{assay.Baseline}})
	}
	return all
}

// anyReply draws a reply with calls, words, mistakes or a claim.
func anyReply(tools string) *rapid.Generator[assay.Message] {
	return rapid.Custom(func(t *rapid.T) assay.Message {
		m := assay.Message{Role: assay.Assistant, Content: rapid.SampledFrom([]string{
			"", "", "I pay.", "TASK_COMPLETED", "Done: é <b> \u2028",
		}).Draw(t, "content")}
		for i := range rapid.SampledFrom([]int{0, 1, 1, 1, 2, 3}).Draw(t, "calls") {
			name := rapid.SampledFrom([]string{
				"file_reader", "row_parser", "pay", "refund", "flaky", "absent",
			}).Draw(t, "tool")
			arguments := rapid.SampledFrom([]string{`{"euros":25}`, `{"euros":5}`, `{}`, `{`}).Draw(t, "arguments")
			if tools == assay.Discover {
				arguments = fmt.Sprintf(`{"tool":%q,"arguments":{}}`, name)
				name = rapid.SampledFrom([]string{"tool_call", "tool_call", "tool_search"}).Draw(t, "function")
			}
			m.Calls = append(m.Calls, assay.ToolCall{ID: fmt.Sprint("c", i), Name: name, Arguments: arguments})
		}
		if rapid.IntRange(0, 9).Draw(t, "state") == 0 {
			m.State = &assay.State{Origin: "o", Data: json.RawMessage(`{"a":[1,2]}`)}
		}
		return m
	})
}

// TestAttemptsGoOnAtAnyTurn kills an attempt during each of its requests, in every world, and goes on
// with what is on disk. Transcript, outcome and cost are those of the undisturbed attempt, and no turn
// is asked for twice except for the one in flight.
func TestAttemptsGoOnAtAnyTurn(t *testing.T) {
	t.Parallel()
	for _, st := range stages(t) {
		t.Run(st.world+" "+string(st.task.ID), func(t *testing.T) { goesOn(t, st) })
	}
}

func goesOn(t *testing.T, st stage) {
	dir, kills := t.TempDir(), 0
	rapid.Check(t, func(t *rapid.T) {
		trial := assay.Trial{
			ID: "6dc1cf0f167275e458b4f45cb9d71c61", Seed: rapid.Uint64Range(0, 1<<40).Draw(t, "seed"),
			Cell: assay.Cell{
				Model: "m", Variant: rapid.SampledFrom(st.variants).Draw(t, "variant"),
				Reliability: rapid.SampledFrom([]float64{.3, .7, 1}).Draw(t, "reliability"),
			},
			Task: st.task.ID, Setting: assay.Setting{
				World: st.world, Protocol: assay.Native, Tools: assay.Listed,
				Turns: rapid.IntRange(1, 8).Draw(t, "turns"), Calls: rapid.IntRange(0, 9).Draw(t, "calls"),
				Loops: rapid.SampledFrom([]string{"", "none", "repeat=2!"}).Draw(t, "loops"),
			},
		}
		if slices.Contains(world.Simulated, st.world) {
			trial.Tools = rapid.SampledFrom([]string{assay.Discover, assay.Listed}).Draw(t, "tools")
		}
		if rapid.IntRange(0, 4).Draw(t, "limited") == 0 {
			trial.Tokens = rapid.IntRange(100, 600).Draw(t, "tokens")
		}
		replies := rapid.SliceOfN(anyReply(trial.Tools), 1, 8).Draw(t, "replies")
		runner := episode.NewRunner(st.catalog, time.Hour)
		play := func(name string, p *mortal) (*assay.Attempt, *assay.Transcript, *Session) {
			s, err := sessionAt(filepath.Join(dir, name), p)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			if die := p.dies; die != nil {
				p.dies = func() { die(); cancel() }
			}
			g := newGate(ctx, s, &trial)
			a, tr := runner.Run(ctx, g, &trial, &st.task)
			a.Charge(g.close())
			return a, tr, s
		}
		begin := func() { _ = os.Remove(filepath.Join(dir, "s.db.bills")) }
		begin()
		want, wantScript, _ := play("s.db", &mortal{replies: replies})
		if want.FaultKind != "" {
			t.Fatalf("undisturbed, the attempt ends in %s: %s", want.FaultKind, want.FaultDetail)
		}
		for k := range wantScript.Turns {
			begin()
			died := &mortal{replies: replies, after: k}
			died.dies = func() {
				left, err := os.ReadFile(filepath.Join(dir, "s.db.bills"))
				if err == nil {
					err = os.WriteFile(filepath.Join(dir, "killed.db.bills"), left, 0o600)
				}
				if err != nil {
					panic(err)
				}
			}
			_, before, _ := play("s.db", died)
			again := &mortal{replies: replies}
			got, script, s := play("killed.db", again)
			if died.asked != k || died.asked+again.asked != len(wantScript.Turns) {
				t.Fatalf("%d replies, %d of them before the kill and %d after it", len(wantScript.Turns),
					died.asked, again.asked)
			}
			if r := s.resumed.Resumed; k > 0 && r != (Resumed{Attempts: 1, Replies: k}) {
				t.Fatalf("resumed %+v, want an attempt with %d replies", r, k)
			}
			if diff := cmp.Diff(before.Turns, script.Turns[:k]); diff != "" && k > 0 {
				t.Fatalf("the turns before the kill (-before +after):\n%s", diff)
			}
			if got.UnpricedTokens == 0 {
				t.Fatal("the request in flight counts as free")
			}
			got.UnpricedTokens = want.UnpricedTokens
			if diff := cmp.Diff(asMeant(t, want, wantScript), asMeant(t, got, script)); diff != "" {
				t.Fatalf("killed in turn %d (-undisturbed +killed):\n%s", k+1, diff)
			}
			kills++
		}
	})
	if kills < 10 {
		t.Errorf("only %d kills: the test proves nothing", kills)
	}
}

// asMeant returns an attempt and its transcript as JSON without times.
func asMeant(t *rapid.T, a *assay.Attempt, tr *assay.Transcript) string {
	b, c := *a, *tr
	b.StartedAt, b.FinishedAt, b.QueuedMS, b.WorkingMS = time.Time{}, time.Time{}, 0, 0
	c.Turns = slices.Clone(tr.Turns)
	for i := range c.Turns {
		c.Turns[i].QueuedMS, c.Turns[i].WorkingMS = 0, 0
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetIndent("", " ")
	if err := e.Encode([]any{b, c}); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

const someTrial = "6dc1cf0f167275e458b4f45cb9d71c61"

// kept returns a gate of a new session on the journal at a path.
func kept(t *testing.T, path string, p assay.Provider) *gated {
	t.Helper()
	s, err := sessionAt(path, p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.journal.Close(true) })
	return newGate(t.Context(), s, &assay.Trial{ID: someTrial, Cell: assay.Cell{Model: "m"}})
}

// talk sends the n-th request of a conversation that begins with some words.
func talk(t *testing.T, g *gated, words string, n int, user bool) {
	t.Helper()
	req := &assay.Request{Model: "m", User: user, Messages: []assay.Message{{Role: assay.User, Content: words}}}
	for range n - 1 {
		req.Messages = append(req.Messages, assay.Message{Role: assay.Assistant}, assay.Message{Role: assay.User})
	}
	if _, err := g.Chat(t.Context(), req); err != nil {
		t.Fatal(err)
	}
}

// TestChangedRequestsAreAskedAgain checks that a reply is given only to the request that it answered,
// that the replies after it are dropped, and that their cost stays.
func TestChangedRequestsAreAskedAgain(t *testing.T) {
	t.Parallel()
	path, m := filepath.Join(t.TempDir(), "s.db"), &mortal{replies: []assay.Message{{Role: assay.Assistant}}}
	g := kept(t, path, m)
	for n := 1; n <= 3; n++ {
		talk(t, g, "a prompt", n, false)
	}
	talk(t, g, "what the user hears", 1, true)
	paid := g.bill.CostUSD + g.bill.UserCostUSD
	for _, c := range []struct {
		words        string
		asked, again int
	}{{"a prompt", 0, 0}, {"another prompt", 3, 3}} {
		g, m.asked = kept(t, path, m), 0
		if now := g.bill.CostUSD + g.bill.UserCostUSD; now != paid || g.bill.UserRequests != 1 {
			t.Errorf("%s: the attempt cost $%v with %d requests of the user, and $%v before the kill",
				c.words, now, g.bill.UserRequests, paid)
		}
		talk(t, g, "what the user hears", 1, true)
		for n := 1; n <= 3; n++ {
			talk(t, g, c.words, n, false)
		}
		if r := g.session.resumed.Resumed; m.asked != c.asked || r.AskedAgain != c.again {
			t.Errorf("%s: %d turns were asked for, and %+v", c.words, m.asked, r)
		}
	}
}

// TestVerdictsAreGivenAgain kills a run between the end of an episode and the judge's reply, and another
// one after that reply. What was said is given again, to the same question only, and its cost stays the
// judge's.
func TestVerdictsAreGivenAgain(t *testing.T) {
	t.Parallel()
	path, m := filepath.Join(t.TempDir(), "s.db"), &mortal{replies: []assay.Message{{Role: assay.Assistant}}}
	ask := func(g *gated, of string) {
		t.Helper()
		req := &assay.Request{Model: "m", Judge: true, Messages: []assay.Message{{Role: assay.User, Content: of}}}
		if _, err := g.Chat(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	talk(t, kept(t, path, m), "a prompt", 1, false)
	for _, c := range []struct {
		of           string
		asked, known int
	}{{"a case", 1, 0}, {"a case", 0, 1}, {"another case", 1, 1}} {
		g := kept(t, path, m)
		if g.bill.JudgeRequests != c.known || (g.bill.JudgeCostUSD > 0) != (c.known > 0) {
			t.Errorf("%s: the judge is known to have cost $%v in %d requests", c.of, g.bill.JudgeCostUSD, g.bill.JudgeRequests)
		}
		agent := g.bill.CostUSD
		m.asked = 0
		talk(t, g, "a prompt", 1, false)
		ask(g, c.of)
		if m.asked != c.asked || g.bill.CostUSD != agent || g.bill.UserCostUSD > 0 {
			t.Errorf("%s: %d requests, the agent cost $%v and then $%v", c.of, m.asked, agent, g.bill.CostUSD)
		}
	}
}

// TestAnotherWorkerGetsTheReplies checks that an attempt can begin again within a run.
func TestAnotherWorkerGetsTheReplies(t *testing.T) {
	t.Parallel()
	m := &mortal{replies: []assay.Message{{Role: assay.Assistant}}}
	g := kept(t, filepath.Join(t.TempDir(), "s.db"), m)
	for range 3 {
		for n := 1; n <= 4; n++ {
			talk(t, g, "a prompt", n, false)
		}
		g.Rewind()
	}
	if bill := g.close(); m.asked != 4 || bill.OutputTokens != 1+2+3+4 {
		t.Errorf("%d turns were asked for, and %d tokens count", m.asked, bill.OutputTokens)
	}
}

// TestJournalSurvives checks what is left of a journal that was cut off anywhere, that has a changed
// byte, or that was written anew: the entries up to that place, and those after the line that has
// changed.
func TestJournalSurvives(t *testing.T) {
	t.Parallel()
	path, m := filepath.Join(t.TempDir(), "s.db"), &mortal{replies: []assay.Message{{Role: assay.Assistant}}}
	g := kept(t, path, m)
	for n := 1; n <= 3; n++ {
		talk(t, g, "a prompt", n, false)
	}
	whole, err := os.ReadFile(path + ".bills")
	if err != nil {
		t.Fatal(err)
	}
	var withReply []bool
	for line := range bytes.Lines(whole) {
		withReply = append(withReply, bytes.Contains(line, []byte(`"packed"`)))
	}
	last, step := 3, 1
	if testing.Short() {
		step = 29
	}
	for cut := len(whole); cut >= 0; cut -= min(step, max(cut, 1)) {
		changed := slices.Clone(whole)
		if cut < len(whole) {
			changed[cut] ^= 4
		}
		counts := [2]int{}
		for i, text := range [][]byte{whole[:cut], changed} {
			if err := os.WriteFile(path+".bills", text, 0o600); err != nil {
				t.Fatal(err)
			}
			j, err := store.ReadJournal(path + ".bills")
			if err != nil {
				t.Fatal(err)
			}
			counts[i], _ = j.Rewind(someTrial)
			j.Close(false)
		}
		line := bytes.Count(whole[:cut], []byte("\n"))
		kept := counts[0] <= counts[1] && counts[1] <= 3 && (cut == len(whole) || counts[1] < 3 || !withReply[line])
		if counts[0] > last || !kept {
			t.Fatalf("cut off after %d of %d bytes there are %d replies, and %d if the byte has changed; %d before",
				cut, len(whole), counts[0], counts[1], last)
		}
		last = counts[0]
	}
	if last > 0 {
		t.Errorf("an empty journal has %d replies", last)
	}

	if err := os.WriteFile(path+".bills", whole, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 3 { // each session writes it anew
		g, m.asked = kept(t, path, m), 0
		for n := 1; n <= 3; n++ {
			talk(t, g, "a prompt", n, false)
		}
		if m.asked > 0 {
			t.Errorf("%d turns were asked for again", m.asked)
		}
	}
}

// TestRepliesAreOnDiskFirst checks that each reply was synced before the attempt goes on with it. A kill
// does not tell, because it takes nothing away that was written.
func TestRepliesAreOnDiskFirst(t *testing.T) {
	path, m := filepath.Join(t.TempDir(), "s.db"), &mortal{replies: []assay.Message{{Role: assay.Assistant}}}
	var syncs atomic.Int32
	durable.Watch(func(name string, directory bool) error {
		if !directory && strings.HasPrefix(name, path) {
			syncs.Add(1)
		}
		return nil
	})
	defer durable.Watch(func(string, bool) error { return nil })
	g := kept(t, path, m)
	for n := 1; n <= 4; n++ {
		before := syncs.Load()
		talk(t, g, "a prompt", n, false)
		if syncs.Load() == before {
			t.Errorf("reply %d was not synced", n)
		}
	}
}
