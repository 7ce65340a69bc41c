//go:build !race

package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v4"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/result/export"
	"github.com/assay-eval/assay/internal/task/library"
)

// repository is the module's root, relative to this package.
const repository = "../.."

func readDocument(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(repository, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var fence = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")

// blocks returns the code blocks in a language.
func blocks(text, language string) []string {
	var out []string
	for _, m := range fence.FindAllStringSubmatch(text, -1) {
		if m[1] == language {
			out = append(out, m[2])
		}
	}
	return out
}

// TestReadme follows the README and the tutorial in a new directory. It runs every line that calls
// assay. After the quickstart, which runs where there is no experiment, it writes the YAML blocks
// to the files that they name. Only the quickstart runs all of its trials, because the README shows
// its last lines.
func TestReadme(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: runs every command of the README")
	}
	readme := readDocument(t, "README.md")
	r := reader{dir: t.TempDir()}
	server := serveProgram(t, "--latency", "20ms")
	file(t, r.dir, "tasks.json", `[{"id": "t1", "task_type": "basic_task",
		"description": "Read the file and filter it.",
		"required_tools": ["a_reader", "a_filter"]}]`)
	file(t, r.dir, "registry.json", `{
		"a_reader": {"name": "a_reader", "description": "Reads.",
			"errors": [{"code": "TIMEOUT", "description": "late"}]},
		"a_filter": {"name": "a_filter", "description": "Filters.", "dependencies": ["a_reader"],
			"errors": [{"code": "TIMEOUT", "description": "late"}]}}`)

	ran := 0
	_, noPython := exec.LookPath("python3")
	for _, line := range commands(readme + readDocument(t, "docs/tutorial.md")) {
		if noPython != nil && strings.Contains(line, "python3") {
			continue
		}
		out := r.run(t, line)
		if line == "assay run" {
			sameEnding(t, readme, out)
			sameAnswers(t, readme, r.run(t, "assay report --json"))
			for _, yaml := range blocks(readme, "yaml") {
				name, _, _ := strings.Cut(strings.TrimPrefix(yaml, "# "), "\n")
				file(t, r.dir, name, strings.ReplaceAll(yaml, "http://127.0.0.1:8080", server))
			}
		}
		ran++
	}
	if ran < 30 {
		t.Errorf("found %d commands, want at least 30", ran)
	}
}

// TestPythonPage runs the programs of docs/python.md, which have to agree with each other and with the store.
// Those that need more than Python itself run if ASSAY_PYTHON has it.
func TestPythonPage(t *testing.T) {
	t.Parallel()
	python, more := os.Getenv("ASSAY_PYTHON"), true
	if python == "" {
		python, more = "python3", false
	}
	if _, err := exec.LookPath(python); err != nil {
		t.Skip("python3 is not installed")
	}
	page, dir := readDocument(t, "docs/python.md"), t.TempDir()
	r := reader{dir: dir}
	file(t, dir, "e.yaml", "models: [sim/careful, sim/brittle]\nreliabilities: [0.6]\ntasks_per_type: 6\n")
	r.run(t, "assay run e.yaml --sim-latency 0 --display none")
	r.run(t, "assay run e.yaml --sim-latency 0 --display none --retry failures") // outcomes of a second round
	for _, line := range commands(page) {
		r.run(t, line)
	}

	full, all := make(map[string]int), make(map[string]int)
	superseded := 0
	for _, a := range attempts(t, filepath.Join(dir, "assay.db")) {
		if a.Superseded {
			superseded++
		} else if a.Settles() {
			all[a.Model]++
			if a.Level == assay.FullSuccess {
				full[a.Model]++
			}
		}
	}
	want := ""
	for _, model := range slices.Sorted(maps.Keys(all)) {
		want += fmt.Sprintf("%s %d %.3f\n", model, all[model], float64(full[model])/float64(all[model]))
	}
	if superseded == 0 || len(all) != 2 {
		t.Fatalf("the test is too weak: %d superseded outcomes, models %v", superseded, all)
	}
	ran := 0
	for _, text := range blocks(page, "python") {
		if !more && regexp.MustCompile("import (pandas|duckdb)").MatchString(text) {
			continue
		}
		cmd := exec.CommandContext(t.Context(), python, "-c", text)
		cmd.Dir = dir
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("%v\n%s", err, text)
			continue
		}
		ran++
		if strings.Contains(text, "{model} ") && string(out) != want {
			t.Errorf("got\n%swant\n%s\n%s", out, want, text)
		}
		if len(out) == 0 {
			t.Errorf("nothing is printed by\n%s", text)
		}
	}
	if more && ran != 6 || ran < 3 {
		t.Errorf("%d programs ran", ran)
	}
}

// TestAgentsPage runs the agent of docs/agents.md as it is written there. [TestAgentsOfOthers] runs
// the files that the page links to.
func TestAgentsPage(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not installed")
	}
	page := readDocument(t, "docs/agents.md")
	r := reader{dir: t.TempDir()}
	programs := blocks(page, "python")
	if diff := cmp.Diff(readDocument(t, "cmd/assay/example-agent/agent.py"), programs[0]); diff != "" {
		t.Errorf("the page's agent is not that of assay init my-agent (-file +page):\n%s", diff)
	}
	file(t, r.dir, "agent.py", programs[0])
	file(t, r.dir, "providers.yaml", blocks(page, "yaml")[0])
	file(t, r.dir, "experiment.yaml", blocks(page, "yaml")[1])
	for i, want := range []string{"my-agent  yes         5      kept", "12 of 12 trials done"} {
		line := commands(page)[i] + " --sim-latency 0"
		if out := r.run(t, line); !strings.Contains(out, want) {
			t.Errorf("%s:\n%s", line, out)
		}
	}
}

// TestFreshPage runs the commands of docs/fresh.md, and checks that the tasks that it quotes are as
// they are generated.
func TestFreshPage(t *testing.T) {
	t.Parallel()
	page := readDocument(t, "docs/fresh.md")
	r := reader{dir: t.TempDir()}
	for _, line := range commands(page) {
		r.run(t, line)
	}
	text := strings.Join(strings.Fields(strings.ReplaceAll(page, "\n>", "\n")), " ")
	lib, err := library.Open(t.Context(), filepath.Join(r.dir, "fresh.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer lib.Close()
	for _, difficulty := range []string{"very_easy", "very_hard"} {
		task, err := lib.Task(t.Context(), "basic-001", difficulty)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text, task.Description) {
			t.Errorf("the page does not quote %q", task.Description)
		}
	}
}

// TestWorkersPage runs the two commands of docs/workers.md.
func TestWorkersPage(t *testing.T) {
	t.Parallel()
	page := commands(readDocument(t, "docs/workers.md"))
	if len(page) != 2 {
		t.Fatalf("the page has the commands %q", page)
	}
	dir := t.TempDir()
	serve := strings.Fields(strings.Replace(page[0], ":4222", "127.0.0.1:0", 1))
	run := coordinateAt(t, dir, nil, append(serve[2:], "--sim-latency", "0")...)
	work := strings.Fields(page[1])
	work[3] = run.url
	worker := program(t, append(work[1:], "--once")...)
	worker.Dir = dir
	if out, err := worker.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", page[1], err, out)
	}
	run.wait(t)
}

// TestHostsPage runs the commands of docs/hosts.md.
func TestHostsPage(t *testing.T) {
	t.Parallel()
	page := readDocument(t, "docs/hosts.md")
	r := reader{dir: t.TempDir()}
	file(t, r.dir, "hosts.yaml", blocks(page, "yaml")[0])
	r.run(t, commands(page)[0]+" --sim-latency 0s")
	if out := r.run(t, commands(page)[1]); !strings.Contains(out, "sim/obedient  Scored the same as sim/listed") {
		t.Errorf("%s:\n%s", commands(page)[1], out)
	}
	r.run(t, commands(page)[2])
	providers := file(t, r.dir, "providers.yaml", blocks(page, "yaml")[1])
	must(t, nil, "plan", "--model", "k2-moonshot", "--model", "k2-fireworks", "--providers", providers)
}

// TestGatePage runs the commands of docs/gate.md, and the lines of its workflow that call assay.
func TestGatePage(t *testing.T) {
	t.Parallel()
	page := readDocument(t, "docs/gate.md")
	r := reader{dir: t.TempDir()}
	file(t, r.dir, "nightly.yaml", blocks(page, "yaml")[0])
	for _, line := range commands(page) {
		if out := r.run(t, line); line == commands(page)[2] && !strings.Contains(out, "PASS") {
			t.Errorf("%s:\n%s", line, out)
		}
	}
	r.run(t, "assay export --store main.db --output baseline.jsonl")
	if err := os.Remove(filepath.Join(r.dir, "next.db")); err != nil {
		t.Fatal(err)
	}

	var workflow struct {
		Jobs map[string]struct{ Steps []struct{ Run string } }
	}
	if err := yaml.Unmarshal([]byte(blocks(page, "yaml")[1]), &workflow); err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, step := range workflow.Jobs["gate"].Steps {
		line, ok := strings.CutPrefix(step.Run, "./assay ")
		if !ok {
			continue
		}
		line, _, _ = strings.Cut(line, " >> ")
		line = strings.NewReplacer("${{ github.sha }}", "4be1a2f", "5pt", "15pt").Replace(line)
		out := r.run(t, "assay "+line)
		if ran++; !strings.Contains(out, "**PASS**") {
			t.Errorf("%s:\n%s", line, out)
		}
	}
	if junit, err := os.ReadFile(filepath.Join(r.dir, "gate.xml")); err != nil || ran != 1 {
		t.Errorf("ran %d steps of the workflow: %v\n%s", ran, err, junit)
	}
}

// commands returns the lines in the README's shell blocks that call assay, without comments and
// redirections. It leaves out the server, which the test starts itself.
func commands(readme string) (lines []string) {
	for _, script := range blocks(readme, "sh") {
		for line := range strings.Lines(script) {
			line, _, _ = strings.Cut(line, "#")
			line, _, _ = strings.Cut(line, " > ")
			line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "go run ./cmd/"))
			args := strings.Fields(line)
			if len(args) > 1 && args[0] == "assay" && !strings.HasPrefix(line, "assay sim serve") {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// A reader carries out commands of the README.
type reader struct {
	dir   string
	trial string // a trial that an earlier command printed
	stop  func() // ends the run that `assay ctl` controls; nil without such a run
}

// view opens the pages that a line serves, and ends the server as a user does. It returns the first
// page.
func (r *reader) view(t *testing.T, args []string) string {
	t.Helper()
	cmd := program(t, args...)
	cmd.Dir = r.dir
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("assay %s printed no address: %v", strings.Join(args, " "), err)
	}
	page := newVisitor(t, strings.TrimSpace(address)).loaded().get("/")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("assay %s: %v", strings.Join(args, " "), err)
	}
	return page
}

// TestViewPage runs the commands of docs/view.md.
func TestViewPage(t *testing.T) {
	t.Parallel()
	r := reader{dir: t.TempDir()}
	for _, line := range commands(readDocument(t, "docs/view.md")) {
		out := r.run(t, line)
		if strings.HasPrefix(line, "assay view") && !strings.Contains(out, "complete") {
			t.Errorf("%s:\n%s", line, out)
		}
	}
}

// run runs a line of the README and returns its output.
func (r *reader) run(t *testing.T, line string) string {
	t.Helper()
	args := strings.Fields(line)[1:]
	switch {
	case args[0] == "view":
		return r.view(t, args)
	case args[0] == "show" && args[1] != "--prompt":
		args[1] = r.trial // the trial in the text is in another store
	case args[0] == "run":
		args = append(args, "--sim-latency", "0")
		if len(args) > 3 && args[1] == "--suite" {
			args = append(args, "--limit", "60")
		}
	}
	switch {
	case args[0] == "ctl" && r.stop == nil:
		r.stop = longRun(t, r.dir)
	case args[0] != "ctl" && r.stop != nil:
		r.stop()
		r.stop = nil
	}

	cmd := program(t, args...)
	cmd.Dir = r.dir
	cmd.Env = readmeKeys()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
	if m := regexp.MustCompile(`assay show (\w{8})`).FindSubmatch(out); m != nil {
		r.trial = string(m[1])
	}
	return string(out)
}

func readmeKeys() []string {
	return append(os.Environ(), "GATEWAY_KEY_0=any", "GATEWAY_KEY_1=any")
}

// longRun starts a run that lasts until it is stopped.
func longRun(t *testing.T, dir string) (stop func()) {
	t.Helper()
	file(t, dir, "long.yaml", "name: long\nmodels: [my-model]\nproviders: providers.yaml\n"+
		"tasks_per_type: all\nrepeats: 100\n")
	cmd := program(t, "run", "long.yaml", "--display", "none")
	cmd.Dir, cmd.Env = dir, readmeKeys()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	t.Cleanup(stop)
	waitFor(t, func() bool {
		return call(t, nil, "ctl", "status", "--store", filepath.Join(dir, "assay.db")).code == 0
	})
	return stop
}

// sameEnding checks that the README shows the lines that the quickstart ends with. The last one has
// a time, so only its beginning is compared.
func sameEnding(t *testing.T, readme, out string) {
	t.Helper()
	words := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	ending := out[max(0, strings.Index(out, "Full success")):] // progress comes before
	want, _, timed := strings.Cut(ending, " done in ")
	want = words(strings.ReplaceAll(want, "`assay ", "`go run ./cmd/assay "))
	if !timed || !strings.Contains(words(readme), want) {
		t.Errorf("the README does not show how the quickstart ends:\n%s", out)
	}
}

// sameAnswers checks that the README's table has the answers of the quickstart's report, in percent,
// and that all models have a skill.
func sameAnswers(t *testing.T, readme, report string) {
	t.Helper()
	type loss struct{ Lost struct{ Share float64 } }
	var got struct {
		Warnings  []any
		Standings []struct {
			Model        string
			FlawedPlan   loss `json:"flawed_plan"`
			FailingTools loss `json:"failing_tools"`
			Recovery     struct{ Rate float64 }
			Skill        struct{ Rate float64 }
		}
	}
	decode(t, report, &got)
	answers := make(map[string][3]float64)
	for _, s := range got.Standings {
		answers[s.Model] = [3]float64{s.FlawedPlan.Lost.Share, s.FailingTools.Lost.Share, s.Recovery.Rate}
		if s.Skill.Rate <= 0 {
			t.Errorf("%s has a skill of %g", s.Model, s.Skill.Rate)
		}
	}
	if len(got.Warnings) > 0 {
		t.Errorf("the quickstart warns of itself: %v", got.Warnings)
	}
	for i, question := range []string{
		"What do flawed plans cost?", "What do tools cost that fail one time in five?",
		"Who recovers if a tool fails?",
	} {
		var want []string
		for _, model := range plan.Quickstart().Models {
			text := fmt.Sprintf("%.0f %%", 100*answers[model][i])
			if text == "0 %" {
				text = "nothing"
			}
			want = append(want, text)
		}
		row := "| " + question + " | " + strings.Join(want, " | ") + " |"
		if !strings.Contains(strings.Replace(readme, " of its success", "", 1), row) {
			t.Errorf("the README lacks the row\n%s", row)
		}
	}
}

// The tests and scripts named in docs/incidents.md exist.
func TestDocumentedTestsExist(t *testing.T) {
	t.Parallel()
	exists := make(map[string]bool)
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`)
	err := filepath.WalkDir(repository, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(text, -1) {
			exists[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	incidents := readDocument(t, "docs/incidents.md")
	named := regexp.MustCompile(`\b(Test|Fuzz|Benchmark)[A-Z]\w+`).FindAllString(incidents, -1)
	for _, name := range named {
		if !exists[name] {
			t.Errorf("docs/incidents.md names %s, which does not exist", name)
		}
	}
	for _, script := range regexp.MustCompile(`[a-z-]+\.txtar`).FindAllString(incidents, -1) {
		if _, err := os.Stat(filepath.Join("testdata", "script", script)); err != nil {
			t.Errorf("docs/incidents.md names a script that does not exist: %v", err)
		}
	}
	if len(named) < 40 {
		t.Errorf("found %d names in docs/incidents.md, want at least 40", len(named))
	}
}

// A change of the prompts' wording is in the changelog.
func TestTemplatesAreInTheChangelog(t *testing.T) {
	t.Parallel()
	if !strings.Contains(readDocument(t, "CHANGELOG.md"), episode.TemplatesHash) {
		t.Errorf("CHANGELOG.md lacks the templates' hash %s", episode.TemplatesHash)
	}
}

// The help of every command has an example of that command, and is short. The story help.txtar
// shows the rest.
func TestHelpHasExamples(t *testing.T) {
	t.Parallel()
	var look func(cmd *cobra.Command)
	look = func(cmd *cobra.Command) {
		if !strings.Contains(cmd.Example, cmd.CommandPath()) && !cmd.Hidden {
			t.Errorf("%s --help has no example of it:\n%s", cmd.CommandPath(), cmd.Example)
		}
		for _, c := range cmd.Commands() {
			look(c)
		}
	}
	root := newRoot(&process{})
	look(root)
	if n := strings.Count(newRun(&process{}).Flags().FlagUsages(), "\n"); n > 20 {
		t.Errorf("run has %d flags, want at most 20: make the new one a field of the file", n)
	}
	n := 0
	for _, c := range root.Commands() {
		if !c.Hidden {
			n++
		}
	}
	if n > 23 {
		t.Errorf("%d commands are on the first level, want at most 23: "+
			"put the new one into a group, such as store or library", n)
	}
}

// TestOwnToolsPage follows docs/own-tools.md in a new directory: it writes the files and runs the
// commands.
func TestOwnToolsPage(t *testing.T) {
	t.Parallel()
	page := readDocument(t, "docs/own-tools.md")
	r := reader{dir: t.TempDir()}
	for _, language := range []string{"python", "yaml"} {
		for _, text := range blocks(page, language) {
			name, _, _ := strings.Cut(strings.TrimPrefix(text, "# "), "\n")
			file(t, r.dir, name, text)
		}
	}
	var all []string
	for _, line := range commands(page) {
		all = append(all, r.run(t, strings.ReplaceAll(line, "'", ""))) // no shell reads them
	}
	for i, want := range []string{
		`"euros": 40`, `"left": 55`, "own-1  sound", "best possible", "trials done", "hasty",
	} {
		if !strings.Contains(all[i], want) {
			t.Errorf("command %d does not print %q:\n%s", i+1, want, all[i])
		}
	}
}

// TestForksPage runs the commands of docs/forks.md, and finds the lines that it shows.
func TestForksPage(t *testing.T) {
	t.Parallel()
	page := readDocument(t, "docs/forks.md")
	r := reader{dir: t.TempDir()}
	file(t, r.dir, "nightly.yaml", blocks(page, "yaml")[0])
	for i, line := range commands(page) {
		if i < 3 && i != 1 {
			line += " --sim-latency 0s"
		}
		out := r.run(t, line)
		if i != 2 {
			continue
		}
		for shown := range strings.Lines(blocks(page, "text")[0]) {
			if !strings.Contains(out, strings.TrimSuffix(shown, "\n")) {
				t.Errorf("%s does not print %s:\n%s", line, shown, out)
			}
		}
	}
}

// TestJudgePage runs the commands of docs/judge.md on the wallet of docs/own-tools.md, and finds the lines
// that it shows.
func TestJudgePage(t *testing.T) {
	t.Parallel()
	page := readDocument(t, "docs/judge.md")
	r := reader{dir: t.TempDir()}
	for _, language := range []string{"python", "yaml"} {
		for _, text := range blocks(readDocument(t, "docs/own-tools.md"), language) {
			name, _, _ := strings.Cut(strings.TrimPrefix(text, "# "), "\n")
			file(t, r.dir, name, text)
		}
	}
	file(t, r.dir, "traces.jsonl", blocks(page, "json")[0])
	for i, line := range commands(page) {
		cmd := program(t, strings.Fields(line)[1:]...)
		cmd.Dir = r.dir
		out, err := cmd.Output()
		if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != exitIncomplete {
			t.Errorf("%s: %v, want the exit code %d", line, err, exitIncomplete)
		}
		if i > 0 {
			continue
		}
		for shown := range strings.Lines(blocks(page, "text")[0]) {
			if !strings.Contains(string(out), strings.TrimSuffix(shown, "\n")) {
				t.Errorf("%s does not print %s:\n%s", line, shown, out)
			}
		}
	}
	mustProgram(t, "judge", file(t, r.dir, "one.json", strings.SplitAfter(blocks(page, "json")[0], "\n")[0]),
		"--library", filepath.Join(r.dir, "tasks.yaml"))
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err := z.Write([]byte(blocks(page, "json")[0]))
	if err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	cmd := program(t, "judge", "-", "--library", filepath.Join(r.dir, "tasks.yaml"))
	cmd.Stdin = &packed
	if out, _ := cmd.Output(); !strings.Contains(string(out), "1 full success, 1 failure, 1 undecided") {
		t.Errorf("from standard input, compressed:\n%s", out)
	}
	judged, err := os.ReadFile(filepath.Join(r.dir, "judged.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for a, err := range export.Read(bytes.NewReader(judged)) {
		if err == nil {
			t.Errorf("a verdict is read as an attempt: %+v", a)
		}
	}
}
