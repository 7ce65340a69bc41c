package sim

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world/assay1"
)

// errsOf returns the share of rubrics that a model judges wrongly, as in sim/judge:errs=0.1. It reports
// whether the model is a judge, and a [*NameError] if that parameter is wrong.
func errsOf(model string) (errs float64, judge bool, err error) {
	name, setting, more := strings.Cut(model, ":")
	if name != Judge || !more {
		return 0, name == Judge, nil
	}
	value, known := strings.CutPrefix(setting, "errs=")
	errs, failed := strconv.ParseFloat(value, 64)
	if !known || failed != nil || !(errs >= 0 && errs <= 1) { // also true for NaN
		return 0, true, &NameError{
			fmt.Sprintf("%s has the parameters %q, want errs and a probability from 0 to 1", Judge, setting),
			"for example " + Judge + ":errs=0.1",
		}
	}
	return errs, true, nil
}

// judge judges by a rubric if it is asked so, and else gives a second opinion. It is only a stand-in for
// a real model.
func (m *Models) judge(v *agentView, errs float64) assay.Message {
	if code := caseText.FindStringSubmatch(v.asked); code != nil {
		return judgeCase(v, code[1], errs)
	}
	return classify(v)
}

// The code of a case stands at the end, and the texts that a rubric asks for in double quotes.
var (
	caseText   = regexp.MustCompile(`The code of this case is (\w+)\. [^"]*$`)
	quotedText = regexp.MustCompile(`"([^"]+)"`)
)

// judgeCase passes a record whose last words have every text that the rubric quotes, or any words if it
// quotes none. In some cases, which the trial and the record decide, it says the opposite.
func judgeCase(v *agentView, code string, errs float64) assay.Message {
	var of struct {
		Rubric string
		Record []struct{ Role, Text string }
	}
	_ = json.NewDecoder(strings.NewReader(v.asked)).Decode(&of) // without it, nothing passes
	last := ""
	for _, e := range of.Record {
		if e.Role == string(assay.Assistant) {
			last = e.Text
		}
	}
	pass, reason := strings.TrimSpace(last) != "", "the last words meet the rubric"
	if !pass {
		reason = "there are no last words"
	}
	for _, text := range quotedText.FindAllStringSubmatch(of.Rubric, -1) {
		if !strings.Contains(strings.ToLower(last), strings.ToLower(text[1])) {
			pass, reason = false, "the last words lack "+text[1]
			break
		}
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "assay judge 1\x00%d\x00%s", v.seed, v.asked))
	if float64(binary.BigEndian.Uint64(sum[:8])>>11)/(1<<53) < errs {
		pass, reason = !pass, "this simulated judge errs here"
	}
	verdict := assay.Fail
	if pass {
		verdict = assay.Pass
	}
	return assay.Message{Role: assay.Assistant, Content: encode(struct {
		Case    string        `json:"case"`
		Verdict assay.Verdict `json:"verdict"`
		Reason  string        `json:"reason"`
	}{code, verdict, reason})}
}

// classify gives second opinions for `assay store classify`. It looks for phrases in the history that
// it is shown: the last mistake if there is one, or else the reason why the work was not done.
func classify(v *agentView) assay.Message {
	type opinion struct {
		Category   string  `json:"category"`
		Confidence float64 `json:"confidence"`
		Reason     string  `json:"reason"`
	}
	o := opinion{assay.CategoryOther, .4, "nothing in the history stands out"}
	shows := func(text string) bool { return strings.Contains(v.asked, text) }
	called := shows(": worked: ") || shows(": failed by chance ") || shows(": mistake ")
	mistakes := mistakeText.FindAllStringSubmatch(v.asked, -1)
	switch {
	case !called && shows(": lookups: "):
		o = opinion{assay.CategoryMaxTurns, .8, "the agent only looked tools up"}
	case !called:
		o = opinion{assay.CategoryToolCallFormat, .9, "no call was made"}
	case len(mistakes) > 0 && mistakes[len(mistakes)-1][1] == assay1.DependencyFail:
		o = opinion{assay.CategoryDependency, .8, "a call came before what it needs"}
	case len(mistakes) > 0:
		o = opinion{assay.CategoryParameterConfig, .8, "the arguments of a call were wrong"}
	case shows("Required tools that succeeded: 100 %"):
		o = opinion{assay.CategorySequenceOrder, .6, "all required tools succeeded"}
	case shows("It ended so: the agent said that it had finished"):
		o = opinion{assay.CategoryToolSelection, .7, "the agent stopped before all was done"}
	}
	return assay.Message{Role: assay.Assistant, Content: encode(o)}
}

var mistakeText = regexp.MustCompile(`(?m)^turn \d+: mistake ([A-Z_]+):`)
