package fresh

import (
	"fmt"
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

// describe returns the description at a difficulty of the n-th task of its length.
func (d describer) describe(difficulty string, n int) string {
	share := literal[difficulty]
	plain := n*share/100 < (n+1)*share/100
	w := words().Tasks
	switch {
	case difficulty == "very_easy":
		return d.steps(w.Full, -1)
	case plain:
		return d.steps(w.Short, -1)
	case difficulty == "easy":
		return d.withGap() + " " + d.limited()
	case difficulty == "medium":
		return d.begin() + " " + d.goal() + " " + d.limited()
	case difficulty == "very_hard":
		return d.between() + " " + d.ruled(w.Changes)
	}
	return d.begin() + " " + d.sequel() + " " + d.ruled(w.Rules)
}

// steps names the steps in order, without the hidden one.
func (d describer) steps(wordings []string, hidden int) string {
	var text []string
	w := words().Tasks
	for i, s := range d.path {
		if i == hidden {
			continue
		}
		sentence := d.about(s).fill(pick(d.dice, wordings))
		switch {
		case len(d.path) == 1:
			sentence = capital(sentence)
		case i == 0:
			sentence = pick(d.dice, w.First) + sentence
		case i == len(d.path)-1:
			sentence = pick(d.dice, w.Last) + sentence
		default:
			sentence = pick(d.dice, w.Next) + sentence
		}
		text = append(text, sentence)
	}
	return strings.Join(text, " ")
}

// withGap names all steps but one, which is not the first.
func (d describer) withGap() string {
	last := len(d.path) - 1
	if last == 1 {
		return d.begin() + " " + d.steps(words().Tasks.Short, last) + " " + d.goal()
	}
	return d.begin() + " " + d.steps(words().Tasks.Short, 1+d.dice.IntN(last-1))
}

func (d describer) about(s operation) marks {
	m := d.Grammar.about(s)
	m["team"], m["month"] = d.team, d.month
	return m
}

func (d describer) one(list []string, s operation) string {
	return d.about(s).fill(pick(d.dice, list))
}

// begin names the records that the task begins with.
func (d describer) begin() string { return d.one(words().Tasks.Begins, d.path[0]) }

// goal names the records that the task ends with.
func (d describer) goal() string { return d.one(words().Tasks.Goals, d.path[len(d.path)-1]) }

// sequel names an operation that somebody else does with the result.
func (d describer) sequel() string { return d.one(words().Tasks.Sequels, d.following()) }

// following returns a step that works on the result.
func (d describer) following() operation { return pick(d.dice, d.from(d.path[len(d.path)-1].to)) }

// limited states the limits of the task.
func (d describer) limited() string {
	return d.limit(pick(d.dice, words().Tasks.Limits), d.limits(d.profile))
}

// limit fills the marks {a} and {b} with limits.
func (d describer) limit(text string, limits [2]int) string {
	for i, name := range []string{"{a}", "{b}"} {
		limit := marks{"n": fmt.Sprint(limits[i])}.fill(d.scales[i].Limit)
		text = strings.Replace(text, name, limit, 1)
	}
	return text
}

// ruled states the limits of two teams, and which team decides. In some wordings the limits of the
// second team are stated by their difference.
func (d describer) ruled(wordings []string) string {
	ours, theirs := d.limits(d.profile), d.limits(d.rival)
	winner, loser := d.team, d.others
	if d.prevail {
		winner, loser = loser, winner
	}
	decides := marks{"team": winner, "other": loser}.fill(pick(d.dice, words().Tasks.Deciders))
	if d.dice.IntN(2) == 0 {
		ours, theirs, winner, loser = theirs, ours, loser, winner
	}
	return d.rule(pick(d.dice, wordings), winner, loser, ours, theirs) + " " + decides
}

// rule states the limits of one team and then of another one.
func (d describer) rule(text, first, second string, ours, theirs [2]int) string {
	text = d.limit(text, ours)
	if strings.Contains(text, "{c} and {d}") {
		return marks{"team": first, "other": second}.fill(
			d.limit(strings.Replace(text, "{c} and {d}", "{a} and {b}", 1), theirs))
	}
	m := marks{"team": first, "other": second}
	for i, name := range []string{"c", "d"} {
		m[name] = fmt.Sprint(theirs[i]-ours[i], " higher")
		if theirs[i] < ours[i] {
			m[name] = fmt.Sprint(ours[i]-theirs[i], " lower")
		}
	}
	return m.fill(text)
}

// between names the operation that made the first records and one that somebody else does with the
// result, and mentions records that have nothing to do with the task.
func (d describer) between() string {
	w := words().Tasks
	origin, sequel := pick(d.dice, d.to(d.path[0].from)), d.following()
	involved := []kindPlace{origin.from, sequel.from, sequel.to}
	for _, s := range d.path {
		involved = append(involved, s.from)
	}
	others := slices.DeleteFunc(slices.Clone(d.Grammar.steps), func(s operation) bool {
		return slices.Contains(involved, s.from)
	})
	return d.one(w.Origins, origin) + " " + d.one(w.Asides, pick(d.dice, others)) + " " +
		d.one(w.Sequels, sequel)
}
