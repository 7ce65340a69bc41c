//go:build !race

package main

import (
	"encoding/json"
	"html"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	results "github.com/assay-eval/assay/internal/store"
)

// published returns the files of a directory by their paths.
func published(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files[name] = read(t, filepath.Join(dir, name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

var siteLink = regexp.MustCompile(`(?:href|src)="([^"]*)"`)

// brokenLinks returns the links of pages that lead to no file of the site, or to another site.
func brokenLinks(files map[string]string) (broken []string) {
	for name, text := range files {
		if path.Ext(name) != ".html" {
			continue
		}
		for _, m := range siteLink.FindAllStringSubmatch(text, -1) {
			to, anchor, _ := strings.Cut(html.UnescapeString(m[1]), "#")
			if to == "data:," {
				continue
			}
			target := name
			if to != "" {
				target = path.Join(path.Dir(name), to)
			}
			there, ok := files[target]
			if !ok || anchor != "" && !strings.Contains(there, `id="`+anchor+`"`) {
				broken = append(broken, name+" → "+m[1])
			}
		}
	}
	return broken
}

// TestPublish publishes an experiment, again without a change, again with another one, and without it.
func TestPublish(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store, site := smallRun(t), filepath.Join(dir, "site")
	if err := os.Mkdir(site, 0o700); err != nil {
		t.Fatal(err)
	}
	mine := file(t, site, "CNAME", "results.example.org\n")
	must(t, nil, "publish", site, "--store", store, "--transcripts", "1")
	files := published(t, site)
	delete(files, "CNAME")
	if broken := brokenLinks(files); len(broken) > 0 {
		t.Errorf("%d links lead nowhere: %q", len(broken), broken[:min(5, len(broken))])
	}
	trials := 0
	for name := range files {
		if strings.HasPrefix(name, "small/trials/") {
			trials++
		}
	}
	if trials < 2 || files["small/index.html"] == "" || files["method.html"] == "" {
		t.Errorf("%d trials have pages; the files are %v", trials, slices.Sorted(maps.Keys(files)))
	}

	// Whoever reads the first page only, or cites, knows of warnings.
	var cited struct{ Warnings []string }
	decode(t, must(t, nil, "cite", "--json", "--store", store).out, &cited)
	said := false
	for _, w := range cited.Warnings {
		said = true
		if !strings.Contains(html.UnescapeString(files["index.html"]), w) {
			t.Errorf("the first page lacks the warning %q", w)
		}
	}
	if text := must(t, nil, "cite", "--store", store).out; !said || !strings.Contains(text, cited.Warnings[0]) {
		t.Errorf("the citation has no warning:\n%s", text)
	}

	// The leaderboard has the figures of the report.
	var board []struct {
		Page        string `json:"page"`
		Model       string `json:"model"`
		FullSuccess any    `json:"full_success"`
	}
	var report struct {
		Standings []struct {
			Model       string `json:"model"`
			FullSuccess any    `json:"full_success"`
		} `json:"standings"`
	}
	decode(t, files["leaderboard.json"], &board)
	decode(t, must(t, nil, "report", "--json", "--store", store).out, &report)
	for i, s := range report.Standings {
		if want, got := asJSON(t, s.FullSuccess), asJSON(t, board[i].FullSuccess); want != got || board[i].Model != s.Model {
			t.Errorf("the leaderboard has %s for %s, and the report %s", got, s.Model, want)
		}
		if files[board[i].Page] == "" {
			t.Errorf("%s has no page %s", s.Model, board[i].Page)
		}
	}

	// What did not change is not written.
	var changes struct{ Files, Written, Removed int }
	decode(t, must(t, nil, "publish", site, "--store", store, "--transcripts", "1", "--json").out, &changes)
	if changes.Written != 0 || changes.Removed != 0 || changes.Files != len(files) {
		t.Errorf("publishing again changed something: %+v of %d files", changes, len(files))
	}
	other := file(t, dir, "other.yaml", "name: other\nmodels: [sim/optimal]\nvariants: [optimal]\ntasks_per_type: 1\n")
	must(t, nil, "run", other, "--store", store, "--sim-latency", "0", "--display", "none")
	decode(t, must(t, nil, "publish", site, "--store", store, "--transcripts", "1", "--json").out, &changes)
	more := published(t, site)
	if broken := brokenLinks(more); len(broken) > 0 {
		t.Errorf("links lead nowhere: %q", broken)
	}
	for name, text := range files {
		if strings.HasPrefix(name, "small/models/") && strings.HasSuffix(name, ".html") && more[name] != text {
			t.Errorf("%s changed with another experiment", name)
		}
	}
	decode(t, must(t, nil, "publish", site, "small", "--store", store, "--transcripts", "1", "--json").out, &changes)
	if changes.Removed == 0 || changes.Files != len(files) {
		t.Errorf("the pages of an experiment that is no longer published stayed: %+v", changes)
	}
	if read(t, mine) == "" {
		t.Error("a file of the user's is gone")
	}
	wantError(t, exitError, "is no site", "publish", dir, "--store", store)
	empty := filepath.Join(dir, "empty.db")
	if db, err := results.Open(t.Context(), empty); err != nil || db.Close() != nil {
		t.Fatal(err)
	}
	none := filepath.Join(dir, "none")
	wantError(t, exitError, "no experiment to publish", "publish", none, "--store", empty)
	if _, err := os.Stat(none); err == nil {
		t.Error("a publication of nothing made a directory")
	}
	wantError(t, exitUsage, "are the same file", "publish", site, "--store", store, "--store", store)

	// A first publication that was stopped is completed, and names of files of the site are no trouble.
	odd := filepath.Join(dir, "odd.db")
	for _, name := range []string{"method.html", "assets", "index.html", "index"} {
		experiment := file(t, dir, "odd.yaml", "name: "+name+"\nmodels: [sim/optimal]\nvariants: [optimal]\ntasks_per_type: 1\n")
		must(t, nil, "run", experiment, "--store", odd, "--sim-latency", "0", "--display", "none")
	}
	stopped := filepath.Join(dir, "stopped")
	must(t, nil, "publish", stopped, "--store", odd)
	file(t, stopped, "site.json", `{"program":"","sources":null,"files":{}}`) // as it is while the first one goes on
	must(t, nil, "publish", stopped, "--store", odd)
	if broken := brokenLinks(published(t, stopped)); len(broken) > 0 {
		t.Errorf("links lead nowhere: %q", broken)
	}
	wantError(t, exitError, "nosuch", "publish", site, "nosuch", "--store", store)
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestPublishPage runs the commands of docs/publish.md.
func TestPublishPage(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: runs every command of the page")
	}
	r := reader{dir: t.TempDir()}
	ran := commands(readDocument(t, "docs/publish.md"))
	for _, line := range ran {
		out := r.run(t, line)
		if strings.Contains(line, " repeat ") && !strings.Contains(out, "the same as the published ones") {
			t.Errorf("%s: %s", line, out)
		}
	}
	if len(ran) < 5 {
		t.Errorf("the page has %d commands", len(ran))
	}
}

// TestPublishTrends publishes two revisions of a model, and the same experiment from two stores.
func TestPublishTrends(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	experiment := file(t, dir, "nightly.yaml", "name: nightly\nmodels: [sim/eager]\nvariants: [optimal]\ntasks_per_type: 2\n")
	first, second := filepath.Join(dir, "monday.db"), filepath.Join(dir, "tuesday.db")
	for store, revision := range map[string]string{first: "v1", second: "v2"} {
		must(t, nil, "run", experiment, "--revision", revision, "--store", store, "--sim-latency", "0", "--display", "none")
	}
	site := filepath.Join(dir, "site")
	must(t, nil, "publish", site, "--store", first, "--store", second)
	files := published(t, site)
	if broken := brokenLinks(files); len(broken) > 0 {
		t.Errorf("links lead nowhere: %q", broken)
	}
	trends := files["trends.html"]
	for _, want := range []string{"sim/eager, nightly", ">v1<", ">v2<", "nightly (monday.db)"} {
		if !strings.Contains(trends, want) {
			t.Errorf("the trends lack %q", want)
		}
	}
}

// TestPublishPrivate checks that no file of a site quotes a private library.
func TestPublishPrivate(t *testing.T) {
	t.Parallel()
	s := newPrivateStore(t)
	site := filepath.Join(t.TempDir(), "site")
	must(t, nil, "publish", site, "--store", s.path)
	for name, text := range published(t, site) {
		if strings.HasSuffix(name, ".gz") {
			text = must(t, nil, "export", "--store", s.path).out // the same records; see TestPrivateTasksStayPrivate
		}
		if found := s.quoted(text); len(found) > 0 {
			t.Errorf("%s quotes %q", name, found)
		}
	}
	must(t, nil, "publish", site, "--store", s.path, "--reveal")
	all := strings.Join(slices.Collect(maps.Values(published(t, site))), "\n")
	if len(s.quoted(all)) == 0 {
		t.Error("--reveal reveals nothing")
	}
}

// TestBrowseSite opens pages of a site from the disk on wide screens in the dark and on narrow ones, with and without
// scripts, without a complaint of the browser or of axe-core, and without scrolling sideways.
func TestBrowseSite(t *testing.T) {
	t.Parallel()
	b := newTab(t)
	site := filepath.Join(t.TempDir(), "site")
	if dir := os.Getenv("ASSAY_SITE"); dir != "" {
		site = dir
	} else {
		must(t, nil, "publish", site, "--store", smallRun(t), "--transcripts", "1")
	}
	pages := make(map[string]string) // one of each kind
	for name := range published(t, site) {
		if kind := path.Base(path.Dir(name)); path.Ext(name) == ".html" && (pages[kind] == "" || name < pages[kind]) {
			pages[kind] = name
		}
	}
	pages["first"], pages["method"] = "index.html", "method.html"
	for _, like := range []string{".", "variants", "reliability", "types", "faults"} { // like those of models
		delete(pages, like)
	}
	for kind, page := range pages {
		for _, look := range []struct {
			name, scheme string
			wide         int64
			scripts      bool
		}{
			{"dark", "dark", 1280, true},
			{"phone", "light", 390, true},
			{"bare", "dark", 1280, false},
			{"bare-phone", "light", 390, false},
		} {
			if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: look.scheme}},
			}); err != nil {
				t.Fatal(err)
			}
			if _, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled,
				emulation.SetScriptExecutionDisabledParams{Value: !look.scripts}); err != nil {
				t.Fatal(err)
			}
			b.do(page, chromedp.EmulateViewport(look.wide, 900),
				chromedp.Navigate("file://"+filepath.Join(site, page)), chromedp.WaitReady(chromedp.CSS("footer")))
			where := kind + " " + look.name
			if wide := eval[int64](b, "document.documentElement.scrollWidth"); wide > look.wide {
				t.Errorf("%s: the page is %d px wide", where, wide)
			}
			if look.scripts {
				for _, fault := range b.axe() {
					t.Errorf("%s: %s", where, fault)
				}
				if n := eval[int](b, "document.querySelectorAll('.chart-failed').length"); n > 0 {
					t.Errorf("%s: %d charts could not be drawn", where, n)
				}
			}
			b.picture("site-" + kind + "-" + look.name)
			b.quiet(where)
		}
	}
}
