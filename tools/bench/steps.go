package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"github.com/assay-eval/assay/internal/task/environment/environmenttest"
)

// environmentVerb makes this program act as an environment: a till that speaks OpenEnv.
const environmentVerb = "environment"

// runEnvironment serves until the process is killed. It prints its address.
func runEnvironment(ctx context.Context, _ []string) error {
	server := httptest.NewServer(environmenttest.Handler(""))
	fmt.Println("base_url:", server.URL)
	<-ctx.Done()
	return nil
}

// callsPerAttempt is how many calls of tools each attempt of [bench.steps] makes.
const callsPerAttempt = 20

// steps is measurement 2k: the CPU that Assay takes for each call of a tool, with the turn around it
// and its part of the attempt, but without start and planning. Each row has fewer and more attempts.
func (b *bench) steps(ctx context.Context) (rows []figure, err error) {
	environment, err := listen(ctx, b.command(ctx, b.self, environmentVerb))
	if err != nil {
		return nil, err
	}
	rows, calls, err := b.stepsAt(ctx, environment.url)
	cpu := float64(environment.stop().cpu.Microseconds())
	own := newRow("CPU a call of the environment itself", micros, quotient(cpu, float64(calls)))
	return append(rows, own), err
}

// stepsAt returns also how many calls it made in the environment.
func (b *bench) stepsAt(ctx context.Context, address string) (rows []figure, all int, err error) {
	small, err := b.ownTools(1)
	if err != nil {
		return nil, 0, err
	}
	large, err := b.ownTools(10_000)
	if err != nil {
		return nil, 0, err
	}
	till, err := b.till(address)
	if err != nil {
		return nil, 0, err
	}
	undone, rounds := 0, b.size(3, 1)
	few, many := b.size(50, 10), b.size(300, 50)
	for _, l := range []struct{ what, library string }{
		{"in an environment", till},
		{"of own tools with 300 B of state", small},
		{"of own tools with 3 MB of state", large},
	} {
		var costs []float64
		for range rounds {
			var cpu [2]time.Duration
			for i, attempts := range []int{few, many} {
				m, err := b.stepsOf(ctx, l.library, attempts)
				if err != nil {
					return nil, 0, err
				}
				cpu[i] = m.cpu
				undone += m.undone()
			}
			calls := (many - few) * callsPerAttempt
			costs = append(costs, float64((cpu[1]-cpu[0]).Microseconds())/float64(calls))
		}
		rows = append(rows, newRow("CPU a call "+l.what, micros, median(costs...)).below(1000).because(
			"%d attempts of %d calls without the first %d; median of %d rounds",
			many, callsPerAttempt, few, len(costs)))
	}
	return append(rows, countRow("trials not done", undone).zero()),
		(few + many) * callsPerAttempt * rounds, nil
}

// till returns the file of a task of the environment.
func (b *bench) till(address string) (string, error) {
	var calls []string
	for i := range callsPerAttempt {
		euros := float64(i+1) / 8 // different amounts, so that no call repeats the one before
		if i == callsPerAttempt-1 {
			euros = 1.25 // 25 in all
		}
		calls = append(calls, fmt.Sprintf("{tool: pay, arguments: {euros: %v}}", euros))
	}
	return b.write("till.yaml", fmt.Sprintf(`environment: {url: %q, sessions: 50}
answer: {type: message, content: "{answer}"}
effects: [pay]
tasks:
  - id: pay
    reset: {task_id: pay}
    plan: [%s]
    answer: Done.
`, address, strings.Join(calls, ", ")))
}

// ownTools returns the file of a task of own tools, whose state has some records of 300 bytes.
func (b *bench) ownTools(n int) (string, error) {
	records := make(map[string]any, n)
	for i := range n {
		records[fmt.Sprint("r", i)] = map[string]any{
			"owner": fmt.Sprint("owner ", i), "notes": []any{}, "text": strings.Repeat("x", 250),
		}
	}
	base, err := json.Marshal(map[string]any{"records": records})
	if err != nil {
		return "", err
	}
	state, err := b.write("base.json", string(base))
	if err != nil {
		return "", err
	}
	script, err := b.write("tools.star", `
def read(state, id):
    return state["records"][id]

def note(state, id, text):
    record = state["records"][id]
    record["notes"].append(text)
    return len(record["notes"])
`)
	if err != nil {
		return "", err
	}
	tools, err := b.write("tools.yaml", fmt.Sprintf(`file: %q
tools:
  - {name: read, description: Read a record.}
  - {name: note, description: Add a note to a record., effect: writes}
`, script))
	if err != nil {
		return "", err
	}
	var calls []string
	for i := range callsPerAttempt / 2 {
		id := fmt.Sprint("r", i*937%n)
		calls = append(calls, fmt.Sprintf("{tool: read, arguments: {id: %s}}", id),
			fmt.Sprintf("{tool: note, arguments: {id: %s, text: note %d}}", id, i))
	}
	plan := strings.Join(calls, ", ")
	return b.write("tasks.yaml", fmt.Sprintf(`tools: %q
base: %q
tasks:
  - id: notes
    prompt: Read records and add notes.
    judge: {calls: [%s]}
    plan: [%s]
`, tools, state, plan, plan))
}

// stepsOf runs a number of attempts at the task of a library.
func (b *bench) stepsOf(ctx context.Context, library string, attempts int) (m measured, err error) {
	file, err := b.write("steps.yaml", fmt.Sprintf(`name: steps
library: %q
models: [sim/optimal]
variants: [optimal]
reliabilities: [1]
repeats: %d
limits: {turns: 61, calls: 60}
`, library, attempts))
	if err != nil {
		return m, err
	}
	store := b.path("steps.db")
	defer os.Remove(store)
	p, err := start(b.command(ctx, b.assay, "run", file, "--store", store, "--display", "json"), m.read)
	if err != nil {
		return m, err
	}
	m.usage, err = p.wait()
	return m, err
}
