package openai_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/wire"
	"github.com/assay-eval/assay/internal/model/wire/wiretest"
)

func TestFaultOfConnection(t *testing.T) {
	t.Parallel()
	hijack := func(text string, linger int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(conn, text)
			_ = conn.(*net.TCPConn).SetLinger(linger)
			_ = conn.Close()
		}
	}
	const head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
	tests := []struct {
		name    string
		handler http.HandlerFunc
		want    assay.FaultKind
	}{
		{"Reset", hijack("", 0), assay.Network},
		{"Closed", hijack("", -1), assay.Network},
		{"Truncated", hijack(head+"Content-Length: 500\r\n\r\n{\"choices\":[", -1), assay.Network},
		{
			"ResetInBody", hijack(head+"Transfer-Encoding: chunked\r\n\r\n5\r\n{\"cho", 0),
			assay.Network,
		},
		{"NoHTTP", hijack("SSH-2.0-OpenSSH\r\n", -1), assay.Network},
		{"TooLarge", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"choices":[],"x":"`+strings.Repeat("x", 5000)+`"}`)
		}, assay.Malformed},
		{"TooLargeCompressed", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(gzipped(t, strings.Repeat(" ", 1<<20)+hello))
		}, assay.Malformed},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			client := wire.NewClient(wire.ClientOptions{MaxBody: 4096})
			t.Cleanup(client.CloseIdleConnections)
			p := serve(t, test.handler, wire.Config{Client: client})
			_, f := chatFault(t, t.Context(), p)
			if f.Kind != test.want || f.Detail == "" {
				t.Errorf("fault = %+v, want %s", f, test.want)
			}
		})
	}
}

func TestFaultOfUnreachableEndpoint(t *testing.T) {
	t.Parallel()
	quiet := log.New(io.Discard, "", 0)
	untrusted := httptest.NewUnstartedServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = quiet
	untrusted.StartTLS()
	t.Cleanup(untrusted.Close)
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()

	noName := &http.Client{Transport: &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			err := &net.DNSError{Err: "no such host", Name: "assay.invalid", IsNotFound: true}
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err}
		},
	}}
	slowName := &http.Client{Transport: &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.DNSError{Err: "i/o timeout", Name: "assay.invalid", IsTimeout: true}
		},
	}}
	tests := []struct {
		name, url string
		client    *http.Client
		want      string
	}{
		{"UntrustedCertificate", untrusted.URL, nil, "certificate"},
		{"NoTLS", strings.Replace(plain.URL, "http:", "https:", 1), nil, "HTTP"},
		{"Refused", gone.URL, nil, "refused"},
		{"DNS", "http://assay.invalid", noName, "assay.invalid"},
		{"DNSTimeout", "http://assay.invalid", slowName, "assay.invalid"},
		{"DNSOfTheSystem", "http://assay.invalid", nil, "assay.invalid"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, wire.Config{BaseURL: test.url, Client: test.client})
			_, f := chatFault(t, t.Context(), p)
			if f.Kind != assay.Network || f.Status != 0 || !strings.Contains(f.Detail, test.want) {
				t.Errorf("fault = %+v, want network and %q", f, test.want)
			}
		})
	}
}

// stall returns a handler that hangs until the client leaves: hang before the headers,
// hang-body after them, or drip with one byte from time to time.
func stall(how string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if how != "hang" {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"id":`)
			_ = http.NewResponseController(w).Flush()
		}
		for how == "drip" {
			select {
			case <-r.Context().Done():
				return
			case <-time.After(time.Millisecond):
				_, _ = io.WriteString(w, " ")
				_ = http.NewResponseController(w).Flush()
			}
		}
		<-r.Context().Done()
	}
}

func TestHangsEndWithTheContext(t *testing.T) {
	t.Parallel()
	stopped := errors.New("second Ctrl-C")
	reason := &assay.Fault{Kind: assay.Overloaded, Detail: "the lane closed"}
	ends := []struct {
		name string
		end  func(context.Context) (context.Context, context.CancelFunc)
		want assay.Fault
	}{
		{"Deadline", func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 20*time.Millisecond)
		}, assay.Fault{Kind: assay.Timeout, Detail: "context deadline exceeded"}},
		{
			"Cancel", cancelled(stopped),
			assay.Fault{Kind: assay.Interrupted, Detail: "second Ctrl-C"},
		},
		{"CancelWithFault", cancelled(reason), *reason},
	}
	for _, how := range []string{"hang", "hang-body", "drip"} {
		for _, end := range ends {
			t.Run(how+"/"+end.name, func(t *testing.T) {
				t.Parallel()
				p := serve(t, stall(how), wire.Config{})
				ctx, cancel := end.end(t.Context())
				defer cancel()
				_, f := chatFault(t, ctx, p)
				if d := cmp.Diff(&end.want, f, cmpopts.IgnoreFields(assay.Fault{}, "Err")); d != "" {
					t.Errorf("fault differs (-want +got):\n%s", d)
				}
			})
		}
	}
}

// cancelled returns a function that makes a context end soon with a cause.
func cancelled(cause error) func(context.Context) (context.Context, context.CancelFunc) {
	return func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancelCause(ctx)
		timer := time.AfterFunc(20*time.Millisecond, func() { cancel(cause) })
		return ctx, func() { timer.Stop(); cancel(nil) }
	}
}

func TestHeaderTimeout(t *testing.T) {
	t.Parallel()
	client := wire.NewClient(wire.ClientOptions{ResponseHeaderTimeout: 20 * time.Millisecond})
	t.Cleanup(client.CloseIdleConnections)
	p := serve(t, stall("hang"), wire.Config{Client: client})
	_, f := chatFault(t, t.Context(), p)
	if f.Kind != assay.Timeout {
		t.Errorf("fault = %+v, want a timeout", f)
	}
}

// TestIdleBodyClosesConnection checks that a body that stops is a timeout, and that its
// connection is closed: the handler ends when the client has left.
func TestIdleBodyClosesConnection(t *testing.T) {
	t.Parallel()
	left := make(chan struct{})
	stop := stall("hang-body")
	client := wire.NewClient(wire.ClientOptions{BodyIdle: 20 * time.Millisecond})
	t.Cleanup(client.CloseIdleConnections)
	p := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(left)
		stop(w, r)
	}), wire.Config{Client: client})
	_, f := chatFault(t, t.Context(), p)
	want := &assay.Fault{
		Kind: assay.Timeout, Status: 200,
		Detail: "read the response body: no data received for 20ms",
	}
	if d := cmp.Diff(want, f, cmpopts.IgnoreFields(assay.Fault{}, "Err")); d != "" {
		t.Errorf("fault differs (-want +got):\n%s", d)
	}
	<-left
}

// pausing is a body that pauses before each byte, until its context ends.
type pausing struct {
	io.Reader
	ctx   context.Context
	pause time.Duration
}

func (b pausing) Read(p []byte) (int, error) {
	select {
	case <-b.ctx.Done():
		return 0, b.ctx.Err()
	case <-time.After(b.pause):
		return b.Reader.Read(p[:1])
	}
}

func (pausing) Close() error { return nil }

// roundTripper is a function that implements [http.RoundTripper].
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestBodyMayPauseForAMinute checks the default time limit between two bytes of a body. A
// body that drips is read to its end, however long that takes.
func TestBodyMayPauseForAMinute(t *testing.T) {
	t.Parallel()
	for pause, want := range map[time.Duration]string{
		59 * time.Second: "",
		61 * time.Second: "timeout (HTTP 200): read the response body: no data received for 1m0s",
	} {
		t.Run(pause.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var ctx context.Context
				transport := roundTripper(func(r *http.Request) (*http.Response, error) {
					ctx = r.Context()
					body := pausing{strings.NewReader(hello), ctx, pause}
					return &http.Response{StatusCode: 200, Header: headers(), Body: body}, nil
				})
				p := newProvider(t, wire.Config{Client: &http.Client{Transport: transport}})
				start := time.Now()
				_, err := p.Chat(t.Context(), new(wiretest.Hi()))
				spent, got := time.Duration(len(hello)+1)*pause, ""
				if err != nil {
					spent, got = time.Minute, err.Error()
				}
				if got != want || time.Since(start) != spent {
					t.Errorf("fault %q after %v, want %q after %v",
						got, time.Since(start), want, spent)
				}
				if ctx.Err() == nil {
					t.Error("the request's context was not canceled")
				}
			})
		})
	}
}

func TestMissingTLSHandshakeTimesOut(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	client := wire.NewClient(wire.ClientOptions{TLSTimeout: 20 * time.Millisecond})
	t.Cleanup(client.CloseIdleConnections)
	p := newProvider(t, wire.Config{BaseURL: "https://" + listener.Addr().String(), Client: client})
	_, f := chatFault(t, t.Context(), p)
	if f.Kind != assay.Timeout || !strings.Contains(f.Detail, "TLS handshake") {
		t.Errorf("fault = %+v, want a timeout of the handshake", f)
	}
}

func TestDialTimeout(t *testing.T) {
	t.Parallel()
	client := wire.NewClient(wire.ClientOptions{DialTimeout: time.Nanosecond})
	p := newProvider(t, wire.Config{BaseURL: "http://127.0.0.1:9", Client: client})
	if _, f := chatFault(t, t.Context(), p); f.Kind != assay.Timeout {
		t.Errorf("fault = %+v, want a timeout", f)
	}
}

func TestCanceledContextIsInterrupted(t *testing.T) {
	t.Parallel()
	_, p := record(t, hello, wire.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, f := chatFault(t, ctx, p)
	if f.Kind != assay.Interrupted || !errors.Is(f, context.Canceled) {
		t.Errorf("fault = %+v, want interrupted", f)
	}
}
