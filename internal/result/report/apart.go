package report

import (
	"fmt"
	"slices"
	"strings"
)

// Apart names the factors in which the sides have no level in common, and a remedy.
func (c *Comparison) Apart() string {
	var factors []string
	for name, levels := range c.A.Levels {
		others := c.B.Levels[name]
		isCommon := func(l string) bool { return slices.Contains(others, l) }
		common := slices.ContainsFunc(levels, isCommon)
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
	return fmt.Sprintf("they have several levels of %s, but none in common; "+
		"choose one with --where", strings.Join(factors, ", "))
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
	return fmt.Sprintf("the flawed plans have several severities; "+
		"choose one, for example with --where severity!=%s", strings.Join(all[1:], ","))
}
