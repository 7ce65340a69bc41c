package openai_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/protocol/openai"
	"github.com/assay-eval/assay/internal/model/wire"
	"github.com/assay-eval/assay/internal/model/wire/wiretest"
)

// TestMain keeps the tests away from the machine's proxy.
func TestMain(m *testing.M) {
	if err := os.Setenv("NO_PROXY", "*"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

func gzipped(t testing.TB, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	key := wire.NewSecret
	tests := []struct {
		name string
		cfg  wire.Config
		want string
	}{
		{"NoDeployment", wire.Config{}, "deployment"},
		{
			"NoScheme",
			wire.Config{BaseURL: "gateway.example/v1", Deployment: "d"},
			"hint: it looks like",
		},
		{
			"OtherScheme",
			wire.Config{BaseURL: "ftp://gateway.example/v1", Deployment: "d"},
			"hint: it looks like",
		},
		{
			"Password",
			wire.Config{BaseURL: "https://u:canary-password@gateway.example", Deployment: "d"},
			"hint: give credentials as keys",
		},
		{
			"Query",
			wire.Config{BaseURL: "https://gateway.example?key=canary-password", Deployment: "d"},
			"hint: give only the part",
		},
		{
			"WholeAddress",
			wire.Config{BaseURL: "https://gateway.example/v1/chat/completions", Deployment: "d"},
			"hint: leave that part out",
		},
		{
			"EmptyKey",
			wire.Config{KeyName: "SMALL_KEY", Key: key(""), Deployment: "d"},
			"SMALL_KEY is empty",
		},
		{
			"KeyWithLineEnd",
			wire.Config{KeyName: "SMALL_KEY", Key: key("canary-password\n"), Deployment: "d"},
			"SMALL_KEY contains",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := openai.Protocol.New(test.cfg)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("New() = %v, want %q", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "canary-password") {
				t.Errorf("New() reveals the secret: %v", err)
			}
		})
	}
}

// canary is a key that is hard to scrub, because JSON, Go and URLs all escape it.
const canary = `sk-canary/0123+4567=<89>&"q\`

// spellings lists strings that must not appear anywhere.
var spellings = []string{canary, "sk-canary", "0123+4567", "canary"}

func mustNotLeak(t testing.TB, source, text string) {
	t.Helper()
	for _, s := range spellings {
		if strings.Contains(text, s) {
			t.Errorf("%s leaks the key: %s", source, text)
			return
		}
	}
}

// printed returns v printed in every way in which programs print values.
func printed(v any) string {
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "v", v)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "v", v)
	doc, _ := json.Marshal(v)
	return fmt.Sprintf("%v\n%+v\n%#v\n%s\n%q\n%x\n%d\n%s\n%s",
		v, v, v, v, v, v, v, log.String(), doc)
}

func TestPrintingShowsNoSecret(t *testing.T) {
	t.Parallel()
	other := wire.NewSecret("other-canary-key")
	cfg := wire.Config{
		Key: wire.NewSecret(canary), KeyName: "SMALL_KEY", Deployment: "small",
		Secrets: []wire.Secret{other},
	}
	p := newProvider(t, cfg)
	type holder struct {
		Public  wire.Config
		private wire.Config
		key     wire.Secret
		p       *wire.Provider
	}
	h := holder{cfg, cfg, cfg.Key, p}
	opts := wire.ClientOptions{Secrets: []wire.Secret{other, cfg.Key}}
	for _, v := range []any{
		cfg, &cfg, p, cfg.Key, &cfg.Key, cfg.Secrets, h, &h,
		[]any{h},
		opts, wire.NewClient(opts), cfg.Client,
	} {
		mustNotLeak(t, fmt.Sprintf("printing %T", v), printed(v))
	}
	if got := fmt.Sprint(cfg.Key); got != "[redacted]" {
		t.Errorf("Key prints as %q", got)
	}
	if got := p.String(); !strings.Contains(got, "SMALL_KEY") || !strings.Contains(got, "small") {
		t.Errorf("String() = %q, want the names", got)
	}
}

// echoes returns handlers that return a key in different ways.
func echoes(key string) map[string]http.HandlerFunc {
	quoted, _ := json.Marshal(key)
	inJSON := string(quoted[1 : len(quoted)-1])
	slashes := strings.ReplaceAll(inJSON, "/", `\/`)
	var all strings.Builder
	for _, r := range key {
		fmt.Fprintf(&all, `\u%04X`, r)
	}
	send := func(status int, contentType, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", contentType)
			w.Header().Set("X-Echo", key)
			w.Header().Set("Retry-After", key)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	handlers := map[string]http.HandlerFunc{
		"PlainText":   send(500, "text/plain", "no such key "+key),
		"HTML":        send(502, "text/html", "<p>"+key),
		"ContentType": send(200, "text/"+"canary", key),
		"Redirect": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "https://elsewhere.example/?key=canary")
			w.WriteHeader(302)
		},
		"NoHTTP": func(w http.ResponseWriter, r *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_, _ = io.WriteString(conn, key+"\r\n")
				_ = conn.Close()
			}
		},
		"BadHeader": func(w http.ResponseWriter, r *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n"+key+"\r\n\r\n")
				_ = conn.Close()
			}
		},
	}
	const (
		failure = `{"error":{"message":"Incorrect API key provided: KEY.","code":"KEY",` +
			`"type":"KEY","param":"KEY"}}`
		reply = `{"model":"KEY","choices":[{"message":{"content":"KEY","reasoning_content":"KEY",` +
			`"tool_calls":[{"id":"KEY","function":{"name":"KEY","arguments":"KEY"}}]}}]}`
	)
	long := `{"error":{"message":"` + strings.Repeat("x", 280) + `KEY"}}`
	for name, spelling := range map[string]string{
		"JSON": inJSON, "Slashes": slashes, "Escapes": all.String(),
	} {
		with := func(status int, body string) http.HandlerFunc {
			return send(status, "application/json", strings.ReplaceAll(body, "KEY", spelling))
		}
		for _, status := range []int{400, 401, 429, 500} {
			handlers[fmt.Sprint(name, status)] = with(status, failure)
		}
		handlers[name+"Long"] = with(401, long)
		handlers[name+"Reply"] = with(200, reply)
	}
	return handlers
}

func TestEchoedKeyNeverAppears(t *testing.T) {
	t.Parallel()
	secrets := []wire.Secret{wire.NewSecret(canary)}
	for name, handler := range echoes(canary) {
		for as, cfg := range map[string]wire.Config{
			"Secret": {Secrets: secrets},
			"Client": {Client: wire.NewClient(wire.ClientOptions{Secrets: secrets})},
		} {
			t.Run(name+"/"+as, func(t *testing.T) {
				t.Parallel()
				onlyUsual := strings.HasPrefix(name, "Escapes") || name == "NoHTTP" || name == "BadHeader"
				if as == "Client" && onlyUsual {
					t.Skip("the client only scrubs bodies, and only the usual spellings")
				}
				if cfg.Client != nil {
					t.Cleanup(cfg.Client.CloseIdleConnections)
				}
				if name == "ContentType" || name == "Redirect" {
					more := []wire.Secret{wire.NewSecret("text/canary"), wire.NewSecret("canary")}
					cfg.Secrets = slices.Concat(cfg.Secrets, more)
				}
				p := serve(t, handler, cfg)
				resp, err := p.Chat(t.Context(), new(wiretest.Hi()))
				mustNotLeak(t, "the response", printed(resp))
				for e := err; e != nil; e = errors.Unwrap(e) {
					mustNotLeak(t, "the fault", printed(e)+e.Error())
				}
				if err == nil && !strings.Contains(resp.Message.Content, "[redacted]") {
					t.Errorf("content = %q, want it redacted", resp.Message.Content)
				}
			})
		}
	}
}

// TestNoSpellingOfAnySecretAppears checks random secrets.
func TestNoSpellingOfAnySecretAppears(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringN(8, 40, -1).Draw(t, "secret")
		quoted, err := json.Marshal(secret)
		if err != nil {
			t.Fatal(err)
		}
		inJSON := string(quoted[1 : len(quoted)-1])
		for _, spelling := range []string{
			secret, inJSON, strings.ReplaceAll(inJSON, "/", `\/`),
			url.QueryEscape(secret), url.PathEscape(secret),
			hex.EncodeToString([]byte(secret)), fmt.Sprintf("%X", secret),
			base64.RawStdEncoding.EncodeToString([]byte(secret)),
			base64.RawURLEncoding.EncodeToString([]byte(secret)),
		} {
			plain := http.Header{"Content-Type": {"text/plain"}}
			p, err := openai.Protocol.New(wire.Config{
				Deployment: "m",
				Secrets:    []wire.Secret{wire.NewSecret("sk-another-one"), wire.NewSecret(secret)},
				Client:     &http.Client{Transport: canned{400, plain, "key: " + spelling}},
			})
			if err != nil {
				t.Fatal(err)
			}
			_, err = p.Chat(context.Background(), new(wiretest.Hi()))
			if f := assay.AsFault(err); f == nil || f.Detail != "key: [redacted]" {
				t.Errorf("Chat() = %v", err)
			}
		}
	})
}

// TestShortSecretsAreNotScrubbed checks that a very short secret does not change replies
// that contain it by chance.
func TestShortSecretsAreNotScrubbed(t *testing.T) {
	t.Parallel()
	_, p := record(t, hello, wire.Config{Key: wire.NewSecret("hell")})
	resp, err := p.Chat(t.Context(), new(wiretest.Hi()))
	if err != nil || resp.Message.Content != "hello" {
		t.Errorf("Chat() = %q, %v; want hello", resp.Message.Content, err)
	}
}

// conns counts a server's connections by state.
type conns struct {
	mu   sync.Mutex
	open map[net.Conn]bool // guarded by mu
	made int               // guarded by mu
	gone sync.WaitGroup
}

func (c *conns) state(conn net.Conn, s http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch s {
	case http.StateNew:
		c.open[conn] = true
		c.made++
		c.gone.Add(1)
	case http.StateClosed, http.StateHijacked:
		delete(c.open, conn)
		c.gone.Done()
	}
}

// TestConnectionsAreReusedAndClosed checks that every kind of reply returns its connection,
// and that closing idle connections through the guard closes all of them.
func TestConnectionsAreReusedAndClosed(t *testing.T) {
	t.Parallel()
	c := &conns{open: map[net.Conn]bool{}}
	var n atomic.Int32
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch n.Add(1) % 4 {
		case 0:
			writeJSON(w, 200, hello)
		case 1:
			writeJSON(w, 429, `{}`)
		case 2:
			writeJSON(w, 200, `{"choices":`)
		case 3:
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		}
	})
	server := httptest.NewUnstartedServer(handler)
	server.Config.ConnState = c.state
	server.Start()
	defer server.Close()
	client := wire.NewClient(wire.ClientOptions{})
	p := newProvider(t, wire.Config{BaseURL: server.URL, Client: client})
	for range 40 {
		if _, err := p.Chat(t.Context(), new(wiretest.Hi())); err != nil {
			var f *assay.Fault
			if !errors.As(err, &f) {
				t.Errorf("Chat() = %v, want a fault", err)
			}
		}
	}
	if c.made != 1 {
		t.Errorf("%d connections for 40 requests, want 1", c.made)
	}
	client.CloseIdleConnections()
	c.gone.Wait() // returns when all connections are closed
}
