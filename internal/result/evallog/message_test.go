package evallog_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/evallog"
)

// TestEventsReferToMessages checks that a turn refers to the messages before it
// and a native call to its result.
func TestEventsReferToMessages(t *testing.T) {
	tr := transcript()
	_, data := write(t, meta,
		evallog.Sample{
			Attempt:    settled(newTrial(1, 1, "optimal"), 1, assay.FullSuccess),
			Transcript: tr,
		})
	s := unzip(t, data).samples(t)[0]
	type event struct {
		Event  string
		Start  float64  `json:"working_start"`
		Range  [][2]int `json:"input_refs"`
		ID     string
		Result string
	}
	var got []event
	if err := json.Unmarshal(s.Events, &got); err != nil {
		t.Fatal(err)
	}
	want := []event{
		{"model", 0, [][2]int{{0, 2}}, "", ""},
		{"tool", 0.5, nil, "c1", `{"success":true}`},
		{"tool", 0.5, nil, "c2", `{"refused":"no JSON"}`},
		{"model", 0.5, [][2]int{{0, 5}}, "", ""},
		{"model", 0.5, [][2]int{{0, 7}}, "", ""},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if len(s.Pool.Messages) != len(s.Messages) {
		t.Errorf("%d messages in events_data, want %d", len(s.Pool.Messages), len(s.Messages))
	}
}

// TestFailedCallsHaveErrors checks that the answer to a failed or refused call has an error, and
// its event, too.
func TestFailedCallsHaveErrors(t *testing.T) {
	type failure struct{ Type, Message string }
	for name, c := range map[string]struct {
		answer string
		want   *failure
	}{
		"success": {`{"tool":"fetch","success":true,"output":{"error":"none"}}`, nil},
		"failure": {
			`{"tool":"fetch","success":false,"error":"OVERFLOW: too much"}`,
			&failure{"unknown", "OVERFLOW: too much"},
		},
		"timeout": {
			`{"tool":"fetch","success":false,"error":"TIMEOUT: too slow"}`,
			&failure{"timeout", "TIMEOUT: too slow"},
		},
		"refusal":  {`{"refused":"no JSON"}`, &failure{"parsing", "no JSON"}},
		"no JSON":  {"error: so it goes", nil},
		"no texts": {`{"error":["so it goes"]}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			tr := &assay.Transcript{Messages: []assay.Message{
				{Role: assay.Assistant, Calls: []assay.ToolCall{{ID: "c", Name: "fetch"}}},
				{Role: assay.ToolRole, CallID: "c", Content: c.answer},
			}}
			a := settled(newTrial(1, 1, "optimal"), 1, assay.Failure)
			_, data := write(t, meta, evallog.Sample{Attempt: a, Transcript: tr})
			s := unzip(t, data).samples(t)[0]
			var message struct{ Error *failure }
			var events []struct{ Error *failure }
			if err := errors.Join(json.Unmarshal(s.Messages[1], &message),
				json.Unmarshal(s.Events, &events)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, message.Error); diff != "" {
				t.Errorf("error of the message (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.want, events[1].Error); diff != "" {
				t.Errorf("error of the event (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzArguments checks that the log stays readable whatever a model writes as
// arguments, and that it contains their text as arguments or in an error.
func FuzzArguments(f *testing.F) {
	for _, text := range hostile {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tr := &assay.Transcript{Messages: []assay.Message{
			{Role: assay.User, Content: text},
			{
				Role: assay.Assistant, Content: text, Reasoning: text,
				Calls: []assay.ToolCall{{ID: text, Name: text, Arguments: text}},
			},
		}}
		_, data := write(t, meta,
			evallog.Sample{
				Attempt:    settled(newTrial(1, 1, "optimal"), 1, assay.Failure),
				Transcript: tr,
			})
		a := unzip(t, data)
		s := a.samples(t)[0]
		if d := deepest(a.files["samples/"+s.ID+"_epoch_1.json"]); d > 200 {
			t.Fatalf("%q gives a file with %d levels", text, d)
		}
		var m struct {
			Calls []struct {
				Arguments map[string]any
				Wrong     string `json:"parse_error"`
			} `json:"tool_calls"`
		}
		err := json.Unmarshal(s.Messages[1], &m)
		if err != nil || len(m.Calls) != 1 || m.Calls[0].Arguments == nil {
			t.Fatalf("call %+v of %q, %v", m, text, err)
		}
		if raw := s.Messages[1]; aloneHalf.Match(bytes.ToLower(raw)) {
			t.Fatalf("%q leaves an unpaired surrogate in %s", text, raw)
		}
		var want map[string]any
		plain := strings.ToValidUTF8(text, "\uFFFD")
		switch c := m.Calls[0]; {
		case c.Wrong != "":
			if !strings.Contains(c.Wrong, plain) || len(c.Arguments) != 0 {
				t.Fatalf("the parse error of %q is %q, with arguments %v",
					text, c.Wrong, c.Arguments)
			}
		case text != "":
			err := json.Unmarshal([]byte(plain), &want)
			if err != nil || !reflect.DeepEqual(want, c.Arguments) {
				t.Fatalf("arguments of %q are %v (%v)", text, c.Arguments, err)
			}
		}
	})
}

// deepest returns the depth of nesting in JSON.
func deepest(text []byte) (most int) {
	level := 0
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		token, err := d.Token()
		if err != nil {
			return most
		}
		switch token {
		case json.Delim('['), json.Delim('{'):
			level++
			most = max(most, level)
		case json.Delim(']'), json.Delim('}'):
			level--
		}
	}
}

// aloneHalf matches an escaped surrogate. Go's encoder never writes one.
var aloneHalf = regexp.MustCompile(`(^|[^\\])(\\\\)*\\ud[89a-f]`)

// hostile lists arguments that could make a log unreadable.
var hostile = []string{
	"", " ", "{}", "null", "[]", `"text"`, `{"a":1}`, `{"a":`, `{"a":1}{"b":2}`, "{\"a\":\"\xff\"}",
	`{"a":"\ud800"}`, `{"a":"\uD83D\uDE00", "n": 9007199254740993}`,
	`{"a":` + strings.Repeat("9", 5000) + `}`, `{"a":1e999}`, `{"a":1,"a":2}`, `{"a":NaN}`,
	`{"a":` + strings.Repeat("[", 3000) + strings.Repeat("]", 3000) + `}`,
	`{"a":` + strings.Repeat("[", 90) + strings.Repeat("]", 90) + `}`,
}
