package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/run/session"
	"github.com/assay-eval/assay/internal/run/terminal"
)

const (
	// lookEvery is how often a notifier looks for things that need attention.
	lookEvery = 10 * time.Second
	// sayAgainAfter is the shortest time between two messages about the same cause.
	sayAgainAfter = 10 * time.Minute
	// firstRetry doubles with each try to deliver a message, up to longestRetry.
	firstRetry, longestRetry = time.Second, time.Minute
	// giveUpAfter is how long a message is worth another try.
	giveUpAfter = 10 * time.Minute
	// endWithin is how long the end of a run waits for its message.
	endWithin = 10 * time.Second
)

// A Message is the body of a request to a webhook. Text is for people, and the field that Slack,
// Mattermost and others show.
type Message struct {
	Event      string      `json:"event"` // "attention" or "end"
	Text       string      `json:"text"`
	Experiment string      `json:"experiment"`
	Run        assay.RunID `json:"run"`
	At         time.Time   `json:"at"`
	job.Trials
	Cost float64 `json:"cost_usd"`
	// Unpriced names the models with requests of unknown cost, which Cost leaves out.
	Unpriced  []string             `json:"unpriced,omitempty"`
	Attention []terminal.Attention `json:"attention"`
	Stopped   bool                 `json:"stopped"` // by a signal
	Error     string               `json:"error,omitempty"`
}

// A Notifier posts a message to a webhook when a run ends or needs somebody.
type Notifier struct {
	address string // it has the webhook's secret, so no text contains it
	client  *http.Client
	start   session.Start
	live    session.Live
	queue   chan Message
	stop    context.CancelFunc
	worker  sync.WaitGroup

	// told and quiet belong to the goroutine that looks.
	told  map[string]int       // entries that a message was about, by cause
	quiet map[string]time.Time // when a cause may be repeated

	missed error // why the message about the end did not arrive
}

// NewNotifier returns a notifier for the address of a webhook. Errors do not show the address.
func NewNotifier(address string, transport http.RoundTripper) (*Notifier, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, errors.New("the webhook is not an http or https URL")
	}
	return &Notifier{
		address: address,
		client: &http.Client{
			Transport: transport, Timeout: endWithin,
			// A redirect would show the address to another server as its referer.
			CheckRedirect: func(*http.Request, []*http.Request) error {
				return http.ErrUseLastResponse
			},
		},
		queue: make(chan Message, 8),
		told:  make(map[string]int), quiet: make(map[string]time.Time),
	}, nil
}

var _ session.Observer = (*Notifier)(nil)

// Begin implements [session.Observer].
func (n *Notifier) Begin(s session.Start, l session.Live) {
	n.start, n.live = s, l
	ctx, cancel := context.WithCancel(context.Background())
	n.stop = cancel
	n.worker.Go(func() { n.look(ctx) })
	n.worker.Go(func() { n.work(ctx) })
}

// work delivers messages until ctx ends.
func (n *Notifier) work(ctx context.Context) {
	for {
		select {
		case m := <-n.queue:
			if err := n.deliver(ctx, m); err != nil && ctx.Err() == nil {
				n.live.Note("the webhook does not take messages: " + err.Error())
			}
		case <-ctx.Done():
			return
		}
	}
}

// Request implements [session.Observer].
func (*Notifier) Request(lane.Exchange) {}

// Attempt implements [session.Observer].
func (*Notifier) Attempt(session.Episode) {}

// End implements [session.Observer]. It takes ten seconds at most.
func (n *Notifier) End(sum *session.Summary) {
	n.stop() // the last message includes the news of the queued ones
	n.worker.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), endWithin)
	defer cancel()
	n.missed = n.deliver(ctx, n.last(sum))
	n.client.CloseIdleConnections()
}

// Missed returns why the message about the end did not arrive, or "".
func (n *Notifier) Missed() string {
	if n.missed == nil {
		return ""
	}
	return "the webhook was not told that the run has ended: " + n.missed.Error()
}

// look queues a message when something new needs attention.
func (n *Notifier) look(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		state := n.live.Progress()
		if state.Stopping || !n.isNew(state.Attention, time.Now()) {
			continue
		}
		select {
		case n.queue <- n.attention(state):
		default: // the webhook is stuck, which the user has read by now
		}
	}
}

// isNew reports whether there is news since the latest messages. A pause by the user needs no
// message.
func (n *Notifier) isNew(all []terminal.Attention, now time.Time) bool {
	entries, found := make(map[string]int), false
	for _, a := range all {
		if a.Cause != session.CausePaused {
			entries[a.Cause]++
		}
	}
	for cause := range n.told {
		n.told[cause] = min(n.told[cause], entries[cause])
	}
	for cause, count := range entries {
		if count > n.told[cause] && !now.Before(n.quiet[cause]) {
			n.told[cause], n.quiet[cause], found = count, now.Add(sayAgainAfter), true
		}
	}
	return found
}

// attention returns the message about everything that needs attention.
func (n *Notifier) attention(s terminal.Progress) Message {
	m := n.message("attention", s)
	m.Text = fmt.Sprintf("%s needs attention: %d of %d trials done", m.Experiment, m.Done, m.Planned)
	return m.withAlarms()
}

// last returns the message about the end of the run.
func (n *Notifier) last(sum *session.Summary) Message {
	m := n.message("end", n.live.Progress())
	m.Trials, m.Cost, m.Unpriced = sum.Trials, sum.Cost, sum.Unpriced
	m.Stopped, m.Error = sum.Stopped, sum.Error
	took := time.Duration(sum.Wall * float64(time.Second)).Round(time.Second)
	m.Text = fmt.Sprintf("%s: the run has ended after %s: %d of %d trials done",
		m.Experiment, took, m.Done, m.Planned)
	for _, c := range []struct {
		n    int
		name string
	}{{m.Pending, "pending"}, {m.Parked, "parked"}, {sum.Skipped, "skipped"}} {
		if c.n > 0 {
			m.Text += fmt.Sprintf(", %d %s", c.n, c.name)
		}
	}
	if m.Cost > 0 || len(m.Unpriced) > 0 {
		m.Text += ", " + assay.CostText(m.Cost, 2, m.Unpriced...) + " in this run"
	}
	if m.Stopped {
		m.Text += "; it was stopped"
	}
	if m.Error != "" {
		m.Text += "\nerror: " + m.Error
	}
	return m.withAlarms()
}

func (n *Notifier) message(event string, s terminal.Progress) Message {
	return Message{
		Event: event, Experiment: n.start.Experiment, Run: n.start.Run, At: time.Now().UTC(),
		Trials: s.Trials, Cost: s.Cost, Unpriced: s.Unpriced, Attention: s.Attention,
	}
}

// maxAlarms is how many alarms the text of a message has.
const maxAlarms = 5

// withAlarms adds alarms to the text, and keeps an endpoint's words in it from being a link or a
// mention in a chat.
func (m Message) withAlarms() Message {
	for i, a := range m.Attention {
		if i == maxAlarms {
			m.Text += fmt.Sprintf("\n… and %d more", len(m.Attention)-i)
			break
		}
		m.Text += "\n• " + a.String()
	}
	// Slack names these three: https://docs.slack.dev/messaging/formatting-message-text
	m.Text = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(m.Text)
	return m
}

// deliver posts a message until the webhook takes it, refuses it for good, or ctx ends.
func (n *Notifier) deliver(ctx context.Context, m Message) error {
	ctx, cancel := context.WithTimeout(ctx, giveUpAfter)
	defer cancel()
	var latest error
	for wait := firstRetry; ; wait = min(2*wait, longestRetry) {
		after, again, err := n.post(ctx, m)
		if err == nil {
			return nil
		}
		if latest == nil || ctx.Err() == nil { // otherwise err is only that ctx has ended
			latest = err
		}
		if !again {
			return latest
		}
		select {
		case <-time.After(max(wait, after)):
		case <-ctx.Done():
			return latest
		}
	}
}

// post posts a message once. If again is true, it may work later: after a while that the webhook
// asked for.
func (n *Notifier) post(
	ctx context.Context, m Message,
) (after time.Duration, again bool, err error) {
	body, err := json.Marshal(m)
	if err != nil {
		return 0, false, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, n.address, bytes.NewReader(body))
	if err != nil {
		return 0, false, errors.New("its address cannot be used")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "assay")
	resp, err := n.client.Do(req)
	if err != nil {
		return 0, true, withoutAddress(err)
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 1<<16) // so that the connection can be used again
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return 0, false, nil
	}
	again = resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests ||
		resp.StatusCode == http.StatusRequestTimeout
	seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
	after = min(time.Duration(max(0, seconds))*time.Second, longestRetry)
	return after, again, fmt.Errorf("HTTP %d", resp.StatusCode)
}

// withoutAddress removes the URL from an error of an HTTP client, because it may have a secret.
func withoutAddress(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
