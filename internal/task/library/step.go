package library

// A toolStep is one tool as a built-in task uses it.
type toolStep struct {
	tool string
	// counted means that the tool reports how many records there are.
	counted bool
	// apply puts the step's arguments into the inputs. It returns the facts that the tool reports
	// in its metadata.
	apply func(d *draft) map[string]any
}

// steps maps the verbs of chains to their steps.
var steps = map[string]toolStep{
	"read":         {"file_operations_reader", true, (*draft).applyRead},
	"scan":         {"file_operations_scanner", false, (*draft).applyScan},
	"fetch":        {"network_fetcher", true, (*draft).applyFetch},
	"authenticate": {"integration_authenticator", false, (*draft).applyAuthenticate},
	"log":          {"utility_logger", false, (*draft).applyLog},
	"parse":        {"data_processing_parser", true, (*draft).applyParse},
	"filter":       {"data_processing_filter", true, (*draft).applyFilter},
	"convert":      {"file_operations_converter", true, (*draft).applyConvert},
	"compress":     {"file_operations_compressor", false, (*draft).applyCompress},
	"monitor":      {"network_monitor", false, (*draft).applyMonitor},
	"route":        {"network_router", false, (*draft).applyRoute},
	"predict":      {"computation_predictor", false, (*draft).applyPredict},
	"simulate":     {"computation_simulator", false, (*draft).applySimulate},
	"optimize":     {"computation_optimizer", false, (*draft).applyOptimize},
	"map":          {"integration_mapper", true, (*draft).applyMap},
	"queue":        {"integration_queue", true, (*draft).applyQueue},
	"schedule":     {"integration_scheduler", false, (*draft).applySchedule},
	"connect":      {"integration_connector", false, (*draft).applyConnect},
	"cache":        {"utility_cache", true, (*draft).applyCache},
	"track":        {"utility_tracker", false, (*draft).applyTrack},
	"help":         {"utility_helper", false, (*draft).applyHelp},
	"transform":    {"data_processing_transformer", true, (*draft).applyTransform},
	"validate":     {"data_processing_validator", true, (*draft).applyValidate},
	"aggregate":    {"data_processing_aggregator", true, (*draft).applyAggregate},
	"verify":       {"network_validator", true, (*draft).applyVerify},
	"post":         {"network_poster", true, (*draft).applyPost},
	"analyze":      {"computation_analyzer", true, (*draft).applyAnalyze},
	"calculate":    {"computation_calculator", true, (*draft).applyCalculate},
	"write":        {"file_operations_writer", true, (*draft).applyWrite},
	"notify":       {"utility_notifier", false, (*draft).applyNotify},
}
