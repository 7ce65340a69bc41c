package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/bridge"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/task/environment"
	"github.com/assay-eval/assay/internal/task/mcp"
)

// open makes the runners of the job. It fails if something that they need is not on this machine.
func (s *session) open() (end func() error, err error) {
	for _, name := range s.job.Variables {
		if os.Getenv(name) == "" {
			return nil, &RefusedError{fmt.Sprintf("the environment variable %[1]s is not set on this "+
				"machine\nhint: agents or tools of the run get it; export %[1]s=...", name)}
		}
	}
	server, err := s.server()
	if err != nil {
		return nil, err
	}
	catalog := assay.NewCatalog(s.job.Tools).With(s.job.Script, server)
	s.bare = episode.NewRunner(catalog, s.job.Budget)
	if len(s.job.Agents) == 0 && !s.job.User {
		return catalog.Close, nil
	}
	if s.bridge, err = s.options.Agents.Open(s.options.Say, slices.Collect(maps.Values(s.job.Agents))...); err != nil {
		return nil, fmt.Errorf("open a port for agents: %w", err)
	}
	for model, a := range s.job.Agents {
		if a, err = s.local(a); err != nil {
			return nil, errors.Join(err, s.bridge.Close())
		}
		s.agents[model] = s.bridge.Runner(s.bare, a)
	}
	if s.job.User {
		if err := environment.Of(catalog).OfferUser(s.bridge.UserURL()); err != nil {
			return nil, errors.Join(err, s.bridge.Close())
		}
	}
	return func() error { return errors.Join(s.bridge.Close(), catalog.Close()) }, nil
}

// server returns the server of tools as it starts on this machine, or nil if the run does not use
// one. It fails if its program or its key is not here.
func (s *session) server() (*assay.MCPServer, error) {
	if s.job.Server == nil {
		return nil, nil
	}
	here := *s.job.Server
	here.Dir = cmp.Or(s.options.Dir, here.Dir)
	check := mcp.Check
	if here.OpenEnv {
		check = environment.Check
	}
	if err := check(&here); err != nil {
		return nil, &RefusedError{fmt.Sprintf("the server of tools cannot start on this machine: %v\n"+
			"hint: install it here; --dir names the directory of its files if it is another one", err)}
	}
	return &here, nil
}

// local returns an agent as it starts on this machine. It fails if its program is not here.
func (s *session) local(a bridge.Agent) (bridge.Agent, error) {
	if a.URL != "" {
		return a, nil
	}
	if home := cmp.Or(s.options.Dir, a.Home); home != "" {
		if abs, err := filepath.Abs(home); err == nil {
			home = abs
		}
		a = a.At(home)
	}
	if err := a.Check(); err != nil {
		return a, &RefusedError{fmt.Sprintf("agent %s cannot start on this machine: %v\n"+
			"hint: install it here; --dir names the directory of agents if it is another one",
			a.Name, err)}
	}
	if note := a.ExposedNote(); note != "" {
		s.options.Say(note)
	}
	return a, nil
}
