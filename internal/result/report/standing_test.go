package report_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/result/stat"
)

// A field is an experiment of two models with a right plan and two flawed ones, on reliable tools
// and on two kinds of failing ones. The conditions make no difference.
type field struct{ tasks, sequences, repeats int }

// level draws the rate of full success of a sequence of tools.
func level(r *rand.Rand) float64 { return min(1, max(0, .7+.2*r.NormFloat64())) }

// play returns the row of each model of one simulated experiment.
func (f field) play(t *testing.T, r *rand.Rand) []report.Standing {
	t.Helper()
	levels := make([]float64, f.sequences)
	for i := range levels {
		levels[i] = level(r)
	}
	var trials []assay.Trial
	var attempts []assay.Attempt
	for _, model := range []string{"a", "b"} {
		for _, variant := range []string{"optimal", "flawed_tool_misuse", "flawed_missing_step"} {
			for _, tools := range []struct {
				reliability float64
				mix         string
			}{{1, ""}, {.7, ""}, {.7, "after=1"}} {
				for task := range f.tasks {
					for repeat := range f.repeats {
						c := assay.Cell{
							Model: model, Variant: variant, Difficulty: "easy", TaskType: "basic_task",
							Reliability: tools.reliability, Faults: tools.mix,
						}
						id := assay.TaskRef{ID: assay.TaskID(fmt.Sprint("t", task))}
						tr := assay.NewTrial(c, id, assay.Setting{World: "assay-1"}, 1, repeat+1)
						a := outcome(tr, assay.Failure, 3)
						a.ScoreVersion, a.Best = "assay-1", .95
						a.CostUSD = .01 * (1 + r.Float64())
						a.RequiredTools = []string{fmt.Sprint("s", task%f.sequences)}
						a.FaultsMet = flag(r.Float64() < 1-tools.reliability)
						a.Ended = assay.TurnLimit
						if r.Float64() < .3 {
							a.Ended = assay.Finished
						}
						if r.Float64() < levels[task%f.sequences] {
							a.Level, a.Ended = assay.FullSuccess, assay.Finished
						}
						trials, attempts = append(trials, tr), append(attempts, a)
					}
				}
			}
		}
	}
	d := report.Design{Floor: func(assay.Cell) (float64, bool) { return .2, true }}
	x, err := d.Analyze("e", slices.Values(trials), all(attempts...), report.Beside{})
	if err != nil {
		t.Fatal(err)
	}
	return x.Standings
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestStandings checks that each column of the first screen shows a difference in at most 6 % of
// experiments in which no condition makes a difference, and that its intervals hold the truth in 93
// to 98 % of them. The bounds are wider by three standard errors.
func TestStandings(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: simulates 750 experiments")
	}
	t.Parallel()
	r := rand.New(rand.NewPCG(31, 1))
	rate := 0.
	for range 100_000 {
		rate += level(r) / 100_000
	}
	for _, f := range []field{
		{tasks: 30, sequences: 30, repeats: 1},
		{tasks: 60, sequences: 8, repeats: 1},
		{tasks: 20, sequences: 20, repeats: 3},
	} {
		const draws = 250
		slack := 3 * math.Sqrt(.06*.94/draws)
		alarms, held := make(map[string]int), make(map[string]int)
		for range draws {
			rows := f.play(t, r)
			alarms["best"] += flag(!rows[1].Best)
			s := rows[r.IntN(2)]
			alarms["flawed plans"] += flag(s.FlawedPlan.P < .05)
			alarms["failing tools"] += flag(s.FailingTools.P < .05)
			alarms["worst flaw"] += flag(s.FlawedPlan.Kinds[0].Q < .05)
			alarms["worst kind"] += flag(s.FailingTools.Kinds[0].Q < .05)
			held["loss"] += flag(!outside(s.FlawedPlan.Lost, 0))
			held["success"] += flag(holds(s.Success.Interval, rate))
			held["skill"] += flag(holds(s.Skill.Interval, (rate-.2)/(.95-.2)))
			held["recovery"] += flag(holds(s.Recovery.Interval, rate))
			held["false success"] += flag(holds(s.FalseSuccess.Interval, .3))
			held["price"] += flag(*s.Price.Low <= .015/rate && *s.Price.High >= .015/rate)
		}
		t.Log(f, alarms, held)
		for name, n := range alarms {
			if share := float64(n) / draws; share > .06+slack {
				t.Errorf("%+v: %s differs in %.3f of equal conditions", f, name, share)
			}
		}
		for name, n := range held {
			if share := float64(n) / draws; share < .93-slack {
				t.Errorf("%+v: the interval of %s holds the truth in %.3f", f, name, share)
			}
		}
	}
}

func outside(l stat.Loss, truth float64) bool {
	return l.Share != nil && (l.Low != nil && *l.Low > truth || l.High != nil && *l.High < truth)
}

func holds(i stat.Interval, truth float64) bool { return i.Low <= truth && truth <= i.High }

// TestSimulatedModelsAreNotTheBest checks that a simulated model is not compared with real ones,
// even if these lack trials.
func TestSimulatedModelsAreNotTheBest(t *testing.T) {
	t.Parallel()
	var trials []assay.Trial
	var attempts []assay.Attempt
	for _, model := range []string{"real", "sim/expert"} {
		for i := range 20 {
			tr := trial(model, "optimal", .9, fmt.Sprint("t", i))
			trials = append(trials, tr)
			if model != "real" || i < 10 {
				a := outcome(tr, assay.Failure, 3)
				a.Ended, a.Pilot = assay.Finished, new(assay.PilotScores)
				attempts = append(attempts, a)
			}
		}
	}
	x, err := report.Design{}.Analyze("e", slices.Values(trials), all(attempts...), report.Beside{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range x.Standings {
		if s.Best || s.Compared {
			t.Errorf("%s takes part in the comparison", s.Model)
		}
		if s.Failed != 0 {
			t.Errorf("%s: %d failures of the pilot world count as claims", s.Model, s.Failed)
		}
	}
}
