package library

import (
	"slices"
	"strings"
)

// veryHardAims hold for each verb what the difficulty very_hard says: what
// somebody is better off with in the end, in the most general terms.
var veryHardAims = map[string]aims{
	"read": {
		goals: []string{
			"start from the {things} exactly as they came in",
			"have before them whatever came in about the {things}",
		},
		states: []string{
			"nothing of what came in goes unseen",
			"everything starts from what came in",
		},
	},
	"scan": {
		goals: []string{
			"put a finger on each place where the {things} speak of {value}",
			"miss no place where the {things} speak of {value}",
		},
		states: []string{
			"no mention of {value} escapes notice",
			"every occurrence of {value} is accounted for",
		},
	},
	"fetch": {
		goals: []string{
			"own a copy of what others make public about the {things}",
			"have at home what the outside world offers on the {things}",
		},
		states: []string{
			"what the outside world offers is at home",
			"what others make public has come in",
		},
	},
	"authenticate": {
		goals: []string{
			"count as trusted where the {things} are kept",
			"find the door open where the {things} are kept",
		},
		states: []string{
			"the other side has no doubt who is asking",
			"the door on the other side stands open",
		},
	},
	"log": {
		goals: []string{
			"have an answer to any later question about what became of the {things}",
			"rely on more than memory when somebody asks about the {things}",
		},
	},
	"parse": {
		goals: []string{
			"tell apart what the {things} are made of",
			"find meaning where the {things} were mere characters",
		},
		states: []string{
			"what was mere characters carries meaning",
			"the parts can be told from the whole",
		},
	},
	"filter": {
		goals: []string{
			"give their attention to none of the {things} but those that matter",
			"be spared those {things} that are beside the point",
		},
		states: []string{
			"whatever is beside the point is gone",
			"only what matters is left",
		},
	},
	"convert": {
		goals: []string{
			"offer the {things} to people who expect another kind of document",
			"see the {things} in other dress and yet unchanged at heart",
		},
		states: []string{
			"people who expect another kind of document are served as well",
			"the dress is another while the heart is unchanged",
		},
	},
	"compress": {
		goals: []string{
			"hold on to the {things} at less expense",
			"keep the {things} without paying for empty space",
		},
		states: []string{
			"holding on to it all costs less",
			"no empty space is paid for",
		},
	},
	"monitor": {
		goals: []string{
			"sleep soundly about the place that serves the {things}",
			"notice early if the place that serves the {things} falters",
		},
		states: []string{
			"somebody would notice if the other side faltered",
			"the well-being of the other side is in view",
		},
	},
	"route": {
		goals: []string{
			"see whatever is asked about the {things} go the right way",
			"know that questions about the {things} take the proper road",
		},
		states: []string{
			"whatever is asked goes the right way",
			"questions take the proper road",
		},
	},
	"predict": {
		goals: []string{
			"face what comes after the {things} without surprise",
			"be prepared for what the {things} lead to",
		},
		states: []string{
			"what comes next is no surprise",
			"the near future is part of the picture",
		},
	},
	"simulate": {
		goals: []string{
			"know how well, and how badly, things could turn out with the {things}",
			"weigh what chance might do to the {things}",
		},
		states: []string{
			"everybody knows how far things could go either way",
			"chance has been reckoned with",
		},
	},
	"optimize": {
		goals: []string{
			"waste nothing on the {things}",
			"make do with the least where the {things} are concerned",
		},
		states: []string{
			"nothing is wasted",
			"the least that will do is all that is spent",
		},
	},
	"map": {
		goals: []string{
			"see both sides speak of the {things} in the same terms",
			"have the {things} understood by others in their own terms",
		},
		states: []string{
			"both sides mean the same by their terms",
			"two ways of naming things agree",
		},
	},
	"queue": {
		goals: []string{
			"see each of the {things} get its turn",
			"have none of the {things} jump ahead of another",
		},
		states: []string{
			"each gets its turn",
			"nothing jumps ahead of its turn",
		},
	},
	"schedule": {
		goals: []string{
			"have the {things} looked after while everybody sleeps",
			"stop thinking of the {things} and still find them done every morning",
		},
		states: []string{
			"it goes on by itself while everybody sleeps",
			"nobody has to remember when to begin",
		},
	},
	"connect": {
		goals: []string{
			"have a standing line to the home of the {things}",
			"stay on speaking terms with the place that the {things} come from",
		},
		states: []string{
			"there is a standing line to the place of origin",
			"the place of origin stays on speaking terms",
		},
	},
	"cache": {
		goals: []string{
			"never wait twice for the {things}",
			"get the same answer about the {things} again without delay",
		},
	},
	"track": {
		goals: []string{
			"tell at any time how far the {things} have got",
			"know that the {things} are one stage further on",
		},
		states: []string{
			"anybody can tell how far it has got",
			"what has been achieved can be seen",
		},
	},
	"help": {
		goals: []string{
			"call the {things} by a name that belongs to nothing else",
			"never mistake this lot of {things} for another",
		},
		states: []string{
			"the lot goes by a name that belongs to nothing else",
			"the lot cannot be mistaken for another",
		},
	},
	"transform": {
		goals: []string{
			"receive the {things} in a shape that suits what comes next",
			"have the {things} in the form that is awaited further on",
		},
		states: []string{
			"the shape suits what comes next",
			"the form is the one that is awaited further on",
		},
	},
	"validate": {
		goals: []string{
			"take the {things} at their word",
			"vouch that the {things} are as they ought to be",
		},
		states: []string{
			"nothing is other than it ought to be",
			"everything can be taken at its word",
		},
	},
	"aggregate": {
		goals: []string{
			"see the wood and not the trees in the {things}",
			"grasp the {things} in a few lines",
		},
		states: []string{
			"the wood is seen and not the trees",
			"a few lines say what many said",
		},
	},
	"verify": {
		goals: []string{
			"keep every promise about what goes out on the {things}",
			"give the other side no ground for complaint about the {things}",
		},
		states: []string{
			"promises to the other side are kept",
			"the other side is given no ground for complaint",
		},
	},
	"post": {
		goals: []string{
			"see the {things} arrive where others wait for them",
			"do their duty by those who await the {things}",
		},
	},
	"analyze": {
		goals: []string{
			"tell the ordinary from the remarkable in the {things}",
			"hear what the {things} say between the lines",
		},
		states: []string{
			"the ordinary is told from the remarkable",
			"what stands between the lines is understood",
		},
	},
	"calculate": {
		goals: []string{
			"name one figure for the {things} that nobody can dispute",
			"settle beyond dispute what the {things} amount to",
		},
		states: []string{
			"one figure stands that nobody can dispute",
			"what it all amounts to is settled beyond dispute",
		},
	},
	"write": {
		goals: []string{
			"find the answer on the {things} still there tomorrow",
			"leave something lasting about the {things} behind",
		},
		states: []string{
			"the answer is still there tomorrow",
			"something lasting is left behind",
		},
	},
	"notify": {
		goals: []string{
			"learn what is up with the {things} without having to ask",
			"be the first to hear what has come to light about the {things}",
		},
	},
}

var (
	veryHardOpenings = []string{
		"It all comes down to letting the {team} {goal}.",
		"The point, for the {team}, is to {goal}.",
		"What would please the {team} most is to {goal}.",
		"The {team} will be content once they can {goal}.",
		"Whenever {month} comes up, it should be possible for the {team} to {goal}.",
		"Success, to the {team}, would be to {goal}.",
		"Somebody has to make it possible for the {team} to {goal}.",
		"At the end of the day, the {team} should be in a position to {goal}.",
		"However {month} is looked at, the {team} ought to {goal}.",
		"The ambition of the {team} is to {goal}.",
	}
	veryHardFirst = []string{
		"That is worth having only if {if}.",
		"It goes without saying that {that}.",
		"The understanding is that {that}.",
		"This holds only as long as {if}.",
		"Little is won unless {if}.",
	}
	veryHardMore = []string{
		"It counts just as much that {that}.",
		"It is no less of a condition that {that}.",
	}
	veryHardClosings = []string{
		"", "", "", "The means are yours to choose.", "How that comes about is left open.",
		"Nobody minds which road leads there.", "Judge it by the result, not by the effort.",
		"It is housekeeping, not fireworks.", "As in any orchestra, nobody wants to hear the rehearsal.",
		"The lighthouse counts, not the lamp.", "It is meant as a bridge, not as a monument.",
	}
)

// describeVeryHard tells what the team wins by the last step, and what has to
// be so for it. What follows from the dependencies of the steps it tells stays
// untold.
func (d *draft) describeVeryHard() string {
	told := d.told()
	last := len(told) - 1
	goal := d.choose(veryHardAims[told[last]].goals, "very_hard", "goal")
	text := []string{d.say(strings.Replace(d.choose(veryHardOpenings, "very_hard", "opening"), "{goal}", goal, 1))}
	var states []string
	for _, v := range told[:last] {
		states = append(states, d.say(d.choose(veryHardAims[v].states, "very_hard", v)))
	}
	frame := d.choose(veryHardFirst, "very_hard")
	for len(states) > 0 {
		n := len(states)
		if n > 3 {
			n = (n + 1) / 2
		}
		text = append(text, strings.NewReplacer(
			"{if}", enumerate("", states[:n]), "{that}", enumerate("that ", states[:n]),
		).Replace(frame))
		states = states[n:]
		frame = d.choose(veryHardMore, "very_hard")
	}
	if c := d.choose(veryHardClosings, "very_hard", "closing"); c != "" {
		text = append(text, c)
	}
	return strings.Join(text, " ")
}

// enumerate joins states; all but the first begin with word.
func enumerate(word string, states []string) string {
	last := len(states) - 1
	if last == 0 {
		return states[0]
	}
	return strings.Join(states[:last], ", "+word) + " and " + word + states[last]
}

// told returns those of the verbs, in order, from which the others follow: put
// before each tool what it depends on and has not come yet, and the required
// tools are there again. None of them could be left out as well.
func (d *draft) told() []string {
	told := slices.Clone(d.verbs)
	for i := len(told) - 2; i >= 0; i-- {
		if fewer := slices.Delete(slices.Clone(told), i, i+1); slices.Equal(d.closure(fewer), d.tools()) {
			told = fewer
		}
	}
	return told
}
