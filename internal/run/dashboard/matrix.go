package dashboard

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/store"
)

// A grid has the rates of full success by condition and variant.
type grid struct {
	// At is when the figures were read, and Done the number of their trials.
	At       time.Time
	Done     int
	Planned  int
	Variants []string
	Rows     []gridRow
	// Averaged names the factors that cells average over.
	Averaged []string
	// Headline has the lines with which a report begins.
	Headline []document.Point
	Trouble  string
	of       gridState
}

// A gridRow is a model under one condition.
type gridRow struct {
	Model, Difficulty, Reliability, Mix string
	// Phrasing is empty if tasks are put in their own words.
	Phrasing string
	Cells    []gridCell
}

// A gridCell has the figures of the report for one variant. It is zero if that is not planned.
type gridCell struct {
	Done, Planned int
	Full          report.Share
	Best          *float64
	// Link leads to its trials.
	Link string
}

// Partial reports whether trials are missing.
func (c gridCell) Partial() bool { return c.Done < c.Planned }

// Step returns the class of the cell's colour, or "" without outcomes.
func (c gridCell) Step() string {
	if c.Done == 0 {
		return ""
	}
	return rateSteps[int(math.Round(c.Full.Rate*float64(len(rateSteps)-1)))]
}

// rateSteps are the classes of the scale of rates, from 0 to 100 %.
var rateSteps = []string{"r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10"}

// Noisy reports whether the interval is wider than 20 points, so that most differences between
// cells are noise.
func (c gridCell) Noisy() bool { return c.Full.Interval.High-c.Full.Interval.Low > .2 }

// A gridState is the state of an experiment that a grid describes.
type gridState struct {
	snapshot string
	run      assay.RunID
	ended    time.Time // of the run
}

// stateAt returns the state that the index has read, with the latest run.
func (x *index) stateAt(last store.Run) gridState {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return gridState{x.snapshot, last.ID, last.FinishedAt}
}

// keepGrid reads the rates again when there are new results. While a run works, that takes a hundredth
// of the time between two readings at most, so it does not slow the run down.
func (s *Server) keepGrid(ctx context.Context) {
	const share = 100
	var seen *gridState
	var next time.Time
	for sleep(ctx, time.Second) {
		p := s.latest.Load()
		if p == nil || !s.index.isLoaded() || p.Run != nil && time.Now().Before(next) {
			continue
		}
		state := s.index.stateAt(p.moment.Last)
		if seen != nil && state == *seen {
			continue
		}
		begin := time.Now()
		g := s.readGrid(ctx)
		if ctx.Err() != nil {
			return
		}
		g.of = state
		s.grid.Store(g)
		seen, next = &state, time.Now().Add(min(share*time.Since(begin), 5*time.Minute))
	}
}

// A gridCondition is a row of the grid.
type gridCondition struct {
	model, difficulty, mix, phrasing string
	reliability                      float64
}

func (s *Server) readGrid(ctx context.Context) *grid {
	g := &grid{At: time.Now()}
	figures, err := s.figures(ctx)
	if err != nil {
		g.Trouble = err.Error()
		return g
	}
	a := figures.Analysis
	g.Done, g.Planned, g.Averaged = a.Done, a.Planned, a.Averaged
	if a.Done > 0 {
		g.Headline = figures.Headline
	}
	at := make(map[gridCondition]int)
	for _, r := range a.Rows.Rows {
		variant := report.PromptKey(r.Variant, r.Severity)
		if !slices.Contains(g.Variants, variant) {
			g.Variants = append(g.Variants, variant)
		}
		c := gridCondition{r.Model, r.Difficulty, r.Faults, r.Phrasing, r.Reliability}
		if _, ok := at[c]; !ok {
			at[c] = len(g.Rows)
			reliability := assay.FormatReliability(r.Reliability)
			g.Rows = append(g.Rows, gridRow{
				Model: r.Model, Difficulty: r.Difficulty, Mix: r.Faults, Reliability: reliability,
				Phrasing: r.Phrasing,
			})
		}
	}
	for i := range g.Rows {
		g.Rows[i].Cells = make([]gridCell, len(g.Variants))
	}
	for _, r := range a.Rows.Rows {
		row := &g.Rows[at[gridCondition{r.Model, r.Difficulty, r.Faults, r.Phrasing, r.Reliability}]]
		column := slices.Index(g.Variants, report.PromptKey(r.Variant, r.Severity))
		c := gridCell{
			Done: r.Int(report.Done), Planned: r.Int(report.Planned), Full: r.Get(report.Full).Share(),
			Link: filter{
				Model: r.Model, Variant: r.Variant, Severity: r.Severity, Difficulty: r.Difficulty,
				Reliability: row.Reliability, Mix: r.Faults, Phrasing: r.Phrasing,
			}.URL(),
		}
		if best := r.Get(report.BestPossible); best.Known {
			c.Best = &best.Number
		}
		row.Cells[column] = c
	}
	return g
}
