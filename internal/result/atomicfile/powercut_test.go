//go:build unix

package atomicfile_test

import (
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/assay-eval/assay/internal/result/atomicfile"
	"github.com/assay-eval/assay/internal/store/storetest"
)

// After a power cut, each file is the old or the new one, and the new one once it was delivered.
func TestPowerCuts(t *testing.T) {
	t.Parallel()
	if cuts, lost := powerCuts(t, func(*storetest.Faults) {}); lost != "" {
		t.Errorf("after %d power cuts: %s", cuts, lost)
	}
	for name, spoil := range map[string]func(*storetest.Faults){
		"content is not synced": func(f *storetest.Faults) { f.Lies = true },
		"names are not synced":  func(f *storetest.Faults) { f.Forgetful = true },
	} {
		if cuts, lost := powerCuts(t, spoil); lost == "" {
			t.Errorf("%s, and %d power cuts destroy nothing", name, cuts)
		}
	}
}

// powerCuts replaces two files while the power is cut again and again.
func powerCuts(t *testing.T, spoil func(*storetest.Faults)) (cuts int, lost string) {
	t.Helper()
	dir := t.TempDir()
	texts := []string{strings.Repeat("old ", 500), strings.Repeat("new! ", 700)}
	for _, name := range []string{"a", "b"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(texts[0]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	d, err := storetest.NewDisk(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Forget()
	d.Set(spoil)
	r := rand.New(rand.NewPCG(1, 1))
	look := func(want ...string) {
		for range 200 {
			image, err := d.Cut(r)
			if err != nil {
				t.Fatal(err)
			}
			cuts++
			for _, name := range []string{"a", "b"} {
				if got := string(image.Files()[name]); !slices.Contains(want, got) {
					lost = name + " is " + got
				}
			}
		}
	}
	d.Watch(func() { look(texts...) })
	delivered := atomicfile.New(io.Discard)
	for _, name := range []string{"a", "b"} {
		p, err := delivered.Open(filepath.Join(d.Dir(), name))
		if err == nil {
			_, err = io.WriteString(p, texts[1])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := delivered.Commit(); err != nil {
		t.Fatal(err)
	}
	look(texts[1])
	if err := delivered.Close(); err != nil {
		t.Fatal(err)
	}
	return cuts, lost
}
