package library

// A step is one tool as a built-in task uses it.
type step struct {
	tool   string
	traits traits
	// apply puts the step's arguments into the inputs. It returns the facts that the tool reports
	// in its metadata.
	apply func(d *draft) map[string]any
}

type traits uint8

const (
	inline  traits = 1 << iota // works on single records, so the task must spell them out
	counted                    // reports how many records there are
)

// steps maps the verbs of chains to their steps.
var steps = map[string]step{
	"read":         {"file_operations_reader", counted, (*draft).applyRead},
	"scan":         {"file_operations_scanner", inline, (*draft).applyScan},
	"fetch":        {"network_fetcher", counted, (*draft).applyFetch},
	"authenticate": {"integration_authenticator", 0, (*draft).applyAuthenticate},
	"log":          {"utility_logger", 0, (*draft).applyLog},
	"parse":        {"data_processing_parser", counted, (*draft).applyParse},
	"filter":       {"data_processing_filter", inline | counted, (*draft).applyFilter},
	"convert":      {"file_operations_converter", counted, (*draft).applyConvert},
	"compress":     {"file_operations_compressor", inline, (*draft).applyCompress},
	"monitor":      {"network_monitor", 0, (*draft).applyMonitor},
	"route":        {"network_router", 0, (*draft).applyRoute},
	"predict":      {"computation_predictor", inline, (*draft).applyPredict},
	"simulate":     {"computation_simulator", inline, (*draft).applySimulate},
	"optimize":     {"computation_optimizer", inline, (*draft).applyOptimize},
	"map":          {"integration_mapper", inline | counted, (*draft).applyMap},
	"queue":        {"integration_queue", inline | counted, (*draft).applyQueue},
	"schedule":     {"integration_scheduler", 0, (*draft).applySchedule},
	"connect":      {"integration_connector", 0, (*draft).applyConnect},
	"cache":        {"utility_cache", inline | counted, (*draft).applyCache},
	"track":        {"utility_tracker", 0, (*draft).applyTrack},
	"help":         {"utility_helper", 0, (*draft).applyHelp},
	"transform":    {"data_processing_transformer", counted, (*draft).applyTransform},
	"validate":     {"data_processing_validator", inline | counted, (*draft).applyValidate},
	"aggregate":    {"data_processing_aggregator", inline | counted, (*draft).applyAggregate},
	"verify":       {"network_validator", inline | counted, (*draft).applyVerify},
	"post":         {"network_poster", inline | counted, (*draft).applyPost},
	"analyze":      {"computation_analyzer", inline | counted, (*draft).applyAnalyze},
	"calculate":    {"computation_calculator", inline | counted, (*draft).applyCalculate},
	"write":        {"file_operations_writer", inline | counted, (*draft).applyWrite},
	"notify":       {"utility_notifier", inline, (*draft).applyNotify},
}
