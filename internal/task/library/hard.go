package library

import "strings"

// aims are what a step is for. Goals complete "the team would like to …" and
// name the {things}; states complete "once …" and may be missing where the
// step always comes last.
type aims struct{ goals, states []string }

// hardAims hold for each verb what the difficulty hard says: what somebody
// wants and what has to be so for it, with the data named by its subject and
// whereabouts only.
var hardAims = map[string]aims{
	"read": {
		goals: []string{
			"have what the inbox holds on the {things} before them, word for word",
			"see, unaltered, what was delivered to the inbox about the {things}",
		},
		states: []string{
			"the delivery in the inbox has been taken in as it is",
			"what the inbox holds on the subject has been opened untouched",
			"the whole of the delivery in the inbox has been taken in",
		},
	},
	"scan": {
		goals: []string{
			"know every place where {value} comes up in the delivery on the {things}",
			"be shown each mention of {value} in what the inbox holds on the {things}",
		},
		states: []string{
			"each mention of {value} in the delivery has been pointed out",
			"the places where {value} comes up in the delivery are known",
		},
	},
	"fetch": {
		goals: []string{
			"have in the house what the web publishes on the {things}",
			"get the {things} from where they are published online",
		},
		states: []string{
			"what the web publishes on the subject has come into the house",
			"the remote site has handed over what it publishes",
			"the online publication has been brought over",
		},
	},
	"authenticate": {
		goals: []string{
			"be recognised by those who guard the {things}",
			"hold a valid pass to where the {things} are guarded",
		},
		states: []string{
			"the other side has recognised us",
			"the doorkeeper on the other side has been satisfied",
			"a valid pass for the other side is in hand",
		},
	},
	"log": {
		goals: []string{
			"have proof for the auditors that the {things} were handled",
			"show, should anybody ask, that the {things} were handled",
			"leave a dated line for the auditors about the {things}",
		},
	},
	"parse": {
		goals: []string{
			"work with the {things} entry by entry instead of line by line",
			"see the particulars of the {things} laid out one by one",
		},
		states: []string{
			"the bare lines have become proper entries",
			"what came in has been sorted into entries with their particulars",
			"sense has been made of the material entry by entry",
		},
	},
	"filter": {
		goals: []string{
			"deal only with those {things} whose {condition}",
			"be left with none of the {things} but those whose {condition}",
		},
		states: []string{
			"all but the cases whose {condition} have been put aside",
			"only the cases whose {condition} are left",
		},
	},
	"convert": {
		goals: []string{
			"pass the {things} on as {out} without a change of meaning",
			"own an edition of the {things} in {out} that says just the same",
		},
		states: []string{
			"the delivery has been re-issued as {out} with its meaning intact",
			"an edition in {out} exists that says just the same",
		},
	},
	"compress": {
		goals: []string{
			"keep the {things} in as little room as possible",
			"put the {things} away in a bundle that is cheap to store",
		},
		states: []string{
			"the material has been shrunk into one small bundle",
			"storing the material takes as little room as possible",
		},
	},
	"monitor": {
		goals: []string{
			"know whether the site behind the {things} is in good health",
			"be certain that the site behind the {things} answers promptly",
		},
		states: []string{
			"the remote site has been found in good health",
			"the remote site has shown how promptly it answers",
		},
	},
	"route": {
		goals: []string{
			"have every request about the {things} go by way of {gateway}",
			"see requests about the {things} take the road through {gateway}",
		},
		states: []string{
			"requests have been given their way through {gateway}",
			"the road through {gateway} has been settled on",
		},
	},
	"predict": {
		goals: []string{
			"learn what to expect of the {measure} of the {things} over the next {horizon} days",
			"look {horizon} days ahead on the {measure} of the {things}",
		},
		states: []string{
			"an outlook on the {measure} over the next {horizon} days is there",
			"the {measure} to expect over the next {horizon} days can be named",
		},
	},
	"simulate": {
		goals: []string{
			"see how far the {measure} of the {things} might swing if chance had {runs} tries",
			"look at {runs} imaginary courses of the {measure} of the {things}",
		},
		states: []string{
			"{runs} imaginary courses of the {measure} have been played out",
			"chance has had {runs} tries at the {measure}",
		},
	},
	"optimize": {
		goals: []string{
			"spend as little as possible on the {things} within {hours} hours",
			"settle on the thriftiest plan for the {things} that {hours} hours allow",
		},
		states: []string{
			"the thriftiest plan that {hours} hours allow has been found",
			"no cheaper plan for the {hours} hours is left",
		},
	},
	"map": {
		goals: []string{
			"have the {system} columns of the {things} understood on the {target} side as well",
			"see each {system} column of the {things} find its counterpart on the {target} side",
		},
		states: []string{
			"each {system} column has found its counterpart on the {target} side",
			"{system} and {target} columns have been brought together in pairs",
		},
	},
	"queue": {
		goals: []string{
			"see the {things} served one by one, each in its turn",
			"have the {things} wait in line until somebody is free for them",
		},
		states: []string{
			"the items are waiting in line for whoever is free",
			"each item has been given its place in line",
		},
	},
	"schedule": {
		goals: []string{
			"rely on the {things} being taken care of at {time} every night",
			"know that work on the {things} begins at {time} every night, without a reminder",
		},
		states: []string{
			"a nightly start at {time} has been arranged",
			"the work has been given {time} as its fixed hour every night",
		},
	},
	"connect": {
		goals: []string{
			"have an open line to the {system} database that holds the {things}",
			"be in touch with the {system} system that the {things} come from",
		},
		states: []string{
			"an open line to the {system} database is being held",
			"the {system} system has been reached and stays within reach",
		},
	},
	"cache": {
		goals: []string{
			"get the {things} at once whenever they ask again within {minutes} minutes",
			"have the {things} within quick reach for the {minutes} minutes that follow",
		},
	},
	"track": {
		goals: []string{
			"see at a glance how far the work on the {things} has come",
			"count the milestone on the {things} among those behind them",
		},
		states: []string{
			"the milestone has been ticked off",
			"anybody can see how far the work has come",
		},
	},
	"help": {
		goals: []string{
			"refer to the {things} by a name of their own that starts with {prefix}",
			"cite this lot of {things} by a reference in {prefix} that nothing else bears",
		},
		states: []string{
			"the lot bears a reference of its own that starts with {prefix}",
			"a name in {prefix} that nothing else bears has been given to the lot",
		},
	},
	"transform": {
		goals: []string{
			"receive what is known of the {things} in the shape of {out}",
			"have the {things} laid out as {out} instead of {in}",
		},
		states: []string{
			"the content has been recast from {in} to {out}",
			"what came as {in} has taken the shape of {out}",
		},
	},
	"validate": {
		goals: []string{
			"be certain that none of the {things} breaks the rules for its fields",
			"trust every one of the {things} to be as the rules demand",
		},
		states: []string{
			"every entry has been held against the rules for its fields",
			"each entry has been found to be as the rules demand",
		},
	},
	"aggregate": {
		goals: []string{
			"see the {things} side by side, one line for each {label}",
			"know how many {things} there are for each {label}",
		},
		states: []string{
			"the cases have been brought together by {label}",
			"there is one line for each {label}",
		},
	},
	"verify": {
		goals: []string{
			"be certain that what goes out on the {things} keeps to the agreement {contract}",
			"know that what goes out on the {things} honours the terms agreed with the other side",
		},
		states: []string{
			"what goes out has been held against the agreement {contract}",
			"what goes out is sure to keep to the terms agreed with the other side",
		},
	},
	"post": {
		goals: []string{
			"know that the {system} service has accepted the delivery on the {things}",
			"have the {things} handed over to the {system} service",
		},
	},
	"analyze": {
		goals: []string{
			"understand what is usual in the {measure} of the {things} and what stands out",
			"learn what is ordinary and what is odd about the {measure} of the {things}",
		},
		states: []string{
			"the ordinary and the odd about the {measure} have been told apart",
			"the spread of the {measure} is understood with all its oddities",
		},
	},
	"calculate": {
		goals: []string{
			"quote the sum of the {measure} of the {things} to the last digit",
			"have one figure for the {measure} of the {things} that stands up to any recount",
		},
		states: []string{
			"the sum of the {measure} has been settled to the last digit",
			"there is one figure for the {measure} that stands up to any recount",
		},
	},
	"write": {
		goals: []string{
			"find the outcome on the {things} among the reports",
			"have the outcome on the {things} kept with the reports",
		},
		states: []string{
			"the outcome has been kept with the reports",
			"the outcome can be found among the reports",
		},
	},
	"notify": {
		goals: []string{
			"hear in good time what the {things} amount to",
			"be told on their own channel what is remarkable about the {things}",
		},
	},
}

var (
	hardOpenings = []string{
		"The {team} asked to {goal}.",
		"The {team} would like to {goal}.",
		"For the review of {month}, the {team} would like to {goal}.",
		"When they account for {month}, the {team} would like to {goal}.",
		"It is in the interest of the {team} to {goal}.",
		"The purpose is for the {team} to {goal}.",
		"What it comes down to is that the {team} can {goal}.",
		"It would be worth a lot to the {team} to {goal}.",
		"The business case is simple: the {team} would like to {goal}.",
	}
	// What one state is put into, and what several are: first and later, one
	// or two at a time. Later pairs follow in turn on the first.
	hardAlone = []string{
		"That presumes that {a}.",
		"It takes for granted that {a}.",
		"Once {a}, little stands in the way.",
		"Before that, see to it that {a}.",
	}
	hardFirst = []string{
		"To begin with, see to it that {a}.",
		"None of it works unless {a}.",
	}
	hardFirstPair = []string{
		"Once {a}, see to it that {b}.",
		"It takes for granted that {a} and that {b}.",
		"First of all it matters that {a} and that {b}.",
	}
	hardNext = []string{
		"Later on it counts that {a}.",
		"What then remains is that {a}.",
	}
	hardNextPair = []string{
		"With that in place, make sure that {a} and that {b}.",
		"From then on it matters that {a} and that {b}.",
		"Further along, once {a}, make sure that {b}.",
	}
	// hardAsides have a word of another trade, and say nothing false.
	hardAsides = []string{
		"Think of it as tuning the instruments before the concert.",
		"Treat it like a chess opening: dull moves, well placed.",
		"It is carpentry rather than sculpture.",
		"A watchmaker's patience will do more here than haste.",
		"As with good stagehands, nobody should notice the scenery moving.",
		"No astronomy is called for, only a steady hand.",
		"It is closer to bookbinding than to poetry.",
		"As any tailor would say, measure twice and cut once.",
		"As in a relay race, drop no baton.",
		"It wants an archaeologist's brush, not a shovel.",
		"Handle it as a potter handles wet clay.",
		"Pack light, as mountaineers do: take only what is needed.",
		"Nothing here has to be translated, printed or encrypted.",
		"It is a game of patience, not of poker.",
	}
)

// describeHard tells the last step first, as what the team is after, and then
// what has to be so for it.
func (d *draft) describeHard() string {
	last := len(d.verbs) - 1
	goal := d.choose(hardAims[d.verbs[last]].goals, "hard", "goal")
	text := []string{d.say(strings.Replace(d.choose(hardOpenings, "hard", "opening"), "{goal}", goal, 1))}
	var states []string
	for _, v := range d.verbs[:last] {
		states = append(states, d.say(d.choose(hardAims[v].states, "hard", v)))
	}
	aside := d.choose(hardAsides, "hard", "aside")
	if d.draw(3, "hard", "place") == 0 {
		return strings.Join(append(append(text, aside), d.premises(states)...), " ")
	}
	return strings.Join(append(append(text, d.premises(states)...), aside), " ")
}

// premises makes sentences of states, of two each where there are more.
func (d *draft) premises(states []string) (text []string) {
	turn := d.draw(len(hardNextPair), "hard", "turn")
	if len(states) == 1 {
		return []string{inFrame(d.choose(hardAlone, "hard"), states)}
	}
	if len(states)%2 == 1 && turn > 0 {
		text = append(text, inFrame(d.choose(hardFirst, "hard"), states[:1]))
		states = states[1:]
	}
	for ; len(states) > 0; turn++ {
		n := min(2, len(states))
		frames := hardNextPair
		switch {
		case n == 1:
			frames = hardNext
		case len(text) == 0:
			frames = hardFirstPair
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
