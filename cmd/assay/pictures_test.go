//go:build !race

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// A picture is one of the pages that the README, docs/view.md and docs/publish.md show.
type picture struct {
	name, path, scheme string
	wide, high         int64
	// words selects what the picture has to say as today's program does.
	words string
}

// reportPicture shows the first screens of the quickstart's report, sitePicture its page on a published
// site, and viewPictures the pages of a run that works.
var (
	reportPicture = picture{"report", "", "light", 1180, 1260, "header, .overview"}
	sitePicture   = picture{"site", "index.html", "light", 1180, 1080, "header, h2, thead th, tbody th"}
	viewPictures  = []picture{
		{"view-now", "/", "light", 1200, 860, "nav a, #tiles dt"},
		{"view-lanes", "/lanes", "light", 1200, 620, "nav a, thead th"},
		{"view-trials-phone", "/trials?state=failure", "light", 500, 844, "nav a, label"},
		{"view-matrix-dark", "/matrix", "dark", 1000, 900, "nav a, thead th"},
	}
)

// wordsFile has the words of the pictures as they were made.
const wordsFile = "docs/pictures/words.txt"

// TestPictures checks that the pictures of the README and the pages show today's program: their words
// are those of the pages now. `make pictures` makes them anew.
func TestPictures(t *testing.T) {
	t.Parallel()
	b := newTab(t)
	dir := t.TempDir()
	run := program(t, "run", "--sim-latency", "0")
	run.Dir = dir
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	v := openPages(t, "--store", filepath.Join(dir, "assay.db")).loaded()
	waitFor(t, func() bool { return strings.Contains(v.get("/matrix"), `id="matrix"`) })

	var words strings.Builder
	b.look(t, reportPicture, "file://"+filepath.Join(dir, quickstartReport))
	fmt.Fprintf(&words, "%s: %s\n", reportPicture.name, b.words(reportPicture))
	b.picture(reportPicture.name)
	site := filepath.Join(dir, "site")
	must(t, nil, "publish", site, "--store", filepath.Join(dir, "assay.db"))
	b.look(t, sitePicture, "file://"+filepath.Join(site, sitePicture.path))
	fmt.Fprintf(&words, "%s: %s\n", sitePicture.name, b.words(sitePicture))
	b.picture(sitePicture.name)
	b.do("sign in", chromedp.Navigate(v.url))
	for _, p := range viewPictures {
		b.look(t, p, v.base+p.path)
		fmt.Fprintf(&words, "%s: %s\n", p.name, b.words(p))
	}
	if dir := os.Getenv("ASSAY_PICTURES"); dir != "" {
		b.pictureRun(t)
		file(t, dir, filepath.Base(wordsFile), words.String())
		return
	}
	if got, want := words.String(), readDocument(t, wordsFile); got != want {
		t.Errorf("the pictures are not of today's program; `make pictures` makes them anew:\n%s\nwant\n%s",
			got, want)
	}
}

// look opens a page as a picture shows it.
func (b *tab) look(t *testing.T, p picture, url string) {
	t.Helper()
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: p.scheme}},
	}); err != nil {
		t.Fatal(err)
	}
	b.do(p.name, chromedp.EmulateViewport(p.wide, p.high), chromedp.Navigate(url),
		chromedp.WaitReady(chromedp.CSS("footer")))
}

var seconds = regexp.MustCompile(`\b[0-9.]+ ?m?s\b`)

// words returns the words of a page that its picture has to have, without times.
func (b *tab) words(p picture) string {
	all := eval[string](b, fmt.Sprintf(`Array.from(document.querySelectorAll(%q), (e) => {
		const shown = e.cloneNode(true);
		shown.querySelectorAll("script, style, svg, .dots, .paper, select").forEach((other) => other.remove());
		return shown.textContent;
	}).join(" ")`, p.words))
	text := seconds.ReplaceAllString(strings.Join(strings.Fields(all), " "), "N s")
	return strings.ReplaceAll(text, "its time, N s", "its time") // the length comes after the first seconds
}

// pictureRun takes the pictures of a run that works, at a rehearsal with limits and prices, with a lane
// that is paused.
func (b *tab) pictureRun(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	store := filepath.Join(dir, "flawed-plans.db")
	file(t, dir, "providers.yaml", fmt.Sprintf(`
providers:
  east:
    base_url: %s/v1
    keys: [SIM_KEY, SIM_KEY_2]
    models:
      sim/careful: {limits: {concurrency: 12}, price: {input: 2, output: 8}}
      sim/eager: {limits: {concurrency: 20, rpm: 380}, price: {input: 0.3, output: 1.2}}
      sim/brittle: {limits: {concurrency: 10, rpm: 200}, price: {input: 0.1, output: 0.4}}
`, serveProgram(t, "--latency", "900ms", "--fault", "500=1%")))
	experiment := file(t, dir, "flawed-plans.yaml", `name: flawed-plans
models: [sim/careful, sim/eager, sim/brittle]
variants: [baseline, optimal, flawed_missing_step]
reliabilities: [1, 0.8]
providers: providers.yaml
budget: {usd: 40}
`)
	run := program(t, "run", experiment, "--store", store, "--display", "none")
	run.Env = append(os.Environ(), "SIM_KEY=a", "SIM_KEY_2=b")
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = run.Process.Kill(), run.Wait() }()
	waitFor(t, func() bool { return call(t, nil, "ctl", "status", "--store", store).code == 0 })
	waitFor(t, func() bool { return settled(t, store) > 300 })
	must(t, nil, "ctl", "pause", "east/SIM_KEY_2/sim/brittle", "--store", store)
	waitFor(t, func() bool { return settled(t, store) > 500 })
	v := openPages(t, "--store", store, "--control").loaded()
	waitFor(t, func() bool { return strings.Contains(v.get("/matrix"), `id="matrix"`) })
	b.do("sign in", chromedp.Navigate(v.url))
	for _, p := range viewPictures {
		b.look(t, p, v.base+p.path)
		b.picture(p.name)
	}
}
