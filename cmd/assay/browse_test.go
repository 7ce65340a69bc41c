//go:build !race

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/memory"
	"github.com/chromedp/chromedp"
)

// A tab is a page of Chromium. It collects everything that the browser complains about.
type tab struct {
	t        testing.TB
	ctx      context.Context
	mu       sync.Mutex
	problems []string
}

func newTab(t testing.TB) *tab {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: needs a browser")
	}
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not on PATH, so no browser opens the pages")
	}
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), append(
		chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium), chromedp.NoSandbox,
		chromedp.UserDataDir(t.TempDir()))...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx}
	messages := chromedp.Console(ctx)
	go func() { // until the context ends
		for m, err := range messages {
			if err != nil {
				return
			}
			b.mu.Lock()
			b.problems = append(b.problems, fmt.Sprintf("%s: %s", m.Type, m.Text))
			b.mu.Unlock()
		}
	}()
	b.do("open", chromedp.Navigate("about:blank"))
	return b
}

// do carries out actions within half a minute.
func (b *tab) do(what string, actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 30*time.Second)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.t.Fatalf("%s: %v", what, err)
	}
}

// quiet fails the test if the browser has complained.
func (b *tab) quiet(where string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, text := range b.problems {
		b.t.Errorf("%s: the browser complains: %s", where, text)
	}
	b.problems = nil
}

// eval returns the value of an expression in the page.
func eval[T any](b *tab, expression string, options ...chromedp.EvaluateOption) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 30*time.Second)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, options...))
	if err != nil {
		b.t.Fatalf("%.100s: %v", expression, err)
	}
	return v
}

// axe returns the faults that axe-core finds in the page, or no faults without axe-core.
func (b *tab) axe() []string {
	b.t.Helper()
	script, err := os.ReadFile(os.Getenv("ASSAY_AXE"))
	if err != nil {
		b.t.Log("ASSAY_AXE does not name axe-core, so accessibility is not checked")
		return nil
	}
	b.do("axe", chromedp.Evaluate[chromedp.Void](string(script)))
	return eval[[]string](b, `axe.run({iframes: false, preload: false})
		.then(r => r.violations.map(v => v.id + ': ' + v.help + ' ' + v.nodes[0].html.slice(0, 200)))`,
		chromedp.EvalAwaitPromise)
}

// Every page opens in Chromium on wide and narrow screens, in the light and in the dark, without a
// complaint of the browser or of axe-core, and without scrolling sideways.
func TestBrowsePages(t *testing.T) {
	t.Parallel()
	path := smallRun(t)
	v := openPages(t, "--store", path).loaded()
	waitFor(t, func() bool { return strings.Contains(v.get("/matrix"), `id="matrix"`) })
	id := string(attempts(t, path)[0].ID)
	b := newTab(t)
	b.do("sign in", chromedp.Navigate(v.url))
	for name, page := range map[string]string{
		"now": "/", "lanes": "/lanes", "matrix": "/matrix", "trials": "/trials?variant=optimal",
		"trial": "/trial/" + id, "faults": "/faults", "report": "/report",
	} {
		for _, look := range []struct {
			name, scheme string
			wide, high   int64
		}{
			{"light", "light", 1280, 900}, {"dark", "dark", 1280, 900}, {"phone", "light", 390, 844},
		} {
			if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: look.scheme}},
			}); err != nil {
				t.Fatal(err)
			}
			b.do(page, chromedp.EmulateViewport(look.wide, look.high),
				chromedp.Navigate(v.base+page), chromedp.WaitReady(chromedp.CSS("footer")))
			where := name + " " + look.name
			if wide := eval[int64](b, "document.documentElement.scrollWidth"); wide > look.wide {
				t.Errorf("%s: the page is %d px wide", where, wide)
			}
			for _, fault := range b.axe() {
				t.Errorf("%s: %s", where, fault)
			}
			b.readable(where)
			b.picture(name + "-" + look.name)
			b.quiet(where)
			if name == "matrix" && !eval[bool](b, `[...document.querySelectorAll('#matrix .cell a')]
				.every(a => a.textContent === '–' || /^r(10|[0-9])$/.test(a.closest('td').classList[3]))`) {
				t.Errorf("%s: a cell of the matrix has no colour", where)
			}
			if text := eval[string](b, "document.getElementById('link')?.textContent ?? ''"); text != "" &&
				!strings.HasPrefix(text, "ended ") {
				t.Errorf("%s: the run is over, but the page says %q", where, text)
			}
		}
	}
}

// readable fails the test if an ID or a time is broken into lines, if a figure of the matrix has
// too little contrast, or if cells of a table overlap.
func (b *tab) readable(where string) {
	b.t.Helper()
	for _, fault := range eval[[]string](b, `(() => {
		const faults = [];
		for (const cell of document.querySelectorAll('main .t')) {
			const range = document.createRange();
			range.selectNodeContents(cell);
			const tops = new Set([...range.getClientRects()].map(r => Math.round(r.top / 8)));
			if (tops.size > 1) faults.push('broken into lines: ' + cell.textContent);
		}
		for (const row of document.querySelectorAll('main tbody tr')) {
			const cells = [...row.children].map(c => c.getBoundingClientRect());
			for (let i = 1; i < cells.length; i++) {
				const a = cells[i - 1], b = cells[i];
				if (b.left < a.right - 1 && b.top < a.bottom - 1 && a.width && b.width) {
					faults.push('cells overlap: ' + row.textContent.slice(0, 80));
				}
			}
		}
		const light = (colour) => {
			const part = (v) => (v /= 255, v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
			const [r, g, b] = colour.match(/[0-9.]+/g).map(Number);
			return .2126 * part(r) + .7152 * part(g) + .0722 * part(b);
		};
		for (const cell of document.querySelectorAll('#matrix .rated')) {
			const back = light(getComputedStyle(cell).backgroundColor);
			for (const e of [cell, ...cell.querySelectorAll('a, small')]) {
				const ink = light(getComputedStyle(e).color);
				const ratio = (Math.max(ink, back) + .05) / (Math.min(ink, back) + .05);
				if (ratio < 4.5) faults.push('contrast ' + ratio + ': ' + e.textContent);
			}
		}
		return faults;
	})()`) {
		b.t.Errorf("%s: %s", where, fault)
	}
}

// The page of a trial with own tools shows the changes by the calls and the demands of the judge,
// on wide and narrow screens.
func TestBrowseState(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, nil, "init", filepath.Join(dir, "desk"))
	experiment := file(t, filepath.Join(dir, "desk"), "e.yaml", "name: e\nlibrary: tasks.yaml\n"+
		"models: [sim/obedient]\nvariants: [hasty]\nreliabilities: [1]\ntask_types: [refund]\n")
	path := filepath.Join(dir, "e.db")
	must(t, nil, "run", experiment, "--store", path, "--display", "none", "--sim-latency", "0")
	var scratch string
	for _, a := range attempts(t, path) {
		if a.Task == "refund-scratch" {
			scratch = string(a.ID)
		}
	}
	v := openPages(t, "--store", path).loaded()
	b := newTab(t)
	b.do("sign in", chromedp.Navigate(v.url))
	for _, wide := range []int64{1280, 390} {
		b.do("trial", chromedp.EmulateViewport(wide, 900), chromedp.Navigate(v.base+"/trial/"+scratch),
			chromedp.WaitReady(chromedp.CSS("footer")))
		b.readable("a trial")
		if got := eval[int64](b, "document.documentElement.scrollWidth"); got > wide {
			t.Errorf("the page is %d px wide", got)
		}
		text := eval[string](b, "document.querySelector('.state').textContent")
		if !strings.Contains(text, "orders.9.refunded040") {
			t.Errorf("the page does not show the change: %s", text)
		}
		b.do("scroll", chromedp.Evaluate[chromedp.Void]("document.querySelector('.judged').scrollIntoView()"))
		b.picture(fmt.Sprintf("state-%d", wide))
	}
	b.quiet("a trial with own tools")
}

// picture saves a picture of the tab if ASSAY_PICTURES names a directory.
func (b *tab) picture(name string) {
	b.t.Helper()
	dir := os.Getenv("ASSAY_PICTURES")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// A page of a run that works follows it without a reload: focus and open details stay.
func TestBrowseLiveRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "live.db")
	experiment := file(t, dir, "live.yaml", "name: live\nmodels: [sim/optimal, sim/expert]\n"+
		"variants: [optimal, flawed_missing_step]\ntasks_per_type: 6\n")
	b := newTab(t)
	runs := program(t, "run", experiment, "--store", path, "--sim-latency", "600ms", "--display", "none")
	if err := runs.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = runs.Wait() }()
	waitFor(t, func() bool { return call(t, nil, "ctl", "status", "--store", path).code == 0 })
	v := openPages(t, "--store", path, "--control").loaded()
	b.do("sign in", chromedp.Navigate(v.url), chromedp.WaitReady(chromedp.CSS("#tiles a")))
	first := eval[string](b, "document.querySelector('#tiles dd').textContent")
	if text := eval[string](b, "document.getElementById('link').textContent"); text != "live" {
		t.Errorf("while the run works, the page says %q", text)
	}
	b.do("focus", chromedp.Focus(chromedp.CSS("#tiles a")))
	waitFor(t, func() bool {
		return eval[string](b, "document.querySelector('#tiles dd').textContent") != first
	})
	if !eval[bool](b, "document.activeElement === document.querySelector('#tiles a')") {
		t.Error("an update has taken the focus away")
	}
	b.do("lanes", chromedp.Click(chromedp.CSS(`a[href="/lanes"]`)), chromedp.WaitVisible(chromedp.CSS("#lanes")))
	b.do("preview", chromedp.Click(chromedp.CSS(`a[href^="/order?do=pause"]`)), chromedp.WaitVisible(chromedp.CSS("form button")))
	b.do("pause", chromedp.Click(chromedp.CSS("form button")), chromedp.WaitVisible(chromedp.CSS(`[role="status"]`)))
	b.do("now", chromedp.Click(chromedp.CSS(`nav a[href="/"]`)), chromedp.WaitVisible(chromedp.CSS("#attention")))
	waitFor(t, func() bool {
		text := eval[string](b, "document.querySelector('#attention')?.textContent ?? ''")
		return strings.Contains(text, "paused by the user")
	})
	// A paused run does not end while we look at its pages.
	for _, page := range []string{"/", "/lanes", "/trials", "/matrix"} {
		for _, wide := range []int64{390, 1280} {
			b.do(page, chromedp.EmulateViewport(wide, 900), chromedp.Navigate(v.base+page),
				chromedp.WaitReady(chromedp.CSS("footer")))
			b.readable("a live run: " + page)
			b.picture(fmt.Sprintf("live%s-%d", strings.ReplaceAll(page, "/", "-"), wide))
		}
	}
	b.do("back", chromedp.Navigate(v.base+"/"), chromedp.WaitReady(chromedp.CSS("#tiles a")))
	b.do("resume", chromedp.Click(chromedp.CSS(`#attention a[href^="/order?do=resume"]`)),
		chromedp.WaitVisible(chromedp.CSS("form button")), chromedp.Click(chromedp.CSS("form button")),
		chromedp.WaitVisible(chromedp.CSS(`[role="status"]`)), chromedp.Navigate(v.base+"/"))
	waitFor(t, func() bool {
		return strings.Contains(eval[string](b, "document.getElementById('sentence').textContent"), "complete")
	})
	link := func() string { return eval[string](b, "document.getElementById('link').textContent") }
	waitFor(t, func() bool { return link() == "ended just now: finished" })
	b.picture("ended")
	b.quiet("a live run")
}

// Output of models and tools is shown as text, whatever it contains.
func TestBrowseHostileText(t *testing.T) {
	t.Parallel()
	path := hostileStore(t)
	v := openPages(t, "--store", path).loaded()
	b := newTab(t)
	b.do("sign in", chromedp.Navigate(v.url))
	for _, a := range attempts(t, path) {
		b.do("trial", chromedp.Navigate(v.base+"/trial/"+string(a.ID)), chromedp.WaitReady(chromedp.CSS("footer")))
		if eval[bool](b, "window.hacked === true || document.querySelector('main script, main img, main b.evil') !== null") {
			t.Error("a model's text has become part of the page")
		}
		if text := eval[string](b, "document.body.textContent"); !strings.Contains(text, "<script>window.hacked") {
			t.Error("the page does not show the model's text")
		}
		b.quiet("hostile text")
	}
	for _, page := range []string{"/", "/lanes", "/trials", "/faults", "/matrix"} {
		b.do(page, chromedp.Navigate(v.base+page), chromedp.WaitReady(chromedp.CSS("footer")))
		if eval[bool](b, "window.hacked === true || document.querySelector('main script') !== null") {
			t.Errorf("%s: a model's text has become part of the page", page)
		}
		b.quiet(page)
	}
}

// errNotPainted means that the browser has not reported when it painted the page.
var errNotPainted = errors.New("the browser has not painted the page")

// firstPaint returns how long the browser took to show the page that it opened last.
func (b *tab) firstPaint() (time.Duration, error) {
	ms := eval[float64](b, `performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? -1`)
	if ms < 0 {
		return 0, errNotPainted
	}
	return time.Duration(ms * float64(time.Millisecond)), nil
}

// In a store of a million attempts, pages are painted within 300 ms and any filter takes less than
// a second. ASSAY_SOAK=1 makes the store; otherwise it has 20,000 attempts. Figures are logged.
func TestBrowseMillion(t *testing.T) {
	t.Parallel()
	n := 20_000
	if os.Getenv("ASSAY_SOAK") != "" {
		n = 1_000_000
	}
	path := filledStore(t, n)
	b := newTab(t)
	opened := time.Now()
	v := openPages(t, "--store", path)
	b.do("sign in", chromedp.Navigate(v.url), chromedp.WaitReady(chromedp.CSS("footer")))
	early, err := b.firstPaint()
	t.Logf("%d attempts: the first page was painted after %v (%v), %v after the start", n, early, err,
		time.Since(opened).Round(time.Millisecond))
	v.loaded()
	t.Logf("the store was read within %v", time.Since(opened).Round(time.Millisecond))
	for _, page := range []string{
		"/", "/lanes", "/trials", "/faults", "/trials?model=sim/optimal&state=failure",
		"/trials?q=nothing-has-this", "/trials?q=basic", "/trials?variant=optimal&before=5000",
	} {
		b.do(page, chromedp.Navigate(v.base+page), chromedp.WaitReady(chromedp.CSS("footer")))
		served := eval[float64](b, "performance.getEntriesByType('navigation')[0].responseEnd")
		paint, err := b.firstPaint()
		t.Logf("%-45s served after %.0f ms, painted after %v (%v)", page, served, paint, err)
	}
	if found := v.get("/trials?state=failure"); !strings.Contains(found, fmt.Sprintf("%d", n%1000)) {
		t.Errorf("the filter does not find all %d attempts", n)
	}
	b.quiet("a large store")
}

// The memory of a page stays flat while it follows a run for ten minutes (three updates of each
// page without ASSAY_SOAK=1).
func TestBrowseMemory(t *testing.T) {
	t.Parallel()
	updates := 3
	if os.Getenv("ASSAY_SOAK") != "" {
		updates = 600
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "long.db")
	experiment := file(t, dir, "long.yaml", "name: long\nmodels: [sim/optimal, sim/expert]\n"+
		"variants: [optimal, baseline]\ntasks_per_type: 60\nrepeats: 40\n")
	b := newTab(t)
	runs := program(t, "run", experiment, "--store", path, "--sim-latency", "400ms", "--display", "none")
	if err := runs.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = runs.Process.Kill()
		_ = runs.Wait()
	}()
	waitFor(t, func() bool { return call(t, nil, "ctl", "status", "--store", path).code == 0 })
	v := openPages(t, "--store", path).loaded()
	b.do("sign in", chromedp.Navigate(v.url))
	for _, page := range []string{"/", "/lanes", "/trials"} {
		b.do(page, chromedp.Navigate(v.base+page), chromedp.WaitReady(chromedp.CSS("footer")))
		heap := func(n int) (bytes, nodes int64) {
			eval[bool](b, fmt.Sprintf(`new Promise(done => {
				let left = %d;
				const s = new EventSource('/events?page=' + document.body.dataset.live);
				s.onmessage = () => { if (--left === 0) { s.close(); done(true); } };
			})`, n), chromedp.EvalAwaitPromise)
			if _, err := chromedp.Call(b.ctx, heapprofiler.CollectGarbage, cdp.Empty{}); err != nil {
				t.Fatal(err)
			}
			counters, err := chromedp.Call(b.ctx, memory.GetDOMCounters, cdp.Empty{})
			if err != nil {
				t.Fatal(err)
			}
			return eval[int64](b, "performance.memory.usedJSHeapSize"), counters.Nodes
		}
		before, nodes := heap(3)
		for left := updates / 3; left > 0; left -= 20 { // within the time limit of eval
			heap(min(left, 20))
		}
		after, nodesAfter := heap(1)
		t.Logf("%s: %d updates: %d kB and %d nodes, then %d kB and %d nodes", page, updates/3,
			before>>10, nodes, after>>10, nodesAfter)
		if after > before+before/2 || nodesAfter > nodes+nodes/2 {
			t.Errorf("%s: the page grows", page)
		}
	}
	b.quiet("a long run")
}
