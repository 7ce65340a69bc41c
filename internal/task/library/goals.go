package library

import (
	"slices"
	"strings"
)

// describeHard states the goal of the last step first, and then the states that the other steps
// bring about.
func (d *draft) describeHard() string {
	words := hardWords()
	goal, states := d.wants(words.Steps, words.Openings, d.verbs, "hard")
	premises := d.premises(words.Frames, states)
	aside := d.choose(words.Asides, "hard", "aside")
	at := len(premises)
	if d.draw(3, "hard", "place") == 0 {
		at = 0
	}
	return goal + " " + strings.Join(slices.Insert(premises, at, aside), " ")
}

// wants returns a sentence with the goal of the last verb, and the states of the others. It
// draws with the given difficulty as the key.
func (d *draft) wants(
	steps goalSteps, openings, verbs []string, difficulty string,
) (goal string, states []string) {
	last := len(verbs) - 1
	goal = d.choose(steps[verbs[last]].Goals, difficulty, "goal")
	opening := d.choose(openings, difficulty, "opening")
	goal = d.fill(strings.Replace(opening, "{goal}", goal, 1))
	for _, v := range verbs[:last] {
		states = append(states, d.fill(d.choose(steps[v].States, difficulty, v)))
	}
	return goal, states
}

// premises makes sentences out of states, with two states in each if possible.
func (d *draft) premises(words hardFrames, states []string) (text []string) {
	turn := d.draw(len(words.NextPair), "hard", "turn")
	if len(states) == 1 {
		return []string{inFrame(d.choose(words.Alone, "hard"), states)}
	}
	if len(states)%2 == 1 && turn > 0 {
		text = append(text, inFrame(d.choose(words.First, "hard"), states[:1]))
		states = states[1:]
	}
	for ; len(states) > 0; turn++ {
		n := min(2, len(states))
		frames := words.NextPair
		switch {
		case n == 1:
			frames = words.Next
		case len(text) == 0:
			frames = words.FirstPair
		}
		text = append(text, inFrame(frames[turn%len(frames)], states[:n]))
		states = states[n:]
	}
	return text
}

// inFrame puts one or two states into a frame.
func inFrame(frame string, states []string) string {
	return strings.NewReplacer("{a}", states[0], "{b}", states[len(states)-1]).Replace(frame)
}

// describeVeryHard states the benefit of the last step to the team, and the states that it depends
// on. It leaves out the steps that follow from the dependencies of those it mentions.
func (d *draft) describeVeryHard() string {
	words := veryHardWords()
	goal, states := d.wants(words.Steps, words.Openings, d.essential(), "very_hard")
	text := []string{goal}
	text = append(text, d.conditions(words.First, words.More, states)...)
	if c := d.choose(words.Closings, "very_hard", "closing"); c != "" {
		text = append(text, c)
	}
	return strings.Join(text, " ")
}

// conditions makes sentences out of states, with up to three in each.
func (d *draft) conditions(first, more, states []string) (text []string) {
	frame := d.choose(first, "very_hard")
	for len(states) > 0 {
		n := len(states)
		if n > 3 {
			n = (n + 1) / 2
		}
		frame = strings.NewReplacer(
			"{if}", enumerate("", states[:n]), "{that}", enumerate("that ", states[:n]),
		).Replace(frame)
		text = append(text, frame)
		states = states[n:]
		frame = d.choose(more, "very_hard")
	}
	return text
}

// enumerate joins states with commas and "and". It puts word before each but the first.
func enumerate(word string, states []string) string {
	last := len(states) - 1
	if last == 0 {
		return states[0]
	}
	return strings.Join(states[:last], ", "+word) + " and " + word + states[last]
}

// essential returns the smallest selection of the task's verbs from which the others follow: if
// each tool is preceded by its missing dependencies, the result is the required tools.
func (d *draft) essential() []string {
	verbs := slices.Clone(d.verbs)
	for i := len(verbs) - 2; i >= 0; i-- {
		fewer := slices.Delete(slices.Clone(verbs), i, i+1)
		if slices.Equal(d.closure(fewer), d.tools()) {
			verbs = fewer
		}
	}
	return verbs
}
