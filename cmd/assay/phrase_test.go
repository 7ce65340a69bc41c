//go:build !race

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const phrasedTasks = `tools: tools.yaml
tasks:
  # Ada pays.
  - id: ada
    prompt: Pay 25 euros to ada.
    judge: {calls: [{tool: pay, arguments: {to: ada}}]}
    plan: [{tool: pay, arguments: {to: ada}}]
  - {id: bob, prompt: Pay 30 euros to bob., judge: {calls: [{tool: pay, arguments: {to: bob}}]}, plan: [{tool: pay, arguments: {to: bob}}]}
  - prompt: >
      Pay 40 euros
      to cho.
    id: cho
    judge: {calls: [{tool: pay, arguments: {to: cho}}]}
    plan: [{tool: pay, arguments: {to: cho}}]
`

// TestPhrase proposes tasks of a file in other words. A person keeps some, and the file changes nowhere else.
func TestPhrase(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Model    string
			Messages []struct{ Content string }
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || len(body.Messages) != 2 {
			t.Errorf("body %+v, %v", body, err)
		}
		task := body.Messages[1].Content
		said := `{"same": true, "differs": ""}`
		if strings.Contains(task, "50") {
			said = `{"same": false, "differs": "the amount"}`
		}
		if body.Model == "writer" {
			task = task[strings.LastIndex(task, "Pay "):]
			said = "terse:" + strings.ReplaceAll(strings.TrimPrefix(task, "Pay"), "40", "50")
		}
		_, _ = io.WriteString(w, text(doc{
			"object": "chat.completion", "model": body.Model, "usage": doc{"prompt_tokens": 100, "completion_tokens": 60, "total_tokens": 160},
			"choices": []any{doc{"index": 0, "message": doc{"role": "assistant", "content": said}, "finish_reason": "stop"}},
		}))
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	providers := file(t, dir, "providers.yaml", "providers:\n  p:\n    base_url: "+server.URL+"\n    keys: none\n"+
		"    models: {writer: {price: {input: 1, output: 10}}, reader: {price: {input: 1, output: 10}}}\n")
	file(t, dir, "tools.star", "def pay(state, to):\n    return {}\n")
	file(t, dir, "tools.yaml", "file: tools.star\ntools:\n  - {name: pay, description: Pay., effect: pays, parameters: {to: {type: string}}}\n")
	tasks := file(t, dir, "tasks.yaml", phrasedTasks)
	phrase := func(answers string) result {
		var out, errs bytes.Buffer
		code := run([]string{"library", "phrase", tasks, "--model", "writer", "--reader", "reader", "--as", "terse", "--providers", providers},
			&process{
				in: strings.NewReader(answers), out: &out, err: &errs, name: "assay",
				env: func(string) (string, bool) { return "", false },
			})
		return result{code, out.String(), errs.String()}
	}
	contains := func(r result, all ...string) {
		t.Helper()
		for _, want := range all {
			if !strings.Contains(r.out, want) || r.code != 0 {
				t.Errorf("exit code %d, want %q in\n%s%s", r.code, want, r.out, r.err)
			}
		}
	}

	contains(phrase("perhaps\ny\nn\n"), "ada (1 of 3)\n  - Pay 25 euros to ada.\n  + terse: 25 euros to ada.\n    reader finds no difference.\n",
		"bob (2 of 3)", "cho (3 of 3)\n  - Pay 40 euros to cho.\n  + terse: 50 euros to cho.\n    reader finds a difference: the amount\n"+
			"    lost: 40\n    added: 50\n", "1 of 3 phrasings kept in "+tasks+"; $0.0042.", "phrasings: [plain, terse]")
	first := strings.Replace(phrasedTasks, "ada.\n", "ada.\n    phrasings: {terse: \"terse: 25 euros to ada.\"}\n", 1)
	now, err := os.ReadFile(tasks)
	if err != nil || string(now) != first {
		t.Errorf("%v\n%s", err, now)
	}
	for name, why := range map[string]string{"plain": "not a valid name", "a b": "not a valid name", "x.y": "not a valid name"} {
		r := call(t, nil, "library", "phrase", tasks, "--model", "writer", "--as", name, "--providers", providers)
		if r.code != exitUsage || !strings.Contains(r.err, why) {
			t.Errorf("--as %s: exit code %d, %s", name, r.code, r.err)
		}
	}
	contains(phrase("q\n"), "bob (1 of 2)", "0 of 2 phrasings kept")
	contains(phrase("y\ny\n"), "2 of 2 phrasings kept")
	contains(phrase(""), "Every task of "+tasks+" has the phrasing terse.")
	experiment := file(t, dir, "e.yaml", "name: e\nlibrary: tasks.yaml\nmodels: [sim/optimal]\nvariants: [optimal]\n"+
		"reliabilities: [1]\nphrasings: [plain, terse]\n")
	contains(must(t, nil, "run", experiment, "--store", filepath.Join(dir, "s.db"), "--sim-latency", "0"), "6 of 6 trials")
}
