package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/bridge"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/run/fleet"
	"github.com/assay-eval/assay/internal/run/terminal"
	"github.com/assay-eval/assay/internal/task/environment"
)

// An attemptRunner carries out attempts: with bare models, or with a foreign agent.
type attemptRunner interface {
	Run(
		ctx context.Context, provider assay.Provider, trial *assay.Trial, task *assay.Task,
	) (*assay.Attempt, *assay.Transcript)
}

// runners returns the runner of each model, and a function that closes them.
func (s *Session) runners() (byModel map[string]attemptRunner, end func() error, err error) {
	episodes := episode.NewRunner(s.Library.Catalog(), time.Duration(s.Experiment.Limits.Trial))
	byModel, end = make(map[string]attemptRunner), func() error { return nil }
	if s.options.Workers != nil {
		return s.serveWorkers()
	}
	for _, m := range s.Experiment.Models {
		byModel[m] = episodes
	}
	if len(s.pools.Agents) == 0 && s.Experiment.User == "" {
		return byModel, end, nil
	}
	var agents []bridge.Agent
	for _, a := range s.pools.Agents {
		agents = append(agents, a.Agent)
	}
	b, err := s.options.Agents.Open(func(text string) { s.log.Error(text) }, agents...)
	if err != nil {
		return nil, nil, fmt.Errorf("open a port for agents: %w", err)
	}
	s.agents = b.States
	for m, a := range s.pools.Agents {
		byModel[m] = b.Runner(episodes, a.Agent)
	}
	if s.Experiment.User != "" {
		if err := environment.Of(s.Library.Catalog()).OfferUser(b.UserURL()); err != nil {
			return nil, nil, errors.Join(err, b.Close())
		}
		for m, agent := range byModel {
			byModel[m] = b.WithUser(agent)
		}
	}
	return byModel, b.Close, nil
}

// serveWorkers opens a coordinator, and lets workers carry out the attempts of all models.
func (s *Session) serveWorkers() (byModel map[string]attemptRunner, end func() error, err error) {
	catalog := s.Library.Catalog()
	work := fleet.Job{
		Experiment: s.Experiment.Name, Run: s.id, Budget: time.Duration(s.Experiment.Limits.Trial),
		Tools: catalog.All(), Script: catalog.Script(), Server: catalog.Server(),
		User:   s.Experiment.User != "",
		Agents: make(map[string]bridge.Agent),
	}
	var passed []string
	for m, a := range s.pools.Agents {
		work.Agents[m] = a.Agent
		passed = append(append(passed, a.Pass...), a.Keys...)
	}
	if work.Server != nil {
		passed = append(passed, work.Server.Env...)
	}
	for _, name := range passed {
		if os.Getenv(name) != "" && !slices.Contains(work.Variables, name) {
			work.Variables = append(work.Variables, name)
		}
	}
	hub, err := s.options.Workers()
	if err != nil {
		return nil, nil, err
	}
	s.coordinator, err = fleet.NewCoordinator(hub, fleet.CoordinatorOptions{
		Job: work, Program: s.options.Program, Lease: s.options.Lease, Changed: s.wakeUp, Note: s.note,
	})
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("wait for workers: %w", err), hub.Close())
	}
	s.agents = s.coordinator.States
	byModel = make(map[string]attemptRunner)
	for _, m := range s.Experiment.Models {
		byModel[m] = s.coordinator
	}
	return byModel, func() error {
		s.coordinator.Close()
		return hub.Close()
	}, nil
}

// agentStates counts the agents of a model by their states. It returns nil for a bare model.
func (s *Session) agentStates(model string) map[assay.AgentState]int {
	if _, ok := s.pools.Agents[model]; !ok {
		return nil
	}
	return s.agents(model)
}

// drain lets workers finish their assignments and go.
func (s *Session) drain(_ context.Context, o Order) (string, error) {
	if s.coordinator == nil {
		return "", assay.WithHint(errors.New("this run has no workers"), assay.HintServe)
	}
	known := s.coordinator.Workers()
	for _, name := range o.Names {
		if !slices.ContainsFunc(known, func(w terminal.Worker) bool { return w.Name == name }) {
			return "", assay.WithHint(fmt.Errorf("no worker is called %s", name), assay.HintLanes,
				assay.StorePath(s.options.Store))
		}
	}
	for _, name := range o.Names {
		s.coordinator.Drain(name)
	}
	return strings.Join(o.Names, ", ") + " finishes its attempts, and goes", nil
}

// newSharedLimits returns the shared limits of this run. Programs on the machines of workers are
// bounded by their slots, and services by their own limits wherever the attempts are carried out.
func (s *Session) newSharedLimits() sharedLimits {
	agents, server := s.pools.Agents, s.Library.Catalog().Server()
	sessions := func() int { return environment.Of(s.Library.Catalog()).Sessions() }
	if s.coordinator == nil {
		return sharedLimitsOf(s.Experiment.Models, agents, server, sessions,
			&memory{read: freeMemory, note: s.note})
	}
	services := make(map[string]job.Agent)
	for listed, a := range agents {
		if a.URL != "" {
			services[listed] = a
		}
	}
	if server != nil && server.URL == "" {
		server = nil
	}
	all := sharedLimitsOf(s.Experiment.Models, services, server, sessions, nil)
	slots := newSharedLimit(s.coordinator.Slots, "", nil)
	for _, listed := range s.Experiment.Models {
		all.join(listed, slots)
	}
	return all
}
