package bench

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// A Scenario is a run of an experiment against a simulated server.
type Scenario struct {
	// Server holds flags of `assay sim serve`.
	Server []string
	Model  string
	// Trials is how many there are: 500 times something, or fewer than 500 and
	// 5 times something.
	Trials int
	// Text is further text of the experiment's file.
	Text string
	// Limits are the model's, as in a providers file, where there are no Lanes.
	Limits string
	// Lanes are deployments with limits of their own, which the server holds
	// to. Stated says that the providers file has them too.
	Lanes  []Lane
	Stated bool
	// Store is the file for the results; a new one where it is empty.
	Store string
	// Stop kills the run so long after its first request; 0 lets it run to its
	// end. From is a moment before that, at which the traffic is counted too.
	From, Stop time.Duration
}

// serverArgs is the server's command line.
func (s Scenario) serverArgs() []string {
	args := append([]string{"sim", "serve", "--addr", "127.0.0.1:0"}, s.Server...)
	for _, l := range s.Lanes {
		var limits []string
		if l.RPM > 0 {
			limits = append(limits, fmt.Sprintf("rpm=%d", l.RPM))
		}
		if l.TPM > 0 {
			limits = append(limits, fmt.Sprintf("tpm=%d", l.TPM))
		}
		args = append(args, "--limit", l.Deployment+":"+strings.Join(limits, ","))
	}
	return args
}

// experiment is the text of the experiment's file.
func (s Scenario) experiment(providers string) string {
	tasks, repeats := min(s.Trials/5, 100), max(s.Trials/500, 1)
	return fmt.Sprintf("name: bench\nmodels: [%s]\nvariants: [optimal]\ntasks_per_type: %d\nrepeats: %d\nproviders: %q\n%s\n",
		s.Model, tasks, repeats, providers, s.Text)
}

// providers is the text of the providers file for the server at an address.
func (s Scenario) providers(url string) string {
	var b strings.Builder
	b.WriteString("providers:\n")
	entry := func(name, serve string) {
		fmt.Fprintf(&b, "  %s:\n    base_url: %s/v1\n    keys: [%s]\n    models:\n      %s: {%s}\n", name, url, keyName, s.Model, serve)
	}
	for i, l := range s.Lanes {
		limits := ""
		if s.Stated {
			limits = fmt.Sprintf("rpm: %d, tpm: %d", l.RPM, l.TPM)
		}
		entry(fmt.Sprintf("lane%d", i+1), fmt.Sprintf("deployments: [%s], serves: [%s], limits: {%s}", l.Deployment, s.Model, limits))
	}
	if len(s.Lanes) == 0 {
		entry("lane", "limits: {"+s.Limits+"}")
	}
	return b.String()
}

// A Display is what `assay run --display json` said of a run.
type Display struct {
	// Shown is the highest number of trials that it had as done.
	Shown int
	// Done is its last line, which a run that was killed has not.
	Done struct {
		Planned, Done int
		Lanes         []struct{ Occupancy float64 }
	}
}

// read takes in a line.
func (d *Display) read(line []byte) {
	var event struct {
		Event  string
		Done   int
		Models json.RawMessage
	}
	if json.Unmarshal(line, &event) != nil {
		return // cut off by a kill
	}
	switch event.Event {
	case "progress":
		var models []struct{ Done int }
		_ = json.Unmarshal(event.Models, &models)
		for _, m := range models {
			event.Done += m.Done
		}
	case "done":
		_ = json.Unmarshal(line, &d.Done)
	}
	d.Shown = max(d.Shown, event.Done)
}

// Undone is the number of trials without an outcome.
func (d Display) Undone() int { return d.Done.Planned - d.Done.Done }

// Occupancy is that of the first lane.
func (d Display) Occupancy() float64 {
	if len(d.Done.Lanes) == 0 {
		return 0
	}
	return d.Done.Lanes[0].Occupancy
}
