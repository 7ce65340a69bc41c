package limit

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Rule is a limit that is obeyed.
type Rule struct {
	Measure Measure
	Limit   int
	// Span is the time in which the limit may be used. It is 0 for requests in flight and for
	// rates.
	Span time.Duration
	// Rate is in requests per second if no rule explains the refusals, and 0 otherwise.
	Rate float64
}

// Rules returns the rules that are obeyed.
func (l *Limiter) Rules() (rules []Rule) {
	for _, o := range l.obeyed {
		rules = append(rules, o.public())
	}
	if len(rules) == 0 && l.pace.rate > 0 {
		rules = append(rules, Rule{Measure: Requests, Rate: l.pace.rate})
	}
	return rules
}

// String returns the rule in words.
func (r Rule) String() string {
	switch {
	case r.Rate >= 1:
		return fmt.Sprintf("about %.3g requests per second", r.Rate)
	case r.Rate > 0:
		return fmt.Sprintf("about %.3g requests per minute", 60*r.Rate)
	case r.Measure == InFlight:
		return fmt.Sprintf("at most %d in flight", r.Limit)
	}
	return fmt.Sprintf("%d %s per %s", r.Limit, r.Measure, spanWords(r.Span))
}

func spanWords(d time.Duration) string {
	switch d {
	case time.Second:
		return "second"
	case time.Minute:
		return "minute"
	case time.Hour:
		return "hour"
	case day:
		return "day"
	}
	return fmt.Sprintf("%d s", d/time.Second)
}

func (m Measure) String() string {
	return [...]string{
		"", "requests in flight", "requests", "tokens", "input tokens", "output tokens",
		"requests",
	}[m]
}

// Words describes the known limits of the endpoint: the rules with their evidence, how many
// requests were refused by chance and at which cost, or that the limit is unknown. It is empty if
// no request was refused.
func (l *Limiter) Words() string {
	if l.refused == 0 {
		return ""
	}
	all := fmt.Sprintf("%d of %d requests refused", l.refused, l.sent)
	switch {
	case len(l.obeyed) > 0:
		return l.obeyedWords() + "; " + all
	case l.pace.rate > 0:
		return Rule{Rate: l.pace.rate}.String() + " are accepted, by a rule that is unknown; " + all
	case l.hard > 0:
		return "the limit is unknown; " + all
	}
	words := fmt.Sprintf("%s by chance (%.1f %%)", all, 100*float64(l.refused)/float64(l.sent))
	if l.waits > 0 {
		words += fmt.Sprintf(", which waited %.0f s in all", l.waits.Seconds())
	}
	return words
}

// obeyedWords lists the obeyed rules with their evidence. Of rules that explain the same refusals,
// it has the one with the longest span, because that permits least.
func (l *Limiter) obeyedWords() string {
	var chosen []*obeyed
	for _, o := range l.obeyed {
		first := o.rule.refusals[0].number
		i := slices.IndexFunc(chosen, func(c *obeyed) bool { return c.rule.refusals[0].number == first })
		switch {
		case i < 0:
			chosen = append(chosen, o)
		case o.span > chosen[i].span:
			chosen[i] = o
		}
	}
	var words []string
	for _, o := range chosen {
		refusals, most := o.rule.refusals, 0.0
		for _, f := range refusals {
			if !math.IsInf(f.level, 1) {
				most = max(most, f.level)
			}
		}
		levels := fmt.Sprintf("%.0f", o.rule.least)
		if most > o.rule.least {
			levels += fmt.Sprintf("–%.0f", most)
		}
		words = append(words,
			fmt.Sprintf("%v (refused %d times at %s)", o.public(), len(refusals), levels))
	}
	return strings.Join(words, " and ")
}

func (o *obeyed) public() Rule { return Rule{Measure: o.measure, Limit: o.limit, Span: o.span} }
