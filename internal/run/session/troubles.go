package session

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/run/terminal"
)

// troubles count the problems of attempts.
type troubles struct {
	mu        sync.Mutex // guards the fields below
	parked    map[assay.TrialID]parking
	groups    map[parking]parkedGroup
	broken    map[string]bool // words of the faults of scripts that users wrote
	ownErrors int             // attempts that ended with a fault of ours
	// settings counts the attempts with a setting that the endpoint did not use as asked.
	settings map[string]int
}

func newTroubles() *troubles {
	return &troubles{
		parked: make(map[assay.TrialID]parking), groups: make(map[parking]parkedGroup),
		broken: make(map[string]bool), settings: make(map[string]int),
	}
}

// A parking is why the run gave up on a trial. The fault is scripted if it comes from a script that
// users wrote.
type parking struct {
	model    string
	kind     assay.FaultKind
	scripted bool
}

// A parkedGroup counts the trials that are parked for the same reason, and has the words of the
// latest fault.
type parkedGroup struct {
	trials int
	detail string
}

// park counts a trial that the run gave up.
func (t *troubles) park(a *assay.Attempt, scripted bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	why := parking{a.Model, a.FaultKind, scripted}
	t.parked[a.ID] = why
	detail, _, _ := strings.Cut(a.FaultDetail, "\n")
	detail = strings.TrimPrefix(detail, string(a.FaultKind)+": ")
	t.groups[why] = parkedGroup{t.groups[why].trials + 1, detail}
	if scripted {
		t.broken[detail] = true
	}
}

// requeue takes back a trial that was parked.
func (t *troubles) requeue(id assay.TrialID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if why, ok := t.parked[id]; ok {
		delete(t.parked, id)
		t.groups[why] = parkedGroup{t.groups[why].trials - 1, t.groups[why].detail}
	}
}

// ownError counts an attempt that ended with a fault of ours.
func (t *troubles) ownError() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ownErrors++
}

// setting counts an attempt whose endpoint did not use a setting as asked. It returns true for the
// first one.
func (t *troubles) setting(what string) (first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settings[what]++
	return t.settings[what] == 1
}

// parkedByReason has an entry for each model and kind of fault.
func (t *troubles) parkedByReason() (all []terminal.Attention) {
	t.mu.Lock()
	defer t.mu.Unlock()
	byName := func(a, b parking) int {
		return cmp.Or(strings.Compare(a.model, b.model), cmp.Compare(a.kind, b.kind))
	}
	for _, why := range slices.SortedFunc(maps.Keys(t.groups), byName) {
		g := t.groups[why]
		if g.trials == 0 {
			continue
		}
		do := "correct the script, then run again"
		if why.kind == assay.AgentEnded {
			do = "`assay check` shows what the agent prints; correct it, then run again"
		}
		a := alarm(CauseParked, g.trials, do,
			"parked trials of %s after faults of kind %s: %.200s", why.model, why.kind, g.detail)
		if why.kind != assay.AgentEnded && !why.scripted { // these would break again
			a = mendable(a, "requeue", why.model)
		}
		all = append(all, a)
	}
	return all
}

// others lists our own errors, and settings that were not used as asked.
func (t *troubles) others() (all []terminal.Attention) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ownErrors > 0 {
		all = append(all, alarm(CauseHarness, t.ownErrors, "report it with the log of the run",
			"attempts ended with an error of Assay: %d", t.ownErrors))
	}
	for _, what := range slices.Sorted(maps.Keys(t.settings)) {
		all = append(all, alarm(CauseSetting, t.settings[what], "",
			"%s, according to the endpoint", what))
	}
	return all
}
