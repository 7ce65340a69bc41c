package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/assay-eval/assay/internal/model/sim"
)

// serversVariable names the directory with the servers of tools that others wrote. `make others`
// installs them in .cache/mcp.
const serversVariable = "ASSAY_MCP_SERVERS"

// A toolServer is a server of tools that we did not write. NPM and PY stand for the directories of
// programs.
type toolServer struct {
	name, config string
	calls        []string // that solve the task
}

var toolServers = []toolServer{
	{"everything", `command: [NPM/mcp-server-everything]`, []string{
		`{tool: get-sum, arguments: {a: 2, b: 3}}`, `{tool: echo, arguments: {message: hello}}`,
		`{tool: get-sum, arguments: {a: 5, b: 8}}`,
	}},
	{"filesystem", `command: [NPM/mcp-server-filesystem, "{scratch}"]`, []string{
		`{tool: write_file, arguments: {path: note.txt, content: hello}}`,
		`{tool: read_text_file, arguments: {path: note.txt}}`,
		`{tool: write_file, arguments: {path: copy.txt, content: hello}}`,
	}},
	{
		"memory",
		`command: [NPM/mcp-server-memory], set: {MEMORY_FILE_PATH: "{scratch}/memory.jsonl"}`,
		[]string{
			`{tool: create_entities, arguments: {entities: [{name: Ada, entityType: person, ` +
				`observations: [likes tea]}]}}`,
			`{tool: create_entities, arguments: {entities: [{name: Bob, entityType: person, ` +
				`observations: [likes cake]}]}}`,
			`{tool: search_nodes, arguments: {query: Ada}}`,
		},
	},
	{"time", `command: [PY/mcp-server-time, --local-timezone, UTC]`, []string{
		`{tool: get_current_time, arguments: {timezone: UTC}}`,
		`{tool: convert_time, arguments: {source_timezone: UTC, time: "12:00", ` +
			`target_timezone: Asia/Tokyo}}`,
		`{tool: get_current_time, arguments: {timezone: Asia/Tokyo}}`,
	}},
	{"sqlite", `command: [PY/mcp-server-sqlite, --db-path, "{scratch}/test.db"]`, []string{
		`{tool: create_table, arguments: {query: CREATE TABLE orders (id INTEGER)}}`,
		`{tool: write_query, arguments: {query: INSERT INTO orders VALUES (7)}}`,
		`{tool: write_query, arguments: {query: INSERT INTO orders VALUES (8)}}`,
	}},
}

// serverRun is what a run over a server of tools left.
type serverRun struct {
	measured
	attempts, outcomes int
	calls, shared      int
	unlike             int // shared calls with another luck or fault
	byKind             map[string]int
	processes, files   int
	openFiles          int // of Assay, at most
}

// toolServers is measurement 9. A bare model and a foreign agent share each server.
func (b *bench) toolServers(ctx context.Context) ([]row, error) {
	home := os.Getenv(serversVariable)
	if home == "" {
		const note = "%s is not set; `make others` installs servers into .cache/mcp"
		return []row{countRow("servers of tools", 0).because(note, serversVariable)}, nil
	}
	place := strings.NewReplacer("NPM", filepath.Join(home, "node_modules", ".bin"),
		"PY", filepath.Join(home, "python", "bin"))
	var rows []row
	for _, s := range toolServers[:b.size(len(toolServers), 1)] {
		s.config = place.Replace(s.config)
		r, err := b.runServer(ctx, s)
		if err != nil {
			return rows, fmt.Errorf("%s: %w", s.name, err)
		}
		var kinds []string
		for _, kind := range slices.Sorted(maps.Keys(r.byKind)) {
			kinds = append(kinds, fmt.Sprintf("%s %d", kind, r.byKind[kind]))
		}
		rows = append(rows,
			countRow(s.name+": attempts without an outcome", r.attempts-r.outcomes).zero().because(
				"%d attempts, %d calls, in %.0f s; faults: %s; at most %d open files",
				r.attempts, r.calls, r.wall.Seconds(), strings.Join(kinds, ", "), r.openFiles),
			countRow(s.name+": calls with another fault", r.unlike).zero().
				because("of %d calls that the model and the agent share", r.shared),
			countRow(s.name+": processes left", r.processes).zero(),
			countRow(s.name+": files left", r.files).zero(),
		)
	}
	return rows, nil
}

// files returns the directory of a run, with its input files.
func (s toolServer) files(b *bench, url string) (dir string, err error) {
	dir = b.path(s.name)
	calls := strings.Join(s.calls, ", ")
	const half = 8
	texts := map[string]string{
		"tools.yaml": "mcp: {" + s.config + "}\n",
		"tasks.yaml": fmt.Sprintf("tools: tools.yaml\ntasks: [{id: a, prompt: Make the calls., "+
			"judge: {calls: [%[1]s]}, plan: [%[1]s]}]\n", calls),
		"providers.yaml": scenario{
			model: sim.Listed, limits: concurrency(half),
			agent: fmt.Sprintf("command: [%q, %s], concurrency: %d", b.self, agentVerb, half),
		}.providers(url),
		"servers.yaml": fmt.Sprintf(`library: tasks.yaml
providers: providers.yaml
models: [%s, %s]
variants: [optimal]
reliabilities: [0.5]
failures: {kinds: {before: 0.2, after: 0.2, slow: 0.2, wrong_shape: 0.2, stale: 0.2}}
limits: {calls: 20}
repeats: %d
`, sim.Listed, agentName, b.size(100, 2)),
	}
	if err := os.MkdirAll(filepath.Join(dir, "temp"), 0o700); err != nil {
		return dir, err
	}
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return dir, err
		}
	}
	return dir, nil
}

// runServer runs the trials of a server and counts what they left.
func (b *bench) runServer(ctx context.Context, s toolServer) (r serverRun, err error) {
	model, err := b.serve(ctx, scenario{})
	if err != nil {
		return r, err
	}
	defer model.stop()
	dir, err := s.files(b, model.url)
	if err != nil {
		return r, err
	}
	temp := filepath.Join(dir, "temp")
	assayIn := func(args ...string) (*process, error) {
		cmd := b.command(ctx, b.assay, args...)
		cmd.Dir, cmd.Env = dir, append(cmd.Env, "TMPDIR="+temp)
		return start(cmd, r.read)
	}
	p, err := assayIn("run", "servers.yaml", "--display", "json")
	if err != nil {
		return r, err
	}
	stop := make(chan struct{})
	most := p.mostOpenFiles(stop)
	r.usage, err = p.wait()
	close(stop)
	if r.openFiles = <-most; err != nil {
		return r, err
	}
	if r.processes, r.files, err = left(temp); err != nil {
		return r, err
	}
	p, err = assayIn("export", "--output", "attempts.jsonl", "--calls", "calls.jsonl")
	if err == nil {
		_, err = p.wait()
	}
	if err != nil {
		return r, err
	}
	return r, r.readExport(dir)
}

// mostOpenFiles polls the number of open files until stop is closed, and sends the largest.
func (p *process) mostOpenFiles(stop <-chan struct{}) <-chan int {
	most := make(chan int, 1)
	go func() {
		n := 0
		for {
			files, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid)) // only on Linux
			n = max(n, len(files))
			select {
			case <-stop:
				most <- n
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	return most
}

// left counts the processes that were told to use a directory for their files, and its files.
func left(temp string) (processes, files int, err error) {
	err = filepath.WalkDir(temp, func(path string, _ fs.DirEntry, err error) error {
		if path != temp {
			files++
		}
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	environments, err := filepath.Glob("/proc/[0-9]*/environ") // empty on systems other than Linux
	for _, path := range environments {
		if env, err := os.ReadFile(path); err == nil && strings.Contains(string(env), temp) {
			processes++
		}
	}
	return processes, files, err
}

// readExport counts attempts and calls, and compares the calls of the model and the agent.
func (r *serverRun) readExport(dir string) error {
	repeats := make(map[string]string)
	err := eachLine(filepath.Join(dir, "attempts.jsonl"), func(line []byte) error {
		var a struct {
			Trial, Level string
			Repeat       int
		}
		r.attempts++
		err := json.Unmarshal(line, &a)
		if a.Level != "" {
			r.outcomes++
		}
		repeats[a.Trial] = fmt.Sprint(a.Repeat)
		return err
	})
	type throw struct {
		luck  float64
		fault string
	}
	counts, thrown := make(map[string]int), make(map[string]throw)
	r.byKind = make(map[string]int)
	return errors.Join(err, eachLine(filepath.Join(dir, "calls.jsonl"), func(line []byte) error {
		var c struct {
			Trial, Tool string
			Luck        *float64
			Fault       string `json:"tool_fault"`
		}
		if err := json.Unmarshal(line, &c); err != nil || c.Luck == nil {
			return err // a mistake spends no luck
		}
		r.calls++
		if c.Fault != "" {
			r.byKind[c.Fault]++
		}
		counts[c.Trial+c.Tool]++
		key := fmt.Sprint(repeats[c.Trial], " ", c.Tool, " ", counts[c.Trial+c.Tool])
		now := throw{*c.Luck, c.Fault}
		if was, ok := thrown[key]; ok {
			r.shared++
			if was != now {
				r.unlike++
			}
		}
		thrown[key] = now
		return nil
	}))
}

func eachLine(path string, read func([]byte) error) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		if err := read([]byte(line)); err != nil {
			return err
		}
	}
	return nil
}
