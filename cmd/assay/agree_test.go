package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/run/session"
	"github.com/assay-eval/assay/internal/run/telemetry"
	"github.com/assay-eval/assay/internal/run/terminal"
)

// stated has the numbers that readers of an experiment state. A number that a reader does not state is
// taken from the one that it is compared with.
type stated struct {
	job.Trials
	Full, Ended, Retried int
	Faults, Cost         string
}

func statedBy(s job.Standing, cost string) stated {
	out := stated{Trials: s.Trials, Full: s.Full, Ended: s.Attempts(), Faults: s.FaultCount.Text(), Cost: cost}
	for _, n := range s.FaultCount.Retried {
		out.Retried += n
	}
	return out
}

// An observedStore is a store whose readers are compared.
type observedStore struct {
	t      *testing.T
	path   string
	models []string
	pages  visitor
}

// status returns what `assay status --json` says.
func (o observedStore) status() (s session.Status) {
	o.t.Helper()
	var all []session.Status
	decode(o.t, must(o.t, nil, "status", "--store", o.path, "--json").out, &all)
	s = all[0]
	sum := job.Standing{}
	for _, m := range s.Models {
		sum.Add(m.Standing)
	}
	if s.Trials != sum.Trials || s.Faults != sum.Attempts() || s.Spent != sum.Spent || s.Full != sum.Full {
		o.t.Errorf("%+v, %d faults are not the sum of its models: %+v", s.Standing, s.Faults, sum)
	}
	s.Standing = sum
	return s
}

// inText returns what `assay status` says, and the rest of the text.
func (o observedStore) inText() (s stated, text string) {
	o.t.Helper()
	text = must(o.t, nil, "status", "--store", o.path).out
	for _, m := range o.models {
		row := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(m) + ` +(\d+) +(\d+) +(\d+) +(\d+) +(\d+) `).FindStringSubmatch(text)
		if row == nil {
			o.t.Fatalf("no row of %s in\n%s", m, text)
		}
		n := func(i int) int { k, _ := strconv.Atoi(row[i]); return k }
		s.Trials.Add(job.Trials{Planned: n(1), Done: n(2), Pending: n(3), Parked: n(4), Skipped: n(5)})
	}
	money := regexp.MustCompile(`Attempts on disk: (.+), (\$[0-9.]+|cost unknown|at least .*known), \d+ tokens`).FindStringSubmatch(text)
	if money == nil {
		o.t.Fatalf("no money in\n%s", text)
	}
	s.Faults, s.Cost = money[1], money[2]
	return s, text
}

// inPages returns what the first page of `assay view` says.
func (o observedStore) inPages() (s stated, page string) {
	o.t.Helper()
	page = o.pages.get("/")
	tile := func(name, of string) int {
		tile := regexp.MustCompile(`(?s)<dt>` + name + `</dt><dd>.*?</div>`).FindString(page)
		n := regexp.MustCompile(of).FindStringSubmatch(tile)
		if n == nil {
			return 0
		}
		k, _ := strconv.Atoi(strings.ReplaceAll(n[1], ",", ""))
		return k
	}
	first := `>([0-9,]+)`
	s.Trials = job.Trials{
		Planned: tile("done", `of ([0-9,]+)`), Done: tile("done", `">([0-9,]+)<`),
		Pending: tile("pending", first), Parked: tile("parked", `">([0-9,]+)<`),
		Skipped: tile("skipped by stop rules", first),
	}
	s.Full = tile("full success", `">([0-9,]+)<`)
	s.Ended = tile("faults of providers", `">([0-9,]+)<`) + tile("errors of Assay", `">([0-9,]+)<`)
	s.Retried = tile("faults of providers", `([0-9,]+) requests sent again`)
	cost := regexp.MustCompile(`<dt>cost of stored attempts</dt><dd>([^<]*?) <`).FindStringSubmatch(page)
	if cost != nil {
		s.Cost = cost[1]
	}
	return s, page
}

// inMetrics returns what Prometheus reads, and the sums of all series by name.
func inMetrics(t *testing.T, url string) (s stated, sums map[string]float64) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	states := map[string]*int{"done": &s.Done, "pending": &s.Pending, "parked": &s.Parked, "skipped": &s.Skipped}
	for _, m := range regexp.MustCompile(`(?m)^assay_trials\{.*state="(\w+)"\} (\d+)$`).FindAllStringSubmatch(string(body), -1) {
		n, _ := strconv.Atoi(m[2])
		*states[m[1]] += n
		s.Planned += n
	}
	for _, m := range regexp.MustCompile(`(?m)^(assay_full_success_trials|assay_attempt_faults_total)\{.*\} (\d+)$`).FindAllStringSubmatch(string(body), -1) {
		n, _ := strconv.Atoi(m[2])
		if strings.Contains(m[1], "full") {
			s.Full += n
		} else {
			s.Ended += n
		}
	}
	sums = make(map[string]float64)
	for _, m := range regexp.MustCompile(`(?m)^(assay_\w+)\{.*\} (\S+)$`).FindAllStringSubmatch(string(body), -1) {
		x, _ := strconv.ParseFloat(m[2], 64)
		sums[m[1]] += x
	}
	return s, sums
}

// spentAsIn compares what the run and its metrics say that requests of the run came to.
func (o observedStore) spentAsIn(run *terminal.Progress, sums map[string]float64) {
	o.t.Helper()
	want := map[string]float64{"assay_tokens_total": float64(run.Tokens), "assay_cost_dollars_total": run.Cost}
	for _, m := range run.Models {
		want["assay_requests_total"] += float64(m.Requests)
		want["assay_attempts_total"] += float64(m.Done + m.Attempts()) // there was no run before
	}
	for name, x := range want {
		if math.Abs(sums[name]-x) > 1e-9 {
			o.t.Errorf("%s adds up to %v, the run says %v", name, sums[name], x)
		}
	}
}

// extent is the last line of a report's headline.
var extent = regexp.MustCompile(`(\d+) of (\d+) trials done(?: \((\d+) skipped\))?(?: in [^,]*?)?(?: over (\d+) runs)?, ` +
	`(no faults|\d+ faults? \([^)]*\)), (?:cost )?(\$[0-9.]+|unknown|at least .*known)(?:, (\d+) warnings?)?`)

// inReport returns what the first lines of `assay report` say, with its numbers of runs and warnings.
func (o observedStore) inReport() (s stated, runs, warnings int, line string) {
	o.t.Helper()
	var r struct {
		Planned, Done, Skipped int
		Met                    assay.FaultCount
		Warnings               []json.RawMessage
		Headline               []struct{ Text string }
	}
	decode(o.t, must(o.t, nil, "report", "--store", o.path, "--json").out, &r)
	line = r.Headline[len(r.Headline)-1].Text
	m := extent.FindStringSubmatch(line)
	if m == nil {
		o.t.Fatalf("the last line of the headline is %q", line)
	}
	n := func(text string) int { k, _ := strconv.Atoi(text); return k }
	if n(m[1]) != r.Done || n(m[2]) != r.Planned || n(m[3]) != r.Skipped || n(m[7]) != len(r.Warnings) {
		o.t.Errorf("the line %q, but %d of %d done, %d skipped, %d warnings", line, r.Done, r.Planned,
			r.Skipped, len(r.Warnings))
	}
	s = statedBy(job.Standing{FaultCount: r.Met}, m[6])
	s.Planned, s.Done, s.Skipped = r.Planned, r.Done, r.Skipped
	return s, max(1, n(m[4])), len(r.Warnings), line
}

func (o observedStore) same(what string, want, got stated) {
	o.t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		o.t.Errorf("%s disagrees with `assay status --json` (-status +other):\n%s", what, diff)
	}
}

// check compares all readers. While a run works, it has to be at rest.
func (o observedStore) check(when, metrics string) {
	o.t.Helper()
	s := o.status()
	want := statedBy(s.Standing, s.CostText())
	if s.Done+s.Pending+s.Parked+s.Skipped != s.Planned {
		o.t.Errorf("%s: the states of trials do not add up: %+v", when, s.Trials)
	}
	got, page := o.inPages()
	for range 500 { // the page is at most a second old
		if got.Faults = want.Faults; got == want {
			break
		}
		time.Sleep(10 * time.Millisecond)
		got, page = o.inPages()
	}
	got.Faults = want.Faults
	o.same(when+": view", want, got)
	text, whole := o.inText()
	text.Full, text.Ended, text.Retried = want.Full, want.Ended, want.Retried
	o.same(when+": status as text", want, text)
	if metrics != "" {
		var run terminal.Progress
		decode(o.t, must(o.t, nil, "ctl", "status", "--store", o.path, "--json").out, &run)
		o.same(when+": ctl", want, statedBy(run.Standing, want.Cost))
		got, sums := inMetrics(o.t, metrics)
		o.spentAsIn(&run, sums)
		got.Retried, got.Faults, got.Cost = want.Retried, want.Faults, want.Cost
		o.same(when+": metrics", want, got)
		line := fmt.Sprintf("%d/%d done, ", want.Done, want.Planned)
		for state, n := range map[string]int{"parked": want.Parked, "skipped": want.Skipped} {
			if strings.Contains(whole, fmt.Sprintf(", %d %s", n, state)) != (n > 0) {
				o.t.Errorf("%s: the live line does not say that %d are %s:\n%s", when, n, state, whole)
			}
		}
		if !strings.Contains(whole, line) || !strings.Contains(whole, "faults: "+s.Brief()) {
			o.t.Errorf("%s: the live line lacks %q or %q:\n%s", when, line, s.Brief(), whole)
		}
		return
	}
	report, runs, warnings, line := o.inReport()
	report.Pending, report.Parked, report.Full = want.Pending, want.Parked, want.Full
	o.same(when+": report", want, report)
	if runs != s.Runs {
		o.t.Errorf("%s: the report knows %d runs, status %d", when, runs, s.Runs)
	}
	if warnings > 0 {
		waitFor(o.t, func() bool {
			_, page = o.inPages()
			return strings.Contains(page, fmt.Sprintf(", %s</dd>", assay.Counted(warnings, "warning")))
		})
	}
	if !strings.Contains(page, line) {
		waitFor(o.t, func() bool { _, page = o.inPages(); return strings.Contains(page, line) })
	}
}

// TestReadersAgree runs an experiment with faults, requests that are sent again, parked trials, stop
// rules, orders and two runs, and compares what everything that reads it says: status as text and as
// JSON, the pages of view, ctl, the live line, metrics, the webhook, the summary and the report.
func TestReadersAgree(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: reads a working run with every reader")
	}
	server := serve(t, "--fault", "500=12%", "--fault", "wrong-model=6%", "--latency", "30ms")
	var mu sync.Mutex
	var told []telemetry.Message
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var m telemetry.Message
		_ = json.NewDecoder(r.Body).Decode(&m)
		mu.Lock()
		defer mu.Unlock()
		told = append(told, m)
	}))
	defer hook.Close()
	dir := t.TempDir()
	file(t, dir, "providers.yaml", "providers:\n  gw:\n    base_url: "+server.url+"/v1\n    keys: [KEY]\n"+
		"    models:\n      sim/optimal: {price: {input: 1, output: 5}, limits: {concurrency: 12}}\n"+
		"      sim/mute: {price: {input: 1, output: 5}, limits: {concurrency: 12}}\n")
	experiment := file(t, dir, "e.yaml", "name: agree\nmodels: [sim/optimal, sim/mute]\n"+
		"variants: [baseline, optimal]\ntask_types: [basic_task, simple_task]\ndifficulties: [easy]\n"+
		"tasks_per_type: 12\nreliabilities: [1]\nproviders: providers.yaml\nmetrics: 127.0.0.1:0\nnotify: HOOK\n"+
		"stop: {hopeless: {after: 5, below: 0.6}}\n")
	o := observedStore{t: t, path: filepath.Join(dir, "a.db"), models: []string{"sim/optimal", "sim/mute"}}
	env := map[string]string{"KEY": "any", "HOOK": hook.URL}

	// ended gets the result of a run, whose metrics are at the address that begin returns.
	begin := func() (metrics string, ended chan result) {
		errs, stderr := io.Pipe()
		ended = make(chan result, 1)
		go func() {
			var out strings.Builder
			code := run([]string{"run", experiment, "--store", o.path, "--display", "json"}, &process{
				in: strings.NewReader(""), out: &out, err: stderr, name: "assay",
				env: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
			})
			_ = stderr.Close()
			ended <- result{code: code, out: out.String()}
		}()
		lines := bufio.NewReader(errs)
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.Copy(io.Discard, lines) }()
		return strings.TrimSpace(strings.TrimPrefix(line, "metrics: ")), ended
	}
	ctl := func(args ...string) string {
		t.Helper()
		return must(t, nil, append([]string{"ctl", "--store", o.path}, args...)...).out
	}
	state := func() (s terminal.Progress) {
		r := call(t, nil, "ctl", "--store", o.path, "status", "--json")
		_ = json.Unmarshal([]byte(r.out), &s)
		return s
	}
	// atRest pauses all lanes once enough trials are done, and waits until no request is in flight.
	atRest := func(enough func(terminal.Progress) bool) {
		t.Helper()
		waitFor(t, func() bool { return enough(state()) })
		ctl("pause")
		var before terminal.Progress
		still := 0 // in a row; an episode may go on without a request
		waitFor(t, func() bool {
			now := state()
			flying := 0
			for _, m := range now.Models {
				for _, l := range m.Lanes {
					flying += l.InFlight
				}
			}
			if still++; flying > 0 || !cmp.Equal(now.Standing, before.Standing) {
				still = 0
			}
			before = now
			return still == 30
		})
	}

	metrics, ended := begin()
	waitFor(t, func() bool { return state().Run != "" })
	o.pages = openPages(t, "--store", o.path)
	atRest(func(s terminal.Progress) bool { return s.Done >= 8 && s.Skipped > 0 && s.Attempts() > 0 })
	o.check("in the first run", metrics)
	ctl("resume")
	atRest(func(s terminal.Progress) bool { return s.Run == "" || s.Done >= 25 })
	ctl("requeue")
	o.check("after requeue", metrics)
	ctl("resume")
	first := <-ended
	o.check("after the first run", "")
	summaryAgrees(t, o, first)
	if _, text := o.inText(); !strings.Contains(text, "1 run.") {
		t.Errorf("one run:\n%s", text)
	}

	second := call(t, env, "run", experiment, "--store", o.path, "--display", "none")
	o.check("after the second run", "")
	_, runs, _, line := o.inReport()
	if runs != 2 || !strings.Contains(strings.Join(strings.Fields(second.out), " "), strings.Join(strings.Fields(line), " ")) {
		t.Errorf("the second run ends with\n%s\nthe report begins with\n%s", second.out, line)
	}
	mu.Lock()
	defer mu.Unlock()
	last := told[len(told)-1]
	if s := o.status(); last.Event != "end" || last.Trials != s.Trials {
		t.Errorf("the webhook was told %+v, status says %+v", last.Trials, s.Trials)
	}
	if s := o.status(); s.Skipped == 0 || s.Attempts() == 0 || statedBy(s.Standing, "").Retried == 0 || s.Spent.USD == 0 {
		t.Errorf("the experiment does not test what it should: %+v", s.Standing)
	}
}

// summaryAgrees compares the done event of a run with the status after it.
func summaryAgrees(t *testing.T, o observedStore, r result) {
	t.Helper()
	var sum session.Summary
	b, err := json.Marshal(lastEvent(t, r.out))
	if err != nil {
		t.Fatal(err)
	}
	decode(t, string(b), &sum)
	s := o.status()
	if sum.Trials != s.Trials {
		t.Errorf("the summary says %+v, status %+v", sum.Trials, s.Trials)
	}
	if diff := cmp.Diff(s.Stopped, sum.StoppedEarly); diff != "" {
		t.Errorf("stops (-status +summary):\n%s", diff)
	}
	if sum.Faulted != s.Attempts() || sum.Cost != s.Spent.USD {
		t.Errorf("the summary counts %d faults and $%v, status %d and $%v", sum.Faulted, sum.Cost,
			s.Attempts(), s.Spent.USD)
	}
}
