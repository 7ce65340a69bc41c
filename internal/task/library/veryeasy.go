package library

import "strings"

// veryEasyWords hold for each verb what the difficulty very_easy says: the
// plain word of the operation, the data, and every value that is stated.
var veryEasyWords = map[string][]string{
	"read": {
		"read the content of {file}",
		"read all of {file} from disk",
	},
	"scan": {
		"scan {file} for the text pattern {value}",
		"scan {file} and list each match of the pattern {value}",
	},
	"fetch": {
		"fetch the {things} from {url}",
		"fetch the remote {things} at the address {url}",
	},
	"authenticate": {
		"authenticate at {host} with the credentials {credentials} for the {things}",
		"authenticate as {credentials} at {host} to get access to the {things}",
	},
	"log": {
		"log an event: the {things} are handled",
		"log in the audit trail that the {things} are handled",
	},
	"parse": {
		"parse the {in} text{of}",
		"parse the raw {in} text{of} into records",
	},
	"filter": {
		"filter the {things} by the condition that {condition}",
		"filter the {things} and keep those whose {condition}",
	},
	"convert": {
		"convert {file} from type {in} to type {out}",
		"convert {file} from the file type {in} to {out}",
	},
	"compress": {
		"compress the {things} into {archive}",
		"compress the {things} and name the archive {archive}",
	},
	"monitor": {
		"monitor the host {host} for the {things}",
		"monitor the health of the host {host} for the {things}",
	},
	"route": {
		"route requests for the {things} through {gateway}",
		"route traffic for the {things} through the gateway {gateway}",
	},
	"predict": {
		"predict the {measure} of the {things} for {horizon} days",
		"predict the {measure} of the {things} for the next {horizon} days",
	},
	"simulate": {
		"simulate {runs} scenarios for the {measure} of the {things}",
		"simulate the {measure} of the {things} in {runs} scenarios",
	},
	"optimize": {
		"optimize the plan for the {things} to minimize the cost in {hours} hours",
		"optimize the plan for the {things} at minimal cost within {hours} hours",
	},
	"map": {
		"map the columns of the {things} from {system} to {target}",
		"map the {system} columns of the {things} to the {target} layout",
	},
	"queue": {
		"queue the {things} on {queue}",
		"queue the {things} as items on {queue}",
	},
	"schedule": {
		"schedule a job for the {things} at {time} every night",
		"schedule the nightly job for the {things} at {time}",
	},
	"connect": {
		"connect to the {system} database for the {things}",
		"connect to the external database {system} with the {things}",
	},
	"cache": {
		"cache the {things} under {key} for {minutes} minutes",
		"cache the {things} in memory for {minutes} minutes under {key}",
	},
	"track": {
		"track the milestone of the {things}",
		"track progress and mark the milestone of the {things}",
	},
	"help": {
		"help with a chore: generate a unique {prefix} identifier for the {things}",
		"help to generate a unique identifier with the prefix {prefix} for the {things}",
	},
	"transform": {
		"transform the parsed {in} data to {out}",
		"transform the data from {in} to the format {out}",
	},
	"validate": {
		"validate the {things} against the schema",
		"validate each record against the schema",
	},
	"aggregate": {
		"aggregate the rows by {label}",
		"aggregate the {things} into groups by {label}",
	},
	"verify": {
		"verify the payload against the contract {contract}",
		"verify the payload by the API contract {contract}",
	},
	"post": {
		"post the payload to {endpoint}",
		"post the payload to the remote endpoint {endpoint}",
	},
	"analyze": {
		"analyze the figures on {measure}",
		"analyze the {measure} statistically",
	},
	"calculate": {
		"calculate the sum of the {measure}",
		"calculate the exact sum of {measure}",
	},
	"write": {
		"write the results to {destination}",
		"write the results to the file {destination}",
	},
	"notify": {
		"notify the {team} on {channel}",
		"notify the people on the channel {channel}",
	},
}

// describeVeryEasy tells every step in order, each in a sentence of its own.
func (d *draft) describeVeryEasy() string {
	sentences := make([]string, len(d.steps))
	for i, v := range d.verbs {
		sentences[i] = capital(d.say(d.choose(veryEasyWords[v], "very_easy", v))) + "."
	}
	return strings.Join(sentences, " ")
}
