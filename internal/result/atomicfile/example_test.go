package atomicfile_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/assay-eval/assay/internal/result/atomicfile"
)

func Example() {
	dir, err := os.MkdirTemp("", "atomicfile")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	d := atomicfile.New(os.Stdout)
	defer d.Close()
	for _, name := range []string{"results.csv", "manifest.json"} {
		part, err := d.Open(filepath.Join(dir, name))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Fprintln(part, "the contents of", name)
	}

	count := func() int {
		names, _ := filepath.Glob(filepath.Join(dir, "[^.]*"))
		return len(names)
	}
	fmt.Println("before Deliver:", count(), "files")
	if err := d.Commit(); err != nil {
		log.Fatal(err)
	}
	fmt.Println("after Deliver:", count(), "files")
	// Output:
	// before Deliver: 0 files
	// after Deliver: 2 files
}
