package library

import "strings"

// mediumWords hold for each verb what the difficulty medium says: the step in
// words that are not the tool's, with the values that tell which data is
// meant.
var mediumWords = map[string][]string{
	"read": {
		"take in what {file} holds, just as it stands",
		"bring the content of {file} on board unchanged",
		"get at everything that was delivered in {file}",
	},
	"scan": {
		"go through {file} line by line and mark each place where {value} turns up",
		"find out where {value} is mentioned in {file}",
		"hunt for the word {value} in {file} and report the places",
	},
	"fetch": {
		"get hold of the {things} that are published at {url}",
		"retrieve the {things} from their home on the web, {url}",
		"pull in the online feed at {url}",
	},
	"authenticate": {
		"prove to {host} that we are entitled to the {things}",
		"have {host} let us in with the stored account for the {things}",
		"present our account to {host} to gain entry to the {things}",
	},
	"log": {
		"leave a trace for the auditors that the {things} were handled",
		"put on record that the {things} were handled",
		"make an entry for later audits about the {things}",
	},
	"parse": {
		"break the {in} text{of} down into rows with named columns",
		"make sense of the raw {in} text{of}, field by field",
		"turn the bare {in} text{of} into proper entries with fields of their own",
	},
	"filter": {
		"set aside all but the {things} whose {condition}",
		"concentrate on the {things} whose {condition}",
		"let through only the {things} whose {condition}",
	},
	"convert": {
		"re-issue {file} as {out} without changing what it says",
		"turn {file} from {in} into {out} with its meaning intact",
		"make an edition of {file} that says the same in {out} instead of {in}",
	},
	"compress": {
		"shrink the {things} into {archive} so that they take up less room",
		"pack the {things} away tightly in {archive}",
		"squeeze the {things} into {archive} to keep storage cheap",
	},
	"monitor": {
		"keep an eye on how well {host} copes while it serves the {things}",
		"observe whether {host} stays reachable and quick for the {things}",
		"watch over {host} as it serves the {things}",
	},
	"route": {
		"send the requests for the {things} by way of {gateway}",
		"let everything that is asked about the {things} travel through {gateway}",
		"pick {gateway} as the way that requests for the {things} take",
	},
	"predict": {
		"work out where the {measure} of the {things} will go over the next {horizon} days",
		"give an outlook on the {measure} of the {things} for the next {horizon} days",
		"tell what to expect of the {measure} of the {things} in the {horizon} days ahead",
	},
	"simulate": {
		"play through {runs} possible futures for the {measure} of the {things}",
		"act out {runs} chance variations on the {measure} of the {things} to see the spread",
		"try {runs} what-if cases on the {measure} of the {things}",
	},
	"optimize": {
		"find the cheapest way to handle the {things} that fits into {hours} hours",
		"arrange the work on the {things} so that it costs as little as possible within {hours} hours",
		"draw up the most economical plan for the {things} that {hours} hours allow",
	},
	"map": {
		"pair each column that {system} uses for the {things} with its counterpart in the {target} layout",
		"line up the {system} fields of the {things} with those of the {target} layout",
		"match the {system} names of the {things}, column by column, to those of the {target} layout",
	},
	"queue": {
		"put the {things} in line on {queue}, to be served one after another",
		"hand the {things} to {queue} as work to be picked up in turn",
		"let the {things} wait their turn on {queue}",
	},
	"schedule": {
		"arrange that the {things} are taken care of every night at {time}",
		"set up a nightly run for the {things} at {time}",
		"plan a job for the {things} that begins at {time} each night",
	},
	"connect": {
		"open a line to the {system} database where the {things} live",
		"establish a session with the {system} database for the {things}",
		"get in touch with the {system} database that the {things} come from",
	},
	"cache": {
		"keep the {things} within quick reach for {minutes} minutes",
		"hold the {things} in memory for {minutes} minutes under {key}",
		"spare everybody repeated lookups of the {things} for {minutes} minutes",
	},
	"track": {
		"note that the milestone for the {things} has been reached",
		"bring the status of the work on the {things} up to date",
		"keep count of how far the work on the {things} has come",
	},
	"help": {
		"give this set of {things} a reference of its own that begins with {prefix}",
		"come up with a code in {prefix} that nothing but this set of {things} bears",
		"mint a fresh {prefix} reference for the {things}",
	},
	"transform": {
		"bring the structured data from {in} into the shape of {out}",
		"recast what came as {in} in the layout of {out}",
		"rework the structured data so that it leaves as {out} instead of {in}",
	},
	"validate": {
		"make sure that the {things} obey the agreed rules for their fields",
		"check every one of the {things} against the rules laid down for it",
		"confirm that no entry among the {things} breaks its schema",
	},
	"aggregate": {
		"bring the {things} together by {label}, with a count for each",
		"draw up one line of counts for each {label}",
		"condense the {things} to one line per {label}",
	},
	"verify": {
		"make certain that the payload keeps to the agreement {contract}",
		"see that what leaves the house honours {contract}",
		"hold the payload up against the terms of {contract}",
	},
	"post": {
		"hand the payload in at {endpoint}",
		"deliver the outcome to {endpoint}",
		"send the payload off to {endpoint}",
	},
	"analyze": {
		"study the {measure} for what is usual and what stands out",
		"work out what the figures on {measure} have to tell, outliers included",
		"look into the spread of the {measure} with an eye for oddities",
	},
	"calculate": {
		"find the exact sum of the {measure}",
		"add up the {measure} to the last digit",
		"arrive at one precise sum for the {measure}",
	},
	"write": {
		"put the outcome down in {destination}",
		"leave the outcome at {destination} for later use",
		"file the outcome away as {destination}",
	},
	"notify": {
		"let the {team} know on {channel}",
		"give the {team} a short heads-up on {channel}",
		"drop a brief message on {channel} to keep the {team} in the picture",
	},
}

var (
	mediumOpenings = []string{
		"", "", "for the {team}, ", "as the {team} asked, ", "so that the {team} can go on, ",
		"this is for the {team}. ", "on behalf of the {team}, ", "here is what the {team} asked for: ",
		"to keep the {team} going, ",
	}
	mediumJoints   = []string{", then ", "; then ", ", and then "}
	mediumNext     = []string{"After that, ", "Next, ", "From there, ", "With that done, "}
	mediumLast     = []string{"Finally, ", "In the end, ", "To round it off, ", "As a last step, "}
	mediumClosings = []string{
		"", "", "", "", " The {team} will take it from there.", " Nothing more is needed.",
		" Leave everything else as it is.", " That is all.",
	}
)

// describeMedium tells every step in order, two in a sentence.
func (d *draft) describeMedium() string {
	clauses := make([]string, len(d.steps))
	for i, v := range d.verbs {
		clauses[i] = d.say(d.choose(mediumWords[v], "medium", v))
	}
	opening := d.say(d.choose(mediumOpenings, "medium", "opening"))
	if opening == "" || strings.HasSuffix(opening, ". ") {
		clauses[0] = capital(clauses[0])
	}
	var b strings.Builder
	b.WriteString(capital(opening))
	joint := d.draw(len(mediumJoints), "medium", "joint")
	single := d.draw(2, "medium", "single") // where an odd one stands alone
	for i, c := range clauses {
		switch {
		case i == 0:
		case i%2 != single:
			b.WriteString(mediumJoints[(joint+i/2)%len(mediumJoints)])
		case i == len(clauses)-1:
			b.WriteString(". " + d.choose(mediumLast, "medium"))
		default:
			b.WriteString(". " + mediumNext[(joint+(i+1)/2)%len(mediumNext)])
		}
		b.WriteString(c)
	}
	return b.String() + "." + d.say(d.choose(mediumClosings, "medium", "closing"))
}
