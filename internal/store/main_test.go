package store_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/assay-eval/assay/internal/store"
)

// To have another process, the test binary runs itself. One variable names the role that it plays,
// and the other the path of the store.
const (
	roleVar = "ASSAY_STORE_TEST_ROLE"
	pathVar = "ASSAY_STORE_TEST_PATH"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVar); role != "" {
		if err := play(role, os.Getenv(pathVar)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	flag.Parse()
	if testing.Short() {
		if err := flag.Set("rapid.checks", "10"); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

// play is the main function of the other process.
func play(role, path string) error {
	ctx := context.Background()
	switch role {
	case "save": // until killed; it prints each trial before and after it is saved
		return saveForEver(ctx, path)
	case "hold": // until its standard input ends
		db, err := store.Open(ctx, path)
		if err != nil {
			return err
		}
		if err := db.BeginRun(ctx, experiment("held"),
			store.Run{ID: "run-of-holder", StartedAt: time.Now()}); err != nil {
			return err
		}
		fmt.Println("open")
		_, err = fmt.Scanln()
		fmt.Fprintln(os.Stderr, "holder leaves:", err)
		return db.Close()
	case "read":
		return printAll(ctx, path)
	}
	return fmt.Errorf("unknown role %q", role)
}

func printAll(ctx context.Context, path string) error {
	db, err := store.OpenReadOnly(ctx, path)
	if err != nil {
		return err
	}
	for a, err := range db.Attempts(ctx, store.Filter{}) {
		if err != nil {
			return err
		}
		fmt.Println(a.ID, a.Number)
	}
	return db.Close()
}
