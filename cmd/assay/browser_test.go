package main

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Chromium draws every chart of a real report and of a real comparison, without printing to its
// console.
func TestReportInABrowser(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: needs a browser")
	}
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not on PATH, so no browser opens the reports")
	}
	store := smallRun(t)
	for name, args := range map[string][]string{
		"report":  {"report", "--transcripts", "2"},
		"compare": {"compare", "sim/expert", "sim/obedient", "--transcripts", "1"},
	} {
		t.Run(name, func(t *testing.T) {
			page := filepath.Join(t.TempDir(), name+".html")
			must(t, nil, append(args, "--store", store, "--format", "html", "--output", page)...)
			dom, console := openPage(t, chromium, page)
			for line := range strings.Lines(console) {
				if strings.Contains(line, "CONSOLE") {
					t.Error(line)
				}
			}
			charts, drawn := strings.Count(dom, "<figure"), strings.Count(dom, `class="marks"`)
			if charts == 0 || drawn < charts {
				t.Errorf("%d of %d charts are drawn", drawn, charts)
			}
			// These words occur once in the page's script.
			if n := strings.Count(dom, "could not be drawn: "); n != 1 {
				t.Errorf("%d charts could not be drawn", n-1)
			}
		})
	}
}

// openPage returns the document after its scripts have run, and the browser's log.
func openPage(t *testing.T, chromium, page string) (dom, log string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, chromium, "--headless=new", "--no-sandbox", "--disable-gpu",
		"--user-data-dir="+t.TempDir(), "--virtual-time-budget=20000",
		"--enable-logging=stderr", "--v=0", "--dump-dom", "file://"+page)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	return out.String(), errs.String()
}
