package session

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/result/query"
	"github.com/assay-eval/assay/internal/run/terminal"
	"github.com/assay-eval/assay/internal/store"
)

// A Status says how a stored experiment stands.
type Status struct {
	Name    string `json:"experiment"`
	World   string `json:"world"`
	Library string `json:"library"`
	job.Standing
	Stopped []job.Stop `json:"stopped_early"`
	// Faults counts the attempts that ended in faults.
	Faults   int           `json:"faults"`
	Models   []ModelStatus `json:"models"`
	Coverage []Coverage    `json:"coverage"`
	LastRun  store.Run     `json:"last_run"`
	// Working is true if the latest run holds the store's lock. A run that has ended or was killed
	// does not.
	Working bool `json:"working"`
	// Live is the answer of a run that is working. StatusOf does not ask for it.
	Live *terminal.Progress `json:"live,omitempty"`
	Runs int                `json:"runs"`
	// Killed counts the runs that neither work nor wrote their end.
	Killed int `json:"killed_runs,omitempty"`
	// Unplanned counts the attempts of earlier plans of this name at trials that the latest plan
	// does not have.
	Unplanned int `json:"unplanned"`
	// Unread counts the attempts of the store that cannot be read or proved. If they were outcomes,
	// their trials count as pending.
	Unread int `json:"unread,omitempty"`
	// Closed has the models and lanes that the latest run closed, with the reason.
	Closed map[string]string `json:"closed"`
	// Exhausted lists the budgets that stopped trials of the latest run, if it has ended.
	Exhausted []job.Exhausted `json:"exhausted_budgets,omitempty"`
	// OtherSettings counts the attempts of all runs in which an endpoint reported another setting than
	// was asked.
	OtherSettings map[string]int `json:"other_settings,omitempty"`
	// Stillness comes from the summary of the latest run.
	Stillness string `json:"stillness,omitempty"`
	// MissingJournal is set if the attempts that an earlier run had begun are lost.
	MissingJournal *store.MissingJournal `json:"missing_journal,omitempty"`
	// Again is true if the latest run repeated everything, which the experiment's file does not say.
	Again bool `json:"-"`
	// Users are the models behind the simulated users of all attempts.
	Users []store.AsideUse `json:"users,omitempty"`
	// Judges sums up the models that judged.
	Judges []store.AsideUse `json:"judges,omitempty"`
	// ParkedFor counts parked trials by the reason.
	ParkedFor map[string]int `json:"-"`
}

// A ModelStatus is the status of one model.
type ModelStatus struct {
	Model string `json:"model"`
	job.Standing
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
	left, err := db.Left(ctx) // before the attempts, so that each is in one of both
	if err != nil {
		return s, err
	}
	count, err := j.Recount(ctx, db, j.Rules(), nil)
	if err != nil {
		return s, err
	}
	begun := count.Planned(left.Attempts)
	count.Tally.Begun(begun)
	runs, err := Follow(ctx, db, e.Name, j.Experiment.Models, count.Tally)
	if err != nil {
		return s, err
	}
	last := runs.Ended
	s = Status{
		Name: e.Name, World: j.Experiment.World, Library: j.Experiment.Library,
		Runs: len(runs.All), LastRun: runs.Last(), Working: runs.Working, Killed: runs.Killed,
		ParkedFor: count.ParkedFor(), Exhausted: last.Exhausted,
		OtherSettings: make(map[string]int), Closed: last.Closed, Stillness: last.Stillness,
		Stopped: []job.Stop{}, Models: []ModelStatus{}, Coverage: []Coverage{},
	}
	s.Stopped = append(s.Stopped, count.Stops()...)
	for _, name := range j.Experiment.Models {
		s.Models = append(s.Models, ModelStatus{name, count.Standing(name)})
		maps.Copy(s.OtherSettings, count.InRuns(name).OtherSettings)
	}
	s.sum()
	s.cover(count.Cells(), query.Design(ctx, j).Compare)
	if s.Users, err = db.Users(ctx, e.Name); err != nil {
		return s, err
	}
	if s.Judges, err = db.Judges(ctx, e.Name); err != nil {
		return s, err
	}
	s.addUsers(begun)
	s.MissingJournal, s.Again = left.Missing, j.Experiment.Again > 0
	counts, err := query.Unplanned(ctx, db, j.IDs, e)
	if err != nil {
		return s, err
	}
	for _, n := range counts {
		s.Unplanned += n
	}
	s.Unread = db.Skipped()
	return s, nil
}

// addUsers adds what simulated users have used in attempts that have not ended.
func (s *Status) addUsers(begun []store.Unfinished) {
	for _, u := range begun {
		if u.UserRequests == 0 {
			continue
		}
		at := slices.IndexFunc(s.Users, func(x store.AsideUse) bool { return x.Model == u.UserModel })
		if at < 0 {
			at = len(s.Users)
			s.Users = append(s.Users, store.AsideUse{Model: u.UserModel})
		}
		x := &s.Users[at]
		x.Requests += u.UserRequests
		bill := u.OfUser().Bill()
		x.Tokens += bill.Tokens
		x.Unpriced += bill.Unpriced
		x.CostUSD = assay.RoundUSD(x.CostUSD + bill.USD)
	}
}

// CostText spells what the attempts on disk cost. It names the models and runs whose costs are not
// all known.
func (s *Status) CostText() string {
	var unknown []string
	for _, m := range s.Models {
		if m.Spent.AtLeast() {
			unknown = append(unknown, m.Model)
		}
	}
	if s.Killed > 0 && s.Spent.USD > 0 {
		unknown = append(unknown, assay.Counted(s.Killed, "killed run"))
	}
	if s.MissingJournal != nil {
		unknown = append(unknown, "the lost attempts")
	}
	return assay.CostText(s.Spent.USD, 2, unknown...)
}

// sum adds up the models.
func (s *Status) sum() {
	s.Standing = job.Standing{}
	for _, m := range s.Models {
		s.Standing.Add(m.Standing)
	}
	s.Faults = s.Attempts()
}

// Follow replaces the counts by those of a run that works on the whole experiment, so that both say
// the same. A run with a limit, or of chosen trials, has counts of its own.
func (s *Status) Follow(run *terminal.Progress) {
	s.Live = run
	if run == nil || run.Planned != s.Planned {
		return
	}
	for i, m := range run.Models {
		s.Models[i].Standing = m.Standing
	}
	s.sum()
}

// cover adds the coverage of the cells, in the order of tables.
func (s *Status) cover(cells map[assay.Cell]job.Trials, compare func(a, b assay.Cell) int) {
	at := make(map[assay.Cell]job.Trials)
	for cell, n := range cells {
		cell.TaskType, cell.Faults, cell.Phrasing = "", "", ""
		sum := at[cell]
		sum.Add(n)
		at[cell] = sum
	}
	for cell, n := range at {
		s.Coverage = append(s.Coverage, Coverage{
			Experiment: s.Name, Model: cell.Model, Variant: cell.Variant, Severity: cell.Severity,
			Difficulty: cell.Difficulty, Reliability: cell.Reliability, Planned: n.Planned, Done: n.Done,
		})
	}
	slices.SortFunc(s.Coverage, func(a, b Coverage) int { return compare(a.cell(), b.cell()) })
}

// Runs are the runs of an experiment.
type Runs struct {
	All []store.Run
	// Ended is the summary of the latest run if it has ended.
	Ended Summary
	// Working is true if the latest run holds the store's lock. A run that has ended or was killed
	// does not.
	Working bool
	// Killed counts the runs that neither work nor wrote their end, so what they spent last may be
	// unknown.
	Killed int
}

// Last returns the latest run, or a zero one.
func (r *Runs) Last() (last store.Run) {
	if n := len(r.All); n > 0 {
		last = r.All[n-1]
	}
	return last
}

// Follow reads the runs of an experiment, and tells a tally what the latest one has parked, requeued
// and closed.
func Follow(
	ctx context.Context, db *store.DB, experiment string, models []string, t *job.Tally,
) (r Runs, err error) {
	if r.All, err = db.Runs(ctx, experiment); err != nil {
		return r, err
	}
	last := r.Last()
	if r.Ended, err = SummaryOf(last); err != nil {
		return r, err
	}
	worker, err := db.Worker()
	if err != nil {
		return r, err
	}
	for _, run := range r.All {
		if run.ID == worker {
			r.Working = run.ID == last.ID
		} else if run.FinishedAt.IsZero() {
			r.Killed++
		}
	}
	t.SetRun(last.ID)
	closeModels(t, models, r.Ended.Closed)
	orders, err := db.Controls(ctx, experiment)
	for _, c := range orders {
		var o requeuedRecord
		if c.Run == last.ID && json.Unmarshal(c.Command, &o) == nil && o.Do == doneRequeue {
			t.Requeue(o.Parked)
		}
	}
	return r, err
}

// closeModels tells a tally which models a run has closed.
func closeModels(t *job.Tally, models []string, closed map[string]string) {
	for _, m := range models {
		if why, ok := closed[m]; ok {
			t.Close(m, why)
		}
	}
}
