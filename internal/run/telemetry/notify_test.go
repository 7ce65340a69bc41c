package telemetry_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/run/session"
	"github.com/assay-eval/assay/internal/run/telemetry"
	"github.com/assay-eval/assay/internal/run/terminal"
)

// A webhook answers each request with the next status, the last one again and again. Status 0
// hangs until the client gives up.
type webhook struct {
	statuses []int
	header   http.Header

	mu       sync.Mutex
	at       []time.Time
	messages []telemetry.Message
}

func (w *webhook) RoundTrip(r *http.Request) (*http.Response, error) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var m telemetry.Message
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, err
	}
	w.mu.Lock()
	status := w.statuses[min(len(w.at), len(w.statuses)-1)]
	w.at, w.messages = append(w.at, time.Now()), append(w.messages, m)
	w.mu.Unlock()
	if status == 0 {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return &http.Response{StatusCode: status, Header: w.header, Body: http.NoBody, Request: r}, nil
}

// troubles is the state of a run that may change.
type troubles struct {
	mu    sync.Mutex
	state terminal.Progress
	notes []string
}

func (s *troubles) set(causes ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Attention = nil
	for _, c := range causes {
		s.state.Attention = append(s.state.Attention, terminal.Attention{
			Cause: c, Text: "it is " + c, Trials: 7, Advice: "correct <it> & go",
		})
	}
}

func (s *troubles) live() session.Live {
	return session.Live{
		Progress: func() terminal.Progress {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.state
		},
		Note: func(text string) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.notes = append(s.notes, text)
		},
	}
}

const (
	canary  = "canary-5d41402abc4b2a76"
	address = "https://u:" + canary + "@hooks.example.com/services/" + canary + "?k=" + canary
)

// notify begins a run that is reported to a webhook. The caller ends it.
func notify(t *testing.T, w *webhook, s *troubles) *telemetry.Notifier {
	t.Helper()
	n, err := telemetry.NewNotifier(address, w)
	if err != nil {
		t.Fatal(err)
	}
	n.Begin(session.Start{Experiment: "e", Run: "r"}, s.live())
	return n
}

// TestNotifierTellsEachCauseOnce lets causes come, stay, go and come again.
func TestNotifierTellsEachCauseOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := &webhook{statuses: []int{200}}, &troubles{}
		n := notify(t, w, s)
		told := func(want int, when string) {
			t.Helper()
			synctest.Wait()
			if len(w.messages) != want {
				t.Errorf("%s: %d messages, want %d", when, len(w.messages), want)
			}
		}
		time.Sleep(time.Minute + time.Second)
		told(0, "all is well")
		s.set(session.CausePaused)
		time.Sleep(time.Minute)
		told(0, "the user paused it")
		s.set(session.CauseClosed)
		time.Sleep(time.Hour)
		told(1, "a lane closed")
		s.set(session.CauseClosed, session.CauseStalled)
		time.Sleep(time.Hour)
		told(2, "it stalled, too")
		s.set(session.CauseClosed, session.CauseClosed)
		time.Sleep(time.Hour)
		told(3, "another lane closed")
		for range 30 { // five minutes
			s.set()
			time.Sleep(10 * time.Second)
			s.set(session.CauseStalled)
			time.Sleep(10 * time.Second)
		}
		told(4, "it stalls and goes on")
		n.End(&session.Summary{
			Trials: job.Trials{Planned: 10, Done: 8, Pending: 2, Parked: 1},
			Usage:  session.Usage{Cost: 1.5}, Wall: 61,
		})
		told(5, "the end")

		first, last := w.messages[0], w.messages[4]
		wantText := "e needs attention: 0 of 0 trials done\n" +
			"• it is closed (trials: 7) → correct &lt;it&gt; &amp; go"
		if first.Event != "attention" || first.Text != wantText || first.Attention[0].Trials != 7 {
			t.Errorf("first message %+v", first)
		}
		wantText = "e: the run has ended after 1m1s: 8 of 10 trials done, 2 pending, 1 parked, $1.50 in this run\n"
		if last.Event != "end" || !strings.HasPrefix(last.Text, wantText) || last.Done != 8 {
			t.Errorf("last message %+v", last)
		}
		if n.Missed() != "" || len(s.notes) > 0 {
			t.Errorf("missed %q, notes %q", n.Missed(), s.notes)
		}
	})
}

// TestNotifierTriesAgain checks when a message is sent again, and when it is given up.
func TestNotifierTriesAgain(t *testing.T) {
	for _, tc := range []struct {
		name     string
		statuses []int
		header   http.Header
		tries    []time.Duration // after the first one
		note     string
	}{
		{"busy", []int{503, 500, 200}, nil, []time.Duration{1 * time.Second, 3 * time.Second}, ""},
		{
			"told when",
			[]int{429, 200},
			http.Header{"Retry-After": {"20"}},
			[]time.Duration{20 * time.Second},
			"",
		},
		{"gone", []int{404}, nil, nil, "HTTP 404"},
		{"moved", []int{302}, http.Header{"Location": {"https://other.example.com/"}}, nil, "HTTP 302"},
		{
			"hangs once",
			[]int{0, 200},
			nil,
			[]time.Duration{11 * time.Second},
			"",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, s := &webhook{statuses: tc.statuses, header: tc.header}, &troubles{}
				n := notify(t, w, s)
				s.set(session.CauseDisk)
				time.Sleep(5 * time.Minute)
				synctest.Wait()
				var tries []time.Duration
				for _, at := range w.at[1:] {
					tries = append(tries, at.Sub(w.at[0]))
				}
				if !slices.Equal(tries, tc.tries) {
					t.Errorf("tried again after %v, want %v", tries, tc.tries)
				}
				s.mu.Lock()
				notes := strings.Join(s.notes, "\n")
				s.mu.Unlock()
				if tc.note == "" && notes != "" || !strings.Contains(notes, tc.note) {
					t.Errorf("notes %q, want %q", notes, tc.note)
				}
				w.mu.Lock()
				w.statuses = []int{200}
				w.mu.Unlock()
				n.End(&session.Summary{})
			})
		})
	}
}

// TestNotifierDelaysEndTenSeconds ends runs while the webhook fails. The end waits ten seconds at
// most, also if an earlier message is still being tried.
func TestNotifierDelaysEndTenSeconds(t *testing.T) {
	for _, status := range []int{0, 503} {
		synctest.Test(t, func(t *testing.T) {
			w, s := &webhook{statuses: []int{status}}, &troubles{}
			n := notify(t, w, s)
			s.set(session.CauseDisk)
			time.Sleep(time.Minute)
			began := time.Now()
			n.End(&session.Summary{})
			if took := time.Since(began); took != 10*time.Second {
				t.Errorf("status %d: the end took %v, want 10 s", status, took)
			}
			if w.messages[len(w.messages)-1].Event != "end" || n.Missed() == "" {
				t.Errorf("status %d: last message %+v, missed %q", status,
					w.messages[len(w.messages)-1], n.Missed())
			}
		})
	}
}

// TestWebhookAddressStaysSecret looks for the secret of an address in errors, notes and requests to
// another server.
func TestWebhookAddressStaysSecret(t *testing.T) {
	check := func(text string) {
		t.Helper()
		if strings.Contains(text, canary) || strings.Contains(text, "hooks.example.com/") {
			t.Errorf("the secret is in %q", text)
		}
	}
	for _, bad := range []string{
		"hooks.example.com/" + canary, "ftp://x/" + canary, "http://" + canary + "\x7f", "https:///" + canary,
	} {
		if _, err := telemetry.NewNotifier(bad, nil); err == nil {
			t.Errorf("%s is accepted", bad)
		} else {
			check(err.Error())
		}
	}
	refused := roundTrip(func(*http.Request) (*http.Response, error) {
		return nil, errors.New("connection refused")
	})
	synctest.Test(t, func(t *testing.T) {
		s := &troubles{}
		n, err := telemetry.NewNotifier(address, refused)
		if err != nil {
			t.Fatal(err)
		}
		n.Begin(session.Start{}, s.live())
		s.set(session.CauseDisk)
		time.Sleep(time.Hour)
		n.End(&session.Summary{})
		check(n.Missed())
		for _, note := range s.notes {
			check(note)
		}
		if len(s.notes) == 0 || !strings.Contains(n.Missed(), "connection refused") {
			t.Errorf("notes %q, missed %q", s.notes, n.Missed())
		}
	})

	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another server got %s with referer %q", r.Method, r.Referer())
	}))
	defer other.Close()
	hook := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer hook.Close()
	n, err := telemetry.NewNotifier(hook.URL+"/"+canary, http.DefaultTransport)
	if err != nil {
		t.Fatal(err)
	}
	n.Begin(session.Start{}, (&troubles{}).live())
	n.End(&session.Summary{})
	if n.Missed() == "" {
		t.Error("a redirect counts as delivered")
	}
	check(n.Missed())
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
