package fresh

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// A describer puts a task into words.
type describer struct {
	*Grammar
	dice *rand.Rand
	solution
	month string
	team  string // who wants the work done
	// others are another team of the same domain, and rival is the profile of the limits that do not
	// count. The others decide if they prevail.
	others  string
	rival   int
	prevail bool
}

func (g *Grammar) newDescriber(dice *rand.Rand, s solution, month string) describer {
	teams := slices.Clone(g.drawn[s.path[0].from.domain].Teams)
	dice.Shuffle(len(teams), func(i, j int) { teams[i], teams[j] = teams[j], teams[i] })
	return describer{
		g, dice, s, month, teams[0], teams[1], pick(dice, g.rivals(s)), dice.IntN(2) == 0,
	}
}

// rivals returns the profiles under which another path leads to the same records, or if there are
// none, all other profiles.
func (g *Grammar) rivals(s solution) (rivals []int) {
	var rest []int
	for profile := range profiles {
		if profile == s.profile {
			continue
		}
		rest = append(rest, profile)
		for to, paths := range g.pathsBy(profile, s.path[0].from) {
			if to == s.path[len(s.path)-1].to && !slices.Equal(paths[0], s.path) {
				rivals = append(rivals, profile)
			}
		}
	}
	if len(rivals) == 0 {
		return rest
	}
	return rivals
}

// literal is the share of the tasks, in percent, that are put step by step although their
// difficulty puts most of them otherwise. A reader who compares words solves exactly these.
var literal = map[string]int{"easy": 75}

// A statement is a part of a description: what it says, and its plain words. The kind is that of the
// wordings.
type statement struct {
	kind  string
	marks marks
	// lead begins the text of a step.
	lead, text string
}

// The kinds of statements.
const (
	saysFull   = "full"
	saysShort  = "short"
	saysBegin  = "begin"
	saysOrigin = "origin"
	saysGoal   = "goal"
	saysSequel = "sequel"
	saysAside  = "aside"
	saysLimit  = "limit"
	saysRule   = "rule"
	saysChange = "change"
	saysWho    = "decider"
)

// isStep reports whether a statement names a step by its operation.
func (s statement) isStep() bool { return s.kind == saysFull || s.kind == saysShort }

func (s statement) plain() string { return capital(s.lead + s.text) }

func plainly(all []statement) string {
	var text []string
	for _, s := range all {
		text = append(text, s.plain())
	}
	return strings.Join(text, " ")
}

// describe returns the description at a difficulty of the n-th task of its length.
func (d describer) describe(difficulty string, n int) []statement {
	share := literal[difficulty]
	plain := n*share/100 < (n+1)*share/100
	switch {
	case difficulty == "very_easy":
		return d.steps(saysFull, -1)
	case plain:
		return d.steps(saysShort, -1)
	case difficulty == "easy":
		return append(d.withGap(), d.limited())
	case difficulty == "medium":
		return []statement{d.begin(), d.goal(), d.limited()}
	case difficulty == "very_hard":
		return append(d.between(), d.ruled(saysChange)...)
	}
	return append([]statement{d.begin(), d.sequel()}, d.ruled(saysRule)...)
}

// steps names the steps in order, without the hidden one.
func (d describer) steps(kind string, hidden int) (all []statement) {
	w := words().Tasks
	wordings := w.Short
	if kind == saysFull {
		wordings = w.Full
	}
	for i, step := range d.path {
		if i == hidden {
			continue
		}
		s := statement{kind: kind, marks: d.about(step)}
		s.text = s.marks.fill(pick(d.dice, wordings))
		switch {
		case len(d.path) == 1:
		case i == 0:
			s.lead = pick(d.dice, w.First)
		case i == len(d.path)-1:
			s.lead = pick(d.dice, w.Last)
		default:
			s.lead = pick(d.dice, w.Next)
		}
		all = append(all, s)
	}
	return all
}

// withGap names all steps but one, which is neither the first nor the last.
func (d describer) withGap() []statement {
	begin := d.begin()
	return append([]statement{begin}, d.steps(saysShort, 1+d.dice.IntN(len(d.path)-2))...)
}

func (d describer) about(s operation) marks {
	m := d.Grammar.about(s)
	m["team"], m["month"] = d.team, d.month
	return m
}

func (d describer) one(kind string, list []string, s operation) statement {
	m := d.about(s)
	return statement{kind: kind, marks: m, text: m.fill(pick(d.dice, list))}
}

// begin names the records that the task begins with.
func (d describer) begin() statement { return d.one(saysBegin, words().Tasks.Begins, d.path[0]) }

// goal names the records that the task ends with.
func (d describer) goal() statement {
	return d.one(saysGoal, words().Tasks.Goals, d.path[len(d.path)-1])
}

// sequel names an operation that somebody else does with the result.
func (d describer) sequel() statement { return d.one(saysSequel, words().Tasks.Sequels, d.following()) }

// following returns a step that works on the result.
func (d describer) following() operation { return pick(d.dice, d.from(d.path[len(d.path)-1].to)) }

// limited states the limits of the task.
func (d describer) limited() statement {
	m := d.limit("a", "b", d.limits(d.profile))
	return statement{kind: saysLimit, marks: m, text: m.fill(pick(d.dice, words().Tasks.Limits))}
}

// limit returns the marks for both limits.
func (d describer) limit(first, second string, limits [2]int) marks {
	m := make(marks)
	for i, name := range []string{first, second} {
		m[name] = marks{"n": fmt.Sprint(limits[i])}.fill(d.scales[i].Limit)
	}
	return m
}

// ruled states the limits of two teams, and which team decides. In changes, the limits of the second
// team are stated by their difference.
func (d describer) ruled(kind string) []statement {
	ours, theirs := d.limits(d.profile), d.limits(d.rival)
	winner, loser := d.team, d.others
	if d.prevail {
		winner, loser = loser, winner
	}
	who := marks{"team": winner, "other": loser}
	decides := statement{kind: saysWho, marks: who, text: who.fill(pick(d.dice, words().Tasks.Deciders))}
	if d.dice.IntN(2) == 0 {
		ours, theirs, winner, loser = theirs, ours, loser, winner
	}
	m := d.limit("a", "b", ours)
	m["team"], m["other"] = winner, loser
	wordings := words().Tasks.Rules
	if kind == saysChange {
		wordings = words().Tasks.Changes
		for i, name := range []string{"c", "d"} {
			m[name] = fmt.Sprint(theirs[i]-ours[i], " higher")
			if theirs[i] < ours[i] {
				m[name] = fmt.Sprint(ours[i]-theirs[i], " lower")
			}
		}
	} else {
		maps.Copy(m, d.limit("c", "d", theirs))
	}
	return []statement{{kind: kind, marks: m, text: m.fill(pick(d.dice, wordings))}, decides}
}

// between names the operation that made the first records and one that somebody else does with the
// result, and mentions records that have nothing to do with the task.
func (d describer) between() []statement {
	w := words().Tasks
	origin, sequel := pick(d.dice, d.to(d.path[0].from)), d.following()
	involved := []kindPlace{origin.from, sequel.from, sequel.to}
	for _, s := range d.path {
		involved = append(involved, s.from)
	}
	others := slices.DeleteFunc(slices.Clone(d.Grammar.steps), func(s operation) bool {
		return slices.Contains(involved, s.from)
	})
	return []statement{
		d.one(saysOrigin, w.Origins, origin), d.one(saysAside, w.Asides, pick(d.dice, others)),
		d.one(saysSequel, w.Sequels, sequel),
	}
}
