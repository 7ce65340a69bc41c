package library

import (
	"fmt"
	"hash/fnv"
)

// records returns n records of the scenario for a period. They are always the same. The first
// record has the value that tasks look for, the second does not.
func (s scenario) records(period string, n int) []map[string]any {
	rows := make([]map[string]any, n)
	for i := range rows {
		v := roll(len(s.Values), s.Slug, period, "label", i)
		if i < 2 {
			v = i
		}
		rows[i] = map[string]any{
			s.Key:     fmt.Sprintf("%s-%d", s.Prefix, 1001+i),
			s.Label:   s.Values[v],
			s.Measure: s.Low + roll(s.High-s.Low+1, s.Slug, period, "measure", i),
		}
	}
	return rows
}

// schema returns a JSON schema that every list of the scenario's records satisfies.
func (s scenario) schema() map[string]any {
	record := map[string]any{
		"type":     "object",
		"required": []string{s.Key, s.Label, s.Measure},
		"properties": map[string]any{
			s.Key:     map[string]any{"type": "string"},
			s.Label:   map[string]any{"type": "string", "enum": s.Values},
			s.Measure: map[string]any{"type": "integer", "minimum": s.Low, "maximum": s.High},
		},
	}
	return map[string]any{
		"type":     "object",
		"required": []string{"records"},
		"properties": map[string]any{
			"records": map[string]any{"type": "array", "items": record},
		},
	}
}

// roll picks a number in [0,n) that depends only on the parts.
func roll(n int, parts ...any) int {
	h := fnv.New64a()
	fmt.Fprintln(h, parts...)
	return int((h.Sum64() >> 16) % uint64(n))
}
