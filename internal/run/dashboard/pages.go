package dashboard

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"sync"
	"time"
)

//go:embed page
var files embed.FS

// pages parses the templates when they are first needed, because most commands show no page.
var pages = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(functions).ParseFS(files, "page/*.html"))
})

// A tab is a page that the navigation lists. Live is the template of the content that is sent again
// at each moment, or "".
type tab struct{ Path, Title, Live string }

var tabs = []tab{
	{"/", "Now", "now"},
	{"/lanes", "Lanes", "lanes"},
	{"/matrix", "Matrix", "matrix"},
	{"/trials", "Trials", "flights"},
	{"/faults", "Faults", "faults"},
	{"/report", "Report", ""},
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	for _, path := range []string{"/{$}", "/lanes", "/matrix", "/faults"} {
		mux.HandleFunc("GET "+path, s.livePage)
	}
	mux.HandleFunc("GET /trials", s.trials)
	mux.HandleFunc("GET /trial/{id}", s.trial)
	mux.HandleFunc("GET /report", s.report)
	mux.HandleFunc("GET /report/document", s.reportDocument)
	mux.HandleFunc("GET /compare/document", s.compareDocument)
	mux.HandleFunc("GET /events", s.events)
	mux.HandleFunc("GET /order", s.preview)
	mux.HandleFunc("POST /order", s.order)
	for _, name := range []string{"style.css", "script.js"} {
		mux.HandleFunc("GET /"+name, func(w http.ResponseWriter, r *http.Request) {
			http.ServeFileFS(w, r, files, "page/"+name)
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, r, http.StatusNotFound, fmt.Errorf("there is no page %s", r.URL.Path))
	})
	return mux
}

// A frame has the parts that every page shows.
type frame struct {
	Experiment, Title, Path string
	Tabs                    []tab
	// Live is the name of the content that is sent again, or "".
	Live string
	// State describes whether a run works or how it ended. Over is true if no run works.
	State   string
	Over    bool
	Control bool
	Program string
	Body    any
}

func (s *Server) frame(path, title string, body any) frame {
	return frame{
		Experiment: s.name, Title: title, Path: path, Tabs: tabs,
		Control: s.options.Control, Program: s.options.Program, Body: body,
	}
}

// show writes a page. The whole page is made first, so that an error does not end in half of one.
func (s *Server) show(w http.ResponseWriter, r *http.Request, status int, name string, f frame) {
	var b bytes.Buffer
	if err := pages().ExecuteTemplate(&b, name, f); err != nil {
		http.Error(w, "assay: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = b.WriteTo(w) // the viewer may be gone
}

// fail shows an error with the way back.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, status int, err error) {
	if r.Context().Err() != nil {
		return
	}
	s.show(w, r, status, "error.html", s.frame("", "Not found", s.options.Words.Of(err)))
}

// livePage shows a tab whose whole content is live.
func (s *Server) livePage(w http.ResponseWriter, r *http.Request) {
	s.showTab(w, r, "live.html", func(_ *moment, live template.HTML) any { return live })
}

// showTab shows a tab with a body that is made of a moment and its live content.
func (s *Server) showTab(
	w http.ResponseWriter, r *http.Request, page string, body func(*moment, template.HTML) any,
) {
	t := tabs[slices.IndexFunc(tabs, func(t tab) bool { return t.Path == r.URL.Path })]
	p, err := s.now(r.Context())
	if err != nil {
		return
	}
	content, err := p.content(t.Live)
	if err != nil {
		s.fail(w, r, http.StatusInternalServerError, err)
		return
	}
	f := s.frame(t.Path, t.Title, body(p.moment, template.HTML(content)))
	f.Live, f.State, f.Over = t.Live, p.State(), p.Over()
	s.show(w, r, http.StatusOK, page, f)
}

// livePages has the contents of the live pages at a moment. Each is made once, for all viewers.
type livePages struct {
	*moment
	server *Server
	mu     sync.Mutex
	made   map[string][]byte
}

// A liveBody is the data for the template of a live page.
type liveBody struct {
	*moment
	Control bool
	Matrix  *grid
}

func (p *livePages) content(name string) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if b, ok := p.made[name]; ok {
		return b, nil
	}
	var b bytes.Buffer
	data := liveBody{p.moment, p.server.options.Control && p.Run != nil, p.server.grid.Load()}
	for _, part := range []string{"state", name} {
		if err := pages().ExecuteTemplate(&b, part, data); err != nil {
			return nil, err
		}
	}
	if p.made == nil {
		p.made = make(map[string][]byte)
	}
	p.made[name] = b.Bytes()
	return b.Bytes(), nil
}

const (
	maxViewers = 1000
	// viewerTimeout is how long a viewer may take to read a moment.
	viewerTimeout = 10 * time.Second
	// keepAlive is the longest time without a word to a viewer.
	keepAlive = 15 * time.Second
)

// events sends the content of a live page whenever it changes. A slow viewer misses moments.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("page")
	if name == "" || !slices.ContainsFunc(tabs, func(t tab) bool { return t.Live == name }) {
		refuse(w, http.StatusNotFound, "there is no such live page")
		return
	}
	defer s.viewers.Add(-1)
	if s.viewers.Add(1) > maxViewers {
		refuse(w, http.StatusServiceUnavailable, "too many viewers; reload the page later")
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	var sent []byte
	said := time.Now()
	for {
		next := s.next()
		content, err := s.contentNow(name)
		if err != nil {
			return
		}
		if news := !bytes.Equal(content, sent); news || time.Since(said) >= keepAlive {
			_ = control.SetWriteDeadline(time.Now().Add(viewerTimeout))
			if writeEvent(w, content, news) != nil || control.Flush() != nil {
				return
			}
			sent, said = content, time.Now()
		}
		if !wait(r.Context(), next) {
			return
		}
	}
}

// contentNow returns the content of a live page, or nil before the first moment.
func (s *Server) contentNow(name string) ([]byte, error) {
	p := s.latest.Load()
	if p == nil {
		return nil, nil
	}
	return p.content(name)
}

// wait waits until next is closed. It returns false if the viewer has gone.
func wait(ctx context.Context, next <-chan struct{}) bool {
	select {
	case <-next:
		return true
	case <-ctx.Done():
		return false
	}
}

// writeEvent writes a message of server-sent events, or a comment if there are no news.
func writeEvent(w http.ResponseWriter, content []byte, news bool) error {
	if !news {
		_, err := w.Write([]byte(": \n\n"))
		return err
	}
	var b bytes.Buffer
	for line := range bytes.Lines(content) {
		b.WriteString("data: ")
		b.Write(bytes.TrimRight(line, "\r\n"))
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	_, err := b.WriteTo(w)
	return err
}

// trials shows the chosen trials.
func (s *Server) trials(w http.ResponseWriter, r *http.Request) {
	f, err := parseFilter(r.URL.Query())
	if err != nil {
		s.fail(w, r, http.StatusBadRequest, err)
		return
	}
	s.showTab(w, r, "trials.html", func(m *moment, flights template.HTML) any {
		return trialsBody{
			Filter: f, Found: s.index.find(f), Levels: s.index.levels(), Moment: m, Flights: flights,
		}
	})
}

type trialsBody struct {
	Filter  filter
	Found   found
	Levels  map[string][]string
	Moment  *moment
	Flights template.HTML
}

// States lists the states in which an attempt can have ended.
func (trialsBody) States() []string { return states() }

// Latest and Older return the addresses of the neighbouring pages of the list.
func (b trialsBody) Latest() string { return b.Filter.older(0).URL() }

// Older returns the address of the next older attempts.
func (b trialsBody) Older() string { return b.Filter.older(b.Found.Older).URL() }
