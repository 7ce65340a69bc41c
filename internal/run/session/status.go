package session

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/result/reading"
	"github.com/assay-eval/assay/internal/run/live"
	"github.com/assay-eval/assay/internal/store"
)

// A Status counts the done, pending and parked trials of a stored experiment.
type Status struct {
	Name    string `json:"experiment"`
	World   string `json:"world"`
	Library string `json:"library"`
	live.Trials
	Stopped  []job.Stop    `json:"stopped_early"`
	Faults   int           `json:"faults"`
	Models   []ModelStatus `json:"models"`
	Coverage []Coverage    `json:"coverage"`
	LastRun  store.Run     `json:"last_run"`
	// Working is true if the latest run holds the store's lock. A run that has ended or was killed
	// does not.
	Working bool `json:"working"`
	// Live is the answer of a run that is working. StatusOf does not ask for it.
	Live *live.Progress `json:"live,omitempty"`
	Runs int            `json:"runs"`
	// Unplanned counts the attempts of earlier plans of this name at trials that the latest plan
	// does not have.
	Unplanned int `json:"unplanned"`
	// Unread counts the attempts of the store that cannot be read or proved. If they were outcomes,
	// their trials count as pending.
	Unread int `json:"unread,omitempty"`
	// Closed has the models and lanes that the latest run closed, with the reason.
	Closed map[string]string `json:"closed"`
	// OtherSettings adds up the counts in the summaries of all runs.
	OtherSettings map[string]int `json:"other_settings,omitempty"`
	// Stillness comes from the summary of the latest run.
	Stillness string `json:"stillness,omitempty"`
	// Users are the models behind the simulated users of all attempts.
	Users []store.UserUse `json:"users,omitempty"`
	// ParkedFor counts parked trials by the reason.
	ParkedFor map[string]int `json:"-"`
}

// A ModelStatus is the status of one model.
type ModelStatus struct {
	Model string `json:"model"`
	live.Trials
	Faults map[assay.FaultKind]int `json:"faults"`
}

// Coverage counts the trials of the cells that differ in their task type only.
type Coverage struct {
	Experiment string `json:"experiment"`

	Model       string  `json:"model"`
	Variant     string  `json:"variant"`
	Severity    string  `json:"severity"`
	Difficulty  string  `json:"difficulty"`
	Reliability float64 `json:"reliability"`
	Planned     int     `json:"planned"`
	Done        int     `json:"done"`
}

func (c Coverage) cell() assay.Cell {
	return assay.Cell{
		Model: c.Model, Variant: c.Variant, Severity: c.Severity, Difficulty: c.Difficulty,
		Reliability: c.Reliability,
	}
}

// StatusOf reopens a stored experiment and returns its status.
func StatusOf(ctx context.Context, db *store.DB, e store.Experiment) (s Status, err error) {
	j, err := job.Reopen(ctx, db, e)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	runs, err := db.Runs(ctx, e.Name)
	if err != nil {
		return s, err
	}
	settled, err := db.Settled(ctx)
	if err != nil {
		return s, err
	}

	s = Status{
		Name: e.Name, World: j.Experiment.World, Library: j.Experiment.Library,
		Runs: len(runs), ParkedFor: make(map[string]int), OtherSettings: make(map[string]int),
	}
	if len(runs) > 0 {
		s.LastRun = runs[len(runs)-1]
		worker, err := db.Worker()
		if err != nil {
			return s, err
		}
		s.Working = worker == s.LastRun.ID
	}
	skipped, stops, err := j.StoppedEarly(ctx, db, func(*assay.Trial) bool { return true })
	if err != nil {
		return s, err
	}
	s.Stopped = append([]job.Stop{}, stops...)
	for _, name := range j.Experiment.Models {
		m := s.cover(j, name, settled)
		m.Skipped = skipped[name]
		s.Models = append(s.Models, m)
	}
	design := reading.Design(ctx, j)
	slices.SortStableFunc(s.Coverage, func(a, b Coverage) int {
		return design.Compare(a.cell(), b.cell())
	})
	if err := s.countFaults(ctx, db, settled); err != nil {
		return s, err
	}
	if s.Users, err = db.Users(ctx, e.Name); err != nil {
		return s, err
	}
	counts, err := reading.Unplanned(ctx, db, j.IDs, e)
	if err != nil {
		return s, err
	}
	for _, n := range counts {
		s.Unplanned += n
	}
	s.Unread = db.Skipped()
	return s, s.sum(runs)
}

// cover counts a model's planned and done trials, and adds their coverage to the status.
func (s *Status) cover(j *job.Job, model string, settled store.Set) ModelStatus {
	m := ModelStatus{Model: model, Faults: make(map[assay.FaultKind]int)}
	m.Planned = j.Plan.Planned(model)
	at := make(map[assay.Cell]int)
	for t := range j.Plan.Trials(model) {
		cell := t.Cell
		cell.TaskType = ""
		place, ok := at[cell]
		if !ok {
			place = len(s.Coverage)
			at[cell] = place
			s.Coverage = append(s.Coverage, Coverage{
				Experiment: s.Name, Model: model, Variant: cell.Variant, Severity: cell.Severity,
				Difficulty: cell.Difficulty, Reliability: cell.Reliability,
			})
		}
		c := &s.Coverage[place]
		c.Planned++
		if settled.Has(t.ID) {
			m.Done++
			c.Done++
		}
	}
	return m
}

// countFaults counts the faults of each model and the trials that the latest run parked.
func (s *Status) countFaults(ctx context.Context, db *store.DB, settled store.Set) error {
	index := make(map[string]*ModelStatus)
	for i := range s.Models {
		index[s.Models[i].Model] = &s.Models[i]
	}
	for a, err := range db.Attempts(ctx, store.Filter{Experiment: s.Name, OnlyFaults: true}) {
		if err != nil {
			return err
		}
		m := index[a.Model]
		if m == nil {
			continue // the file no longer lists the model
		}
		m.Faults[a.FaultKind]++
		s.Faults++
		if a.Parked && a.Run == s.LastRun.ID && !settled.Has(a.ID) {
			m.Parked++
			reason, _, _ := strings.Cut(a.FaultDetail, "\n")
			s.ParkedFor[reason]++
		}
	}
	return nil
}

// sum counts pending trials and adds the models up. If the latest run had closed all lanes of a
// model, the model's pending trials count as parked.
func (s *Status) sum(runs []store.Run) error {
	var last Summary
	var err error
	for _, r := range runs {
		if last, err = SummaryOf(r); err != nil {
			return err
		}
		for what, n := range last.OtherSettings {
			s.OtherSettings[what] += n
		}
	}
	s.Closed, s.Stillness = last.Closed, last.Stillness
	for i := range s.Models {
		m := &s.Models[i]
		m.Pending = m.Planned - m.Done - m.Parked - m.Skipped
		if why, ok := last.Closed[m.Model]; ok && m.Pending > 0 {
			s.ParkedFor[why] += m.Pending
			m.Parked, m.Pending = m.Parked+m.Pending, 0
		}
		s.Trials.Add(m.Trials)
	}
	return nil
}
