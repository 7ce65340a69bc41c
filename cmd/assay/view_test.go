package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/assay-eval/assay/internal/store"
)

// A visitor opens the pages of a view.
type visitor struct {
	t    testing.TB
	base string // without a slash at the end
	url  string // with the token
	http *http.Client
}

// openPages starts `assay view` in this process and signs in. The signal of a user ends it.
func openPages(t testing.TB, args ...string) visitor {
	t.Helper()
	return openPagesUntil(t, exitOK, args...)
}

// openPagesUntil is like openPages, but the view ends with some exit code.
func openPagesUntil(t testing.TB, want int, args ...string) visitor {
	t.Helper()
	reader, writer := io.Pipe()
	signals := make(chan os.Signal, 1)
	var wg sync.WaitGroup
	var errs bytes.Buffer
	wg.Go(func() {
		code := run(append([]string{"view"}, args...), &process{
			in: strings.NewReader(""), out: writer, err: &errs, name: "assay", signals: signals,
			env: func(string) (string, bool) { return "", false },
		})
		writer.Close()
		if code != want {
			t.Errorf("view ended with exit code %d: %s", code, &errs)
		}
	})
	t.Cleanup(func() {
		signals <- syscall.SIGTERM
		wg.Wait()
	})
	line, err := bufio.NewReader(reader).ReadString('\n')
	if err != nil {
		t.Fatalf("view printed no address: %v", err)
	}
	wg.Go(func() { _, _ = io.Copy(io.Discard, reader) })
	return newVisitor(t, strings.TrimSpace(line))
}

func newVisitor(t testing.TB, address string) visitor {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	v := visitor{t, "http://" + u.Host, address, &http.Client{Jar: jar}}
	v.get("/?" + u.RawQuery)
	return v
}

// get returns a page.
func (v visitor) get(path string) string {
	v.t.Helper()
	body, status := v.fetch(v.request(http.MethodGet, path, nil))
	if status != http.StatusOK {
		v.t.Fatalf("GET %s: status %d: %.300s", path, status, body)
	}
	return body
}

func (v visitor) request(method, path string, body io.Reader) *http.Request {
	v.t.Helper()
	req, err := http.NewRequestWithContext(v.t.Context(), method, v.base+path, body)
	if err != nil {
		v.t.Fatal(err)
	}
	return req
}

func (v visitor) fetch(req *http.Request) (body string, status int) {
	v.t.Helper()
	resp, err := v.http.Do(req)
	if err != nil {
		v.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return string(b), resp.StatusCode
}

// loaded waits until the view has read the store.
func (v visitor) loaded() visitor {
	v.t.Helper()
	waitFor(v.t, func() bool { return strings.Contains(v.get("/"), `id="tiles"`) })
	return v
}

// The pages of a run that has ended show the figures of its report, and every number leads to its
// trials and every trial to its conversation.
func TestPagesOfAnEndedRun(t *testing.T) {
	t.Parallel()
	path := smallRun(t)
	v := openPages(t, "--store", path).loaded()
	all := attempts(t, path)
	full := 0
	for _, a := range all {
		if a.Level == "full_success" {
			full++
		}
	}
	now := v.get("/")
	for _, want := range []string{
		fmt.Sprintf("%d of %d done · complete", len(all), len(all)), "nothing needs you",
		fmt.Sprintf(`<a href="/trials?state=full_success">%d</a>`, full),
	} {
		if !strings.Contains(now, want) {
			t.Errorf("the first page lacks %q", want)
		}
	}
	if got := v.get("/trials?state=full_success"); !strings.Contains(got,
		fmt.Sprintf("%d attempts, %d with an outcome.", full, full)) {
		t.Error("the trials of a number are not those that it counts")
	}
	waitFor(t, func() bool { return strings.Contains(v.get("/matrix"), `id="matrix"`) })
	waitFor(t, func() bool { return strings.Contains(v.get("/"), `id="headline"`) })
	for _, label := range []string{"Full success", "Largest loss", "Failures", "Run"} {
		if now := v.get("/"); !strings.Contains(now, "<dt>"+label+"</dt>") {
			t.Errorf("the first page lacks the line %q of the report", label)
		}
	}
	rows := must(t, nil, "report", "--store", path, "--json").out
	matrix := v.get("/matrix")
	for _, m := range regexp.MustCompile(`"full_success_rate":([0-9.]+)`).FindAllStringSubmatch(rows, 3) {
		if rate := percentOf(t, m[1]); !strings.Contains(matrix, ">"+rate+"</a>") {
			t.Errorf("the matrix lacks the rate %s of the report", rate)
		}
	}
	for _, link := range regexp.MustCompile(`href="(/trials\?[^"]*)"`).FindAllStringSubmatch(matrix, 4) {
		if !strings.Contains(v.get(strings.ReplaceAll(link[1], "&amp;", "&")), `id="attempts"`) {
			t.Errorf("%s leads to no trials", link[1])
		}
	}
	trial := v.get("/trial/" + string(all[0].ID[:10]) + "?attempt=1")
	for _, want := range []string{string(all[0].ID), "turn 1", "luck", "How it was judged", "beside it"} {
		if !strings.Contains(trial, want) {
			t.Errorf("the page of a trial lacks %q", want)
		}
	}
	other := regexp.MustCompile(`<option value="([0-9a-f]{32})"`).FindStringSubmatch(trial)
	if other == nil {
		t.Fatal("nothing can be shown beside the trial")
	}
	both := v.get("/trial/" + string(all[0].ID) + "?beside=" + other[1])
	if strings.Count(both, "How it was judged") != 2 || !strings.Contains(both, `class="turns two"`) {
		t.Error("the trials are not side by side")
	}
	file := v.get("/report/document")
	if want := must(t, nil, "report", "--store", path, "--format", "html", "--transcripts", "3"); !sameFigures(file, want.out) {
		t.Error("the page is not the offline report")
	}
	compared := v.get("/report?a=sim/expert&b=sim/obedient")
	frame := regexp.MustCompile(`src="(/compare/[^"]*)"`).FindStringSubmatch(compared)
	if frame == nil {
		t.Fatalf("the page shows no comparison: %s", compared)
	}
	for _, page := range []string{"/lanes", "/faults", "/report", html.UnescapeString(frame[1])} {
		v.get(page)
	}
	for _, page := range []string{"/nothing", "/trial/ffffffffff", "/trial/%2e%2e"} {
		if _, status := v.fetch(v.request(http.MethodGet, page, nil)); status != http.StatusNotFound {
			t.Errorf("%s: status %d", page, status)
		}
	}
	text, status := v.fetch(v.request(http.MethodGet, "/trials?state=faild", nil))
	if status != http.StatusBadRequest || !strings.Contains(text, "did you mean failed?") {
		t.Errorf("an unknown state: status %d, %s", status, text)
	}
}

func percentOf(t *testing.T, share string) string {
	t.Helper()
	var x float64
	if _, err := fmt.Sscan(share, &x); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%.1f\u00a0%%", 100*x)
}

// sameFigures compares two reports without the time at which they were made.
func sameFigures(a, b string) bool {
	when := regexp.MustCompile(`20\d\d-\d\d-\d\dT[0-9:.]+Z`)
	return when.ReplaceAllString(a, "") == when.ReplaceAllString(b, "")
}

// A run can be watched from the beginning or from another terminal, and changed only with
// --control.
func TestPagesOfARunThatWorks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "c.db")
	experiment := file(t, dir, "c.yaml", "name: c\nmodels: [sim/optimal, sim/listed]\n"+
		"variants: [optimal]\ntasks_per_type: all\nrepeats: 3\n") // more than can end meanwhile
	var wg sync.WaitGroup
	reader, writer := io.Pipe()
	signals := make(chan os.Signal, 1)
	wg.Go(func() {
		defer writer.Close()
		run([]string{
			"run", experiment, "--store", path, "--display", "plain", "--sim-latency", "300ms",
			"--view", "--control",
		}, &process{
			in: strings.NewReader(""), out: io.Discard, err: writer, name: "assay",
			env: func(string) (string, bool) { return "", false }, signals: signals,
		})
	})
	defer wg.Wait()
	interrupt := sync.OnceFunc(func() { signals <- os.Interrupt })
	defer interrupt()
	address := ""
	for lines := bufio.NewScanner(reader); address == "" && lines.Scan(); {
		_, address, _ = strings.Cut(lines.Text(), "pages of this run: ")
	}
	wg.Go(func() { _, _ = io.Copy(io.Discard, reader) })
	own := newVisitor(t, address).loaded()
	only := openPages(t, "--store", path).loaded()

	waitFor(t, func() bool { return strings.Contains(only.get("/trials"), `id="flights"`) })
	event := firstEvent(t, own, "/events?page=now")
	if !strings.Contains(event, `data: <p class="sentence"`) {
		t.Errorf("the first event is %.200q", event)
	}
	form := func(v visitor, fields string) (string, int) {
		req := v.request(http.MethodPost, "/order", strings.NewReader(fields))
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		return v.fetch(req)
	}
	if _, status := form(only, "do=pause"); status != http.StatusForbidden {
		t.Errorf("an order without --control: status %d", status)
	}
	if page := own.get("/order?do=pause&name=sim/optimal"); !strings.Contains(page, "1 of 2 lanes") {
		t.Errorf("the page before the order does not describe it: %s", page)
	}
	// A run on a busy machine may be too slow to say what would follow.
	waitFor(t, func() bool { return strings.Contains(own.get("/order?do=pause"), "No lane would serve") })
	ending := regexp.MustCompile(`takes \d+\.\d+ times as long|The end stays where it is`) // if the machine is the limit
	waitFor(t, func() bool { return ending.MatchString(own.get("/order?do=set&name=sim/listed&concurrency=1")) })
	if controls(t, path) != 0 {
		t.Error("the page before the order has carried it out")
	}
	if page, status := form(own, "do=pause"); status != http.StatusOK ||
		!strings.Contains(page, "paused 2 lanes: builtin, builtin") {
		t.Errorf("pause: status %d: %s", status, page)
	}
	waitFor(t, func() bool { return strings.Contains(own.get("/"), "done · paused since ") })
	waitFor(t, func() bool { return strings.Contains(only.get("/lanes"), "waits for your pause") })
	for _, wrong := range []string{"do=explode", "do=set&rpm=-1&name=x", "do=set", "do=cancel"} {
		if _, status := form(own, wrong); status != http.StatusBadRequest {
			t.Errorf("%s: status %d", wrong, status)
		}
	}
	if _, status := form(own, "do=resume&name=nobody"); status != http.StatusConflict {
		t.Errorf("an order for a lane that does not exist: status %d", status)
	}
	for _, order := range []string{"do=set&name=sim/listed&concurrency=50", "do=resume"} {
		if page, status := form(own, order); status != http.StatusOK {
			t.Errorf("%s: status %d: %s", order, status, page)
		}
	}
	if n := controls(t, path); n < 3 {
		t.Errorf("the store has %d orders", n)
	}
	interrupt()
	waitFor(t, func() bool { return strings.Contains(only.get("/"), "interrupted") })
}

// firstEvent returns the first event of a stream.
func firstEvent(t *testing.T, v visitor, path string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	resp, err := v.http.Do(v.request(http.MethodGet, path, nil).WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var event strings.Builder
	for lines := bufio.NewScanner(resp.Body); lines.Scan() && lines.Text() != ""; {
		event.WriteString(lines.Text() + "\n")
	}
	return event.String()
}

func controls(t *testing.T, path string) int {
	t.Helper()
	db, err := store.OpenReadOnly(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	all, err := db.Controls(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// Requests without the token, by a foreign name or from a foreign site are refused.
func TestPagesRefuseStrangers(t *testing.T) {
	t.Parallel()
	path := smallRun(t)
	v := openPages(t, "--store", path, "--control")
	bare := visitor{t, v.base, v.url, &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	for name, c := range map[string]struct {
		visitor visitor
		path    string
		change  func(*http.Request)
		want    int
	}{
		"no token":               {bare, "/", nil, http.StatusUnauthorized},
		"wrong token":            {bare, "/?token=AAAAAAAAAAAAAAAAAAAAAAAAAA", nil, http.StatusUnauthorized},
		"events without a token": {bare, "/events?page=now", nil, http.StatusUnauthorized},
		"style without a token":  {bare, "/style.css", nil, http.StatusUnauthorized},
		"foreign name": {v, "/", func(r *http.Request) {
			r.Host = "evil.example:" + r.URL.Port()
		}, http.StatusMisdirectedRequest},
		"foreign name with the token": {
			bare, strings.TrimPrefix(v.url, v.base),
			func(r *http.Request) { r.Host = "evil.example" }, http.StatusMisdirectedRequest,
		},
		"foreign origin": {v, "/trials", func(r *http.Request) {
			r.Header.Set("Origin", "https://evil.example")
		}, http.StatusForbidden},
		"origin of another port": {v, "/trials", func(r *http.Request) {
			r.Header.Set("Origin", "http://127.0.0.1:1")
		}, http.StatusForbidden},
		"form of another site": {v, "/order", func(r *http.Request) {
			r.Method = http.MethodPost
			r.Header.Set("Origin", "https://evil.example")
			r.Body = io.NopCloser(strings.NewReader("do=pause"))
		}, http.StatusForbidden},
		"form of another site without an origin": {v, "/order", func(r *http.Request) {
			r.Method = http.MethodPost
			r.Header.Set("Sec-Fetch-Site", "cross-site")
		}, http.StatusForbidden},
		"a redirect elsewhere": {
			bare, "//evil.example/" + v.url[strings.Index(v.url, "?"):], nil, http.StatusSeeOther,
		},
		"localhost": {bare, strings.TrimPrefix(v.url, v.base), func(r *http.Request) {
			r.Host = "localhost:" + r.URL.Port()
		}, http.StatusSeeOther},
	} {
		req := c.visitor.request(http.MethodGet, c.path, nil)
		if c.change != nil {
			c.change(req)
		}
		resp, err := c.visitor.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != c.want {
			t.Errorf("%s: status %d, want %d", name, resp.StatusCode, c.want)
		}
		if to := resp.Header.Get("Location"); strings.HasPrefix(to, "//") || strings.Contains(to, "token") {
			t.Errorf("%s: leads to %s", name, to)
		}
		if p := resp.Header.Get("Content-Security-Policy"); !strings.Contains(p, "default-src 'none'") {
			t.Errorf("%s: policy %q", name, p)
		}
	}
	for _, addr := range []string{"0.0.0.0:0", "[::]:0", "192.0.2.1:80", "example.com:80", "7000"} {
		if r := call(t, nil, "view", "--store", path, "--addr", addr); r.code != exitUsage {
			t.Errorf("--addr %s: exit code %d, %s", addr, r.code, r.err)
		}
	}
}

// A key is on no page, whatever the endpoint does with it.
func TestPagesHaveNoKey(t *testing.T) {
	t.Parallel()
	const canary = "sk-canary-9b41f7a2c6d8"
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error": {"message": "what is %s?"}}`, r.Header.Get("Authorization"))
	}))
	defer echo.Close()
	dir := t.TempDir()
	path := filepath.Join(dir, "k.db")
	file(t, dir, "p.yaml", "providers:\n  host:\n    base_url: "+echo.URL+"/v1\n"+
		"    keys: [CANARY]\n    models: {m: {}}\n")
	experiment := file(t, dir, "e.yaml", "name: keys\nmodels: [m]\nvariants: [optimal]\n"+
		"tasks_per_type: 1\nproviders: p.yaml\n")
	call(t, map[string]string{"CANARY": canary}, "run", experiment, "--store", path,
		"--display", "none")
	v := openPages(t, "--store", path).loaded()
	all := attempts(t, path)
	if len(all) == 0 {
		t.Fatal("nothing was tried")
	}
	for _, page := range []string{
		"/", "/lanes", "/matrix", "/trials", "/faults", "/report/document", "/trial/" + string(all[0].ID),
	} {
		if text := v.get(page); strings.Contains(text, canary) {
			t.Errorf("%s has the key", page)
		}
	}
	if text := v.get("/trial/" + string(all[0].ID)); !strings.Contains(text, "what is") {
		t.Error("the page of a trial lacks the endpoint's words")
	}
}
