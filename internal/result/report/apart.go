package report

import (
	"fmt"
	"slices"
	"strings"
)

// Apart explains which factors keep two sides from having trials in common, and what to do.
func (c *Comparison) Apart() string {
	var factors []string
	for name, levels := range c.A.Levels {
		others := c.B.Levels[name]
		common := slices.ContainsFunc(levels, func(l string) bool { return slices.Contains(others, l) })
		if common || len(levels)+len(others) <= 2 {
			continue
		}
		hint := severityHint(append(slices.Clone(levels), others...))
		if name == Graded && hint != "" {
			return hint
		}
		factors = append(factors, name)
	}
	if len(factors) == 0 {
		return "`assay status` lists the trials of each"
	}
	slices.Sort(factors)
	return fmt.Sprintf("they have several levels of %s, and none in common; choose one with --where",
		strings.Join(factors, ", "))
}

// severityHint explains how to choose one of several severities. It returns "" if the variants do
// not have several.
func severityHint(variants []string) string {
	var all []string
	for _, v := range variants {
		if _, severity, graded := strings.Cut(v, ", "); graded && !slices.Contains(all, severity) {
			all = append(all, severity)
		}
	}
	if len(all) < 2 {
		return ""
	}
	slices.Sort(all)
	return fmt.Sprintf("the flawed plans have several severities; choose one, for example with --where severity!=%s",
		strings.Join(all[1:], ","))
}
