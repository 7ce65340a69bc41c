package conversation_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/conversation"
	"github.com/assay-eval/assay/internal/task/library"
)

// A bench judges conversations about the wallet of docs/own-tools.md.
type bench struct {
	lib   *library.Library
	judge *conversation.Judge
}

func newBench(t testing.TB) bench {
	t.Helper()
	lib, err := library.OpenNamed(t.Context(), "testdata/wallet/tasks.yaml")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lib.Close() })
	judge, err := conversation.NewJudge(lib.Catalog())
	if err != nil {
		t.Fatal(err)
	}
	return bench{lib, judge}
}

// verdicts judges all conversations of a file.
func (b bench) verdicts(t testing.TB, name string, data []byte) (all []conversation.Verdict) {
	t.Helper()
	found, err := conversation.Read(name, bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	for i := range found {
		all = append(all, b.verdict(t, &found[i], found[i].Task))
	}
	return all
}

func (b bench) verdict(t testing.TB, c *conversation.Conversation, id assay.TaskID) conversation.Verdict {
	t.Helper()
	task, err := b.lib.Any(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return b.judge.Verdict(c, &task)
}

// The turns of conversations, in OpenAI's messages.
const (
	payment = `{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":` +
		`{"name":"pay","arguments":"{\"sender\":\"ada\",\"receiver\":\"bob\",\"euros\":25}"}}]}`
	balance = `{"role":"assistant","tool_calls":[{"id":"2","type":"function","function":` +
		`{"name":"balance","arguments":{"owner":"bob"}}}]}`
	paid = `{"role":"tool","tool_call_id":"1","content":"{\"left\": 35}"}`
	lost = `{"role":"tool","tool_call_id":"1","content":"timed out","is_error":true}`
	done = `{"role":"assistant","content":"It is paid."}`
)

func worth(euros int) string {
	return fmt.Sprintf(`{"role":"tool","tool_call_id":"2","content":"{\"euros\":%d,\"owner\":\"bob\"}"}`, euros)
}

func about(task string, messages ...string) string {
	return fmt.Sprintf(`{"task":%q,"messages":[%s]}`, task, strings.Join(messages, ","))
}

// TestVerdicts judges conversations with all that they can leave open.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	refused := strings.ReplaceAll(payment, ":25}", ":250}")
	for name, c := range map[string]struct{ text, want string }{
		"right":                          {about("pay-bob", payment, paid, done), "full_success"},
		"twice":                          {about("pay-bob", payment, paid, payment, strings.ReplaceAll(paid, "35", "10"), done), "failure: repeated_an_effect"},
		"the wrong amount":               {about("pay-bob", strings.ReplaceAll(payment, ":25}", ":50}"), strings.ReplaceAll(paid, "35", "10"), done), "failure: wrong_argument"},
		"only words":                     {about("pay-bob", done), "failure: no_action"},
		"an answer without looking":      {about("how-much", `{"role":"assistant","content":"40"}`), "failure: no_action"},
		"nobody knows whether it paid":   {about("pay-bob", payment, lost, done), "undecided: it depends on whether call 1 happened"},
		"the balance shows that it paid": {about("pay-bob", payment, lost, balance, worth(65), done), "full_success"},
		"the balance shows that it did not": {
			about("pay-bob", payment, lost, balance, worth(40), done),
			"failure: did_not_retry",
		},
		"it paid again, and the balance shows it": {
			about("pay-bob", payment, lost, payment, strings.ReplaceAll(paid, "35", "10"), done),
			"failure: repeated_an_effect",
		},
		"it paid again, which was the first": {about("pay-bob", payment, lost, payment, paid, done), "full_success"},
		"the tool refused it":                {about("pay-bob", refused, strings.Replace(lost, "timed out", "NOT_ENOUGH: ada", 1), done), "failure: wrong_argument"},
		"arguments that do not fit": {about("pay-bob", strings.ReplaceAll(payment, "25", `\"x\"`),
			strings.Replace(lost, "timed out", "bad euros", 1), done), "failure: wrong_argument"},
		"a result that the tool does not give": {
			about("pay-bob", payment, strings.Replace(paid, "35", "36", 1), done),
			"undecided: the judge needs the state of the tools, which is unknown: call 1 worked, with another result",
		},
		"a state that nobody needs": {about("how-much", balance, worth(41), `{"role":"assistant","content":"40"}`), "full_success"},
		"a tool of others": {
			about("pay-bob", strings.Replace(payment, `"pay"`, `"bash"`, 1), paid, done),
			"undecided: call 1 is of bash",
		},
		"a tool that nobody has": {about("pay-bob", strings.Replace(payment, `"pay"`, `"bash"`, 1), lost, payment, paid, done), "full_success"},
		"cut off in the middle":  {about("pay-bob", balance, worth(40)), "failure: "},
		"a call without a result": {
			about("pay-bob", payment),
			"undecided: it depends on whether call 1 happened",
		},
		"a result without a call": {about("pay-bob", paid, done), "undecided: message 1 is the result of a call"},
		"nothing":                 {about("pay-bob", `{"role":"user","content":"Pay."}`), "undecided: it has no reply"},
		"too much that is open": {
			about("pay-bob", strings.Split(strings.Repeat(payment+"\x00"+lost+"\x00", 7)+done, "\x00")...),
			"undecided: it depends on whether calls 1, 2, 3, 4, 5, 6, 7 happened",
		},
		"a trajectory": {`{"schema_version":"ATIF-v1.7","session_id":"s","agent":{"name":"other","version":"1"},"extra":{"task":"pay-bob"},"steps":[
			{"step_id":1,"source":"user","message":"Pay."},
			{"step_id":2,"source":"agent","message":[{"type":"text","text":"Now."}],"tool_calls":[{"tool_call_id":"a","function_name":"pay","arguments":{"sender":"ada","receiver":"bob","euros":25}}],
			 "observation":{"results":[{"source_call_id":"a","content":"{\"left\":35}"}]}},
			{"step_id":3,"source":"agent","message":"Paid."}]}`, "full_success"},
		"actions that are no calls": {
			`{"schema_version":"ATIF-v1.7","agent":{"name":"other","version":"1"},"extra":{"task":"pay-bob"},"steps":[
			{"step_id":1,"source":"agent","message":"ls","observation":{"results":[{"content":"a file"}]}}]}`,
			"undecided: message 2 is the result of a call that the conversation does not have",
		},
		"spans": {otlp(`{"role":"user","parts":[{"type":"text","content":"Pay."}]}`), "full_success"},
		"spans with a lost call": {
			strings.Replace(otlp(), `"status":{}`, `"status":{"code":2,"message":"timed out"}`, 1),
			"undecided: it depends on whether call 1 happened",
		},
		"spans without content": {
			`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"t","name":"chat m","attributes":[{"key":"task","value":{"stringValue":"pay-bob"}}]}]}]}]}`,
			"undecided: its spans have no messages",
		},
		"a sample": {`{"version":2,"eval":{},"samples":[{"id":"pay-bob","epoch":1,"messages":[
			{"role":"assistant","content":"","tool_calls":[{"id":"1","function":"pay","arguments":{"sender":"ada","receiver":"bob","euros":25}}]},
			{"role":"tool","content":"attachment://ab","tool_call_id":"1"},{"role":"assistant","content":[{"type":"text","text":"Paid."}]}],
			"attachments":{"ab":"{\"left\": 35}"}}]}`, "full_success"},
		"a sample with an error": {
			`{"version":2,"eval":{},"samples":[{"id":"pay-bob","epoch":1,"messages":[],"error":{"message":"no network"}}]}`,
			"undecided: the sample ended in an error: no network",
		},
	} {
		t.Run(name, func(t *testing.T) {
			all := b.verdicts(t, "f", []byte(c.text))
			if len(all) != 1 {
				t.Fatalf("%d verdicts", len(all))
			}
			v := all[0]
			got := string(v.Level)
			switch {
			case v.Undecided != "":
				got = "undecided: " + v.Undecided
			case v.Level != assay.FullSuccess:
				got += ": " + string(v.Cause)
			}
			if !strings.HasPrefix(got, c.want) || v.Level == assay.FullSuccess && v.Cause != "" {
				t.Errorf("%s (%s; %s), want %s", got, v.Because, v.NoCause, c.want)
			}
			if v.Origin.Line != 1 || len(v.Origin.Digest) != 64 {
				t.Errorf("origin %+v", v.Origin)
			}
		})
	}
}

// otlp returns a payment as spans of a program that keeps to the conventions, on two lines.
func otlp(before ...string) string {
	asked := strings.Join(append(before, `{"role":"assistant","parts":[{"type":"tool_call","id":"1","name":"pay","arguments":{"sender":"ada","receiver":"bob","euros":25}}]}`), ",")
	attribute := func(name, text string) string {
		quoted, err := json.Marshal(text)
		if err != nil {
			panic(err)
		}
		return fmt.Sprintf(`{"key":%q,"value":{"stringValue":%s}}`, name, quoted)
	}
	line := func(name, began, attributes string) string {
		return fmt.Sprintf(`{"resourceSpans":[{"resource":{},"scopeSpans":[{"spans":[{"traceId":"5b8e","spanId":"1","name":%q,`+
			`"startTimeUnixNano":%q,"attributes":[%s],"status":{}}]}]}]}`, name, began, attributes)
	}
	return line("execute_tool pay", "2", attribute("gen_ai.tool.name", "pay")+","+attribute("gen_ai.tool.call.id", "1")) + "\n" +
		line("chat m", "1", attribute("gen_ai.output.messages", "["+asked+"]")+","+attribute("task.id", "pay-bob")) + "\n" +
		line("chat m", "3", attribute("gen_ai.input.messages", "["+asked+
			`,{"role":"tool","parts":[{"type":"tool_call_response","id":"1","response":{"left":35}}]}]`)+","+
			attribute("gen_ai.output.messages", `[{"role":"assistant","parts":[{"type":"text","content":"Paid."}],"finish_reason":"stop"}]`))
}

// TestRecord checks what the record of a conversation has: no trial, its origin, and null for what is unknown.
func TestRecord(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for text, want := range map[string]string{
		about("pay-bob", payment, paid, done): `"coverage":1`,
		about("pay-bob", payment, lost, done): `"level":null`,
	} {
		raw, err := json.Marshal(b.verdicts(t, "f", []byte("\n"+text))[0])
		var has map[string]any
		if err == nil {
			err = json.Unmarshal(raw, &has)
		}
		if err != nil || !strings.Contains(string(raw), want) || !strings.Contains(string(raw), `"line":2`) {
			t.Errorf("%s, %v, want %s", raw, err, want)
		}
		for _, name := range []string{"trial", "attempt", "best_possible", "faults_met"} {
			if _, ok := has[name]; ok {
				t.Errorf("the record has %s", name)
			}
		}
	}
}

// TestErrors checks that whatever cannot be read is named by its place.
func TestErrors(t *testing.T) {
	t.Parallel()
	good := about("pay-bob", done)
	for text, want := range map[string]string{
		"":                                "f has no conversation",
		good + "\n\n{\"a\": 1}":           "f:3: not a conversation\nhint: want JSON with steps",
		good + "\n{\"messages\": [":       "f:2: not JSON",
		"id,task\n1,2":                    "f:1: not JSON",
		`{"messages":[{"role":"judge"}]}`: `f:1: message 1 has the role "judge"`,
		`{"messages":[{"role":"user","content":7}]}`:                     "f:1: messages: content is neither text",
		`{"agent":{},"steps":[{"source":"tool"}]}`:                       `f:1: step 1 has the source "tool"`,
		`{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":1}]}]}]}`:    "f:1: span: ",
		`{"eval":{},"samples":[{"id":1,"messages":[{"role":"judge"}]}]}`: "message 1 of sample 1 has the role",
		"PK\x03\x04":                 "f: not a log of Inspect",
		`{"eval":{}}`:                "f has no conversation",
		"7":                          "f:1: not a conversation",
		`{"messages":[],"steps":[]}`: "f:1: it has messages and steps",
	} {
		if _, err := conversation.Read("f", strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestTaskIn checks which task a conversation is about.
func TestTaskIn(t *testing.T) {
	t.Parallel()
	ids := []string{"pay-bob", "how-much"}
	for _, c := range []struct {
		task  string
		ids   []string
		alone bool
		want  string
	}{
		{"how-much", ids, false, "how-much"},
		{"", ids[:1], true, "pay-bob"},
		{"", ids[:1], false, "names no task"},
		{"", ids, true, "names no task"},
		{"pay_bob", ids, true, "f:4: the library has no task \"pay_bob\"\nhint: did you mean pay-bob?"},
	} {
		conv := conversation.Conversation{Origin: conversation.Origin{File: "f", Line: 4}, Task: assay.TaskID(c.task)}
		id, err := conv.TaskIn(c.ids, c.alone)
		if got := fmt.Sprint(id, err); !strings.Contains(got, c.want) {
			t.Errorf("%q: %s, want %s", c.task, got, c.want)
		}
	}
}

// TestInspectsOwnLogs judges logs that Inspect itself has written, in both of its formats, if it is installed.
func TestInspectsOwnLogs(t *testing.T) {
	t.Parallel()
	python := os.Getenv("ASSAY_PYTHON")
	if python == "" {
		python = "python3"
	}
	if out, err := exec.CommandContext(t.Context(), python, "-c", "import inspect_ai").CombinedOutput(); err != nil {
		t.Skipf("%s has no inspect_ai (%v); ASSAY_PYTHON names another Python: %s", python, err, out)
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), python, "testdata/logs.py", dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	logs, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(logs) != 2 {
		t.Fatalf("%v, %v", logs, err)
	}
	b := newBench(t)
	for _, log := range logs {
		data, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		got := make(map[string]string)
		for _, v := range b.verdicts(t, log, data) {
			got[v.Conversation] = strings.TrimSpace(fmt.Sprint(v.Task, " ", v.Level, " ", v.Cause))
		}
		want := map[string]string{
			"pay-bob/1": "pay-bob full_success", "how-much/1": "how-much full_success", "x/1": "pay-bob failure wrong_argument",
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", log, got, want)
		}
	}
}

// fuzz lets anything be read and judged, which gives an error, a verdict or a reason.
func fuzz(f *testing.F, seeds ...string) {
	b := newBench(f)
	task, err := b.lib.Any(f.Context(), "pay-bob")
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		found, err := conversation.Read("f", bytes.NewReader(data))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f") {
				t.Errorf("an error without its place: %v", err)
			}
			return
		}
		for i := range found {
			v := b.judge.Verdict(&found[i], &task)
			if (v.Level == "") == (v.Undecided == "") {
				t.Errorf("level %q, and undecided is %q", v.Level, v.Undecided)
			}
			if v.Level != "" && (v.Level == assay.FullSuccess) != (v.Cause == "" && v.NoCause == "") {
				t.Errorf("level %q, cause %q, %s", v.Level, v.Cause, v.NoCause)
			}
			if _, err := json.Marshal(v); err != nil {
				t.Error(err)
			}
		}
	})
}

func FuzzMessages(f *testing.F) {
	fuzz(f, about("pay-bob", payment, lost, balance, worth(40), payment, paid, done), "["+about("", done)+"]", "{}")
}

func FuzzATIF(f *testing.F) {
	fuzz(f, `{"schema_version":"ATIF-v1.8","agent":{"name":"a"},"steps":[{"source":"agent","message":"","llm_call_count":1,"tool_calls":[`+
		`{"tool_call_id":"a","function_name":"pay","arguments":{}}],"observation":{"results":[{"source_call_id":"a","content":"x"}]},`+
		`"extra":{"calls":[{"turn":1,"tool":"pay","ok":true,"fault":"after"}]}}],"extra":{"assay":{"trial":"a","task":"pay-bob","world":"own-1"}}}`)
}

func FuzzOTLP(f *testing.F) {
	fuzz(f, otlp(), strings.ReplaceAll(otlp(), `"key":"task.id"`, `"key":"assay.trial"`))
}

func FuzzInspect(f *testing.F) {
	sample := `{"id":"pay-bob","epoch":1,"messages":[{"role":"assistant","content":"x","tool_calls":[{"id":"1","function":"pay","arguments":{}}],` +
		`"metadata":{"lookups":1}},{"role":"tool","content":"attachment://a","error":{"type":"t","message":"m"}}],"limit":{"type":"token"},` +
		`"attachments":{"a":"b"},"metadata":{"calls":[{"turn":1,"tool":"pay"}],"plan":["pay"]}}`
	var log bytes.Buffer
	z := zip.NewWriter(&log)
	w, err := z.Create("samples/a_epoch_1.json")
	if err == nil {
		_, err = w.Write([]byte(sample))
	}
	if err != nil || z.Close() != nil {
		f.Fatal(err)
	}
	fuzz(f, `{"eval":{},"samples":[`+sample+`]}`, log.String())
}
