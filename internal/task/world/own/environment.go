package own

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/environment"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// EnvironmentName is the name of the world for environments that others publish as OpenEnv servers.
const EnvironmentName = "openenv"

// Environments registers that world. It has the rules, chances and plans of [Definition]. The tools
// and the verdict are the environment's, and a user may talk with the agent.
var Environments = environments()

func environments() spec.Definition {
	d := Definition
	d.Name, d.ScoreVersion, d.Environments = EnvironmentName, "openenv-4", true
	d.Begin = func(
		ctx context.Context, catalog *assay.Catalog, trial *assay.Trial, task *assay.Task,
	) spec.World {
		e := &environmentBackend{catalog: catalog, task: task}
		w := &dialogue{World: New(ctx, catalog, trial, task, e), environment: e}
		w.broken = e.begin(ctx, trial.Seed)
		return w
	}
	return d
}

// dialogue is the world during one episode with an environment.
type dialogue struct {
	*World
	environment *environmentBackend
	broken      error // why the episode could not begin
}

// Begun implements [spec.Dialogue].
func (w *dialogue) Begun() error { return w.broken }

// Offers implements [spec.Dialogue].
func (w *dialogue) Offers(tool string) bool { return w.environment.offered[tool] }

// Call implements [spec.World].
func (w *dialogue) Call(turn int, name, arguments string) (assay.CallRecord, error) {
	if err := w.offers(name); err != nil {
		return assay.CallRecord{}, err
	}
	return w.World.Call(turn, name, arguments)
}

// Refuse implements [spec.Refuser].
func (w *dialogue) Refuse(turn int, name, arguments, why string) (assay.CallRecord, error) {
	if err := w.offers(name); err != nil {
		return assay.CallRecord{}, err
	}
	return w.World.Refuse(turn, name, arguments, why)
}

func (w *dialogue) offers(name string) error {
	if w.broken == nil && !w.Offers(name) {
		return fmt.Errorf("there is no tool named %q now", name)
	}
	return w.broken
}

// Reply implements [spec.Dialogue].
func (w *dialogue) Reply(ctx context.Context, text string) (next string, err error) {
	if w.broken != nil {
		return "", w.broken
	}
	return w.environment.reply(ctx, text)
}

// Claims implements [spec.World]. Each reply without actions is for the user.
func (w *dialogue) Claims(_ string, acts bool) bool { return !acts }

// Ends implements [spec.World]. The environment decides whether a reply ends the episode.
func (w *dialogue) Ends(string, bool) bool { return false }

// Stop implements [spec.World].
func (w *dialogue) Stop() (assay.Ended, bool) {
	return assay.Finished, w.environment.session != nil && w.environment.session.Last.Done
}

// End implements [spec.Ender].
func (w *dialogue) End() (json.RawMessage, error) {
	if w.broken != nil {
		return nil, errors.Join(w.broken, w.environment.Close())
	}
	return w.World.End()
}

// environmentBackend carries out the tools of one attempt in a session of an environment.
type environmentBackend struct {
	catalog *assay.Catalog
	task    *assay.Task
	session *environment.Session // nil until it begins
	offered map[string]bool      // the tools that can be called now
}

// begin opens a session and begins the task. Its first message and its tools have to be the planned
// ones.
func (b *environmentBackend) begin(ctx context.Context, seed uint64) (err error) {
	if b.session, err = environment.Of(b.catalog).Open(ctx); err != nil {
		return err
	}
	o, err := b.session.Reset(ctx, b.task.Reset, seed)
	if err != nil {
		return err
	}
	if _, user := o.Messages(); user != "" && strings.TrimSpace(user) != b.task.Description {
		return drifted("the first message of task " + string(b.task.ID))
	}
	return b.offer(ctx)
}

// offer asks for the tools that can be called now.
func (b *environmentBackend) offer(ctx context.Context) error {
	tools, err := b.session.Tools(ctx)
	if err != nil {
		return err
	}
	b.offered = make(map[string]bool)
	for _, t := range tools {
		known, ok := b.catalog.Tool(t.Name)
		switch {
		case len(b.task.Tools) > 0 && !slices.Contains(b.task.Tools, t.Name):
			return drifted("the tools of task " + string(b.task.ID))
		case ok && string(known.Schema) != string(t.Schema):
			return drifted("the tool " + t.Name)
		}
		b.offered[t.Name] = ok
	}
	return nil
}

// drifted returns the fault of an environment that differs from the planned one.
func drifted(what string) *assay.Fault {
	return &assay.Fault{
		Kind: assay.ToolServer, Hopeless: true,
		Detail: what + " changed after the trial was planned",
	}
}

// Call implements [Backend].
func (b *environmentBackend) Call(
	ctx context.Context, tool string, arguments json.RawMessage,
) (json.RawMessage, error) {
	return b.session.Call(ctx, tool, arguments)
}

// Inject is like Call with an attacker's words in the result, as far as it has a place for them.
func (b *environmentBackend) Inject(ctx context.Context, tool string, arguments json.RawMessage) (
	result json.RawMessage, injected bool, err error,
) {
	return b.session.Inject(ctx, tool, arguments)
}

// reply hands over what the agent says to the user.
func (b *environmentBackend) reply(ctx context.Context, text string) (next string, err error) {
	if len(b.catalog.Server().Answer) == 0 {
		return "", nil
	}
	o, err := b.session.Say(ctx, text)
	if err != nil || o.Done {
		return "", err
	}
	if _, next = o.Messages(); next == "" {
		return "", nil
	}
	return next, b.offer(ctx)
}

// State implements [Backend]. The state is the last observation. An episode that the environment has
// ended without the reward that decides about success has no verdict, which is a fault.
func (b *environmentBackend) State(ctx context.Context) (json.RawMessage, error) {
	if b.session == nil {
		return nil, nil
	}
	if err := b.session.Finish(ctx); err != nil {
		return nil, err
	}
	last := b.session.Last
	if last.Done && last.Reward == nil && b.success().OfReward() {
		return nil, &assay.Fault{Kind: assay.ToolServer, Detail: fmt.Sprintf("the environment ended task %s "+
			"(done) without a reward, so there is no verdict: its last observation has to have one, or "+
			"`success` to name another field", b.task.ID)}
	}
	return json.Marshal(last)
}

// success returns the condition for the success of the task.
func (b *environmentBackend) success() environment.Condition {
	success, err := environment.ParseCondition(b.task.Judge.Success)
	if err != nil { // libraries are checked when they are read
		panic("own: " + err.Error())
	}
	return success
}

// Close implements [Backend].
func (b *environmentBackend) Close() error {
	if b.session == nil {
		return nil
	}
	return b.session.Close()
}
