package document_test

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay/internal/result/document"
)

// A browser runs Chromium without a window.
type browser struct {
	t    *testing.T
	path string
}

func newBrowser(t *testing.T) browser {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: needs a browser")
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return browser{t, path}
		}
	}
	t.Skip(
		"no chromium, chromium-browser or google-chrome on PATH: pages are not tried in a browser",
	)
	return browser{}
}

// A visit holds the results of opening a page.
type visit struct {
	dom     string
	console []string
	// hosts lists the addresses that the browser requested, except its maker's.
	hosts []string
}

// visit opens a page, lets ten seconds of its time pass, and returns the results. Only this machine
// can be reached by name.
func (b browser) visit(page, hash string, args ...string) visit {
	t := b.t
	t.Helper()
	dir := t.TempDir()
	file, log := filepath.Join(dir, "page.html"), filepath.Join(dir, "net.json")
	if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	args = append([]string{
		"--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--user-data-dir=" + filepath.Join(dir, "profile"),
		"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--log-net-log=" + log,
		"--enable-logging=stderr", "--v=0", "--virtual-time-budget=10000",
	}, args...)
	cmd := exec.CommandContext(ctx, b.path, append(args, "file://"+file+hash)...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", b.path, err, errs.String())
	}
	v := visit{dom: out.String()}
	for l := range strings.Lines(errs.String()) {
		if strings.Contains(l, "CONSOLE") {
			v.console = append(v.console, strings.TrimSpace(l))
		}
	}
	traffic, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`"url":"(https?:[^"]*)"`).FindAllStringSubmatch(string(traffic), -1) {
		if u, err := url.Parse(m[1]); err != nil ||
			!regexp.MustCompile(`(^|\.)(google|googleapis|gvt1)\.com$`).MatchString(u.Hostname()) {
			v.hosts = append(v.hosts, m[1])
		}
	}
	return v
}

const (
	light = "--blink-settings=preferredColorScheme=1"
	dark  = "--blink-settings=preferredColorScheme=0"
)

// Every chart is drawn twice: in the reader's colours for the screen, and in white for paper. The
// console stays empty, and no host is asked.
func TestBrowserDrawsEveryChart(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	d := sample()
	d.Sections = append(
		d.Sections,
		document.Section{ID: "facets", Chart: &document.Chart{Spec: spec(facetSpec(7))}},
	)
	page := written(t, d.WriteHTML)
	for scheme, want := range map[string]string{light: "rgb(253, 252, 250)", dark: "rgb(22, 24, 27)"} {
		v := b.visit(page, "", scheme, "--dump-dom")
		if len(v.console) > 0 {
			t.Errorf("%s: the console says\n%s", scheme, strings.Join(v.console, "\n"))
		}
		if len(v.hosts) > 0 {
			t.Errorf("%s: the page asked for %v", scheme, v.hosts)
		}
		figures := regexp.MustCompile(`(?s)<figure>.*?</figure>`).FindAllString(v.dom, -1)
		if len(figures) != 7 {
			t.Fatalf("%s: %d figures", scheme, len(figures))
		}
		for i, f := range figures {
			drawn := regexp.MustCompile(`<svg [^>]*background-color: ([^;]*);`).
				FindAllStringSubmatch(f, -1)
			if len(drawn) != 2 || drawn[0][1] != want || drawn[1][1] != "rgb(255, 255, 255)" {
				t.Errorf("%s: figure %d: drawn %v", scheme, i, drawn)
			}
			if n := len(regexp.MustCompile(`<path aria-label=|<path [^>]*aria-roledescription=`).FindAllString(f, -1)); n < 4 {
				t.Errorf("%s: figure %d has %d marks", scheme, i, n)
			}
		}
		var legend []string
		for _, m := range regexp.MustCompile(`<text[^>]*>([^<]* number [^<]*)</text>`).FindAllStringSubmatch(figures[5], -1) {
			legend = append(legend, m[1])
		}
		if slices.Sort(legend); len(slices.Compact(legend)) != 14 ||
			strings.Contains(strings.Join(legend, ""), "…") {
			t.Errorf("%s: the legend of 14 lines has %q", scheme, legend)
		}
		for i, m := range regexp.MustCompile(`<svg [^>]*width="(\d+)" height="(\d+)"`).FindAllStringSubmatch(figures[6], -1) {
			room := []int{800, 690}[i] // of the window and of paper
			width, _ := strconv.Atoi(m[1])
			height, _ := strconv.Atoi(m[2])
			if width > room || width < room/2 || height < 3*120 || height > 4*120 {
				t.Errorf(
					"%s: facets are %d wide and %d high, the page is %d wide", scheme, width,
					height, room,
				)
			}
		}
	}
}

// The page can be printed whatever colours the reader prefers.
func TestPageCanBePrinted(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	file := filepath.Join(t.TempDir(), "page.pdf")
	if v := b.visit(written(t, sample().WriteHTML), "", dark, "--no-pdf-header-footer", "--print-to-pdf="+file); len(
		v.console,
	) > 0 {
		t.Errorf("the console says\n%s", strings.Join(v.console, "\n"))
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if pages := len(regexp.MustCompile(`/Type\s*/Page\b`).FindAll(text, -1)); pages < 4 ||
		pages > 8 {
		t.Errorf("%d pages", pages)
	}
}

// forPaper returns a page that looks the same on the screen as on paper.
func forPaper(page string) string {
	return strings.NewReplacer("@media print", "@media all", "@media screen", "@media speech").
		Replace(page)
}

// No table is wider than a page of A4. Long warnings may break across pages.
func TestTablesFitPaper(t *testing.T) {
	t.Parallel()
	d := &document.Document{Title: "Wide", Warnings: sample().Warnings}
	for i := range 20 {
		d.Warnings[0].Where = append(d.Warnings[0].Where, fmt.Sprint("place ", i))
	}
	for i, columns := range []int{3, 8, 11, 12, 13, 14, 16, 23, 40} {
		for k, digits := range []string{"0000", "1.0 %", "100.0 %", "26.4 – 60.4 %", "MWMWMW"} {
			d.Sections = append(
				d.Sections,
				document.Section{
					ID: fmt.Sprintf("t%d-%d", i, k), Title: "Wide",
					Table: wideTable(columns, digits),
				},
			)
		}
	}
	const a4 = 694 // pixels between the margins
	script := `
		const shown = (e) => e.offsetWidth > 0;
		const tables = Array.from(document.querySelectorAll("table")).filter(shown);
		document.title = JSON.stringify({
			page: [innerWidth, document.documentElement.scrollWidth], tables: tables.length,
			wide: tables.filter((t) => t.offsetWidth > t.parentElement.clientWidth || t.parentElement.scrollWidth > innerWidth).map((t) => t.textContent.slice(0, 200)),
			places: Array.from(document.querySelectorAll(".warnings .where > li")).filter(shown).length,
			unbroken: Array.from(document.querySelectorAll(".warnings, .warnings > ul > li"), (e) => getComputedStyle(e).breakInside).filter((b) => b !== "auto"),
		});`
	v := newBrowser(
		t,
	).visit(withScript(forPaper(written(t, d.WriteHTML)), script), "", light, "--hide-scrollbars", fmt.Sprintf("--window-size=%d,1000", a4), "--dump-dom")
	var got struct {
		Page           []int
		Tables, Places int
		Wide, Unbroken []string
	}
	decodeTitle(t, v, &got)
	if diff := cmp.Diff([]int{a4, a4}, got.Page); diff != "" {
		t.Errorf("width of the window and the page (-want +got):\n%s", diff)
	}
	places := 0
	for _, a := range d.Warnings {
		places += len(a.Where)
	}
	if got.Places != places {
		t.Errorf("%d places of alarms are on paper, want %d", got.Places, places)
	}
	if len(got.Wide)+len(got.Unbroken) > 0 || got.Tables <= len(d.Sections) {
		t.Errorf(
			"%d tables for %d; too wide are %q; alarms break %q", got.Tables, len(d.Sections),
			got.Wide, got.Unbroken,
		)
	}
}

// decodeTitle reads the JSON that a script wrote into the title.
func decodeTitle(t *testing.T, v visit, into any) {
	t.Helper()
	title := regexp.MustCompile(`<title>(.*?)</title>`).FindStringSubmatch(v.dom)
	if title == nil {
		t.Fatal("the page has no title")
	}
	if err := json.Unmarshal([]byte(html.UnescapeString(title[1])), into); err != nil {
		t.Fatalf("title %s: %v", title[1], err)
	}
}

// Figures are sorted from the greatest, names from A, and the third click restores the order. Links
// open episodes each time. Charts show tooltips and can be saved.
func TestReaderCanSortAndOpen(t *testing.T) {
	t.Parallel()
	d := sample()
	d.Sections = append(
		d.Sections,
		document.Section{ID: "wide", Title: "Wide", Table: wideTable(40, "100.0 %")},
	)
	v := newBrowser(t).visit(withScript(written(t, d.WriteHTML), driver), "", light, "--dump-dom")
	var got any
	decodeTitle(t, v, &got)
	want := map[string]any{
		"turns": []any{"8.2 6.9 6.0 descending", "4.5 4.9 5.1 ascending", "4.5 4.9 5.1 none"},
		"names": []any{
			"claude-sonnet-4 deepseek-v3 gemini-2.5-flash ascending",
			"qwen-max-latest qwen-max llama-3.1-8b descending",
			"claude-sonnet-4 gpt-4o qwen-max none",
		},
		"sheets": []any{
			"row 3 of a table row 2 of a table row 1 of a table",
			"row 3 of a table row 2 of a table row 1 of a table",
		},
		"others": "none", "muted": "0.36", "opened": true, "again": true,
		"tooltip": "Model claude-sonnet-4 Full success, % 68.2 Trials 900",
		"saved":   []any{"Save as SVG success.svg blob:null/", "Save as PNG success.png data:image"},
	}
	if diff := cmp.Diff(any(want), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(v.console) > 0 {
		t.Errorf("the console says\n%s", strings.Join(v.console, "\n"))
	}
}

// finder filters and unfolds a table, and measures the page.
const finder = `
const table = document.querySelector("#section-folded table");
const visible = () => Array.from(table.tBodies[0].rows).filter((r) => r.offsetHeight > 0).length;
const box = document.querySelector("#section-folded input");
const unfold = document.querySelector("#section-folded .unfold");
const search = (words) => {
  box.value = words;
  box.dispatchEvent(new Event("input"));
  return visible();
};
const rows = [visible(), search("row 3"), search("ROW 39"), search(""), (unfold.click(), visible())];
const cut = Array.from(document.querySelectorAll(".scroll")).filter((s) => s.scrollWidth > s.clientWidth);
document.title = JSON.stringify({
  rows, cut: cut.map((s) => s.closest("section").id), status: box.nextSibling.textContent,
  page: document.documentElement.scrollWidth - innerWidth, expanded: unfold.getAttribute("aria-expanded"),
});`

// Tables are folded and can be searched. Whatever their size, the page and its tables are not
// wider than the window.
func TestTablesFitWindowAndCanBeSearched(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	d := sample()
	folded := &document.Table{Columns: []document.Column{{Head: "Name", Names: true}, {Head: "A"}}, Shown: 5}
	for i := range 40 {
		folded.Rows = append(folded.Rows, []document.Cell{{Text: fmt.Sprint("row ", i)}, {Text: "1"}})
	}
	d.Sections = append(d.Sections,
		document.Section{ID: "folded", Title: "Folded", Table: folded},
		document.Section{ID: "wide", Title: "Wide", Table: wideTable(40, "26.4 – 60.4 %")})
	page := withScript(written(t, d.WriteHTML), finder)
	for _, width := range []int{1280, 390} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			t.Parallel()
			window := fmt.Sprintf("--window-size=%d,900", width)
			var got any
			decodeTitle(t, b.visit(page, "", light, window, "--hide-scrollbars", "--dump-dom"), &got)
			want := map[string]any{
				"rows": []any{5., 13., 1., 5., 40.}, "cut": []any{}, "status": "",
				"page": 0., "expanded": "true",
			}
			if diff := cmp.Diff(any(want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The page never runs foreign text as code, and charts cannot load data.
func TestForeignTextNeverRuns(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		fmt.Fprint(w, "[]")
	}))
	defer server.Close()
	bad := fmt.Sprintf(
		`</title></style></script><script>fetch("%[1]s/a");document.title="gone"</script><img src="%[1]s/b" onerror="document.title='gone'">`,
		server.URL,
	)
	d := plant(sample(), bad)
	d.Sections[0].Chart.Spec = spec(
		m{"data": m{"url": server.URL + "/c"}, "mark": "bar", "encoding": m{"x": m{"field": "a"}}},
	)
	d.Sections[1].Chart.Spec = spec(m{
		"data": m{
			"values": []m{{"a": bad, "url": server.URL + "/d"}},
		}, "title": bad, "mark": "image", "encoding": m{"url": m{"field": "url"}, "x": m{"field": "a"}},
		"usermeta": m{"embedOptions": m{"config": server.URL + "/e"}},
	})
	d.Sections[3].Chart.Spec = spec(m{
		"data": m{
			"values": []m{{"a": 1}},
		}, "mark": "bar", "encoding": m{"x": m{"field": "a", "type": "quantitative"}},
		"usermeta": m{"embedOptions": m{"actions": true}},
	})
	d.Sections[2].Chart = &document.Chart{Spec: json.RawMessage(`{"mark": "no such mark"}`)}
	v := b.visit(written(t, d.WriteHTML), "", light, "--dump-dom")
	if n := asked.Load(); n > 0 {
		t.Errorf("the server was asked %d times", n)
	}
	if strings.Contains(v.dom, "<title>gone") {
		t.Error("a foreign script ran")
	}
	// Three of the six charts are invalid.
	if n := strings.Count(v.dom, ">This chart could not be drawn"); n != 3 {
		t.Errorf("%d charts are said not to be drawn", n)
	}
	if strings.Contains(v.dom, ">View Source</a>") {
		t.Error("a chart set options of the page")
	}
}
