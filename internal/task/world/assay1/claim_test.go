package assay1_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/assay-eval/assay"
)

func TestClaimEndsEpisode(t *testing.T) {
	t.Parallel()
	w := begin(1, 1, assay.Setting{})
	for _, tc := range []struct {
		reply string
		acts  bool
		want  bool
	}{
		{"TASK_COMPLETED", false, true},
		{"All steps are done. TASK_COMPLETED.", false, true},
		{"TASK_COMPLETED: all three steps are done.", false, true},
		{"Done.\n\n**TASK_COMPLETED**\n", false, true},
		{"I will reply TASK_COMPLETED when the work is complete.", false, false},
		{"Is that \"TASK_COMPLETED\"?", false, false},
		{"TASK_COMPLETED", true, false},
		{"All done. __TASK_COMPLETED__", false, true},
		{"TASK_COMPLETED_: parser", false, true},
		{"XTASK_COMPLETED", false, false},
		{"NOT_TASK_COMPLETED", false, false},
		{"TASK_COMPLETEDNESS is far off.", false, false},
		{"TASK_COMPLETED_LATER", false, false},
		{"éTASK_COMPLETED", false, false},
		{"TASK_COMPLETED2", false, false},
		{"The task is completed.", false, false},
		{"task_completed", false, false},
		{"", false, false},
	} {
		t.Run(fmt.Sprintf("%q %v", tc.reply, tc.acts), func(t *testing.T) {
			if got := w.Ends(tc.reply, tc.acts); got != tc.want {
				t.Errorf("Ends() = %v, want %v", got, tc.want)
			}
		})
	}
}

// FuzzClaim checks claims against the definition in words: the first or the last run of letters,
// digits and underscores is the word, and only underscores stand between it and the edge of the
// reply.
func FuzzClaim(f *testing.F) {
	for _, s := range []string{
		"TASK_COMPLETED", "XTASK_COMPLETED", "so TASK_COMPLETED", "TASK_COMPLETED_", "a_TASK_COMPLETED",
		"TASK_COMPLETED: x", "(TASK_COMPLETED)", "\xffTASK_COMPLETED", "TASK_COMPLETED\u0301",
	} {
		f.Add(s)
	}
	const word = "TASK_COMPLETED"
	w := begin(1, 1, assay.Setting{})
	f.Fuzz(func(t *testing.T, reply string) {
		text := strings.Trim(reply, " \t\r\n.!*_`#")
		words := strings.FieldsFunc(text, func(r rune) bool {
			return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
		})
		want := len(words) > 0 &&
			(strings.HasPrefix(text, word) && strings.Trim(words[0], "_") == word ||
				strings.HasSuffix(text, word) && strings.Trim(words[len(words)-1], "_") == word)
		if got := w.Claims(reply, false); got != want {
			t.Errorf("Claims(%q) = %v, want %v", reply, got, want)
		}
		if w.Claims(reply, true) {
			t.Errorf("%q is a claim beside actions", reply)
		}
	})
}

func TestCallsNeverEndEpisode(t *testing.T) {
	t.Parallel()
	w := begin(1, 1, assay.Setting{})
	for range 40 {
		mustCall(t, w, "all", "{}")
	}
	if ended, stop := w.Stop(); stop {
		t.Errorf("Stop() = %q, true; want no stop", ended)
	}
	if _, err := w.Call(1, "al", ""); err == nil || len(w.Calls()) != 40 {
		t.Errorf("unknown tool: error %v, %d records; want an error and 40 records",
			err, len(w.Calls()))
	}
}

// FuzzAssay1Arguments passes any text as arguments to each tool. The result is either a mistake or
// uses luck, but never both. The same call in the same state gives the same record. Accepted
