package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/export"
	"github.com/assay-eval/assay/internal/result/query"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/store"
)

// A sight is all that is read of an experiment.
type sight struct {
	Seed uint64 `json:"seed"`
	File string `json:"file"`
	// Plan has what an export lacks: the trials that are not done, and facts about all of them.
	Plan []planned `json:"plan"`
	// Runs counts the runs of the experiment, and Seconds is their time, as far as it is known.
	Runs    int               `json:"runs"`
	Killed  int               `json:"killed"`
	Seconds float64           `json:"seconds"`
	Export  []json.RawMessage `json:"export"`
	Report  json.RawMessage   `json:"report"`
	// Where is the report with a condition that all attempts satisfy, of every fifth experiment.
	Where json.RawMessage `json:"where,omitempty"`
	// Text has all details, and Brief is what a terminal shows at first.
	Text  string `json:"text"`
	Brief string `json:"brief"`
	HTML  string `json:"html"`
}

// A planned trial has the facts that package report asks the plan for.
type planned struct {
	Trial assay.TrialID `json:"trial"`
	assay.Cell
	Task       assay.TaskID `json:"task"`
	Repeat     int          `json:"repeat"`
	Replay     int          `json:"replay"`
	Hurts      bool         `json:"hurts"`
	Survivable bool         `json:"survivable"`
	Winnable   bool         `json:"winnable"`
	Open       bool         `json:"open"`
	// Floor is the floor as a share of the ceiling, and Loose the floor without a ceiling. They are
	// nil if no floor is known.
	Floor *float64 `json:"floor"`
	Loose *float64 `json:"loose"`
}

// drawOne stores an experiment in a directory and reads it.
func drawOne(ctx context.Context, dir string, d *draw) (s *sight, err error) {
	s = &sight{Seed: d.seed, File: d.file()}
	if d.world == "own-1" {
		if err := d.writeOwn(dir); err != nil {
			return nil, err
		}
	}
	file, path := filepath.Join(dir, d.name+".yaml"), filepath.Join(dir, d.name+".db")
	if err := os.WriteFile(file, []byte(s.File), 0o644); err != nil {
		return nil, err
	}
	defer func() {
		left, _ := filepath.Glob(filepath.Join(dir, d.name+".*"))
		for _, name := range left {
			err = errors.Join(err, os.RemoveAll(name))
		}
	}()
	e, err := plan.Load(file)
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, s.File)
	}
	j, err := job.Open(ctx, e, 0)
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, s.File)
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	if err := s.save(ctx, path, j, d); err != nil {
		return nil, err
	}
	return s, s.read(ctx, path, j, d.name)
}

// save stores the experiment and its attempts as one or two runs, of which the last may be killed.
func (s *sight) save(ctx context.Context, path string, j *job.Job, d *draw) (err error) {
	db, err := store.Open(ctx, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := j.Keep(ctx, db, j.Experiment); err != nil {
		return err
	}
	spec, err := json.Marshal(j.Experiment)
	if err != nil {
		return err
	}
	attempts := d.attempts(slices.Collect(j.Trials()), j.Experiment.Stop)
	s.Runs = 1 + d.IntN(2)
	meta := j.Library.Meta()
	for i := range s.Runs {
		id := assay.RunID(fmt.Sprintf("r%d", i+1))
		err := db.BeginRun(ctx, store.Experiment{
			Name: d.name, Spec: spec, Planned: j.Planned(),
			Library: store.Library{Path: j.Experiment.Library, Name: meta.Name, Digest: meta.Digest},
		}, store.Run{ID: id, Program: "assay v1", Host: "h", PID: 1, StartedAt: d.began})
		if err != nil {
			return err
		}
		from, to := len(attempts)*i/s.Runs, len(attempts)*(i+1)/s.Runs
		for _, a := range attempts[from:to] {
			a.Experiment, a.Run = d.name, id
			if err := db.Save(ctx, a, nil); err != nil {
				return err
			}
		}
		if i == s.Runs-1 && d.chance(.1) {
			s.Killed = 1
			s.Seconds += known(d.began, attempts[from:to])
			return nil
		}
		wall := float64(1 + d.IntN(900))
		s.Seconds += wall
		summary := fmt.Sprintf(`{"wall_s": %v, "settled": %d}`, wall, to-from)
		if err := db.EndRun(ctx, id, json.RawMessage(summary)); err != nil {
			return err
		}
	}
	return nil
}

// known returns how many seconds a killed run took at least.
func known(began time.Time, attempts []*assay.Attempt) float64 {
	latest := began
	for _, a := range attempts {
		if a.FaultKind != assay.Interrupted && a.FinishedAt.After(latest) {
			latest = a.FinishedAt
		}
	}
	return latest.Sub(began).Seconds()
}

// read reads the experiment back as the commands report and export do.
func (s *sight) read(ctx context.Context, path string, planning *job.Job, name string) (err error) {
	db, err := store.OpenReadOnly(ctx, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	e, err := query.FindExperiment(ctx, db, name)
	if err != nil {
		return err
	}
	j, err := job.Reopen(ctx, db, e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	x, r, err := analyze(ctx, db, j, e)
	if err != nil {
		return err
	}
	s.plan(&x.Design, planning.Trials())
	if s.Report, err = json.Marshal(r); err != nil {
		return err
	}
	if s.Seed%5 == 0 {
		_, all, err := analyze(ctx, db, j, e, "turn_limit!=0")
		if err != nil {
			return err
		}
		if s.Where, err = json.Marshal(all); err != nil {
			return err
		}
	}
	doc, err := r.Document(ctx, 0)
	if err != nil {
		return err
	}
	var text, brief, page, lines bytes.Buffer
	err = errors.Join(doc.WriteText(&text, document.Terminal{}), doc.WriteHTML(&page),
		doc.Brief("assay report --details").WriteText(&brief, document.Terminal{}))
	if err != nil {
		return err
	}
	s.Text, s.Brief = text.String(), brief.String()
	s.HTML, _, _ = strings.Cut(page.String(), "<footer>") // only scripts follow

	x2 := query.Export{Format: export.JSONL, Output: "-", Stdout: &lines, Store: path, Program: "assay v1"}
	x2.Selection, err = query.Select(ctx, db, query.Request{Experiment: name}, func(string) {})
	if err != nil {
		return err
	}
	if _, _, err := x2.Write(ctx); err != nil {
		return err
	}
	for line := range bytes.Lines(lines.Bytes()) {
		s.Export = append(s.Export, bytes.Clone(bytes.TrimSpace(line)))
	}
	return nil
}

// analyze returns the report of the attempts that satisfy conditions.
func analyze(
	ctx context.Context, db *store.DB, j *job.Job, e store.Experiment, conditions ...string,
) (*query.Experiment, *query.Report, error) {
	where, err := export.ParseWhere(conditions)
	if err != nil {
		return nil, nil, err
	}
	x, err := query.Plan(ctx, db, j, e, where)
	if err != nil {
		return nil, nil, err
	}
	r, err := x.Analyze(ctx, db)
	return x, r, err
}

func (s *sight) plan(d *report.Design, trials iter.Seq[assay.Trial]) {
	for t := range trials {
		p := planned{
			Trial: t.ID, Cell: t.Cell, Task: t.Task, Repeat: t.Repeat, Replay: t.Replay,
			Hurts:      d.Hurts == nil || d.Hurts(&t),
			Survivable: d.Survivable == nil || d.Survivable(&t),
			Winnable:   d.Winnable == nil || d.Winnable(&t),
			Open:       d.Open != nil && d.Open(&t),
		}
		if share, ok := d.Floor(t.Cell, new(1.)); ok {
			loose, _ := d.Floor(t.Cell, nil)
			p.Floor, p.Loose = &share, &loose
		}
		s.Plan = append(s.Plan, p)
	}
}
