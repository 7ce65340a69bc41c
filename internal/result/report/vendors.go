package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/stat"
)

// Vendors compares the hosts of one model. Each of them is a model of the experiment; the first one
// is the reference.
type Vendors struct {
	Verdict Likeness `json:"verdict"`
	Margin  float64  `json:"margin"`
	// Snapshot is the state of the store that was read, and Unread counts attempts that could not
	// be.
	Snapshot string   `json:"snapshot"`
	Unread   int      `json:"unread"`
	Prompts  []string `json:"prompts"`
	Judges   []string `json:"judges"`
	All      []Vendor `json:"vendors"`

	first map[occasion]opening // of the reference
}

// Likeness is the verdict on how a vendor compares with the reference.
type Likeness string

// The verdicts about vendors.
const (
	Alike     Likeness = "equivalent"   // shown to differ by less than the margin
	Different Likeness = "different"    // shown to differ, and not shown to differ by less
	Undecided Likeness = "inconclusive" // neither is shown
)

// A Vendor is one host of a model.
type Vendor struct {
	Name    string  `json:"name"`
	Conduct Conduct `json:"conduct"`
	// Against compares the vendor with the reference. It is nil for the reference itself.
	Against *Equivalence `json:"against_reference,omitempty"`
}

// An Equivalence compares a vendor, side B, with the reference, side A. Differences are B minus A.
type Equivalence struct {
	Verdict Likeness `json:"verdict"`
	// Reason is why there is no verdict although the test may have one.
	Reason string `json:"reason,omitempty"`
	// Matched counts the trials of the vendor at tasks that the reference has, too, and Of counts
	// the trials of the reference.
	Matched int              `json:"matched"`
	Of      int              `json:"of"`
	Test    stat.Equivalence `json:"equivalence"`
	// Passing is the share of data like these in which equal hosts are shown to be equivalent, if
	// the verdict is inconclusive.
	Passing float64 `json:"passing,omitempty"`
	pairs   stat.GateData
	First   First `json:"first_replies"`
	Paired
}

// A Conduct describes the behaviour of a vendor's endpoint, beyond success.
type Conduct struct {
	Settled int `json:"settled"`
	Full    int `json:"full_successes"`
	Faults  int `json:"faults"`
	// FaultKinds counts attempts that ended in a fault, and Retried requests that were repeated.
	// Refusals are the faults of content filters.
	FaultKinds map[assay.FaultKind]int `json:"fault_kinds"`
	Retried    map[assay.FaultKind]int `json:"retried"`
	Refusals   int                     `json:"refusals"`
	// Replies counts the replies of settled trials, and Idle the replies without any action.
	Replies int `json:"replies"`
	Idle    int `json:"idle_replies"`
	// Calls counts the calls that arrived as calls. Unparsed are the calls without a name or an
	// object of arguments, and Mistaken the calls whose name or arguments their tool refused.
	Calls    int `json:"calls"`
	Unparsed int `json:"unparsed_calls"`
	Mistaken int `json:"mistaken_calls"`
	// Finish counts the endpoint's words for the ends of replies.
	Finish    map[string]int `json:"finish"`
	Truncated int            `json:"truncated"`
	Usage     assay.Usage    `json:"usage"`
	USD       float64        `json:"usd"`
	// Median and P95 are seconds of a reply, without queues.
	Median     float64  `json:"latency_median_s"`
	P95        float64  `json:"latency_p95_s"`
	Served     []string `json:"served_models"`
	Deviations []string `json:"deviations"`

	seconds []float64
	seen    map[assay.TrialID]bool
}

// First compares the first replies to the same prompts with the reference's, as K2 Vendor
// Verifier does (MoonshotAI/K2-Vendor-Verifier, "ToolCall-Trigger Similarity").
type First struct {
	Pairs int `json:"pairs"`
	// Both and Neither called a tool, or only one of the two did.
	Both          int `json:"both"`
	OnlyVendor    int `json:"only_vendor"`
	OnlyReference int `json:"only_reference"`
	Neither       int `json:"neither"`
	// Compared counts the trials in which both sides carried out a call, and SameTool those in
	// which both began with the same tool.
	Compared int `json:"compared"`
	SameTool int `json:"same_tool"`
}

// F1 is the harmonic mean of the share of the reference's calls that the vendor makes, too, and the
// share of the vendor's calls that the reference makes, too. It is 1 if both never call.
func (f First) F1() float64 {
	if f.Both+f.OnlyVendor+f.OnlyReference == 0 {
		return 1
	}
	return 2 * float64(f.Both) / float64(2*f.Both+f.OnlyVendor+f.OnlyReference)
}

// An occasion is a trial without its model. An opening is how the model began it.
type (
	occasion struct {
		cell   assay.Cell
		asked  namedTask
		repeat int
		seed   uint64
	}
	opening struct {
		acts bool
		tool string
	}
)

// NewVendors returns vendors without attempts. The first one is the reference.
func NewVendors(names []string, margin float64) *Vendors {
	v := &Vendors{Margin: margin, first: make(map[occasion]opening)}
	for i, name := range names {
		vendor := Vendor{Name: name, Conduct: Conduct{
			FaultKinds: make(map[assay.FaultKind]int), Retried: make(map[assay.FaultKind]int),
			Finish: make(map[string]int), seen: make(map[assay.TrialID]bool),
			Served: []string{}, Deviations: []string{},
		}}
		if i > 0 {
			vendor.Against = &Equivalence{Verdict: Undecided}
		}
		v.All = append(v.All, vendor)
	}
	return v
}

// Add adds an attempt of a vendor. The reference comes first. The transcript may be nil.
func (v *Vendors) Add(vendor int, a *assay.Attempt, t *assay.Transcript) {
	c := &v.All[vendor].Conduct
	for kind, n := range a.Retried {
		c.Retried[kind] += n
	}
	if !a.Settles() {
		c.Faults++
		c.FaultKinds[a.FaultKind]++
		if a.FaultKind == assay.ContentFilter {
			c.Refusals++
		}
		return
	}
	if c.seen[a.ID] {
		return
	}
	c.seen[a.ID] = true
	c.add(a)
	if t == nil {
		return
	}
	acts := c.hear(t)
	if len(t.Turns) == 0 {
		return
	}
	o := opening{acts: acts[0]}
	if len(t.Calls) > 0 {
		o.tool = t.Calls[0].Tool
	}
	v.open(vendor, a, o)
}

// add counts an outcome.
func (c *Conduct) add(a *assay.Attempt) {
	c.Settled++
	c.Full += int(isFull(a.Level))
	c.Truncated += a.Truncated
	c.Usage = c.Usage.Add(a.Usage())
	c.USD = assay.RoundUSD(c.USD + a.CostUSD)
	for _, list := range []struct {
		all *[]string
		in  []string
	}{{&c.Served, a.Served()}, {&c.Deviations, assay.Names(a.Deviations)}} {
		for _, name := range list.in {
			if !slices.Contains(*list.all, name) {
				*list.all = append(*list.all, name)
			}
		}
	}
}

// hear counts the replies and calls of a transcript, and returns which of the replies act.
func (c *Conduct) hear(t *assay.Transcript) (acts []bool) {
	acts = make([]bool, max(1, len(t.Turns)))
	for _, call := range t.Calls {
		if call.Mistake {
			c.Mistaken++
		}
		if call.Turn >= 1 && call.Turn <= len(t.Turns) {
			acts[call.Turn-1] = true
		}
	}
	turn := 0
	for _, m := range t.Messages {
		if m.Role != assay.Assistant || turn >= len(t.Turns) {
			continue
		}
		acts[turn] = acts[turn] || len(m.Calls) > 0 || t.Turns[turn].Lookups > 0
		c.Calls += len(m.Calls)
		for _, call := range m.Calls {
			var arguments map[string]json.RawMessage
			if call.Name == "" || json.Unmarshal([]byte(call.Arguments), &arguments) != nil {
				c.Unparsed++
			}
		}
		turn++
	}
	for i, r := range t.Turns {
		c.Replies++
		c.Finish[cmp.Or(r.Finish, "not stated")]++
		c.seconds = append(c.seconds, float64(r.WorkingMS)/1000)
		if !acts[i] && r.Assisted {
			c.Idle++
		}
	}
	return acts
}

// open compares the beginning of a trial with the beginning of the reference's trial.
func (v *Vendors) open(vendor int, a *assay.Attempt, o opening) {
	at := occasion{a.Cell, namedTask{a.Task, a.TaskDigest}, a.Repeat, a.Seed}
	at.cell.Model = ""
	if vendor == 0 {
		v.first[at] = o
		return
	}
	was, ok := v.first[at]
	if !ok {
		return
	}
	f := &v.All[vendor].Against.First
	f.Pairs++
	switch {
	case was.acts && o.acts:
		f.Both++
	case o.acts:
		f.OnlyVendor++
	case was.acts:
		f.OnlyReference++
	default:
		f.Neither++
	}
	if was.tool != "" && o.tool != "" {
		f.Compared++
		if was.tool == o.tool {
			f.SameTool++
		}
	}
}

// Compare adds the comparison of a vendor with the reference, its side A.
func (v *Vendors) Compare(vendor int, c *Comparison) {
	e := v.All[vendor].Against
	e.Paired = Paired{A: c.A.Name, B: c.B.Name, Comparison: c.Whole}
	e.Test = c.pairs.Equivalent(v.Margin)
	e.pairs = c.pairs
	e.Matched, e.Of = c.B.Matched, c.A.Trials
	if float64(e.Matched) < (1-MostPending)*float64(e.Of) {
		e.Reason = fmt.Sprintf("only %d of the %d trials of %s have an outcome at %s, too",
			e.Matched, e.Of, c.A.Name, c.B.Name)
	}
	e.Reason = cmp.Or(c.A.Incomplete(), c.B.Incomplete(), e.Reason)
	for _, s := range []Side{c.A, c.B} {
		v.Prompts, v.Judges = append(v.Prompts, s.Prompts...), append(v.Judges, s.Judges...)
	}
}

// Judge decides about all vendors. It is called last. The tests for differences are adjusted for
// their number; equivalence is claimed for each vendor on its own.
func (v *Vendors) Judge() {
	var family []*Paired
	for i := range v.All {
		v.All[i].Conduct.summarize()
		if e := v.All[i].Against; e != nil {
			family = append(family, &e.Paired)
		}
	}
	adjust(family)
	v.Verdict = Alike
	for i := range v.All {
		e := v.All[i].Against
		if e == nil {
			continue
		}
		switch {
		case e.Reason != "":
		case e.Test.Holds():
			e.Verdict = Alike
		case e.Significant():
			e.Verdict = Different
		}
		if e.Verdict == Undecided && e.Reason == "" {
			e.Passing = e.pairs.EquivalentPassing(v.Margin)
		}
		if e.Verdict == Different || e.Verdict == Undecided && v.Verdict == Alike {
			v.Verdict = e.Verdict
		}
	}
	for _, list := range []*[]string{&v.Prompts, &v.Judges} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
}

// summarize computes quantiles.
func (c *Conduct) summarize() {
	slices.Sort(c.seconds)
	if n := len(c.seconds); n > 0 {
		c.Median, c.P95 = c.seconds[n/2], c.seconds[min(n-1, n*95/100)]
	}
	c.seconds, c.seen = nil, nil
}

// Kinds returns the kinds of faults that any vendor met, in the order of their table.
func (v *Vendors) Kinds() (kinds []assay.FaultKind) {
	for _, kind := range assay.FaultKinds {
		if slices.ContainsFunc(v.All, func(x Vendor) bool {
			return x.Conduct.FaultKinds[kind]+x.Conduct.Retried[kind] > 0
		}) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// Ends returns the words for the ends of replies that any vendor used.
func (v *Vendors) Ends() []string {
	words := make(map[string]bool)
	for _, x := range v.All {
		for word := range x.Conduct.Finish {
			words[word] = true
		}
	}
	return slices.Sorted(maps.Keys(words))
}
