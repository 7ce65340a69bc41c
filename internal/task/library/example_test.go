package library_test

import (
	"context"
	"fmt"
	"log"

	"github.com/assay-eval/assay/internal/task/library"
)

func Example() {
	ctx := context.Background()
	l, err := library.Builtin(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()

	refs, err := l.Refs(ctx, "simple_task", "easy")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(refs), "tasks, starting with", refs[0].ID)
	for _, difficulty := range []string{"easy", "very_hard"} {
		task, err := l.Task(ctx, refs[0].ID, difficulty)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: %s\n", difficulty, task.Description)
	}
	// Output:
	// 126 tasks, starting with simple-001
	// easy: Look through the file inbox/orders/2024-01.xml for open and list where it occurs.
	// very_hard: What would please the sales desk most is to put a finger on each place where the customer orders of January 2024 speak of open.
}
