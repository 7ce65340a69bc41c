package wiretest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/golden"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/wire"
)

// noon is the endpoint's time in the files of [CheckReplies].
const noon = "Fri, 02 Jan 2026 12:00:00 GMT"

// CheckReplies checks what a protocol makes of the replies in files of testdata. Each reply has a
// name, perhaps a status and headers, and a body, and its outcome follows:
//
//	== QuotaOfAMinute
//	429
//	Retry-After: 7
//
//	{"error":{"message":"slow down"}}
//	=> rate_limited (HTTP 429): slow down
//	wait: 7s
//
// The flag -update writes the outcomes.
func CheckReplies(t *testing.T, protocol *wire.Protocol, files ...string) {
	t.Helper()
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			got := new(strings.Builder)
			for _, c := range readReplies(t, file) {
				fmt.Fprintf(got, "== %s\n%s\n=> ", c.name, c.text)
				resp, err := c.reply.Provider(t, protocol).Chat(t.Context(), new(Hi()))
				if f := assay.AsFault(err); f != nil {
					checkFault(t, c.name, f)
				}
				got.WriteString(outcome(resp, err) + "\n\n")
			}
			golden.Assert(t, got.String(), file)
		})
	}
}

// Bodies returns the bodies of the replies in a file of testdata.
func Bodies(t testing.TB, file string) (all []string) {
	t.Helper()
	for _, c := range readReplies(t, file) {
		all = append(all, c.reply.Body)
	}
	return all
}

type namedReply struct {
	name, text string
	reply      *Canned
}

func readReplies(t testing.TB, file string) (all []namedReply) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	for section := range strings.SplitSeq("\n"+string(content), "\n== ") {
		name, rest, ok := strings.Cut(section, "\n")
		if !ok {
			continue
		}
		text, _, ok := strings.Cut("\n"+rest, "\n=>")
		if !ok {
			t.Fatalf("%s: %s has no outcome", file, name)
		}
		text = strings.TrimPrefix(text, "\n")
		all = append(all, namedReply{name, text, parseReply(text)})
	}
	return all
}

// parseReply reads a body, with a status and headers before it if it begins with a status.
func parseReply(text string) *Canned {
	c := &Canned{Header: http.Header{"Date": {noon}}, Body: text}
	head, body, _ := strings.Cut(text, "\n\n")
	first, headers, _ := strings.Cut(head, "\n")
	status, err := strconv.Atoi(first)
	if err != nil {
		return c
	}
	c.Status, c.Body = status, body
	for line := range strings.Lines(headers) {
		name, value, _ := strings.Cut(line, ":")
		c.Header.Set(name, strings.TrimSpace(value))
	}
	return c
}

// checkFault checks that a fault explains itself on one short line.
func checkFault(t *testing.T, name string, f *assay.Fault) {
	t.Helper()
	if len(f.Detail) > 300 || strings.ContainsAny(f.Detail, "\n\r") {
		t.Errorf("%s: the detail is not one short line: %q", name, f.Detail)
	}
}

// outcome describes what a client returned: the fault or the role of the message, then each field
// that is set.
func outcome(resp *assay.Response, err error) string {
	m := resp.Message
	lines := []string{string(m.Role)}
	add := func(name string, value any) {
		if !reflect.ValueOf(value).IsZero() {
			lines = append(lines, name+": "+text(value))
		}
	}
	if f := assay.AsFault(err); f != nil {
		lines[0] = f.Error()
		add("role", m.Role)
		add("wait", f.RetryAfter)
		add("bucket", f.Bucket)
		add("limit", f.Limit)
		add("too long", f.TooLong)
		add("wrong form", f.Form)
		add("hopeless", f.Hopeless)
	}
	add("content", m.Content)
	add("reasoning", m.Reasoning)
	for _, c := range m.Calls {
		add("call", c)
	}
	add("state", m.State)
	add("model", resp.ServedModel)
	add("finish", resp.Finish)
	add("usage", resp.Usage)
	add("reported", resp.Reported)
	add("deviations", resp.Deviations)
	for _, q := range resp.Quotas {
		lines = append(lines,
			fmt.Sprintf("quota: %s, %d of %d, reset after %s", q.Bucket, q.Remaining, q.Limit, q.Reset))
	}
	return strings.Join(lines, "\n")
}

// text returns durations and limits as people write them, and other values as JSON.
func text(value any) string {
	switch value.(type) {
	case time.Duration, assay.Bucket:
		return fmt.Sprint(value)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		panic(err)
	}
	return strings.TrimSpace(b.String())
}
