package library

import "fmt"

// Each apply method performs the step of one verb on a draft. It sets the step's arguments and
// returns the facts that the tool reports in its metadata.

func (d *draft) applyRead() map[string]any {
	d.set("source", d.path())
	return map[string]any{"path": d.path()}
}

func (d *draft) applyScan() map[string]any {
	d.set("source", d.path())
	d.set("pattern", d.Values[0])
	matches := equals(d.Label, d.Values[0]).apply(d.records)
	return map[string]any{"matches": len(matches)}
}

func (d *draft) applyFetch() map[string]any {
	d.set("source", d.url())
	return map[string]any{"status": 200}
}

func (d *draft) applyAuthenticate() map[string]any {
	d.set("host", d.host())
	d.set("credentials", d.Slug+"-reader")
	return map[string]any{"signed_in_as": d.Slug + "-reader"}
}

func (d *draft) applyLog() map[string]any {
	d.set("level", "info")
	d.set("message", d.Things+" "+d.period+" handled")
	return map[string]any{"entries": 1, "level": "info"}
}

func (d *draft) applyParse() map[string]any {
	if _, ok := d.inputs["source"]; !ok {
		d.set("source", d.path())
	}
	d.set("input_format", d.in)
	return map[string]any{"fields": []string{d.Key, d.Label, d.Measure}}
}

func (d *draft) applyFilter() map[string]any {
	field, comparison, value := d.cond.field, "equals", d.cond.value
	if d.cond.atLeast {
		comparison = "at_least"
	}
	d.set("filter", map[string]any{"field": field, comparison: value})
	before := len(d.records)
	d.records = d.cond.apply(d.records)
	return map[string]any{"dropped": before - len(d.records)}
}

func (d *draft) applyConvert() map[string]any {
	d.set("source", d.path())
	d.set("input_format", d.in)
	d.set("output_format", d.out)
	return map[string]any{"output_format": d.out}
}

func (d *draft) applyCompress() map[string]any {
	d.set("archive", d.archive())
	return map[string]any{"archive": d.archive()}
}

func (d *draft) applyMonitor() map[string]any {
	d.set("host", d.host())
	d.set("latency_limit_ms", 250)
	return map[string]any{"host": d.host()}
}

func (d *draft) applyRoute() map[string]any {
	d.set("gateway", d.gateway())
	d.set("backend", d.host())
	return map[string]any{"gateway": d.gateway()}
}

func (d *draft) applyPredict() map[string]any {
	d.set("measure", d.Measure)
	d.set("horizon_days", d.horizon())
	d.result = map[string]any{"measure": d.Measure, "days": d.horizon()}
	return map[string]any{"horizon_days": d.horizon()}
}

func (d *draft) applySimulate() map[string]any {
	d.set("measure", d.Measure)
	d.set("runs", d.runs())
	d.result = map[string]any{"measure": d.Measure, "runs": d.runs()}
	return map[string]any{"runs": d.runs()}
}

func (d *draft) applyOptimize() map[string]any {
	d.set("objective", "minimize cost")
	d.set("limits", map[string]any{"hours": d.hours()})
	d.result = map[string]any{"objective": "minimize cost"}
	return map[string]any{"objective": "minimize cost"}
}

func (d *draft) applyMap() map[string]any {
	d.set("input_format", d.System)
	d.set("output_format", d.target())
	return map[string]any{"columns_mapped": 3}
}

func (d *draft) applyQueue() map[string]any {
	d.set("queue", d.Slug+"-intake")
	return map[string]any{"queue": d.Slug + "-intake"}
}

func (d *draft) applySchedule() map[string]any {
	d.set("schedule", map[string]any{"time": d.time(), "repeat": "daily"})
	return map[string]any{"next_start": d.time()}
}

func (d *draft) applyConnect() map[string]any {
	d.set("system", d.System)
	return map[string]any{"system": d.System}
}

func (d *draft) applyCache() map[string]any {
	d.set("cache_key", d.cacheKey())
	d.set("ttl_seconds", 60*d.minutes())
	return map[string]any{"key": d.cacheKey(), "ttl_seconds": 60 * d.minutes()}
}

func (d *draft) applyTrack() map[string]any {
	d.set("milestone", d.Slug+" "+d.period)
	return map[string]any{"milestones_reached": 1}
}

func (d *draft) applyHelp() map[string]any {
	d.set("chore", "unique_identifier")
	d.set("prefix", d.Prefix)
	return map[string]any{"identifiers": 1, "prefix": d.Prefix}
}

func (d *draft) applyTransform() map[string]any {
	d.set("input_format", d.in)
	d.set("output_format", d.out)
	return map[string]any{"output_format": d.out}
}

func (d *draft) applyValidate() map[string]any {
	d.set("schema", d.schema())
	return map[string]any{"violations": 0}
}

func (d *draft) applyAggregate() map[string]any {
	d.set("group_by", d.Label)
	groups := make(map[any]bool)
	for _, r := range d.records {
		groups[r[d.Label]] = true
	}
	return map[string]any{"groups": len(groups)}
}

func (d *draft) applyVerify() map[string]any {
	d.set("schema", d.schema())
	d.set("contract", d.contract())
	return map[string]any{"contract": d.contract()}
}

func (d *draft) applyPost() map[string]any {
	d.set("destination", d.endpoint())
	return map[string]any{"status": 201}
}

func (d *draft) applyAnalyze() map[string]any {
	d.set("measure", d.Measure)
	low, high, sum := d.High, d.Low, 0
	for _, r := range d.records {
		v := r[d.Measure].(int)
		low, high, sum = min(low, v), max(high, v), sum+v
	}
	// Rounding to whole hundredths in integers gives the same number on every machine.
	mean := float64((200*sum/len(d.records)+1)/2) / 100
	stats := map[string]any{"min": low, "max": high, "mean": mean}
	d.result = map[string]any{d.Measure: stats}
	return map[string]any{"measure": d.Measure}
}

func (d *draft) applyCalculate() map[string]any {
	formula := fmt.Sprintf("sum(%s)", d.Measure)
	d.set("formula", formula)
	sum := 0
	for _, r := range d.records {
		sum += r[d.Measure].(int)
	}
	d.result = map[string]any{"formula": formula, "value": sum}
	return map[string]any{"terms": len(d.records)}
}

func (d *draft) applyWrite() map[string]any {
	d.set("destination", d.destination())
	return map[string]any{"path": d.destination()}
}

func (d *draft) applyNotify() map[string]any {
	d.set("destination", d.channel())
	return map[string]any{"reached": d.channel()}
}
