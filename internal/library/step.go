package library

// A step is one tool as a built-in task uses it.
type step struct {
	tool string
	// inline says that the step works on single records, so that the task
	// has to spell them out; counts that it tells how many there are.
	inline, counts bool
	// easy holds wordings for the difficulty of that name; see [draft.say].
	easy []string
	// apply puts the step's arguments into the inputs and returns the facts
	// that hold afterwards.
	apply func(d *draft) map[string]any
}

// steps holds the step of each tool by the verb that chains use for it.
var steps = map[string]step{
	"read": {tool: files + "_reader", counts: true, apply: (*draft).applyRead, easy: []string{
		"read {file} from disk",
		"open {file} and load its content",
		"read the whole content of {file}",
	}},
	"scan": {tool: files + "_scanner", inline: true, apply: (*draft).applyScan, easy: []string{
		"scan {file} for lines that contain the text pattern {value}",
		"scan {file} for the pattern {value} and list every match",
		"look through {file} for {value} and list where it occurs",
	}},
	"fetch": {tool: network + "_fetcher", counts: true, apply: (*draft).applyFetch, easy: []string{
		"fetch the {things} from the web address {url}",
		"download the online export of the {things} from {url}",
		"fetch the remote feed {url}",
	}},
	"authenticate": {tool: integration + "_authenticator", apply: (*draft).applyAuthenticate, easy: []string{
		"authenticate against {host} and obtain an access token for the {things}",
		"sign in to {host} with the stored credentials {credentials} for the {things}",
	}},
	"log": {tool: utility + "_logger", apply: (*draft).applyLog, easy: []string{
		"log an event about the {things} in the audit trail",
		"append a timestamped entry about the {things} to the audit trail",
		"leave a note about the {things} in the audit trail",
	}},
	"parse": {tool: processing + "_parser", counts: true, apply: (*draft).applyParse, easy: []string{
		"parse the raw {in} text{of} into structured records",
		"parse the {in} text{of} into records with named fields",
	}},
	"filter": {tool: processing + "_filter", inline: true, counts: true, apply: (*draft).applyFilter, easy: []string{
		"filter the {things} and keep only those whose {condition}",
		"keep only the {things} whose {condition} and drop the others",
		"narrow the {things} down to those whose {condition}",
	}},
	"convert": {tool: files + "_converter", counts: true, apply: (*draft).applyConvert, easy: []string{
		"convert {file} from {in} to {out}",
		"convert the {things} in {file} from the file type {in} to {out}",
		"turn {file} from {in} into a document of type {out}",
	}},
	"compress": {tool: files + "_compressor", apply: (*draft).applyCompress, easy: []string{
		"compress the {things} into the gzip archive {archive}",
		"compress the {things} to save storage space and name the archive {archive}",
		"pack the {things} into {archive} to save space",
	}},
	"monitor": {tool: network + "_monitor", apply: (*draft).applyMonitor, easy: []string{
		"monitor the latency and uptime of {host} while the {things} come in",
		"watch the health of the host {host} that serves the {things}",
		"see how {host} holds up while it serves the {things}",
	}},
	"route": {tool: network + "_router", apply: (*draft).applyRoute, easy: []string{
		"route the traffic for the {things} through the gateway {gateway}",
		"choose the gateway {gateway} to route requests for the {things} to the backend",
	}},
	"predict": {tool: computation + "_predictor", inline: true, apply: (*draft).applyPredict, easy: []string{
		"predict the {measure} of the {things} for the coming {horizon} days",
		"forecast how the {measure} of the {things} goes on in the coming {horizon} days",
		"estimate the {measure} of the {things} {horizon} days ahead",
	}},
	"simulate": {tool: computation + "_simulator", inline: true, apply: (*draft).applySimulate, easy: []string{
		"simulate {runs} what-if scenarios for the {measure} of the {things}",
		"simulate {runs} random scenarios and show how the {measure} of the {things} may spread",
	}},
	"optimize": {tool: computation + "_optimizer", apply: (*draft).applyOptimize, easy: []string{
		"optimize the work plan for the {things} to minimize the cost within {hours} hours",
		"find the plan for the {things} that minimizes the cost and optimize it within {hours} hours",
	}},
	"map": {tool: integration + "_mapper", counts: true, apply: (*draft).applyMap, easy: []string{
		"map the columns of the {things} from the {system} layout onto the {target} layout",
		"map the {system} layout of the {things} onto the columns of the {target} system",
	}},
	"queue": {tool: integration + "_queue", counts: true, apply: (*draft).applyQueue, easy: []string{
		"queue the {things} as work items on {queue}",
		"put the {things} in line on {queue} so that a consumer picks them up in order",
	}},
	"schedule": {tool: integration + "_scheduler", apply: (*draft).applySchedule, easy: []string{
		"schedule a job for the {things} to start every night at {time}",
		"schedule the job that handles the {things} for {time} every night",
	}},
	"connect": {tool: integration + "_connector", apply: (*draft).applyConnect, easy: []string{
		"connect to the external {system} database that holds the {things}",
		"connect to the {system} database and hold the session open for the {things}",
		"open a session with the {system} database for the {things}",
	}},
	"cache": {tool: utility + "_cache", counts: true, apply: (*draft).applyCache, easy: []string{
		"cache the {things} in memory for {minutes} minutes",
		"cache the result for the {things} under the key {key} so that repeated lookups are answered at once",
		"keep the {things} ready under the key {key} for {minutes} minutes",
	}},
	"track": {tool: utility + "_tracker", apply: (*draft).applyTrack, easy: []string{
		"track the progress of the work on the {things}",
		"track progress and mark the milestone for the {things} as reached",
		"record that the milestone for the {things} is reached",
	}},
	"help": {tool: utility + "_helper", apply: (*draft).applyHelp, easy: []string{
		"generate a unique identifier that starts with {prefix} for the {things}",
		"generate a unique {prefix} identifier for this set of {things}",
	}},
	"transform": {tool: processing + "_transformer", counts: true, apply: (*draft).applyTransform, easy: []string{
		"transform the parsed data from {in} to {out}",
		"reshape the parsed data from {in} and render it in the output format {out}",
	}},
	"validate": {tool: processing + "_validator", inline: true, counts: true, apply: (*draft).applyValidate, easy: []string{
		"validate the records against the schema",
		"validate the {things} against the given schema and report each violation",
		"make sure that the {things} satisfy the schema",
	}},
	"aggregate": {tool: processing + "_aggregator", inline: true, counts: true, apply: (*draft).applyAggregate, easy: []string{
		"aggregate the rows and group them by {label}",
		"group the {things} by {label} and roll up counts for every group",
		"count the {things} per {label}",
	}},
	"verify": {tool: network + "_validator", inline: true, counts: true, apply: (*draft).applyVerify, easy: []string{
		"verify the payload against the API contract {contract}",
		"verify that the payload honours the contract {contract} of the API",
	}},
	"post": {tool: network + "_poster", inline: true, counts: true, apply: (*draft).applyPost, easy: []string{
		"post the payload to the endpoint {endpoint}",
		"submit the payload with an HTTP request to the endpoint {endpoint}",
		"hand the payload over to {endpoint}",
	}},
	"analyze": {tool: computation + "_analyzer", inline: true, counts: true, apply: (*draft).applyAnalyze, easy: []string{
		"analyze the figures on {measure} for averages and outliers",
		"analyze the figures on {measure} statistically and point out what is unusual",
	}},
	"calculate": {tool: computation + "_calculator", inline: true, counts: true, apply: (*draft).applyCalculate, easy: []string{
		"calculate the sum of the {measure} exactly",
		"evaluate the formula that sums the {measure} and calculate its exact value",
		"add up the {measure} with exact arithmetic",
	}},
	"write": {tool: files + "_writer", inline: true, counts: true, apply: (*draft).applyWrite, easy: []string{
		"write the results to the file {destination}",
		"save the results on disk at the destination path {destination}",
		"store the results under {destination}",
	}},
	"notify": {tool: utility + "_notifier", inline: true, apply: (*draft).applyNotify, easy: []string{
		"notify the people of the {team} with an alert to the channel {channel}",
		"send an alert with a short summary to the chat channel {channel}",
		"tell the {team} on the channel {channel}",
	}},
}

// chains lists for each task type the sequences of verbs that its tasks walk
// through. Each follows and closes the dependencies of its tools.
var chains = map[string][]string{
	"simple_task": {
		"read", "scan", "fetch", "authenticate", "log", "parse", "filter",
		"convert", "compress", "monitor", "route", "predict", "simulate", "optimize",
		"map", "queue", "schedule", "connect", "cache", "track", "help",
		"read parse", "fetch parse", "parse transform", "parse validate", "parse aggregate",
		"authenticate fetch", "connect map", "fetch cache", "read convert", "read compress",
		"filter predict", "filter optimize", "connect queue", "monitor log", "monitor route",
		"simulate optimize", "schedule log", "track log", "help queue", "scan log", "map cache",
	},
	"basic_task": {
		"read parse filter", "read parse transform", "read parse validate", "read parse aggregate",
		"scan read parse", "parse aggregate analyze", "read parse predict", "parse filter aggregate",
		"read convert compress", "connect map queue", "parse validate filter", "parse transform cache",
		"read parse optimize", "parse filter simulate", "connect schedule log", "read parse track",
		"filter predict log", "parse transform queue", "simulate optimize schedule", "read map cache",
		"parse transform compress", "help queue track", "parse validate log", "read parse help",
		"scan convert compress",
	},
	"data_pipeline": {
		"read parse filter transform", "read parse validate transform", "read parse filter aggregate",
		"read parse aggregate analyze", "read parse validate aggregate analyze", "parse transform verify write",
		"read parse transform verify write", "parse transform verify calculate",
		"read parse transform verify calculate", "parse validate aggregate analyze",
		"scan read parse filter", "read parse filter predict log", "read parse transform cache",
		"read parse filter transform compress", "connect parse filter queue",
		"read parse validate transform queue", "read parse aggregate analyze predict",
		"parse filter aggregate analyze optimize", "parse aggregate analyze simulate optimize",
		"scan read parse transform track", "read parse validate filter transform",
		"parse filter transform queue schedule", "parse aggregate analyze log",
		"read convert compress log", "help read parse transform",
	},
	"api_integration": {
		"fetch parse validate", "fetch parse transform", "fetch parse filter", "fetch parse aggregate",
		"authenticate fetch parse", "authenticate fetch parse transform", "authenticate fetch parse validate",
		"fetch parse transform verify", "parse transform verify", "authenticate parse transform post",
		"parse transform authenticate post", "authenticate fetch cache", "monitor route fetch",
		"monitor fetch parse", "fetch parse aggregate analyze", "connect fetch map", "fetch map queue",
		"authenticate fetch map cache", "monitor route log", "connect monitor track",
		"authenticate connect route", "fetch parse filter cache", "route fetch parse queue",
		"monitor schedule log", "fetch parse filter predict",
	},
	"multi_stage_pipeline": {
		"read parse validate transform verify write", "read parse filter transform verify write",
		"fetch parse transform verify write log", "parse aggregate analyze monitor notify",
		"read parse aggregate analyze monitor notify", "monitor fetch parse aggregate analyze notify",
		"fetch parse filter aggregate analyze monitor notify", "authenticate fetch parse transform post",
		"authenticate fetch parse validate transform post", "read parse filter transform authenticate post",
		"read parse transform verify calculate log", "fetch parse transform verify calculate cache",
		"read parse validate transform verify calculate track", "scan read parse filter aggregate analyze",
		"read parse aggregate analyze predict schedule", "read parse filter aggregate analyze simulate optimize",
		"connect parse transform verify write compress", "authenticate fetch parse transform verify post",
		"read parse validate aggregate analyze optimize schedule", "route fetch parse aggregate analyze queue",
		"help read parse transform verify write track", "connect fetch parse filter transform cache",
		"authenticate connect fetch parse validate queue log",
	},
}
