package fresh

import (
	"math/rand/v2"
	"slices"
	"strings"
)

// A describer puts a task into words.
type describer struct {
	*Grammar
	dice  *rand.Rand
	path  []operation
	month string
	team  string // who wants the work done
}

// literal is the share of the tasks, in percent, that are put step by step although their
// difficulty puts most of them otherwise. A reader who compares words solves exactly these.
var literal = map[string]int{"easy": 75, "medium": 12}

// describe returns the description at a difficulty of the n-th task of its length.
func (d describer) describe(difficulty string, n int) string {
	share := literal[difficulty]
	plain := n*share/100 < (n+1)*share/100
	switch {
	case difficulty == "very_easy":
		return d.steps(words().Tasks.Full, -1)
	case plain, difficulty == "easy" && len(d.path) == 1:
		return d.steps(words().Tasks.Short, -1)
	case difficulty == "easy":
		return d.withGap()
	case difficulty == "medium" && len(d.path) > 2:
		return d.begin() + " " + d.goal()
	case difficulty == "very_hard":
		return d.between()
	}
	return d.begin() + " " + d.sequel()
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

// between names the operation that made the first records and one that somebody else does with the
// result, and mentions records of the same domain that have nothing to do with the task.
func (d describer) between() string {
	w := words().Tasks
	origin, sequel := pick(d.dice, d.to(d.path[0].from)), d.following()
	involved := []kindPlace{origin.from, sequel.from, sequel.to}
	for _, s := range d.path {
		involved = append(involved, s.from)
	}
	others := slices.DeleteFunc(slices.Clone(d.Grammar.steps), func(s operation) bool {
		return s.from.domain != d.path[0].from.domain || slices.Contains(involved, s.from)
	})
	return d.one(w.Origins, origin) + " " + d.one(w.Asides, pick(d.dice, others)) + " " +
		d.one(w.Sequels, sequel)
}
