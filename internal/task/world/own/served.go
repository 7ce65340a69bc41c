package own

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/mcp"
)

// servedBackend is a backend with its own server, which starts when it is first needed.
type servedBackend struct {
	catalog *assay.Catalog
	task    *assay.Task
	server  *mcp.Server
	broken  error // why the server could not be started
}

// Call implements [Backend].
func (s *servedBackend) Call(
	ctx context.Context, tool string, arguments json.RawMessage,
) (json.RawMessage, error) {
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	return s.server.Call(ctx, tool, arguments)
}

// start starts the server and brings it into the state that the task begins with.
func (s *servedBackend) start(ctx context.Context) error {
	if s.server != nil || s.broken != nil {
		return s.broken
	}
	if s.server, s.broken = mcp.Open(ctx, s.catalog.Server()); s.broken != nil {
		return s.broken
	}
	if s.broken = s.unchanged(); s.broken != nil {
		return s.broken
	}
	for i, call := range s.task.Setup {
		if _, err := s.server.Call(ctx, call.Tool, call.Arguments); err != nil {
			s.broken = brokenCall(fmt.Sprintf("setup[%d], a call of %s", i, call.Tool), err)
			return s.broken
		}
	}
	return nil
}

// unchanged returns a fault if the server's tools differ from the catalog.
func (s *servedBackend) unchanged() error {
	now := assay.NewCatalog(s.server.Tools())
	var changed []string
	for _, t := range s.catalog.All() {
		is, ok := now.Tool(t.Name)
		if !ok || string(is.Schema) != string(t.Schema) {
			changed = append(changed, t.Name)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	return &assay.Fault{
		Kind: assay.ToolServer, Hopeless: true,
		Detail: "the server's tools have changed since the trial was planned: " +
			strings.Join(changed, ", "),
	}
}

// brokenCall returns the fault of a call of ours, which has to work.
func brokenCall(what string, err error) error {
	if fault := (*assay.Fault)(nil); errors.As(err, &fault) {
		return fault
	}
	return &assay.Fault{
		Kind: assay.ToolServer, Detail: fmt.Sprintf("%s failed: %v", what, err), Err: err,
		Hopeless: true,
	}
}

// State implements [Backend]. The state has the results of the task's observations, by their names.
// If the server answers an observation with an error, the error is the value.
func (s *servedBackend) State(ctx context.Context) (json.RawMessage, error) {
	if len(s.task.Observe) == 0 {
		return nil, nil
	}
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	state := make(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(s.task.Observe)) {
		call := s.task.Observe[name]
		output, err := s.server.Call(ctx, call.Tool, call.Arguments)
		answer := (*mcp.Error)(nil)
		switch {
		case errors.As(err, &answer):
			state[name] = map[string]string{"error": answer.Text}
		case err != nil:
			return nil, err
		default:
			state[name] = output
		}
	}
	return json.Marshal(state)
}

// Close implements [Backend].
func (s *servedBackend) Close() error {
	if s.server == nil {
		return nil
	}
	return s.server.Close()
}
