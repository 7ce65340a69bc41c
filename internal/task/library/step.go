package library

// A step is one tool as a built-in task uses it.
type step struct {
	tool string
	// inline says that the step works on single records, so that the task
	// has to spell them out; counts that it tells how many there are.
	inline, counts bool
	// apply puts the step's arguments into the inputs and returns the facts
	// that hold afterwards.
	apply func(d *draft) map[string]any
}

// steps holds the step of each tool by the verb that chains use for it. What a
// description says of it is in the file of its difficulty.
var steps = map[string]step{
	"read":         {tool: files + "_reader", counts: true, apply: (*draft).applyRead},
	"scan":         {tool: files + "_scanner", inline: true, apply: (*draft).applyScan},
	"fetch":        {tool: network + "_fetcher", counts: true, apply: (*draft).applyFetch},
	"authenticate": {tool: integration + "_authenticator", apply: (*draft).applyAuthenticate},
	"log":          {tool: utility + "_logger", apply: (*draft).applyLog},
	"parse":        {tool: processing + "_parser", counts: true, apply: (*draft).applyParse},
	"filter":       {tool: processing + "_filter", inline: true, counts: true, apply: (*draft).applyFilter},
	"convert":      {tool: files + "_converter", counts: true, apply: (*draft).applyConvert},
	"compress":     {tool: files + "_compressor", apply: (*draft).applyCompress},
	"monitor":      {tool: network + "_monitor", apply: (*draft).applyMonitor},
	"route":        {tool: network + "_router", apply: (*draft).applyRoute},
	"predict":      {tool: computation + "_predictor", inline: true, apply: (*draft).applyPredict},
	"simulate":     {tool: computation + "_simulator", inline: true, apply: (*draft).applySimulate},
	"optimize":     {tool: computation + "_optimizer", apply: (*draft).applyOptimize},
	"map":          {tool: integration + "_mapper", counts: true, apply: (*draft).applyMap},
	"queue":        {tool: integration + "_queue", counts: true, apply: (*draft).applyQueue},
	"schedule":     {tool: integration + "_scheduler", apply: (*draft).applySchedule},
	"connect":      {tool: integration + "_connector", apply: (*draft).applyConnect},
	"cache":        {tool: utility + "_cache", counts: true, apply: (*draft).applyCache},
	"track":        {tool: utility + "_tracker", apply: (*draft).applyTrack},
	"help":         {tool: utility + "_helper", apply: (*draft).applyHelp},
	"transform":    {tool: processing + "_transformer", counts: true, apply: (*draft).applyTransform},
	"validate":     {tool: processing + "_validator", inline: true, counts: true, apply: (*draft).applyValidate},
	"aggregate":    {tool: processing + "_aggregator", inline: true, counts: true, apply: (*draft).applyAggregate},
	"verify":       {tool: network + "_validator", inline: true, counts: true, apply: (*draft).applyVerify},
	"post":         {tool: network + "_poster", inline: true, counts: true, apply: (*draft).applyPost},
	"analyze":      {tool: computation + "_analyzer", inline: true, counts: true, apply: (*draft).applyAnalyze},
	"calculate":    {tool: computation + "_calculator", inline: true, counts: true, apply: (*draft).applyCalculate},
	"write":        {tool: files + "_writer", inline: true, counts: true, apply: (*draft).applyWrite},
	"notify":       {tool: utility + "_notifier", inline: true, apply: (*draft).applyNotify},
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
