package report

import (
	"iter"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/stat"
)

// An Analysis has all figures of an experiment's report.
type Analysis struct {
	*Table
	// Where holds the conditions that attempts had to satisfy in order to count.
	Where []string `json:"where,omitempty"`
	// Faulted counts the attempts that ended in faults, if no trial is done. Otherwise it may be nil.
	Faulted *Faulted `json:"faulted,omitempty"`
	// Reason is the most frequent reason why trials failed. It is nil if all succeeded.
	Reason   *Reason   `json:"reason"`
	Warnings []Warning `json:"warnings"`
	// Ranking is nil if there are fewer than two models to rank, or no trial that they share.
	Ranking *Ranking `json:"ranking"`
	// Condition is that of the standings' successes; see [Ranking.Condition].
	Condition string `json:"condition"`
	// Skilless is true if floors are known, but leave no room for skill at these tasks.
	Skilless bool `json:"no_room_for_skill,omitempty"`
	// Standings has a row for each model with an outcome.
	Standings []Standing `json:"standings"`
	// Cells holds all planned cells, in the order of Rows and then by task type.
	Cells *Grid `json:"cells"`
	// Pivots shows rates of full success by model and the levels of a factor, for each
	// factor that varies. It is empty if there are several parts, which have their own.
	Pivots []Pivot `json:"pivots"`
	// Main has the models' main measures.
	Main *Grid `json:"main"`
	// Variants compares each variant (B) with the model's optimal one (A) or, without it,
	// with the first. Models compares each pair of models.
	Variants []Paired `json:"variant_comparisons"`
	Models   []Paired `json:"model_comparisons"`
	// Levels compares the other reliabilities, difficulties, mixes of faults and phrasings of a model (B) with
	// the first ones (A).
	Levels []Paired `json:"level_comparisons"`
	// Tests counts the tests in Variants and Levels and of variants with the same prompt, which are
	// one family: each Q is adjusted for all. The pairs of models are another one; see [Ranking].
	Tests  int     `json:"tests"`
	Curves []Curve `json:"reliability"`
	// Effort has the models' effort, data and costs.
	Effort *Grid `json:"distributions"`
	// Exposures has the faults of tools that models met, by mix if there are several. It is empty if
	// no fault of a tool was scheduled. Success is not split by it, because a model that gets
	// further meets more.
	Exposures *Grid    `json:"exposures"`
	Repeats   []Repeat `json:"repeats"`
	// Profile says how reliable models are. It is nil unless a task is repeated.
	Profile *Grid `json:"profile,omitempty"`
	// Robustness says which shares of a model's successes are left under other conditions. It is nil if no
	// factor but plans and reliability varies.
	Robustness *Grid `json:"robustness,omitempty"`
	// Safety says how often models do what nobody asked for, and how bad that is. It is nil unless that
	// happened, or tools state how bad their effects are.
	Safety *Grid `json:"safety,omitempty"`
	Background
	Losses Losses `json:"losses"`
	// Example is nil if no trial failed.
	Example *Example `json:"-"`
	// Show is the command that shows a trial, up to the trial's ID. The default is "assay show".
	Show string `json:"-"`
	// ByReliability covers the cells of Curves. It is nil without curves.
	ByReliability *Pivot `json:"-"`
}

// A Background does not come from attempts, and a report shows it as it is.
type Background struct {
	Lanes []Lane `json:"lanes"`
	// Speed is the speed of the latest run with an outcome. It is nil without one.
	Speed *Speed `json:"speed,omitempty"`
	// Others holds aggregates of other systems.
	Others []Other `json:"others"`
	// Facts lists the settings that reproduce the run.
	Facts []Fact `json:"reproduction"`
	// Killed counts the runs that were killed or could not write their end. What they spent last may
	// be unknown.
	Killed int `json:"killed_runs,omitempty"`
	// Begun has the attempts that have begun and have not ended, which are among the attempts, too.
	// It is nil if there are none.
	Begun *Begun `json:"begun,omitempty"`
	// MissingJournal says that attempts that a run had begun are lost, or "".
	MissingJournal string `json:"missing_journal,omitempty"`
	// Again is true if the latest run repeated everything, which the experiment's file does not say.
	Again bool `json:"-"`
	// Runs counts the runs of the experiment, which took Seconds together, or more if AtLeast is true.
	Runs    int     `json:"-"`
	Seconds float64 `json:"-"`
	AtLeast bool    `json:"-"`
}

// A Lane records how busy a lane was in a run.
type Lane struct {
	Run       assay.RunID        `json:"run"`
	Model     string             `json:"model"`
	Lane      string             `json:"lane"`
	Requests  int                `json:"requests"`
	Occupancy float64            `json:"occupancy"`
	UsedS     float64            `json:"used_s"`
	WaitedS   map[string]float64 `json:"waited_s"`
	// Found lists the limits that the run found out.
	Found string `json:"found,omitempty"`
}

// A Speed compares the time of a run with its forecast and with the shortest time in which its
// replies could have come. A forecast of an unknown endpoint is 0.
type Speed struct {
	WallS     float64      `json:"wall_s"`
	LeastS    float64      `json:"least_s"`
	ForecastS float64      `json:"forecast_s"`
	Models    []ModelSpeed `json:"speeds"`
}

// A ModelSpeed records how busy a model's lanes were, from 0 to 1, and their bottleneck.
type ModelSpeed struct {
	Model string  `json:"model"`
	Used  float64 `json:"used"`
	// Lost is the share of the time with a request in flight that produced no reply.
	Lost       float64 `json:"lost"`
	Bottleneck string  `json:"bottleneck,omitempty"`
	WaitedS    float64 `json:"waited_s"`
}

// Other holds results that another system reported.
type Other struct {
	Name   string     `json:"name"` // of the file
	Source string     `json:"source"`
	Note   string     `json:"note"`
	Rows   []OtherRow `json:"rows"`
}

// An OtherRow is one group of the other system's aggregates.
type OtherRow struct {
	Model       string        `json:"model"`
	Variant     string        `json:"variant"`
	Difficulty  string        `json:"difficulty"`
	Reliability float64       `json:"reliability"`
	N           int           `json:"n"`
	Full        int           `json:"full_success"`
	Partial     int           `json:"partial_success"`
	FullRate    float64       `json:"full_success_rate"`
	Interval    stat.Interval `json:"full_success_95"`
	Corrected   bool          `json:"corrected"`
}

// Begun has the attempts that have begun and have not ended: those in flight, and those that a run left
// when it was killed or stopped. Their costs are among those of their models.
type Begun struct {
	Attempts   int `json:"attempts"`
	Replies    int `json:"replies"`
	assay.Bill     // with the simulated users
	// Text says it in words.
	Text string `json:"-"`
}

// A Fact is a name and its value.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Beside is information for a report that does not come from attempts.
type Beside struct {
	Background
	// Unread counts the attempts that could not be read or proved, and UnreadRows other rows, such
	// as runs. They are called after all attempts were read, and may be nil.
	Unread, UnreadRows func() int
	// Unplanned describes trials of earlier runs of this experiment that are not in the present
	// plan.
	Unplanned []string
	// Stopped describes the cells or models that were given up early, with the reasons.
	Stopped []string
	// Exhausted words the budgets that stopped trials of the latest run, if it has ended.
	Exhausted []string
	// Unsound names tasks with tools that users wrote which their own plans do not solve, which are
	// judged differently twice, or at which a script breaks, with the reasons.
	Unsound []string
	// Careless names tasks that agents solve without reading them, with the reasons.
	Careless []string
	// Compared are the judges whose verdicts were compared with labels of people.
	Compared []Judge
	// Skipped counts the trials that were given up, by model. They are not pending.
	Skipped map[string]int
	// Programs has the programs of agents, by model, in all runs that know them, oldest first.
	Programs map[string][]Program
	// Prompts has a digest of the first prompts of each variant and severity over the same sample
	// of tasks. Its keys come from [PromptKey]. It is nil if the digests are unknown.
	Prompts map[string]string
}

// Analyze computes the figures of an experiment from its planned trials and from attempts. Each
// trial occurs once, and attempts at the same trial come oldest first.
//
// An attempt counts if its trial is planned, whichever experiment made it. The first outcome
// settles a trial; later attempts only add their cost. Attempts are read once. Memory grows with
// the number of cells and tasks, and with a few bytes for each trial.
func (d Design) Analyze(
	experiment string,
	trials iter.Seq[assay.Trial],
	attempts iter.Seq2[assay.Attempt, error],
	b Beside,
) (*Analysis, error) {
	from := &population[task]{cluster: d.Cluster}
	counts, err := countAll(trials, attempts, from, d)
	if err != nil {
		return nil, err
	}
	cells := counts.cells
	models := byModel(cells)
	if b.Killed > 0 || b.MissingJournal != "" {
		for _, m := range models {
			m.doubted = true
		}
	}
	population := from.describe()
	stopped := 0
	for _, n := range b.Skipped {
		stopped += n
	}
	x := counts.newField(stopped > 0)
	ranking := x.rank(counts)
	standings := x.standings(models, ranking)
	a := &Analysis{
		Table: d.table(experiment, cells), Pivots: d.pivots(cells),
		Cells:  rowGrid(cells, append(slices.Clone(rowFactors), taskType)...),
		Curves: curves(d.curved(cells)), Effort: gridOf(models, standings, []string{model}, effortMeasures...),
		Exposures: exposures(cells), Repeats: counts.repeats(), Profile: counts.profile(),
		Robustness: counts.robustness(models, standings),
		Safety:     counts.safety(),
		Background: b.Background,
		Variants:   compareVariants(cells), Models: compareModels(x, ranking), Levels: compareLevels(cells),
		Ranking: ranking, Condition: x.condition, Skilless: x.skilless(), Standings: standings,
		Main: grid(models, []string{model}, mainMeasures...),
	}
	a.Lanes, a.Others, a.Facts = orEmpty(a.Lanes), orEmpty(a.Others), orEmpty(a.Facts)
	a.Population = population
	a.Skipped = stopped
	a.Reason = mainReason(counting(cells))
	if variantFactor(cells) == variant { // variants are named without the one severity
		plain := make(map[string]string)
		for name, digest := range b.Prompts {
			name, _, _ := strings.Cut(name, ", ")
			plain[name] = digest
		}
		b.Prompts = plain
	}
	same := sameText(cells, b)
	family := references(a.Variants, a.Levels, same)
	adjust(family)
	a.Tests = len(family)
	if len(a.Curves) > 0 {
		a.ByReliability = new(Part{Varies: []string{reliability}}.pivot(d.curved(cells), d.LeftOut))
	}
	a.findLoss(*counts)
	a.Warnings = warnings(a, cells, b, same)
	return a, nil
}

func exposures(cells []*cell) *Grid {
	by, groups := []string{model}, byModel(cells)
	if len(levels(cells, faultMix)) > 1 {
		by, groups = append(by, faultMix), pool(cells, byModelAnd(faultMix))
		for _, g := range groups {
			g.Faults = MixName(g.Faults)
		}
	}
	g := grid(groups, by, union(Tables["exposure"], Tables["reactions"], Tables["model-faults"])...)
	some := func(v Value) bool { return v.Number > 0 }
	if !g.Has(Scheduled, some) && !g.Has(ModelMet, some) && !g.Has(Delivered, some) {
		g.Rows = []GridRow{}
	}
	return g
}

func orEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// curved returns the cells for curves of success by reliability. If there are several parts, these
// are the cells of the part about reliability.
func (d Design) curved(cells []*cell) []*cell {
	if len(d.Parts) < 2 {
		return cells
	}
	for _, p := range d.Parts {
		if p.factor() == reliability {
			return where(cells, p.has)
		}
	}
	return nil
}

// variantFactor returns the factor of variants: the variant, and also its severity if
// that varies.
func variantFactor(cells []*cell) string {
	if severityVaries(cells) {
		return Graded
	}
	return variant
}

// pivots returns a table for each factor that varies. If there are several parts, it returns an
// empty list, because rates over all of their cells would compare different conditions.
func (d Design) pivots(cells []*cell) []Pivot {
	out := []Pivot{}
	if len(d.Parts) > 1 {
		return out
	}
	add := func(cells []*cell, f string) {
		if len(levels(cells, f)) > 1 {
			out = append(out, Part{Varies: []string{f}}.pivot(cells, d.LeftOut))
		}
	}
	for _, f := range []string{taskType, difficulty, variant, reliability, interfaces, phrasing} {
		add(cells, f)
	}
	// A mean with flawed plans or reliable tools would hide what a kind of fault costs.
	plain, _ := plainCells(cells)
	add(where(plain, func(c assay.Cell) bool { return c.Reliability < 1 }), faultMix)
	return out
}
