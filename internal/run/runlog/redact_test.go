package runlog_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/run/runlog"
)

type echo struct{ text string }

func (e echo) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]string{e.text: e.text})
}

// TestNoFileShowsASecret checks that secrets of any characters are redacted
// wherever they appear and however the text around them was quoted.
func TestNoFileShowsASecret(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	var dirs atomic.Int64
	rapid.Check(t, func(t *rapid.T) {
		dir := filepath.Join(base, strconv.FormatInt(dirs.Add(1), 10))
		secrets := rapid.SliceOfN(rapid.OneOf(
			rapid.StringN(8, 30, -1), rapid.StringMatching(`[A-Za-z0-9+/="\\<>&\n-]{8,40}`),
			rapid.StringMatching(`[1-9]\d{8,14}`),
			rapid.Custom(func(t *rapid.T) string {
				return "\xff" + rapid.StringN(8, 12, -1).Draw(t, "bytes") + "\xfe\xfd"
			}),
		).Filter(func(s string) bool {
			const mark = "[redacted]"
			return len(s) >= 8 && !strings.Contains(mark, s) && !strings.Contains(s, mark)
		}), 1, 3).Draw(t, "secrets")
		secret := secrets[0]
		quoted, _ := json.Marshal(secret)
		inJSON := string(quoted[1 : len(quoted)-1])
		spelled := rapid.SampledFrom([]string{
			secret, inJSON, strings.ReplaceAll(inJSON, "/",
				`\/`), url.QueryEscape(secret), url.PathEscape(secret), strconv.Quote(secret),
		}).Draw(t, "spelled")
		around := rapid.StringN(0, 9, -1)
		text := around.Draw(t, "before") + spelled + around.Draw(t, "after")

		l, err := runlog.Open(dir, run, started, runlog.Options{
			Level: slog.LevelDebug, Secrets: secrets,
			Trials: func(assay.TrialID) bool { return true },
		})
		if err != nil {
			t.Fatal(err)
		}
		log := l.Logger().With("with", text, text, 1).WithGroup(text)
		log.Info(text, "string", text, "error", errors.New(text),
			"any", []any{text, map[string]string{text: text}}, "json", echo{text})
		if n, err := strconv.ParseInt(secret, 10, 64); err == nil {
			log.Error("a number", "n", n, "list", []int64{1, n})
		}
		l.Episode("t", 1, &assay.Transcript{Messages: []assay.Message{{Content: text}}},
			&assay.Attempt{FaultDetail: text})
		closeLog(t, l)

		logs, _ := filepath.Glob(filepath.Join(dir, "*.jsonl"))
		episodes, _ := filepath.Glob(filepath.Join(dir, "*-trials", "*.json"))
		if len(logs) != 1 || len(episodes) != 1 {
			t.Fatalf("files %v and %v", logs, episodes)
		}
		for _, name := range []string{logs[0], episodes[0]} {
			doc, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			dec := json.NewDecoder(bytes.NewReader(doc))
			dec.UseNumber()
			seen := 0
			for {
				tok, err := dec.Token()
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatalf("%s is not JSON: %v\n%s", name, err, doc)
				}
				got := fmt.Sprint(tok)
				seen += strings.Count(got, "[redacted]")
				for _, s := range secrets {
					if strings.Contains(got, string([]rune(s))) {
						t.Fatalf("%q shows %q in %s", got, s, doc)
					}
				}
			}
			if seen == 0 {
				t.Fatalf("no redaction in %s", doc)
			}
		}
	})
}

func TestRedactionChangesNothingElse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		l := open(t, dir,
			runlog.Options{Secrets: []string{"", "short", "secret/1+", "secret/1+longer"}})
		l.Logger().Info("<a> \u2028 secret/1+ short \"secret/1+longer\"",
			"curl", `{"key":"secret\/1+"}`, "secret/1+", 1.5,
			"url", "?k=secret%2F1%2B&x", "none", nil)
		closeLog(t, l)
		want := `{"time":"2000-01-01T00:00:00Z","level":"INFO","msg":"<a> \u2028 [redacted] short \"[redacted]\"","curl":"{\"key\":\"[redacted]\"}","[redacted]":1.5,"url":"?k=[redacted]&x","none":null}
`
		if diff := cmp.Diff(want, read(t, dir, stem+".jsonl")); diff != "" {
			t.Error(diff)
		}
	})
}

func TestEpisodesOfSelectedTrials(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := open(t, dir,
		runlog.Options{
			Level:  slog.LevelError,
			Trials: func(id assay.TrialID) bool { return id != "b" },
		})
	transcript := assay.Transcript{
		Messages: []assay.Message{{Role: assay.User, Content: "<é>\n"}},
		Ended:    assay.Finished,
	}
	attempt := assay.Attempt{Number: 2, Experiment: "first"}
	for _, id := range []assay.TrialID{"a", "b", "../c"} {
		attempt.ID = id
		l.Episode(id, 2, &transcript, &attempt)
	}
	attempt.Coverage = math.NaN()
	l.Episode("a", 3, &transcript, &attempt)
	closeLog(t, l)
	names, err := filepath.Glob(filepath.Join(dir, stem+"-trials", "*"))
	for i := range names {
		names[i] = filepath.Base(names[i])
	}
	if want := []string{"___c-2.json", "a-2.json"}; err != nil || !slices.Equal(names, want) {
		t.Fatalf("captured %v, want %v", names, want)
	}
	var got struct {
		Attempt    assay.Attempt    `json:"attempt"`
		Transcript assay.Transcript `json:"transcript"`
	}
	if err := json.Unmarshal([]byte(read(t, dir, stem+"-trials/a-2.json")), &got); err != nil {
		t.Fatal(err)
	}
	attempt.ID, attempt.Coverage = "a", 0
	if diff := cmp.Diff([]any{attempt, transcript},
		[]any{got.Attempt, got.Transcript}); diff != "" {
		t.Error(diff)
	}
	if got := messages(decode(t, read(t, dir, stem+".jsonl"))); !slices.Equal(got,
		[]string{"episode not captured"}) {
		t.Errorf("messages %v", got)
	}
}
