package dashboard

import (
	"encoding/json"
	"fmt"
	"html/template"
	"net/url"
	"strings"
	"time"

	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/query"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/run/session"
)

var functions = template.FuncMap{
	"count":       count,
	"percent":     percent,
	"readable":    report.Readable,
	"clock":       clock,
	"took":        took,
	"age":         func(now, then time.Time) string { return took(now.Sub(then)) },
	"millis":      func(ms int64) string { return took(time.Duration(ms) * time.Millisecond) },
	"seconds":     func(s float64) string { return took(time.Duration(s * float64(time.Second))) },
	"usd":         dollars,
	"rate":        rate,
	"short":       func(id assay.TrialID) string { return string(id[:min(8, len(id))]) },
	"unix":        func(ms int64) string { return clock(time.UnixMilli(ms)) },
	"callText":    query.CallText,
	"trials":      trialsURL,
	"order":       orderURL,
	"bar":         bar,
	"barX":        func(i int) int { return 240 * i / faultBars },
	"barY":        func(n int, all []int) float64 { return 24 - bar(n, all) },
	"id":          func(id assay.TrialID) string { return string(id) },
	"text":        func(v any) string { return fmt.Sprint(v) },
	"json":        jsonText,
	"quoted":      func(s string) []string { return strings.Split(s, "`") },
	"odd":         func(i int) bool { return i%2 == 1 },
	"steps":       func() []string { return rateSteps },
	"field":       newField,
	"attempts":    attemptNumbers,
	"reliability": assay.FormatReliability,
	"levelClass":  levelClass,
	"stripLength": func(s session.LaneStrip) float64 { return float64(s.Step * len(s.States)) },
	"percentX":    func(x float64) string { return fmt.Sprintf("%.0f %%", 100*x) },
	"level":       func(s string) string { return strings.ReplaceAll(s, "_", " ") },
}

// jsonText returns a value of a state, which may not exist.
func jsonText(v json.RawMessage) string {
	if v == nil {
		return "nothing"
	}
	return string(v)
}

// A formField is a choice of a form.
type formField struct {
	Name, Chosen string
	Values       []string
}

func newField(name, chosen string, values []string) formField {
	return formField{name, chosen, values}
}

// attemptNumbers returns the numbers of all attempts if there are several.
func attemptNumbers(n int) (all []int) {
	for i := 1; i <= n && n > 1; i++ {
		all = append(all, i)
	}
	return all
}

// levelClass returns the colour of a level.
func levelClass(l assay.Level) string {
	if l == assay.FullSuccess {
		return "good"
	}
	return "bad"
}

var english = message.NewPrinter(language.English)

// count writes a number with separators.
func count(n int) string { return english.Sprintf("%d", n) }

// clock writes a time of the last day without its date.
func clock(t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	t = t.Local()
	if time.Since(t) < 20*time.Hour && time.Until(t) < 20*time.Hour {
		return t.Format("15:04:05")
	}
	return t.Format("2006-01-02 15:04")
}

// took writes a duration with the precision that matters.
func took(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		return d.Round(time.Second).String()
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}

// ago words how long ago something was.
func ago(d time.Duration) string {
	for _, unit := range []struct {
		name string
		long time.Duration
	}{{"day", 24 * time.Hour}, {"hour", time.Hour}, {"minute", time.Minute}} {
		switch n := int(d / unit.long); {
		case n == 1:
			return "1 " + unit.name + " ago"
		case n > 1:
			return fmt.Sprintf("%d %ss ago", n, unit.name)
		}
	}
	return "just now"
}

// rate writes a rate of full success. It has no interval, because the trials that are done so far
// are not a sample of all conditions and tasks; reports have one.
func rate(full, done int) string {
	if done == 0 {
		return "no outcome yet"
	}
	return percent(float64(full) / float64(done))
}

// percent writes a share. No line ends between the number and its sign.
func percent(x float64) string { return strings.ReplaceAll(report.Percent(x), " ", "\u00a0") }

// trialsURL returns the address of the chosen trials, given names and values in turn.
func trialsURL(pairs ...string) string { return address("/trials", pairs) }

// orderURL returns the address that describes an order, given names and values in turn.
func orderURL(pairs ...string) string { return address("/order", pairs) }

func address(path string, pairs []string) string {
	v := make(url.Values)
	for i := 0; i+1 < len(pairs); i += 2 {
		v.Add(pairs[i], pairs[i+1])
	}
	return path + "?" + v.Encode()
}

// bar returns the height of a bar of 24 units.
func bar(n int, all []int) float64 {
	most := 1
	for _, k := range all {
		most = max(most, k)
	}
	return 24 * float64(n) / float64(most)
}

// dollars spells a cost, which may leave something out.
func dollars(usd float64, atLeast bool) string { return assay.DollarsText(usd, 2, atLeast) }
