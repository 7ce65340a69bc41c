package library

import "github.com/assay-eval/assay"

// The functions here hold the built-in tools in execution order. A tool's
// description opens with the verb by which tasks ask for it, and no two share
// that verb: a search over names and descriptions has to tell them apart.

// sourceTools are numbers 0 to 6.
func sourceTools() []spec {
	return []spec{
		{
			category: files, operation: "reader",
			description: "Read a file from disk or a shared folder: open the path and load its whole content unchanged, without interpreting it.",
			params:      []assay.Parameter{required("source", "string", "Path of the file to open.")},
			options:     "Optional settings: encoding (such as utf-8), first and last byte to take.",
			returns:     []assay.Return{object("data", "The content as it stands in the file.")},
			metadata:    "Path, size in bytes and time of the last change.",
			failed:      "The file exists but its content could not be taken in.",
		},
		{
			category: files, operation: "scanner",
			description: "Scan a directory or file for lines and names that contain a text pattern, and list every match with its position.",
			params:      []assay.Parameter{required("source", "string", "Directory or single path to look through.")},
			options:     "Optional settings: pattern to look for, depth of folders, largest number of matches.",
			returns:     []assay.Return{object("data", "The matches, each with its path and line.")},
			metadata:    "How many paths were looked at and how many matched.",
			failed:      "The search broke off before all of the path was looked through.",
		},
		{
			category: network, operation: "fetcher",
			description: "Fetch a resource from a web address: download the body behind an HTTP URL, a remote feed or an online export.",
			params:      []assay.Parameter{required("source", "string", "URL to download from.")},
			options:     "Optional settings: headers, query parameters, page size.",
			returns:     []assay.Return{object("data", "The downloaded body.")},
			metadata:    "Status code, content type and time that the download took.",
			failed:      "The server refused to hand out the resource.",
		},
		{
			category: integration, operation: "authenticator",
			description: "Authenticate against a protected service: sign in with stored credentials and obtain an access token for the calls that follow.",
			options:     "Optional settings: host of the service, name of the stored credentials, scope.",
			metadata:    "Who was signed in, what the token allows and when it expires.",
			failed:      "The service rejected the sign-in.",
		},
		{
			category: utility, operation: "logger",
			description: "Log an event: append a timestamped entry with a level and a message to the audit trail.",
			options:     "Optional settings: level (debug, info, warning, error), message, extra fields.",
			metadata:    "Number and timestamp of the entry.",
			failed:      "The entry did not reach the audit trail.",
		},
		{
			category: processing, operation: "parser",
			description: "Parse raw text into structured records: split it by its syntax and give every field a name and a type.",
			params:      []assay.Parameter{required("source", "string", "Where the raw text is: a path, a URL or the name of an earlier result.")},
			options:     "Optional settings: format of the text, delimiter, whether the first line is a header.",
			returns:     []assay.Return{object("data", "The records with their named fields.")},
			metadata:    "Number of records and names of the fields.",
			failed:      "The text does not follow the syntax of its format.",
		},
		{
			category: processing, operation: "filter",
			description: "Filter a list by a condition: keep only the items that meet it and drop the others.",
			options:     "Optional settings: field, comparison and value of the condition; or several joined by and/or.",
			metadata:    "How many items came in and how many were kept.",
			failed:      "The condition could not be applied to the items.",
		},
	}
}

// localTools are numbers 7 to 13.
func localTools() []spec {
	return []spec{
		{
			category: files, operation: "converter",
			description: "Convert a stored document from one file type to another while its meaning stays the same, for example a spreadsheet to plain text.",
			params: []assay.Parameter{
				required("input_format", "string", "Type of the document now, such as csv."),
				required("output_format", "string", "Type that the document shall have."),
			},
			options:  "Optional settings: encoding, line endings, whether the original is kept.",
			returns:  []assay.Return{object("transformed_data", "The document in its new type.")},
			metadata: "Both types and the size before and after.",
			failed:   "No faithful version in the wanted type could be made.",
		},
		{
			category: files, operation: "compressor",
			description: "Compress material into a smaller zip or gzip archive to save storage space.",
			options:     "Optional settings: kind of archive, effort from 1 to 9, name of the archive.",
			metadata:    "Name of the archive and the size saved.",
			failed:      "The archive could not be completed.",
		},
		{
			category: network, operation: "monitor",
			description: "Monitor the health of a host: watch its latency, uptime and packet loss and say whether it is degraded.",
			options:     "Optional settings: host, length of the watch, limits that count as degraded.",
			metadata:    "Latency, share of time up and packets lost.",
			failed:      "No probe of the host gave a measurement.",
		},
		{
			category: network, operation: "router",
			description: "Route traffic: choose the gateway or region through which requests travel to a backend, and switch them over.",
			options:     "Optional settings: gateway, backend, weights, rule to prefer one way over another.",
			metadata:    "The way that was chosen and those that were passed over.",
			failed:      "No usable way to the backend was left.",
		},
		{
			category: computation, operation: "predictor",
			description: "Predict future values from past ones: forecast how a series goes on in the coming days or months.",
			options:     "Optional settings: measure, horizon, season length, confidence level.",
			returns:     []assay.Return{object("result", "The expected values with their confidence band.")},
			metadata:    "Model used and how well it fitted the past.",
			failed:      "The past values are too few or too erratic for a forecast.",
		},
		{
			category: computation, operation: "simulator",
			description: "Simulate what-if scenarios: play a model through many times with random inputs and show how the outcomes spread.",
			options:     "Optional settings: number of runs, distributions of the inputs, seed.",
			metadata:    "Runs made, median outcome and spread.",
			failed:      "The model came to no outcome in too many of the runs.",
		},
		{
			category: computation, operation: "optimizer",
			description: "Optimize a plan: find the settings within given limits that minimize a cost or maximize a gain.",
			options:     "Optional settings: objective, limits, tolerance, most rounds to spend.",
			metadata:    "Best settings, their objective value and the rounds needed.",
			failed:      "No settings within the limits were found.",
		},
	}
}

// serviceTools are numbers 14 to 20.
func serviceTools() []spec {
	return []spec{
		{
			category: integration, operation: "mapper",
			description: "Map the columns of one system's layout onto those of another system's layout, pair by pair.",
			params: []assay.Parameter{
				required("input_format", "string", "Layout that the columns have now."),
				required("output_format", "string", "Layout of the system that will receive them."),
			},
			options:  "Optional settings: pairs of column names, what happens to columns without a partner.",
			metadata: "Columns that found a partner and columns that did not.",
			failed:   "The two layouts have too little in common to pair them.",
		},
		{
			category: integration, operation: "queue",
			description: "Queue work items: put jobs or messages in line, so that a consumer picks them up in order.",
			options:     "Optional settings: name of the line, priority, delay.",
			metadata:    "Place in line and number of items waiting.",
			failed:      "The line accepted no more items.",
		},
		{
			category: integration, operation: "scheduler",
			description: "Schedule a job to start later, once at a set time or again and again such as every night.",
			options:     "Optional settings: start time, repetition, time zone.",
			metadata:    "Identifier of the job and its next start.",
			failed:      "The job could not be entered into the calendar.",
		},
		{
			category: integration, operation: "connector",
			description: "Connect to an external database, CRM or message broker and hold the session open for other steps.",
			options:     "Optional settings: name of the external system, driver, pool size.",
			metadata:    "Identifier of the session and version of the external system.",
			failed:      "The external system did not open a session.",
		},
		{
			category: utility, operation: "cache",
			description: "Cache a result in memory for some minutes, so that repeated lookups are answered at once.",
			options:     "Optional settings: key, lifetime in seconds, what to evict first.",
			metadata:    "Key, time of expiry and memory in use.",
			failed:      "There was no room left to hold the result.",
		},
		{
			category: utility, operation: "tracker",
			description: "Track the progress of ongoing work: mark milestones as reached and say how much is still ahead.",
			options:     "Optional settings: name of the work, milestones, percentage reached.",
			metadata:    "Milestones reached and those still open.",
			failed:      "The progress could not be brought up to date.",
		},
		{
			category: utility, operation: "helper",
			description: "Help with small chores: generate a unique identifier, tidy up a date or clean a piece of text.",
			options:     "Optional settings: which chore to do and what it works on.",
			metadata:    "The chore done and what came out of it.",
			failed:      "The chore is unknown or could not be finished.",
		},
	}
}

// dependentTools are numbers 21 to 29, each of which builds on others.
func dependentTools() []spec {
	const (
		parser      = processing + "_parser"
		transformer = processing + "_transformer"
	)
	return []spec{
		{
			category: processing, operation: "transformer",
			description: "Transform parsed data: reshape, flatten or enrich it and render it in the wanted output format.",
			params: []assay.Parameter{
				required("input_format", "string", "Format in which the parsed data arrived."),
				required("output_format", "string", "Format to render, such as json."),
			},
			options:  "Optional settings: derived columns, nesting, order of the columns.",
			returns:  []assay.Return{object("transformed_data", "The reshaped data in the output format.")},
			metadata: "Both formats and the number of records rendered.",
			failed:   "The data does not fit the wanted shape.",
			deps:     []string{parser},
		},
		{
			category: processing, operation: "validator",
			description: "Validate records against a schema: check required fields, types and ranges and report each violation.",
			params: []assay.Parameter{
				required("schema", "object", "JSON schema that the records have to satisfy."),
				required("data", "object", "The records to check."),
			},
			options:  "Optional settings: whether unknown fields are violations, most violations to report.",
			returns:  verdict("True when no record violates the schema.", "The violations, each with record and field."),
			metadata: "Number of records checked and of those that passed.",
			failed:   "The schema itself is broken, so nothing was checked.",
			deps:     []string{parser},
		},
		{
			category: processing, operation: "aggregator",
			description: "Aggregate rows: group them by a key and roll up counts and subtotals for every group.",
			options:     "Optional settings: key to group by, measures, kind of roll-up.",
			metadata:    "Number of groups and of rows that went into them.",
			failed:      "The rows lack the key or the measure to roll up.",
			deps:        []string{parser},
		},
		{
			category: network, operation: "validator",
			description: "Verify a payload against an API contract before it leaves or after it arrives: body, headers and version must agree with the endpoint.",
			params: []assay.Parameter{
				required("schema", "object", "Schema that the contract prescribes for the payload."),
				required("data", "object", "The payload."),
			},
			options:  "Optional settings: name and version of the contract, headers to compare.",
			returns:  verdict("True when the payload honours the contract.", "The deviations from the contract, if any."),
			metadata: "Contract and version that were applied.",
			failed:   "The contract could not be loaded, so the payload stays unverified.",
			deps:     []string{parser, transformer},
		},
		{
			category: network, operation: "poster",
			description: "Post a payload to a remote endpoint: submit it with an HTTP request and confirm that it was accepted.",
			params: []assay.Parameter{
				required("destination", "string", "URL of the endpoint."),
				required("data", "object", "The payload to submit."),
			},
			options:  "Optional settings: headers, idempotency key, content type.",
			metadata: "Status code and the identifier that the endpoint assigned.",
			failed:   "The endpoint did not accept the payload.",
			deps:     []string{transformer, integration + "_authenticator"},
		},
		{
			category: computation, operation: "analyzer",
			description: "Analyze figures statistically: work out averages, spread, outliers and correlations and point out what is unusual.",
			options:     "Optional settings: measure, which statistics, what counts as an outlier.",
			returns:     []assay.Return{object("result", "The statistics by measure.")},
			metadata:    "Number of figures that went in and of those left out.",
			failed:      "The figures do not support the statistics asked for.",
			deps:        []string{parser, processing + "_aggregator"},
		},
		{
			category: computation, operation: "calculator",
			description: "Calculate a formula exactly: evaluate sums, ratios, percentages and other arithmetic.",
			options:     "Optional settings: formula, variables, rounding.",
			returns:     []assay.Return{object("result", "Value of the formula.")},
			metadata:    "The formula as understood and the number of terms.",
			failed:      "The formula could not be evaluated.",
			deps:        []string{parser, network + "_validator"},
		},
		{
			category: files, operation: "writer",
			description: "Write results to a file on disk: save them at the destination path and create or replace what is there.",
			params: []assay.Parameter{
				required("destination", "string", "Path to write to."),
				required("data", "object", "What the file shall hold."),
			},
			options:  "Optional settings: overwrite or append, encoding, file mode.",
			metadata: "Path and number of bytes written.",
			failed:   "The disk did not take all of the content.",
			deps:     []string{transformer, network + "_validator"},
		},
		{
			category: utility, operation: "notifier",
			description: "Notify people: send an alert with a short summary to a chat channel, mailbox or pager.",
			params: []assay.Parameter{
				required("destination", "string", "Channel, address or pager that gets the alert."),
				required("data", "object", "What the alert tells."),
			},
			options:  "Optional settings: urgency, subject, who else is copied.",
			metadata: "Who was reached and when.",
			failed:   "The alert was not delivered.",
			deps:     []string{computation + "_analyzer", network + "_monitor"},
		},
	}
}
