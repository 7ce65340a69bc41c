package stat_test

import (
	"fmt"

	"github.com/assay-eval/assay/internal/result/stat"
)

func ExampleWilson() {
	interval := stat.Wilson(81, 263, stat.Z95)
	fmt.Printf("%.3f to %.3f\n", interval.Low, interval.High)
	// Output: 0.255 to 0.366
}

func ExampleCompare() {
	// Two models tried 20 tasks once each. The second one solved eight more.
	var tasks []stat.Matched
	for i := range 20 {
		pair := stat.Pair{NA: 1, NB: 1}
		if i < 7 {
			pair.A = 1
		}
		if i < 15 {
			pair.B = 1
		}
		tasks = append(tasks, stat.Matched{Cells: []stat.Cell{{Pair: pair}}})
	}
	c := stat.Compare(tasks, false)
	fmt.Printf("%+.0f points, p = %.4f (%s)\n", 100*c.Difference, c.P, c.Method)
	// Output: +40 points, p = 0.0045 (t over tasks)
}
