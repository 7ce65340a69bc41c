// Package openenv is the world openenv, for environments that others publish as OpenEnv servers. It
// has the rules, chances and plans of package own. The tools and the verdict are the environment's,
// and a user may talk with the agent.
//
// docs/worlds.md states the same rules in words.
package openenv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/environment"
	"github.com/assay-eval/assay/internal/task/world/own"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// Name is the world's name.
const Name = "openenv"

// Definition registers the world.
var Definition = define()

func define() spec.Definition {
	d := own.Definition
	d.Name, d.ScoreVersion = Name, "openenv-1"
	d.Environments = true
	d.Begin = func(
		ctx context.Context, catalog *assay.Catalog, trial *assay.Trial, task *assay.Task,
	) spec.World {
		return begin(ctx, catalog, trial, task)
	}
	return d
}

// World is the world during one episode. It belongs to one goroutine.
type World struct {
	*own.World
	backend *backend
	broken  error // why the episode could not begin
}

func begin(
	ctx context.Context, catalog *assay.Catalog, trial *assay.Trial, task *assay.Task,
) *World {
	b := newBackend(catalog, task)
	w := &World{World: own.New(ctx, catalog, trial, task, b), backend: b}
	w.broken = b.begin(ctx, trial.Seed)
	return w
}

// Begun implements [spec.Dialogue].
func (w *World) Begun() error { return w.broken }

// Offers implements [spec.Dialogue].
func (w *World) Offers(tool string) bool { return w.backend.offered[tool] }

// Call implements [spec.World].
func (w *World) Call(turn int, name, arguments string) (assay.CallRecord, error) {
	if w.broken != nil {
		return assay.CallRecord{}, w.broken
	}
	if !w.Offers(name) {
		return assay.CallRecord{}, fmt.Errorf("there is no tool named %q now", name)
	}
	return w.World.Call(turn, name, arguments)
}

// Reply implements [spec.Dialogue].
func (w *World) Reply(ctx context.Context, text string) (next string, err error) {
	if w.broken != nil {
		return "", w.broken
	}
	return w.backend.reply(ctx, text)
}

// Claims implements [spec.World]. Each reply without actions is for the user.
func (w *World) Claims(_ string, acts bool) bool { return !acts }

// Ends implements [spec.World]. The environment decides whether a reply ends the episode.
func (w *World) Ends(string, bool) bool { return false }

// Stop implements [spec.World].
func (w *World) Stop() (assay.Ended, bool) {
	return assay.Finished, w.backend.session != nil && w.backend.session.Last.Done
}

// End implements [spec.Ender].
func (w *World) End() (json.RawMessage, error) {
	if w.broken != nil {
		return nil, errors.Join(w.broken, w.backend.Close())
	}
	return w.World.End()
}

// Start returns the tools of a task apart from an episode. It must be closed.
func Start(ctx context.Context, catalog *assay.Catalog, task *assay.Task) (own.Backend, error) {
	b := newBackend(catalog, task)
	if err := b.begin(ctx, 0); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// backend carries out the tools of one attempt in a session of the environment.
type backend struct {
	catalog *assay.Catalog
	task    *assay.Task
	session *environment.Session // nil until it begins
	offered map[string]bool      // the tools that can be called now
}

func newBackend(catalog *assay.Catalog, task *assay.Task) *backend {
	return &backend{catalog: catalog, task: task}
}

// begin opens a session and begins the task. Its first message and its tools have to be the planned
// ones.
func (b *backend) begin(ctx context.Context, seed uint64) (err error) {
	if b.session, err = environment.Of(b.catalog).Open(ctx); err != nil {
		return err
	}
	o, err := b.session.Reset(ctx, b.task.Reset, seed)
	if err != nil {
		return err
	}
	if _, user := o.Messages(); user != "" && strings.TrimSpace(user) != b.task.Description {
		return changed("the first message of task " + string(b.task.ID))
	}
	return b.offer(ctx)
}

// offer asks for the tools that can be called now.
func (b *backend) offer(ctx context.Context) error {
	tools, err := b.session.Tools(ctx)
	if err != nil {
		return err
	}
	b.offered = make(map[string]bool)
	for _, t := range tools {
		known, ok := b.catalog.Tool(t.Name)
		switch {
		case len(b.task.Tools) > 0 && !slices.Contains(b.task.Tools, t.Name):
			return changed("the tools of task " + string(b.task.ID))
		case ok && string(known.Schema) != string(t.Schema):
			return changed("the tool " + t.Name)
		}
		b.offered[t.Name] = ok
	}
	return nil
}

// changed returns the fault of an environment that differs from the planned one.
func changed(what string) *assay.Fault {
	return &assay.Fault{
		Kind: assay.ToolServer, Hopeless: true,
		Detail: what + " changed after the trial was planned",
	}
}

// Call implements [own.Backend].
func (b *backend) Call(
	ctx context.Context, tool string, arguments json.RawMessage,
) (json.RawMessage, error) {
	return b.session.Call(ctx, tool, arguments)
}

// Inject implements [own.Injector].
func (b *backend) Inject(ctx context.Context, tool string, arguments json.RawMessage) (
	result json.RawMessage, injected bool, err error,
) {
	return b.session.Inject(ctx, tool, arguments)
}

// reply hands over what the agent says to the user.
func (b *backend) reply(ctx context.Context, text string) (next string, err error) {
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

// State implements [own.Backend]. The state is the last observation.
func (b *backend) State(context.Context) (json.RawMessage, error) {
	if b.session == nil {
		return nil, nil
	}
	return json.Marshal(b.session.Last)
}

// Close implements [own.Backend].
func (b *backend) Close() error {
	if b.session == nil {
		return nil
	}
	return b.session.Close()
}
