package protocol_test

import (
	"bytes"
	"compress/flate"
	"compress/zlib"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/simserver"
)

// tellTruncated checks that a reply that was cut off for length is a reply, and that its finish
// reason shows it.
func tellTruncated(t *testing.T, c column) {
	cut := reply("I will now")
	cut.Finish = "length"
	for _, text := range []string{cut.Message.Content, ""} {
		cut.Message.Content = text
		s := c.stage(t, simserver.Config{}, cut)
		req := question()
		resp := s.say(t, &req)
		checkMessage(t, cut.Message, resp.Message)
		if !assay.Truncated(resp.Finish) {
			t.Errorf("Finish = %q", resp.Finish)
		}
	}
	s := c.stage(t, simserver.Config{}, reply("Done."))
	req := question()
	if resp := s.say(t, &req); resp.Finish == "" || assay.Truncated(resp.Finish) {
		t.Errorf("Finish = %q of a complete reply", resp.Finish)
	}
}

// tellSettings checks that the endpoint sees each setting, or that the client reports beforehand
// and with the reply that it does not.
func tellSettings(t *testing.T, c column) {
	for name, set := range map[string]func(s *assay.Sampling){
		"temperature": func(s *assay.Sampling) { s.Temperature = new(0.5) },
		"top_p":       func(s *assay.Sampling) { s.TopP = new(0.5) },
		"seed":        func(s *assay.Sampling) { s.Seed = new(int64(7)) },
		"effort":      func(s *assay.Sampling) { s.Effort = "high" },
		"thinking":    func(s *assay.Sampling) { s.Thinking = new(2048) },
		"no thinking": func(s *assay.Sampling) { s.Thinking = new(0) },
		"auto":        func(s *assay.Sampling) { s.ToolChoice = "auto" },
		"required":    func(s *assay.Sampling) { s.ToolChoice = "required" },
		"none":        func(s *assay.Sampling) { s.ToolChoice = "none" },
	} {
		s := c.stage(t, simserver.Config{}, reply("x"))
		req := question()
		req.Sampling.MaxTokens = new(4096)
		set(&req.Sampling)
		want := req.Sampling
		resp := s.say(t, &req)
		seen := cmp.Equal(want, s.latest().Sampling)
		omitted := s.client.Omits(req)
		admitted := slices.ContainsFunc(omitted, func(omitted string) bool {
			return slices.Contains(resp.Deviations, "no "+omitted)
		})
		if seen == admitted || seen && len(omitted)+len(resp.Deviations) > 0 {
			t.Errorf("with %s, the server saw %+v, Omits() = %v, Deviations = %v",
				name, s.latest().Sampling, omitted, resp.Deviations)
		}
	}
}

// tellReadable checks that replies are read although a gateway has put them into odd clothes.
func tellReadable(t *testing.T, c column) {
	written := reply("Reading.", call("c1", `{"n":1}`))
	for name, dress := range map[string]func(h http.Header, body []byte) []byte{
		"byte order mark": func(_ http.Header, body []byte) []byte {
			return append([]byte("\ufeff"), body...)
		},
		"white space": func(_ http.Header, body []byte) []byte {
			return slices.Concat([]byte("\n\n \t\r\n"), body, []byte("\n"))
		},
		"comments": func(_ http.Header, body []byte) []byte {
			return append([]byte(": PROCESSING\n\n: PROCESSING\n\n\r\n "), body...)
		},
		"plain text": func(h http.Header, body []byte) []byte {
			h.Set("Content-Type", "text/plain")
			return body
		},
		"the type of a page": func(h http.Header, body []byte) []byte {
			h.Set("Content-Type", "text/html")
			return body
		},
		"another type": func(h http.Header, body []byte) []byte {
			h.Set("Content-Type", "application/octet-stream")
			return body
		},
		"deflate": func(h http.Header, body []byte) []byte {
			h.Set("Content-Encoding", "deflate")
			var b bytes.Buffer
			w := zlib.NewWriter(&b)
			_, _ = w.Write(body)
			_ = w.Close()
			return b.Bytes()
		},
		"deflate without a header": func(h http.Header, body []byte) []byte {
			h.Set("Content-Encoding", "deflate")
			var b bytes.Buffer
			w, _ := flate.NewWriter(&b, flate.DefaultCompression)
			_, _ = w.Write(body)
			_ = w.Close()
			return b.Bytes()
		},
		"no type": func(h http.Header, body []byte) []byte {
			h["Content-Type"] = nil
			return body
		},
		"NaN": func(_ http.Header, body []byte) []byte {
			return append([]byte(`{"score":NaN,"nothing":-Infinity,`), body[1:]...)
		},
		"an error that did not happen": func(_ http.Header, body []byte) []byte {
			return append([]byte(`{"error":null,`), body[1:]...)
		},
		"an empty error": func(_ http.Header, body []byte) []byte {
			return append([]byte(`{"error":{},`), body[1:]...)
		},
	} {
		s := c.stage(t, simserver.Config{}, written)
		handler := func(w http.ResponseWriter, r *http.Request) {
			rec := httptest.NewRecorder()
			s.server.ServeHTTP(rec, r)
			body := dress(rec.Header(), bytes.Clone(rec.Body.Bytes()))
			for key, values := range rec.Header() {
				if key != "Content-Length" {
					w.Header()[key] = values
				}
			}
			_, _ = w.Write(body)
		}
		gateway := httptest.NewServer(http.HandlerFunc(handler))
		t.Cleanup(gateway.Close)
		resp, err := c.open(t, gateway.URL, model).Chat(t.Context(), new(question()))
		if err != nil {
			t.Errorf("with %s, Chat() = %v", name, err)
			continue
		}
		checkMessage(t, written.Message, resp.Message)
	}
}
