package classify

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"text/template"

	"github.com/assay-eval/assay"
)

const (
	// MaxPrompt limits the bytes of a prompt, both messages together.
	MaxPrompt = 12_000
	// lastReplies replies of the agent are shown, each with at most maxReply bytes.
	lastReplies = 3
	maxReply    = 600
	// leftOut marks the place where a text was cut.
	leftOut = " [… %d bytes left out …] "
)

//go:embed templates/*.tmpl
var templateFiles embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"join":    strings.Join,
	"percent": func(p float64) string { return fmt.Sprintf("%.4g", 100*p) },
	"shorten": func(most int, s string) string { return shorten(s, most) },
	"line": func(most int, s string) string {
		return shorten(strings.Join(strings.Fields(s), " "), most)
	},
}).ParseFS(templateFiles, "templates/*.tmpl"))

// PromptVersion identifies the wording and the limits of [Prompt] and of the correction. Opinions
// from different versions must not be mixed.
var PromptVersion = hashTemplates()

func hashTemplates() string {
	h := sha256.New()
	names, err := fs.Glob(templateFiles, "templates/*.tmpl")
	if err != nil {
		panic("classify: templates: " + err.Error())
	}
	for _, name := range names {
		text, err := templateFiles.ReadFile(name)
		if err != nil {
			panic("classify: templates: " + err.Error())
		}
		fmt.Fprintf(h, "%s %d\n%s", name, len(text), text)
	}
	fmt.Fprint(h, MaxPrompt, lastReplies, maxReply, leftOut)
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// Prompt returns the messages that ask for the category of an attempt. It shows the course of the
// attempt but not the rules' verdict. task may be nil if the library no longer has it, and tr may
// be nil if it was not stored.
func Prompt(a *assay.Attempt, task *assay.Task, tr *assay.Transcript) []assay.Message {
	data := struct {
		Attempt            *assay.Attempt
		Task               *assay.Task
		Stored             bool
		Plan               []string
		Mistakes, Failures int
		Loops              []assay.LoopRecord
		History            []caseEvent
		Replies            []reply
	}{Attempt: a, Task: task, Mistakes: a.Mistakes, Failures: a.Failures}
	if a.Loop != "" {
		data.Loops = []assay.LoopRecord{{Kind: a.Loop, Began: a.LoopTurn}}
	}
	if tr != nil {
		data.Stored, data.Plan, data.Loops = true, tr.Plan, tr.Loops
		data.Mistakes, data.Failures = count(tr.Calls)
		data.History, data.Replies = history(tr), replies(tr)
	}
	system := render("system.tmpl", nil)
	return []assay.Message{
		{Role: assay.System, Content: system},
		{Role: assay.User, Content: shorten(render("case.tmpl", data), MaxPrompt-len(system))},
	}
}

// count counts mistakes and failures by chance. A stored outcome may not distinguish them.
func count(calls []assay.CallRecord) (mistakes, failures int) {
	for _, c := range calls {
		switch {
		case c.Mistake:
			mistakes++
		case !c.Happened():
			failures++
		}
	}
	return mistakes, failures
}

// A caseEvent is a call. If Call is nil, it describes the rest of a turn.
type caseEvent struct {
	Turn     int
	Call     *assay.CallRecord
	Lookups  int
	Assisted bool
}

// history returns the events in order. Each turn has at least one.
func history(tr *assay.Transcript) []caseEvent {
	var events []caseEvent
	calls := tr.Calls
	for i, rec := range tr.Turns {
		turn, called := i+1, false
		for len(calls) > 0 && calls[0].Turn <= turn {
			events = append(events, caseEvent{Turn: calls[0].Turn, Call: &calls[0]})
			calls, called = calls[1:], true
		}
		if !called || rec.Lookups > 0 || rec.Assisted {
			events = append(events, caseEvent{
				Turn: turn, Lookups: rec.Lookups, Assisted: rec.Assisted,
			})
		}
	}
	for i := range calls {
		events = append(events, caseEvent{Turn: calls[i].Turn, Call: &calls[i]})
	}
	return events
}

// A reply is the text that the agent wrote in a turn.
type reply struct {
	Turn int
	Text string
}

// replies returns the agent's last replies, oldest first.
func replies(tr *assay.Transcript) []reply {
	var last []reply
	for i, turn := len(tr.Messages)-1, len(tr.Turns); i >= 0 && len(last) < lastReplies; i-- {
		if m := &tr.Messages[i]; m.Role == assay.Assistant {
			last = append(last, reply{turn, shorten(render("reply", m), maxReply)})
			turn--
		}
	}
	slices.Reverse(last)
	return last
}

// correction continues the conversation after a reply without an opinion.
func correction(said string, unread error) []assay.Message {
	if strings.TrimSpace(said) == "" { // endpoints refuse an empty message
		said = render("silent", nil)
	}
	return []assay.Message{
		{Role: assay.Assistant, Content: shorten(said, maxReply)},
		{Role: assay.User, Content: render("correction.tmpl", unread)},
	}
}

func render(name string, data any) string {
	var b strings.Builder
	if err := templates.ExecuteTemplate(&b, name, data); err != nil {
		panic("classify: template " + name + ": " + err.Error())
	}
	return strings.TrimSpace(strings.ToValidUTF8(b.String(), "\uFFFD"))
}

// shorten cuts bytes out of the middle of a text that is longer than most bytes, and states how
// many. most has to leave room for that note.
func shorten(s string, most int) string {
	if len(s) <= most {
		return s
	}
	half := (most - len(leftOut) - 8) / 2 // 8 for the digits of the number
	head, tail := assay.Head(s, half), assay.Tail(s, half)
	return head + fmt.Sprintf(leftOut, len(s)-len(head)-len(tail)) + tail
}
