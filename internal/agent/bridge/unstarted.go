package bridge

import (
	"cmp"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/child"
)

// unbegun begins the detail of the fault of an agent that ended without having asked its model or
// called a tool. It did not try the task, so its result cannot be judged.
const unbegun = "the agent ended before its first action: "

// unstarted returns the fault of an agent that did not act, with the end of its output and the files that
// it could see, which may lack one that it needs.
func unstarted(e *end, shown string) *assay.Fault {
	how := cmp.Or(e.record.Exit, e.fine)
	printed := cmp.Or(strings.TrimSpace(e.record.Errors), e.record.Output)
	word := child.LastWord(printed)
	if word != "" && !strings.HasSuffix(how, word) {
		how += ": " + word
	}
	if last := child.LastLines(printed, 3); last != "" && last != word {
		how += "\nits last lines:\n" + last
	}
	if shown != "" {
		how += "\n" + shown
	}
	if e.scratch != "" { // so that attempts with the same end have the same detail
		how = strings.ReplaceAll(how, e.scratch, child.Scratch)
	}
	return &assay.Fault{Kind: assay.AgentEnded, Detail: unbegun + how}
}

// Unstarted returns how the agent of an attempt ended, in one line, if the attempt is a fault
// because the agent ended before its first action. Otherwise it returns "".
func Unstarted(a *assay.Attempt) string {
	if a.FaultKind != assay.AgentEnded {
		return ""
	}
	how, _, _ := strings.Cut(a.FaultDetail, "\n")
	return strings.TrimPrefix(how, string(assay.AgentEnded)+": "+unbegun)
}
