package query

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/store"
	"github.com/assay-eval/assay/internal/task/score"
)

// Text describes the trial for a terminal: its transcript, its verdict with the opinions of
// models on it, and the explanation of its score, or the reason why there is none. It has no
// characters that a terminal would obey.
func (t *Trial) Text(
	opinions []store.Classification, e *score.Explanation, unexplained error,
) []byte {
	w := new(bytes.Buffer)
	t.write(w, opinions)
	t.writeExplanation(w, e, unexplained)
	return []byte(visible(w.String()))
}

func (t *Trial) writeExplanation(w *bytes.Buffer, e *score.Explanation, unexplained error) {
	switch {
	case unexplained != nil:
		fmt.Fprintf(w, "\nThe score cannot be explained: %v\n", unexplained)
	case e != nil:
		if e.Outcome.ScoreVersion != t.ScoreVersion {
			fmt.Fprintf(w,
				"\nThe explanation follows the rules %s; the outcome was judged by the rules %s. "+
					"`assay store rescore` judges it again.\n",
				e.Outcome.ScoreVersion, t.ScoreVersion)
		}
		fmt.Fprintf(w, "\n%s\n", strings.Join(e.Text(), "\n"))
	}
}

// Conditions describes under which conditions the trial was run, and what served it, a line each.
func (t *Trial) Conditions() string {
	var w bytes.Buffer
	t.writeConditions(&w)
	return visible(dedent(w.String()))
}

// VerdictText describes how the trial was judged, or its fault.
func (t *Trial) VerdictText() string {
	var w bytes.Buffer
	writeVerdict(&w, &t.Attempt)
	return visible(dedent(w.String()))
}

// dedent takes the white space from both ends of each line.
func dedent(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "\n")
}

func (t *Trial) write(w *bytes.Buffer, opinions []store.Classification) {
	superseded := ""
	if t.SupersededBy > 0 {
		superseded = fmt.Sprintf(", superseded by attempt %d", t.SupersededBy)
	}
	fmt.Fprintf(w, "trial %s, attempt %d of %d%s\n", t.ID, t.Number, t.Attempts, superseded)
	t.writeConditions(w)
	if t.Transcript != nil {
		writeTranscript(w, t.Transcript)
	} else {
		fmt.Fprintf(w, "  %s\n", t.NoTranscript)
	}
	w.WriteString("\n")
	writeVerdict(w, &t.Attempt)
	for _, o := range opinions {
		fmt.Fprintf(w, "  %s says %s, with confidence %.2f: %s\n",
			o.Model, o.Category, o.Confidence, o.Reason)
	}
}

func (t *Trial) writeConditions(w *bytes.Buffer) {
	variant := t.Variant
	if t.Severity != "" {
		variant += " (" + t.Severity + ")"
	}
	replay := ""
	if t.Replay > 0 {
		replay = fmt.Sprintf(", replay %d", t.Replay)
	}
	met := ""
	if t.Interface != "" {
		met += ", interface " + t.Interface
	}
	if t.Phrasing != "" {
		met += ", phrasing " + t.Phrasing
	}
	fmt.Fprintf(w, "  %s, %s, %s %s, reliability %s%s, task %s, repeat %d%s\n",
		t.Model, variant, t.Difficulty, t.TaskType, assay.FormatReliability(t.Reliability), met, t.Task,
		t.Repeat, replay)
	fmt.Fprintf(w, "  world %s, protocol %s, tools %s, seed %d, templates %s, experiment %s\n",
		t.World, t.Protocol, t.Tools, t.Seed, t.Templates, t.Experiment)
	if t.Of != "" {
		fmt.Fprintf(w, "  %s\n", forkText(t.Fork))
	}
	working := time.Duration(t.WorkingMS) * time.Millisecond
	queued := time.Duration(t.QueuedMS) * time.Millisecond
	fmt.Fprintf(w, "  served by %s on %s, %d requests, %s%s, %s working, %s queued\n",
		t.servedBy(), t.Lane, t.Requests, tokens(t.Usage()), dollars(t.CostUSD, t.AtLeast()), working, queued)
	if t.UserModel != "" {
		fmt.Fprintf(w, "  the user spoke through %s: %d requests, %d + %d tokens%s\n", t.UserModel,
			t.UserRequests, t.UserInputTokens, t.UserOutputTokens, dollars(t.UserCostUSD, t.OfUser().AtLeast()))
	}
	if t.PriceList != "" {
		fmt.Fprintf(w, "  its cost was computed again by %s; at first $%.4f\n", t.PriceList,
			*t.SavedCostUSD+*t.SavedUserCostUSD)
	}
	if t.JudgeRequests > 0 {
		fmt.Fprintf(w, "  judged by %s: %s\n", t.JudgedBy, t.judgedText())
	}
	if t.AsksConfidence {
		says := "without a number in its reply"
		if t.Confidence != nil {
			says = fmt.Sprintf("%.0f %%", 100**t.Confidence)
		}
		fmt.Fprintf(w, "  asked afterwards how likely it has succeeded: %s (%d + %d tokens)\n", says,
			t.ConfidenceInputTokens, t.ConfidenceOutputTokens)
	}
	if t.Private {
		fmt.Fprintln(w, "  the library is private: tools are digests, and --reveal shows the texts")
	}
	writeReplies(w, &t.Attempt)
}

// servedBy names the model that answered, and the parts that were ignored to recognize its name.
// forkText says where a fork begins, and what happens there.
func forkText(f assay.Fork) string {
	at, err := f.Point()
	if err != nil {
		return err.Error()
	}
	does := "meets it again"
	if f.Spared {
		does = "is spared it"
	}
	return fmt.Sprintf("begins as attempt %d at trial %s did until its call %d, which met the fault %s: here it %s",
		at.Attempt, at.Trial, at.Call, at.Fault, does)
}

// judgedText says what the model that judges said, what that cost, and what it was not shown.
func (t *Trial) judgedText() string {
	text := "no verdict"
	if t.Verdict != "" {
		text = string(t.Verdict)
	}
	said := t.Transcript != nil && t.Transcript.Opinion != nil
	if said && t.Transcript.Opinion.Reason != "" {
		text += ", because: " + t.Transcript.Opinion.Reason
	}
	text += fmt.Sprintf(" (%s, %d + %d tokens%s", assay.Counted(t.JudgeRequests, "request"), t.JudgeInputTokens,
		t.JudgeOutputTokens, dollars(t.JudgeCostUSD, t.OfJudge().AtLeast()))
	if said && t.Transcript.Opinion.Cut > 0 {
		text += fmt.Sprintf(", without %d bytes of the record", t.Transcript.Opinion.Cut)
	}
	return text + ")"
}

func (t *Trial) servedBy() string {
	name := cmp.Or(t.ServedModel, "a model without a name")
	if t.Transcript != nil {
		for _, turn := range t.Transcript.Turns {
			if turn.Identity != "" {
				return fmt.Sprintf("%s (recognized without %s)", name, turn.Identity)
			}
		}
	}
	return name
}

// dollars returns a cost as the next part of a list, or "" if there is none.
func dollars(usd float64, atLeast bool) string {
	text := assay.DollarsText(usd, 4, atLeast)
	switch {
	case usd > 0:
		return ", " + text
	case atLeast:
		return ", cost " + text
	}
	return ""
}

// tokens describes a usage, with the parts that are known.
func tokens(u assay.Usage) string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{
		{u.CachedTokens, "cached"},
		{u.CacheWriteTokens, "written to the cache"},
		{u.ReasoningTokens, "of thinking"},
		{u.UncertainTokens, "uncertain"},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	text := fmt.Sprintf("%d + %d tokens", u.InputTokens, u.OutputTokens)
	if len(parts) > 0 {
		text += " (" + strings.Join(parts, ", ") + ")"
	}
	return text
}

// writeReplies prints why replies ended, and how the endpoint treated the request's settings.
func writeReplies(w *bytes.Buffer, a *assay.Attempt) {
	if a.Finish != "" {
		fmt.Fprintf(w, "  replies ended with: %s", a.Finish)
		if a.Truncated > 0 {
			fmt.Fprintf(w, " (%d cut off for length)", a.Truncated)
		}
		fmt.Fprintln(w)
	}
	calls, others := a.Deviating()
	for _, kind := range slices.Sorted(maps.Keys(calls)) {
		fmt.Fprintf(w, "  warning: %s: %d\n", kind, calls[kind])
	}
	if len(others) > 0 {
		fmt.Fprintf(w, "  the endpoint does not accept everything that was asked: %s\n",
			strings.Join(others, ", "))
	}
	if a.Reported != "" {
		fmt.Fprintf(w, "  the endpoint reported that it used: %s\n", a.Reported)
	}
	for _, difference := range a.Unlike() {
		fmt.Fprintf(w, "  warning: the endpoint used %s\n", difference)
	}
}

func writeTranscript(w *bytes.Buffer, tr *assay.Transcript) {
	for _, turn := range turnsOf(tr) {
		writeReply(w, turn)
		for _, a := range turn.Answers {
			if a.Who == string(assay.ToolRole) {
				a.Text = "← " + a.Text
			} else {
				fmt.Fprintf(w, "\n── %s ──\n", a.Who)
			}
			if a.Text != "" {
				fmt.Fprintf(w, "%s\n", indent(a.Text, "  "))
			}
		}
		for _, c := range turn.Calls {
			fmt.Fprintf(w, "    (%s)\n", CallText(c))
		}
		if tr.Agent != nil {
			writeRefused(w, tr.Agent, turn.Number)
			writeLost(w, tr.Agent, turn.Number)
			writeModelFaults(w, tr.Agent, turn.Number)
		}
	}
	if tr.Agent != nil {
		writeAgent(w, tr.Agent)
	}
}

func writeReply(w *bytes.Buffer, t Turn) {
	if t.Number > 0 {
		fmt.Fprintf(w, "\n── turn %d ──\n", t.Number)
	}
	if t.Thinking != "" {
		fmt.Fprintf(w, "%s\n", indent(t.Thinking, "    "))
	}
	if t.Said != "" {
		fmt.Fprintf(w, "%s\n", indent(t.Said, "  "))
	}
	for _, call := range t.Asked {
		fmt.Fprintf(w, "  → %s\n", call)
	}
}

// thinking returns a reply's thinking, marked as such, or "".
func thinking(m assay.Message) string {
	switch {
	case m.Reasoning != "":
		return "(thinking) " + m.Reasoning
	case m.State != nil:
		return "(thinking that only the endpoint can read)"
	}
	return ""
}

func writeVerdict(w *bytes.Buffer, a *assay.Attempt) {
	if !a.Settles() {
		fmt.Fprintf(w, "fault: %s\n  The model did not cause it; the trial is still pending.\n",
			a.FaultDetail)
		return
	}
	fmt.Fprintf(w, "%s, ended by %s after %d turns and %d calls\n",
		a.Level, a.Ended, a.Outcome.Turns, a.ToolCalls)
	fmt.Fprintf(w, "  required   %s\n", cmp.Or(strings.Join(a.RequiredTools, ", "), "none"))
	fmt.Fprintf(w, "  succeeded  %s\n", cmp.Or(strings.Join(a.ExecutedTools, ", "), "none"))
	fmt.Fprintf(w, "  coverage %.2f, order correct %v, corrections %d",
		a.Coverage, a.OrderCorrect, a.Assisted)
	if a.ErrorCategory != "" {
		fmt.Fprintf(w, ", error category %s", a.ErrorCategory)
	}
	fmt.Fprintf(w, " (rules %s)\n", a.ScoreVersion)
	if a.ScoreVersion != "pilot-1" { // these rules measured only the verdict
		writeMeasures(w, a)
	}
}

// writeMeasures prints the measures that don't decide the verdict.
func writeMeasures(w *bytes.Buffer, a *assay.Attempt) {
	fmt.Fprintf(w,
		"  calls: %s, %d failed by chance (%d overcome), %d wasted; efficiency %.2f\n",
		assay.Counted(a.Mistakes, "mistake"), a.Failures, a.Recovered, a.Wasted, a.Efficiency)
	if a.Pilot == nil {
		fmt.Fprintf(w, "  precision of calls %.2f, %s", a.Precision,
			assay.Counted(a.UnwantedEffects, "unwanted effect"))
		switch {
		case a.Harm != "":
			fmt.Fprintf(w, " of %s severity at worst", a.Harm)
		case a.UnwantedEffects > 0:
			w.WriteString(" of unknown severity")
		}
		if a.Broken != "" {
			fmt.Fprintf(w, "; %s worked with the wrong data", a.Broken)
		}
		if a.FaultsScheduled > 0 {
			fmt.Fprintf(w, "; %d of %d scheduled faults met", a.FaultsMet, a.FaultsScheduled)
		}
		fmt.Fprintln(w)
	}
	if a.ModelFaults != "" {
		fmt.Fprintf(w, "  planted faults of the agent's model (%s): %d met, %d recovered\n", a.ModelFaults,
			a.ModelFaultsMet, a.ModelFaultsRecovered)
	}
	fmt.Fprintf(w, "  adherence to the task's plan %.2f", a.Adherence)
	if a.GivenAdherence != nil {
		fmt.Fprintf(w, ", to the plan it was given %.2f", *a.GivenAdherence)
	}
	if a.PlannedAdherence != nil {
		fmt.Fprintf(w, ", of its own plan to that %.2f", *a.PlannedAdherence)
	}
	if a.Outcome.Loop != "" {
		fmt.Fprintf(w, "; a loop (%s) began in turn %d", a.Outcome.Loop, a.LoopTurn)
	}
	fmt.Fprintf(w, "\n  the best policy succeeds with probability %.3f at most\n", a.Best)
	if s := a.Pilot; s != nil {
		fmt.Fprintf(w, "  the original's three verdicts: executor %s, paper %s, batch %s\n",
			s.Executor, s.Paper, s.Batch)
	}
}

func indent(text, by string) string {
	return by + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n"+by)
}
