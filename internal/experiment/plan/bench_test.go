package plan_test

import "testing"

// BenchmarkSome measures skipping and making a million trials.
func BenchmarkSome(b *testing.B) {
	p := expand(b,
		load(b, "models: [a]\nvariants: [optimal]\ntasks_per_type: 200\nrepeats: 1000\n"), 200)
	for _, made := range []bool{false, true} {
		name := map[bool]string{false: "skipped", true: "made"}[made]
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				for range p.Some("a", func(int) bool { return made }) {
				}
			}
		})
	}
}
