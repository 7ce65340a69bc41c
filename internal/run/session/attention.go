package session

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/run/terminal"
)

// Causes of a [terminal.Attention].
const (
	CauseClosed  = "closed"  // a model or a lane cannot serve any more
	CauseParked  = "parked"  // trials were given up after faults
	CausePaused  = "paused"  // by the user
	CauseBudget  = "budget"  // it is spent, or will be
	CauseDisk    = "disk"    // it is nearly full
	CauseLocked  = "locked"  // another program has locked the store
	CauseStalled = "stalled" // no request has ended for a minute
	CauseHarness = "harness" // our own errors
	CauseStopped = "stopped" // a stop rule was met
	CauseSetting = "setting" // an endpoint did not use a setting as asked
	CauseWorkers = "workers" // no worker takes attempts
)

// attention lists everything that needs the user's attention, most trials at stake first. All
// views show this list.
func (s *Session) attention(p *terminal.Progress) (all []terminal.Attention) {
	all = []terminal.Attention{}
	add := func(a ...terminal.Attention) { all = append(all, a...) }
	add(s.closedOrPaused(p)...)
	add(s.parkedAlarms()...)
	add(s.budgetAlarm(p)...)
	add(s.diskAlarm(p)...)
	add(s.lockAlarm(p, time.Now())...)
	add(s.stallAlarm(p)...)
	add(s.workerAlarm(p)...)
	for _, stop := range s.tally.Stops() {
		add(alarm(CauseStopped, stop.Skipped, "", "%s", stop))
	}
	add(s.runAlarms()...)
	slices.SortStableFunc(all, func(a, b terminal.Attention) int { return b.Trials - a.Trials })
	for i := range all {
		all[i].Text = terminal.OneLine(all[i].Text)
	}
	return all
}

func alarm(cause string, trials int, advice, format string, args ...any) terminal.Attention {
	return terminal.Attention{
		Cause: cause, Trials: trials, Text: fmt.Sprintf(format, args...), Advice: advice,
	}
}

// withOrder returns an alarm with the order that helps.
func (s *Session) withOrder(a terminal.Attention, do string, names ...string) terminal.Attention {
	a.Order = &terminal.Remedy{Do: do, Names: names}
	a.Advice = s.options.Words.Hint(assay.HintOrder, strings.Join(append([]string{do}, names...), " "),
		assay.StorePath(s.options.Store))
	return a
}

// closedOrPaused lists closed, refused and paused lanes. The trials of a model are at stake unless
// one of its lanes can work.
func (s *Session) closedOrPaused(p *terminal.Progress) (all []terminal.Attention) {
	var paused []string
	standing := 0 // the trials of models whose lanes are paused
	listed := make(map[string]bool)
	for _, m := range p.Models {
		if m.Unfinished() == 0 || m.Pending == 0 && m.Closed == "" {
			continue
		}
		lanes, _ := s.pools.ByModel[m.Model].Status()
		if m.Closed != "" {
			advice := runAgain
			if s.starters.givenUp(m.Model) != nil {
				advice = s.options.Words.Hint(assay.HintAgent)
			}
			all = append(all, alarm(CauseClosed, m.Unfinished(), advice,
				"%s is closed: %s", m.Model, m.Closed))
			continue
		}
		works := func(l lane.Status) bool { return l.Closed == nil && l.Denial == nil && !l.Held }
		stake := m.Pending
		if slices.ContainsFunc(lanes, works) {
			stake = 0
		}
		waits := 0
		for _, l := range lanes {
			switch f := cmp.Or(l.Closed, l.Denial); {
			case f != nil && !listed[l.Name]:
				listed[l.Name] = true
				all = append(all, alarm(CauseClosed, stake, lostLane(l),
					"lane closed: %s", f.Error()))
			case f == nil && l.Held:
				paused, waits = append(paused, l.Name), stake
			}
		}
		standing += waits
	}
	return append(all, s.pausedLanes(paused, standing)...)
}

// runAgain is the advice for a closed lane, because keys are read at the start of a run.
const runAgain = "correct the key or the deployment, stop this run and start it again"

func lostLane(l lane.Status) string {
	if l.Closed == nil {
		return "correct the key or the deployment; the lane is tried again"
	}
	return runAgain
}

// workerAlarm warns that there is no worker to take attempts.
func (s *Session) workerAlarm(p *terminal.Progress) []terminal.Attention {
	if s.coordinator == nil || s.coordinator.Slots() > 0 || p.Pending == 0 || p.Stopping {
		return nil
	}
	return []terminal.Attention{alarm(CauseWorkers, p.Pending,
		s.options.Words.Hint(assay.HintWorkers), "no worker takes attempts")}
}

func (s *Session) pausedLanes(names []string, trials int) (all []terminal.Attention) {
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	names = slices.Compact(names)
	text := strings.Join(names, ", ")
	if len(names) > 3 {
		text = fmt.Sprintf("%d lanes", len(names))
	}
	a := alarm(CausePaused, trials, "", "paused by the user: %s", text)
	return []terminal.Attention{s.withOrder(a, "resume", names...)}
}

// budgetAlarm reports how many trials the budget of the run has no room for, if their mean cost
// stays.
func (s *Session) budgetAlarm(p *terminal.Progress) []terminal.Attention {
	ran := s.inRun().Settled()
	if ran <= 0 || p.Pending == 0 {
		return nil
	}
	short, spent := s.stopper.Short(ran, p.Pending)
	if spent == "" {
		return nil
	}
	return []terminal.Attention{alarm(CauseBudget, short,
		"raise the budget in the experiment file and run it again",
		"the budget does not last: %s are spent after %s", spent, assay.Counted(ran, "trial"))}
}

// parkedAlarms has an entry for each model and kind of fault.
func (s *Session) parkedAlarms() (all []terminal.Attention) {
	for _, p := range s.tally.Parked() {
		do := "correct the script, then run again"
		if p.Kind == assay.AgentEnded {
			do = s.options.Words.Hint(assay.HintAgent)
		}
		a := alarm(CauseParked, p.Trials, do, "parked trials of %s after faults of kind %s: %.200s",
			p.Model, p.Kind, withoutKind(p.Latest, p.Kind))
		if p.Kind != assay.AgentEnded && !s.scripted(p.Kind) { // these would break again
			a = s.withOrder(a, "requeue", p.Model)
		}
		all = append(all, a)
	}
	return all
}

// runAlarms lists our own errors, and settings that were not used as asked.
func (s *Session) runAlarms() (all []terminal.Attention) {
	run := s.inRun()
	if n := run.Faults[assay.Harness]; n > 0 {
		all = append(all, alarm(CauseHarness, n, "report it with the log of the run",
			"attempts ended with an error of Assay: %d", n))
	}
	for _, what := range slices.Sorted(maps.Keys(run.OtherSettings)) {
		all = append(all, alarm(CauseSetting, run.OtherSettings[what], "", "%s, according to the endpoint", what))
	}
	return all
}

// scarceDisk is how many bytes a disk should have left.
const scarceDisk = 512 << 20

func (s *Session) diskAlarm(p *terminal.Progress) []terminal.Attention {
	dir := filepath.Dir(s.options.Store)
	free, ok := freeDisk(dir)
	if !ok || free >= scarceDisk {
		return nil
	}
	return []terminal.Attention{alarm(CauseDisk, p.Pending, "free space on that disk",
		"only %d MB are free on the disk of %s", free>>20, s.options.Store)}
}

// lockedAfter is the shortest lock of the store by another program that users need to know.
const lockedAfter = 5 * time.Second

// lockAlarm warns that another program has locked the store.
func (s *Session) lockAlarm(p *terminal.Progress, now time.Time) []terminal.Attention {
	text := s.lockText(now)
	if text == "" {
		return nil
	}
	return []terminal.Attention{alarm(CauseLocked, p.Pending, "close that program", "%s", text)}
}

// lockText describes that another program has locked the store for a while, or returns "".
func (s *Session) lockText(now time.Time) string {
	since := s.locked()
	if since.IsZero() || now.Sub(since) < lockedAfter {
		return ""
	}
	name := filepath.Base(s.options.Store)
	return fmt.Sprintf("another program, such as sqlite3, a database browser or a backup, has locked "+
		"%s for %v (`fuser %s` names it); the run keeps %s in memory until it ends, for an hour at most",
		name, now.Sub(since).Round(time.Second), name,
		assay.Counted(s.flights.doing(Saving), "result"))
}

// stallAlarm explains why no request has ended for a while.
func (s *Session) stallAlarm(p *terminal.Progress) []terminal.Attention {
	idle := s.meter.idle(time.Now())
	if !p.PausedSince.IsZero() || idle < stallAfter || p.Pending == 0 {
		return nil
	}
	return []terminal.Attention{alarm(CauseStalled, p.Pending,
		"wait, or pause the lane that hangs", "%s", s.stall(time.Now(), idle))}
}
