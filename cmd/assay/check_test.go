package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestRunOffersACheck checks that a run on a terminal mentions the check once, at the first use of
// a lane, and that scripts and CI never see it.
func TestRunOffersACheck(t *testing.T) {
	t.Parallel()
	server := serve(t)
	dir := t.TempDir()
	file(t, dir, "p.yaml", "providers:\n  gw:\n    base_url: "+server.url+"/v1\n    keys: [K]\n"+
		"    models: {sim/optimal: {}}\n")
	e := file(t, dir, "e.yaml", "models: [sim/optimal]\nproviders: p.yaml\ntasks_per_type: 1\n"+
		"variants: [optimal]\n")
	const offer = "first use of 1 lane; `assay check "
	for _, c := range []struct {
		name     string
		terminal bool
		ci       string
		args     []string
		want     bool
	}{
		{"pipe", false, "", nil, false},
		{"quiet", true, "", []string{"--quiet"}, false},
		{"json", true, "", []string{"--display", "json"}, false},
		{"plain", true, "", []string{"--display", "plain"}, false},
		{"CI", true, "true", nil, false},
		{"terminal", true, "", nil, true},
	} {
		for i, again := range []string{"first", "again"} {
			var out, errs bytes.Buffer
			env := map[string]string{"K": "any", "CI": c.ci}
			args := append([]string{"run", e, "--store", dir + "/" + c.name + ".db"}, c.args...)
			code := run(args, &process{
				in: strings.NewReader(""), out: &out, err: &errs, name: "assay",
				errTerminal: c.terminal,
				env:         func(name string) (string, bool) { v, ok := env[name]; return v, ok },
			})
			if code != 0 {
				t.Fatalf("%s: exit code %d\n%s", c.name, code, errs.String())
			}
			got := strings.Contains(errs.String()+out.String(), offer)
			if want := c.want && i == 0; got != want {
				t.Errorf("%s, %s: offered %v, want %v\n%s", c.name, again, got, want, errs.String())
			}
		}
	}
	words := checkCommand([]string{"e.yaml"}, &chosen{models: []string{"m"}, providers: "p.yaml"})
	if want := "assay check e.yaml --model m --providers p.yaml"; words != want {
		t.Errorf("command %q, want %q", words, want)
	}
}
