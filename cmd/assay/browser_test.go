package main

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestReportInABrowser: Chromium draws every chart of a real report and of a real
// comparison, without a word on its console.
func TestReportInABrowser(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs a browser")
	}
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium on PATH: reports are not tried in a browser")
	}
	path := smallRun(t)
	dir := t.TempDir()
	for name, args := range map[string][]string{
		"report":  {"report", "--store", path, "--format", "html", "--transcripts", "2"},
		"compare": {"compare", "sim/expert", "sim/obedient", "--store", path, "--format", "html", "--transcripts", "1"},
	} {
		page := filepath.Join(dir, name+".html")
		must(t, nil, append(args, "--output", page)...)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--user-data-dir="+filepath.Join(dir, name),
			"--virtual-time-budget=20000", "--enable-logging=stderr", "--v=0", "--dump-dom", "file://"+page)
		var dom, errs strings.Builder
		cmd.Stdout, cmd.Stderr = &dom, &errs
		if err := cmd.Run(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, errs.String())
		}
		for line := range strings.Lines(errs.String()) {
			if strings.Contains(line, "CONSOLE") {
				t.Errorf("%s: %s", name, line)
			}
		}
		charts, drawn := strings.Count(dom.String(), "<figure"), strings.Count(dom.String(), `class="marks"`)
		if charts == 0 || drawn < charts {
			t.Errorf("%s: %d charts are drawn of %d", name, drawn, charts)
		}
		// The page's script has the words once.
		if n := strings.Count(dom.String(), "could not be drawn: "); n != 1 {
			t.Errorf("%s: %d charts could not be drawn", name, n-1)
		}
	}
}
