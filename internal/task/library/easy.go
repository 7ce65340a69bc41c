package library

import "strings"

// easyWords hold for each verb what the difficulty easy says: plain requests
// with every value that is stated, mostly by the words of the tool itself.
var easyWords = map[string][]string{
	"read": {
		"read {file} from disk",
		"open {file} and load its content",
		"read the whole content of {file}",
	},
	"scan": {
		"scan {file} for lines that contain the text pattern {value}",
		"scan {file} for the pattern {value} and list every match",
		"look through {file} for {value} and list where it occurs",
	},
	"fetch": {
		"fetch the {things} from the web address {url}",
		"download the online export of the {things} from {url}",
		"fetch the remote feed {url}",
	},
	"authenticate": {
		"authenticate against {host} and obtain an access token for the {things}",
		"sign in to {host} with the stored credentials {credentials} for the {things}",
	},
	"log": {
		"log an event about the {things} in the audit trail",
		"append a timestamped entry about the {things} to the audit trail",
		"leave a note about the {things} in the audit trail",
	},
	"parse": {
		"parse the raw {in} text{of} into structured records",
		"parse the {in} text{of} into records with named fields",
	},
	"filter": {
		"filter the {things} and keep only those whose {condition}",
		"keep only the {things} whose {condition} and drop the others",
		"narrow the {things} down to those whose {condition}",
	},
	"convert": {
		"convert {file} from {in} to {out}",
		"convert the {things} in {file} from the file type {in} to {out}",
		"turn {file} from {in} into a document of type {out}",
	},
	"compress": {
		"compress the {things} into the gzip archive {archive}",
		"compress the {things} to save storage space and name the archive {archive}",
		"pack the {things} into {archive} to save space",
	},
	"monitor": {
		"monitor the latency and uptime of {host} while the {things} come in",
		"watch the health of the host {host} that serves the {things}",
		"see how {host} holds up while it serves the {things}",
	},
	"route": {
		"route the traffic for the {things} through the gateway {gateway}",
		"choose the gateway {gateway} to route requests for the {things} to the backend",
	},
	"predict": {
		"predict the {measure} of the {things} for the coming {horizon} days",
		"forecast how the {measure} of the {things} goes on in the coming {horizon} days",
		"estimate the {measure} of the {things} {horizon} days ahead",
	},
	"simulate": {
		"simulate {runs} what-if scenarios for the {measure} of the {things}",
		"simulate {runs} random scenarios and show how the {measure} of the {things} may spread",
	},
	"optimize": {
		"optimize the work plan for the {things} to minimize the cost within {hours} hours",
		"find the plan for the {things} that minimizes the cost and optimize it within {hours} hours",
	},
	"map": {
		"map the columns of the {things} from the {system} layout onto the {target} layout",
		"map the {system} layout of the {things} onto the columns of the {target} system",
	},
	"queue": {
		"queue the {things} as work items on {queue}",
		"put the {things} in line on {queue} so that a consumer picks them up in order",
	},
	"schedule": {
		"schedule a job for the {things} to start every night at {time}",
		"schedule the job that handles the {things} for {time} every night",
	},
	"connect": {
		"connect to the external {system} database that holds the {things}",
		"connect to the {system} database and hold the session open for the {things}",
		"open a session with the {system} database for the {things}",
	},
	"cache": {
		"cache the {things} in memory for {minutes} minutes",
		"cache the result for the {things} under the key {key} so that repeated lookups are answered at once",
		"keep the {things} ready under the key {key} for {minutes} minutes",
	},
	"track": {
		"track the progress of the work on the {things}",
		"track progress and mark the milestone for the {things} as reached",
		"record that the milestone for the {things} is reached",
	},
	"help": {
		"generate a unique identifier that starts with {prefix} for the {things}",
		"generate a unique {prefix} identifier for this set of {things}",
	},
	"transform": {
		"transform the parsed data from {in} to {out}",
		"reshape the parsed data from {in} and render it in the output format {out}",
	},
	"validate": {
		"validate the records against the schema",
		"validate the {things} against the given schema and report each violation",
		"make sure that the {things} satisfy the schema",
	},
	"aggregate": {
		"aggregate the rows and group them by {label}",
		"group the {things} by {label} and roll up counts for every group",
		"count the {things} per {label}",
	},
	"verify": {
		"verify the payload against the API contract {contract}",
		"verify that the payload honours the contract {contract} of the API",
	},
	"post": {
		"post the payload to the endpoint {endpoint}",
		"submit the payload with an HTTP request to the endpoint {endpoint}",
		"hand the payload over to {endpoint}",
	},
	"analyze": {
		"analyze the figures on {measure} for averages and outliers",
		"analyze the figures on {measure} statistically and point out what is unusual",
	},
	"calculate": {
		"calculate the sum of the {measure} exactly",
		"evaluate the formula that sums the {measure} and calculate its exact value",
		"add up the {measure} with exact arithmetic",
	},
	"write": {
		"write the results to the file {destination}",
		"save the results on disk at the destination path {destination}",
		"store the results under {destination}",
	},
	"notify": {
		"notify the people of the {team} with an alert to the channel {channel}",
		"send an alert with a short summary to the chat channel {channel}",
		"tell the {team} on the channel {channel}",
	},
}

// describeEasy tells every step in order, in at most three sentences. Pick
// varies the wording.
func (d *draft) describeEasy(pick int) string {
	clauses := make([]string, len(d.steps))
	for i, st := range d.steps {
		words := easyWords[d.verbs[i]]
		clauses[i] = d.say(words[roll(len(words), d.slug, d.period, pick, st.tool)])
	}
	if roll(3, d.slug, d.period, pick, "opening") == 0 {
		clauses[0] = "for the " + d.team + ", " + clauses[0]
	}
	return join(clauses, roll(2, d.slug, d.period, pick, "joints") == 0)
}

// join makes sentences of clauses. Between two of them stands always one of
// ". ", "; " and ", then ", so that a reader can take them apart again.
func join(clauses []string, semicolons bool) string {
	comma := ", then "
	if semicolons {
		comma = "; then "
	}
	starts := map[int]string{}
	switch n := len(clauses); {
	case n == 3 && semicolons:
		starts[2] = "Finally, "
	case n == 4:
		starts[2] = "After that, "
	case n > 4:
		starts[(n+1)/3] = "Next, "
		starts[n-1-n/7] = "Finally, "
	}
	var b strings.Builder
	for i, c := range clauses {
		start, ok := starts[i]
		switch {
		case i == 0:
			c = capital(c)
		case ok:
			b.WriteString(". " + start)
		default:
			b.WriteString(comma)
		}
		b.WriteString(c)
	}
	return b.String() + "."
}
