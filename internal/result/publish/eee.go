package publish

import (
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assay-eval/assay/internal/result/export"
	"github.com/assay-eval/assay/internal/result/report"
)

// SchemaVersion is the version of the schemas of Every Eval Ever.
const SchemaVersion = "0.3.0"

// source is where the built-in tasks are.
const source = "https://github.com/assay-eval/assay"

type doc = export.Object

// Paths returns the paths of the record and of its samples in a collection, with slashes. They depend on
// everything in the record, so that the same results have the same paths.
func (r *Results) Paths() (record, samples string) {
	sum := []byte(digest(r.evaluationID(), r.model.id(), r.experiment.Snapshot, r.experiment.Program)[:32])
	sum[12] = '4' // of a UUID without a meaning, as the validator wants it
	sum[16] = "89ab"[sum[16]%4]
	uuid := fmt.Sprintf("%s-%s-%s-%s-%s", sum[:8], sum[8:12], sum[12:16], sum[16:20], sum[20:])
	developer, model := unknown, r.model.id()
	if before, after, ok := strings.Cut(model, "/"); ok {
		developer, model = before, after
	}
	at := path.Join("data", portable(r.collection()), portable(developer), portable(model), uuid)
	return at + ".json", at + "_samples.jsonl"
}

func (r *Results) collection() string { return "assay-" + r.experiment.Name }

// portable returns a name that every file system takes.
func portable(name string) string {
	name = strings.Map(func(c rune) rune {
		if c < ' ' || strings.ContainsRune(`/<>:"\|?*`, c) {
			return '_'
		}
		return c
	}, name)
	if stem, _, _ := strings.Cut(name, "."); name == "data" || strings.HasSuffix(name, ".") ||
		strings.HasSuffix(name, " ") || slices.Contains(reserved, strings.ToUpper(stem)) {
		name += "_"
	}
	return name
}

// reserved are names of devices of Windows.
var reserved = strings.Fields("CON PRN AUX NUL COM1 COM2 COM3 COM4 COM5 COM6 COM7 COM8 COM9 " +
	"LPT1 LPT2 LPT3 LPT4 LPT5 LPT6 LPT7 LPT8 LPT9")

// evaluationID names the evaluation. It stays the same if more of other models or experiments is stored.
func (r *Results) evaluationID() string {
	developer := r.model.developer()
	name := strings.TrimPrefix(r.model.Name, developer+"/")
	return fmt.Sprintf("%s/%s_%s/%s", r.collection(), developer, portable(name), r.digest()[:12])
}

// WriteRecord writes the record of the results, an EvaluationLog. Its samples have to be written before.
func (r *Results) WriteRecord(w io.Writer) error {
	_, samples := r.Paths()
	x := &r.experiment
	ended := strconv.FormatInt(r.latest.Unix(), 10)
	results := []doc{}
	for _, row := range r.rows {
		for _, m := range metrics {
			if v := row.Get(m.measure); v.Known {
				results = append(results, r.result(row, m, v))
			}
		}
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(doc{
		{"schema_version", SchemaVersion},
		{"evaluation_id", r.evaluationID()},
		{"evaluation_timestamp", ended},
		{"retrieved_timestamp", ended}, // the same results give the same record whenever they are exported
		{"source_metadata", doc{
			{"source_name", "Assay " + x.Name},
			{"source_type", "evaluation_run"},
			{"source_organization_name", unknown},
			{"evaluator_relationship", "other"},
			{"additional_details", details(map[string]string{
				"experiment": x.Name, "snapshot": x.Snapshot, "where": strings.Join(x.Where, ", "),
				"planned": strconv.Itoa(r.count(report.Planned)), "done": strconv.Itoa(r.samples.rows),
				"faults": strconv.Itoa(r.count(report.Faults)),
			})},
		}},
		{"eval_library", doc{
			{"name", "assay"},
			{"version", r.fact("program")},
			{"additional_details", details(map[string]string{
				"world": x.World, "score_version": r.fact("score_version"), "templates": r.fact("templates"),
				"exported_by": x.Program,
			})},
		}},
		{"model_info", doc{
			{"name", r.model.answers()},
			{"id", r.model.id()},
			{"developer", r.model.developer()},
			{"inference_platform", export.OrOmit(r.fact("provider"))},
			{"additional_details", details(map[string]string{
				"deployment_type": unknown, "model_availability": unknown, "served_model": r.fact("served_model"),
			})},
		}},
		{"evaluation_results", results},
		{"detailed_evaluation_results", doc{
			{"format", "jsonl"},
			{"file_path", samples},
			{"hash_algorithm", "sha256"},
			{"checksum", r.samples.sum},
			{"total_rows", r.samples.rows},
		}},
	})
}

// A metric is a measure in a record. Each is a share of trials.
type metric struct {
	id, name string
	measure  *report.Measure
}

// metrics begin with the one that samples have a score of.
var metrics = []metric{
	{"full_success", "Full success", report.Full},
	{"partial_success", "Partial success", report.Partial},
	{"of_best", "Full success of the trials that can be won", report.OfBest},
}

// evaluation names the evaluation of a row.
func (r *Results) evaluation(row *report.GridRow) string {
	return "assay." + r.experiment.World + "." + condition(row.Cell)
}

func (r *Results) result(row report.GridRow, m metric, v report.Value) doc {
	parameters := map[string]any{"reliability": row.Reliability}
	for name, level := range map[string]string{
		"variant": row.Variant, "severity": row.Severity, "difficulty": row.Difficulty, "fault_mix": row.Faults,
		"interface": row.Interface, "phrasing": row.Phrasing,
	} {
		if level != "" {
			parameters[name] = level
		}
	}
	about := map[string]string{
		"count": strconv.Itoa(v.Count), "planned": strconv.Itoa(row.Int(report.Planned)),
		"faults": strconv.Itoa(row.Int(report.Faults)),
	}
	for _, limit := range []*report.Measure{report.BestPossible, report.Floor} {
		if v := row.Get(limit); v.Known {
			about[limit.Key] = strconv.FormatFloat(v.Number, 'g', -1, 64)
		}
	}
	return doc{
		{"evaluation_result_id", r.evaluation(&row) + "." + m.id},
		{"evaluation_name", r.evaluation(&row)},
		{"source_data", r.source()},
		{"evaluation_timestamp", r.latest.Format(time.RFC3339)},
		{"metric_config", doc{
			{"evaluation_description", report.Capital(m.measure.Means)},
			{"metric_id", "assay." + m.id},
			{"metric_name", m.name},
			{"metric_kind", "pass_rate"},
			{"metric_unit", "proportion"},
			{"metric_parameters", parameters},
			{"lower_is_better", false},
			{"score_type", "continuous"},
			{"min_score", 0},
			{"max_score", 1},
		}},
		{"score_details", doc{
			{"score", v.Number},
			{"details", about},
			{"uncertainty", doc{
				{"confidence_interval", doc{
					{"lower", v.Interval.Low},
					{"upper", v.Interval.High},
					{"confidence_level", 0.95},
					{"method", "Wilson at the effective sample size, clustered by " + r.experiment.Cluster},
				}},
				{"num_samples", v.N},
			}},
		}},
		{"generation_config", r.generation()},
	}
}

// source describes the tasks.
func (r *Results) source() doc {
	d := doc{{"dataset_name", r.experiment.Library}, {"source_type", "other"}}
	if r.experiment.Builtin {
		d = doc{{"dataset_name", "assay-" + r.experiment.Library}, {"source_type", "url"}, {"url", []string{source}}}
	}
	return append(d, [2]any{"additional_details", details(map[string]string{"digest": r.experiment.Digest})})
}

// generation describes how replies were made, and the agent that asked for them.
func (r *Results) generation() doc {
	s := r.setting
	agent := map[string]string{"agent": r.model.Agent, "sandbox": r.fact("sandbox")}
	for name := range r.facts {
		if strings.HasPrefix(name, programFile) {
			agent[name] = r.fact(name)
		}
	}
	var tokens any
	if s.Tokens > 0 {
		tokens = doc{{"token_limit", s.Tokens}}
	}
	var config any
	if agent = details(agent); len(agent) > 0 {
		config = doc{{"additional_details", agent}}
	}
	return doc{
		{"generation_args", doc{
			{"temperature", export.OrOmit(s.Sampling.Temperature)},
			{"top_p", export.OrOmit(s.Sampling.TopP)},
			{"max_tokens", export.OrOmit(s.Sampling.MaxTokens)},
			{"agentic_eval_config", export.OrOmit(config)},
			{"eval_limits", export.OrOmit(tokens)},
		}},
		{"additional_details", r.settings()},
	}
}

// details returns texts by their names, without empty ones.
func details(texts map[string]string) map[string]string {
	for name, text := range texts {
		if text == "" {
			delete(texts, name)
		}
	}
	return texts
}
