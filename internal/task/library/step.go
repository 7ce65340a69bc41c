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
	"read":         {tool: "file_operations_reader", counts: true, apply: (*draft).applyRead},
	"scan":         {tool: "file_operations_scanner", inline: true, apply: (*draft).applyScan},
	"fetch":        {tool: "network_fetcher", counts: true, apply: (*draft).applyFetch},
	"authenticate": {tool: "integration_authenticator", apply: (*draft).applyAuthenticate},
	"log":          {tool: "utility_logger", apply: (*draft).applyLog},
	"parse":        {tool: "data_processing_parser", counts: true, apply: (*draft).applyParse},
	"filter":       {tool: "data_processing_filter", inline: true, counts: true, apply: (*draft).applyFilter},
	"convert":      {tool: "file_operations_converter", counts: true, apply: (*draft).applyConvert},
	"compress":     {tool: "file_operations_compressor", apply: (*draft).applyCompress},
	"monitor":      {tool: "network_monitor", apply: (*draft).applyMonitor},
	"route":        {tool: "network_router", apply: (*draft).applyRoute},
	"predict":      {tool: "computation_predictor", inline: true, apply: (*draft).applyPredict},
	"simulate":     {tool: "computation_simulator", inline: true, apply: (*draft).applySimulate},
	"optimize":     {tool: "computation_optimizer", apply: (*draft).applyOptimize},
	"map":          {tool: "integration_mapper", counts: true, apply: (*draft).applyMap},
	"queue":        {tool: "integration_queue", counts: true, apply: (*draft).applyQueue},
	"schedule":     {tool: "integration_scheduler", apply: (*draft).applySchedule},
	"connect":      {tool: "integration_connector", apply: (*draft).applyConnect},
	"cache":        {tool: "utility_cache", counts: true, apply: (*draft).applyCache},
	"track":        {tool: "utility_tracker", apply: (*draft).applyTrack},
	"help":         {tool: "utility_helper", apply: (*draft).applyHelp},
	"transform":    {tool: "data_processing_transformer", counts: true, apply: (*draft).applyTransform},
	"validate":     {tool: "data_processing_validator", inline: true, counts: true, apply: (*draft).applyValidate},
	"aggregate":    {tool: "data_processing_aggregator", inline: true, counts: true, apply: (*draft).applyAggregate},
	"verify":       {tool: "network_validator", inline: true, counts: true, apply: (*draft).applyVerify},
	"post":         {tool: "network_poster", inline: true, counts: true, apply: (*draft).applyPost},
	"analyze":      {tool: "computation_analyzer", inline: true, counts: true, apply: (*draft).applyAnalyze},
	"calculate":    {tool: "computation_calculator", inline: true, counts: true, apply: (*draft).applyCalculate},
	"write":        {tool: "file_operations_writer", inline: true, counts: true, apply: (*draft).applyWrite},
	"notify":       {tool: "utility_notifier", inline: true, apply: (*draft).applyNotify},
}
