package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A mutation puts a defect into the product, or breaks a law of it on purpose. It is applied to a
// copy of the file.
type mutation struct{ name, file, from, to string }

// mutations are defects that were mended, and then laws that are broken on purpose.
var mutations = []mutation{
	{
		"a turn that waits for longer than its limit asks for a lane again and again", "internal/model/lane/pool.go",
		"return max(left, p.options.Queue/60, time.Second)", "return 1",
	},
	{
		"a pause counts as waiting", "internal/model/lane/turn.go",
		"t.stayed += r.stayed", "t.stayed += time.Since(asked)",
	},
	{
		"a back-off overflows", "internal/model/lane/backoff.go",
		"rand.N(doubled(base, longest, tries))", "rand.N(min(longest, base<<waits.Requests))",
	},
	{
		"cancelled and requeued trials did not start", "internal/run/engine/engine.go",
		"q.removed[q.next.ID] = removal{trial: *q.next}",
		"q.removed[q.next.ID] = removal{trial: *q.next}; l.summary.Skipped[why]++",
	},
	{
		"a block of refusals that is read in the past shifts by a negative number", "internal/model/limit/block.go",
		"max(0, now-l.ramp.began)", "(now-l.ramp.began-time.Second)",
	},
	{
		"a run forgets what was sent before a kill", "internal/experiment/job/pools.go",
		"if sent.Knows(c.Name) {", "if false {",
	},
	{
		"cancelled attempts cost nothing", "internal/run/engine/engine.go",
		"if interrupted && !attempt.Paid() {", "if interrupted {",
	},
	{
		"killed attempts cost nothing", "internal/run/session/resume.go",
		"if !u.Paid() {", "if true {",
	},
	{
		"a small budget is spent on trials that are all cut off", "internal/experiment/job/stopper.go",
		"all[i].inFlight > 0 && !g.roomLocked", "all[i].inFlight > 10_000 && !g.roomLocked",
	},
	{
		"requests that wait for a lane are sent after their budget is spent", "internal/model/lane/queue.go",
		"if err := w.spent(); err != nil {", "if err := w.spent(); err != nil && w.since.IsZero() {",
	},
	{
		"an agent that does not wait for its model is scored if it ends before that is noticed", "internal/agent/episode/stage.go",
		"(s.abandoned || s.asking > 0)", "s.abandoned",
	},
	{
		"an agent that does not start is scored", "internal/agent/bridge/bridge.go",
		"case end.err == nil && !a.trace().acted():", "case false:",
	},
	{
		"turns are asked again after a kill", "internal/run/session/gated.go",
		"if resp := g.replay(req, to); resp != nil {", "if resp := g.replay(req, to); resp != nil && false {",
	},
	{
		"a run does not notice that its store has failed while nothing is saved", "internal/run/session/session.go",
		"cancel(s.db.WriteError())", "",
	},
	{
		"law 1: some outcomes are shown and not stored", "internal/run/session/attempt.go",
		"err := s.db.Save(ctx, a, t)", "var err error; if a.ID[0] != '7' { err = s.db.Save(ctx, a, t) }",
	},
	{
		"law 2: a minute has 50 seconds", "internal/model/lane/limits.go",
		"allRequests, time.Minute, limit.Requests", "allRequests, 50 * time.Second, limit.Requests",
	},
	{
		"law 3: lost replies cost nothing", "internal/model/lane/exchange.go",
		"resp.Usage.UnpricedTokens += l.Price.unpriced(lost, true)", "",
	},
	{
		"law 4: status does not know closed models", "internal/run/session/status.go",
		"closeModels(t, models, r.Ended.Closed)", "",
	},
	{
		"law 5: a watch looks a thousand times a second", "internal/run/engine/still.go",
		"lookEvery = 250 * time.Millisecond", "lookEvery = time.Millisecond",
	},
	{
		"law 6: luck depends on the clock", "internal/run/engine/engine.go",
		"attempt, transcript := l.cfg.Attempt(ctx, e.trial)",
		"other := *e.trial; if started.Minute() == 3 { other.Seed++ }; attempt, transcript := l.cfg.Attempt(ctx, &other)",
	},
}

// build builds this program with a mutation.
func (m *mutation) build(dir string) (program string, err error) {
	text, err := os.ReadFile(m.file)
	if err != nil {
		return "", fmt.Errorf("%w\nhint: run this at the root of the source", err)
	}
	if !strings.Contains(string(text), m.from) {
		return "", fmt.Errorf("%s has no %q any more", m.file, m.from)
	}
	path, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	copied := filepath.Join(dir, "mutated.go")
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {path: copied}})
	if err != nil {
		return "", err
	}
	mutated := strings.Replace(string(text), m.from, m.to, 1)
	if err := os.WriteFile(copied, []byte(mutated), 0o600); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600); err != nil {
		return "", err
	}
	program = filepath.Join(dir, "simulate")
	out, err := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", program,
		"./tools/simulate").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return program, nil
}

// find lives worlds with a mutation until one breaks a law, and prints a row of a table.
func (m *mutation) find(ctx context.Context, out io.Writer, o *options) error {
	dir, err := os.MkdirTemp("", "mutation")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program, err := m.build(dir)
	if err != nil {
		return err
	}
	requests := 0
	for r := range worlds(ctx, program, o.seed) {
		if requests += r.Requests; len(r.Wrong) > 0 {
			law := strings.NewReplacer("|", "/", "\n", " ").Replace(r.Wrong[0])
			fmt.Fprintf(out, "| %s | %d | %d | %.160s |\n", m.name, r.Seed, requests, law)
			return nil
		}
		if requests >= o.requests {
			fmt.Fprintf(out, "| %s | not found in %d requests, up to seed %d |\n", m.name, requests, r.Seed)
			return errBroken
		}
	}
	return ctx.Err()
}

// findAll tries the mutations whose names contain a text.
func findAll(ctx context.Context, out io.Writer, o *options) error {
	fmt.Fprintln(out, "| mutation | seed | requests | found by |\n|---|--:|--:|---|")
	var missed error
	for _, m := range mutations {
		if o.mutate != "all" && !strings.Contains(m.name, o.mutate) {
			continue
		}
		if err := m.find(ctx, out, o); err == errBroken {
			missed = fmt.Errorf("a mutation was not found: %s", m.name)
		} else if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return missed
}
