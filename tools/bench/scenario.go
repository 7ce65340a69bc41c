package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// workload is an experiment that runs against a simulated server.
type workload struct {
	// server holds flags of `assay sim serve`.
	server []string
	// plain is the latency of a plain server that takes the place of the simulated one, or 0.
	plain time.Duration
	// hang is the share of requests that the plain server never answers, and seed decides which.
	hang float64
	seed uint64
	// certificate is the file with the certificate of a plain server that speaks HTTP/2, or "".
	certificate string
	// serve has further fields of the model in the providers file.
	serve string
	model string
	// trials is the number of trials: a multiple of 500, or a multiple of 5 below
	// 500.
	trials int
	// text is appended to the experiment file.
	text string
	// limits are the model's limits as in a providers file. They are ignored if
	// there are lanes.
	limits string
	// lanes are deployments whose limits the server enforces. If stated is true,
	// the providers file states these limits too.
	lanes  []laneLimits
	stated bool
	// store is the path of the results, or "" for a new file.
	store string
	// stop is the time after the first request at which the run is killed, or 0 to
	// let it end. from is an earlier time at which the traffic is counted too.
	from, stop time.Duration
}

// serverArgs returns the server's command line.
func (s workload) serverArgs() []string {
	args := append([]string{"sim", "serve", "--addr", "127.0.0.1:0"}, s.server...)
	for _, l := range s.lanes {
		var limits []string
		if l.rpm > 0 {
			limits = append(limits, fmt.Sprintf("rpm=%d", l.rpm))
		}
		if l.tpm > 0 {
			limits = append(limits, fmt.Sprintf("tpm=%d", l.tpm))
		}
		args = append(args, "--limit", l.deployment+":"+strings.Join(limits, ","))
	}
	return args
}

// experiment returns the text of the experiment file.
func (s workload) experiment(providers string) string {
	tasks, repeats := min(s.trials/5, 100), max(s.trials/500, 1)
	return fmt.Sprintf(`name: bench
models: [%s]
variants: [optimal]
tasks_per_type: %d
repeats: %d
providers: %q
%s
`, s.model, tasks, repeats, providers, s.text)
}

// providers returns the text of the providers file for a server.
func (s workload) providers(url string) string {
	var b strings.Builder
	b.WriteString("providers:\n")
	entry := func(name, serve string) {
		fmt.Fprintf(&b, `  %s:
    base_url: %s/v1
    keys: [%s]
    models:
      %s: {%s}
`, name, url, keyName, s.model, serve)
	}

	for i, l := range s.lanes {
		limits := ""
		if s.stated {
			limits = fmt.Sprintf("rpm: %d, tpm: %d", l.rpm, l.tpm)
		}
		entry(fmt.Sprintf("lane%d", i+1), fmt.Sprintf(
			"deployments: [%s], serves: [%s], limits: {%s}", l.deployment, s.model, limits))
	}
	if len(s.lanes) == 0 {
		entry("lane", strings.TrimPrefix(s.serve+", limits: {"+s.limits+"}", ", "))
	}
	return b.String()
}

// displayEvents holds events that `assay run --display json` printed.
type displayEvents struct {
	// shown is the highest number of trials displayed as done.
	shown int
	// done is the last event. It is empty if the run was killed.
	done doneEvent
}

type doneEvent struct {
	Planned, Done int
	Lanes         []struct{ Occupancy float64 }
}

// read parses one line of output.
func (d *displayEvents) read(line []byte) {
	var event struct {
		Event string
		Done  int
	}
	if json.Unmarshal(line, &event) != nil {
		return // cut off by a kill
	}
	if event.Event == "done" {
		_ = json.Unmarshal(line, &d.done)
	}
	d.shown = max(d.shown, event.Done)
}

// undone returns the number of trials without an outcome.
func (d displayEvents) undone() int { return d.done.Planned - d.done.Done }

// occupancy returns the occupancy of the first lane.
func (d displayEvents) occupancy() float64 {
	if len(d.done.Lanes) == 0 {
		return 0
	}
	return d.done.Lanes[0].Occupancy
}
