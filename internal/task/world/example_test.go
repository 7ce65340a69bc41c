package world_test

import (
	"fmt"

	"github.com/assay-eval/assay/internal/task/world"
)

func ExampleFind() {
	for _, name := range []string{"assay-1", "pilot", "atlantis"} {
		d := world.Find(name)
		if d == nil {
			fmt.Println(name, "does not exist")
			continue
		}
		fmt.Printf("%s, judged by %s: chance of a call at reliability 1 is %v\n", d.Name,
			d.ScoreVersion, d.Chance(1))
	}
	// Output:
	// assay-1, judged by assay-1.7: chance of a call at reliability 1 is 1
	// pilot, judged by pilot-6: chance of a call at reliability 1 is 0.95
	// atlantis does not exist
}
