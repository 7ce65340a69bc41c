package validate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/world"
)

// maxQuick limits the tasks that [Quick] plays, because commands wait for it.
const maxQuick = 200

// Unsound holds the findings of [Quick] about tasks whose tools users wrote.
type Unsound struct {
	Findings []Finding `json:"findings"`
	// Played counts the tasks that were played, and Of the wanted ones.
	Played int `json:"played"`
	Of     int `json:"of"`
	// Unvalidated means that the tasks of an environment were never validated on this machine.
	Unvalidated bool `json:"unvalidated,omitempty"`
}

// Quick plays tasks of a library whose tools users wrote once with each agent: with their plans,
// with agents that do not read them, and with one that calls no tool. It plays no more tasks than a
// command can wait for, ends early if the context ends, and plays no task if each attempt would
// start a server. For an environment, it returns what [Library] found. Wanted chooses the tasks.
func Quick(
	ctx context.Context, lib *library.Library, turns, calls int, wanted func(assay.TaskID) bool,
) (u Unsound, err error) {
	switch server := lib.Catalog().Server(); {
	case server != nil && server.OpenEnv:
		return recall(lib, wanted), nil
	case server != nil, !lib.Own():
		return u, nil
	}
	v := newValidator(lib, world.OwnName)
	v.rounds, v.most = 0, maxQuick
	v.turns, v.calls = cmp.Or(turns, plan.DefaultTurns), cmp.Or(calls, plan.DefaultCalls)
	v.wanted = func(id assay.TaskID) bool {
		if wanted(id) {
			u.Of++
			return true
		}
		return false
	}
	err = v.playAll(ctx)
	if ctx.Err() != nil {
		err = nil
	}
	u.Played = v.begun
	for i := range v.results {
		for _, f := range v.results[i].findings {
			if f.Grave() {
				u.Findings = append(u.Findings, f)
			}
		}
	}
	return u, err
}

// Tasks counts the tasks that are not sound.
func (u *Unsound) Tasks() int {
	var names []string
	for _, f := range u.Findings {
		if !slices.Contains(names, f.Task) {
			names = append(names, f.Task)
		}
	}
	return len(names)
}

// Note lists in a few lines the tasks that are not sound, and the command that shows more. It is
// empty if all tasks are sound.
func (u *Unsound) Note(command string) (lines []string) {
	const most = 5
	switch {
	case u.Unvalidated:
		return []string{fmt.Sprintf("The tasks were never validated on this machine. `%s` plays their plans.",
			command)}
	case len(u.Findings) > 0:
	case u.Played < u.Of:
		return []string{fmt.Sprintf("%d of %d tasks were tried, and they are sound. `%s` tries all.",
			u.Played, u.Of, command)}
	default:
		return nil
	}
	verb := "are"
	if u.Tasks() == 1 {
		verb = "is"
	}
	lines = []string{fmt.Sprintf("%d of %d tasks %s not sound, so results at them mislead:",
		u.Tasks(), u.Played, verb)}
	for _, f := range u.Findings[:min(most, len(u.Findings))] {
		lines = append(lines, "  "+f.short())
	}
	if more := len(u.Findings) - most; more > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more", more))
	}
	return append(lines, fmt.Sprintf("`%s` says more.", command))
}

// short returns a finding on one line.
func (f *Finding) short() string {
	const most = 200
	text := strings.Join(strings.Fields(f.String()), " ")
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}
