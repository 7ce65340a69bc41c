package store

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
)

// sameScript checks that a transcript in parts is the transcript.
func sameScript(t rapid.TB, o *openings, tr *assay.Transcript) script {
	t.Helper()
	var whole, parts bytes.Buffer
	if err := writeJSON(&whole, tr); err != nil {
		t.Fatal(err)
	}
	s, err := o.script(tr, &parts)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := s.text(); err != nil || !bytes.Equal(text, whole.Bytes()) {
		t.Fatalf("in parts:\n%s\nwhole:\n%s (%v)", text, whole.Bytes(), err)
	}
	got, err := s.digest()
	if err != nil || !bytes.Equal(got, digest(whole.Bytes())) {
		t.Fatalf("digest %x, want %x (%v)", got, digest(whole.Bytes()), err)
	}
	for _, d := range []dictionary{{}, {id: 7, text: whole.Bytes()}} {
		enc, dec := d.encoder(), newDecoder(dictionary{id: 7, text: whole.Bytes()})
		for range 2 { // the second time, the opening is known
			body, err := s.compress(enc)
			if err != nil {
				t.Fatal(err)
			}
			text, err := dec.DecodeAll(body, nil)
			if err != nil || !bytes.Equal(text, whole.Bytes()) {
				t.Fatalf("compressed and decompressed:\n%s\nwhole:\n%s (%v)", text, whole.Bytes(), err)
			}
		}
	}
	return s
}

// TestScriptIsItsTranscript compares transcripts in parts with whole ones. Texts repeat, so
// openings are met again.
func TestScriptIsItsTranscript(t *testing.T) {
	o := newOpenings()
	texts := []string{
		"", "short", `],"calls":null`, strings.Repeat("a long text <&>\u2028\xff ", 50),
		strings.Repeat(`{"messages":[{"role":"user"}],"calls":null} `, 60),
	}
	openings := 0
	rapid.Check(t, func(t *rapid.T) {
		message := rapid.Custom(func(t *rapid.T) assay.Message {
			m := assay.Message{
				Role: rapid.SampledFrom([]assay.Role{
					assay.System, assay.User, assay.Assistant, assay.ToolRole,
				}).Draw(t, "role"),
				Content: rapid.SampledFrom(texts).Draw(t, "content"),
			}
			switch rapid.IntRange(0, 9).Draw(t, "further") {
			case 0:
				m.Reasoning = "hm"
			case 1:
				m.Calls = []assay.ToolCall{{ID: "1", Name: "f", Arguments: "{}"}}
			case 2:
				m.State = &assay.State{Origin: "x", Data: json.RawMessage(`{"a":1}`)}
			case 3:
				m.CallID = "1"
			}
			return m
		})
		tr := &assay.Transcript{
			Messages: rapid.SliceOfN(message, 0, 4).Draw(t, "messages"),
			Turns:    make([]assay.TurnRecord, rapid.IntRange(0, 2).Draw(t, "turns")),
			Ended:    assay.Finished,
		}
		if rapid.Bool().Draw(t, "nil") && len(tr.Messages) == 0 {
			tr.Messages = nil
		}
		if s := sameScript(t, o, tr); s.opening != nil {
			openings++
		}
	})
	if openings == 0 {
		t.Error("no transcript had an opening")
	}
}

// TestOpeningHasAllOfAMessage sets each field of a message in turn, so that a new field cannot get
// lost.
func TestOpeningHasAllOfAMessage(t *testing.T) {
	long := strings.Repeat("the rules and the task ", 60)
	o := newOpenings()
	plain := func() []assay.Message {
		return []assay.Message{
			{Role: assay.System, Content: long}, {Role: assay.User, Content: long},
		}
	}
	if s := sameScript(t, o, &assay.Transcript{Messages: plain()}); s.opening == nil {
		t.Fatal("two long texts are no opening")
	}
	for i := range openingMessages {
		for field := range reflect.TypeFor[assay.Message]().NumField() {
			messages := plain()
			switch v := reflect.ValueOf(&messages[i]).Elem().Field(field); v.Kind() {
			case reflect.String:
				v.SetString(long + "!")
			case reflect.Slice:
				v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			case reflect.Pointer:
				v.Set(reflect.New(v.Type().Elem()))
				messages[i].State.Data = json.RawMessage("1")
			default:
				t.Fatalf("set a field of kind %v here", v.Kind())
			}
			sameScript(t, o, &assay.Transcript{Messages: messages})
		}
	}
}
