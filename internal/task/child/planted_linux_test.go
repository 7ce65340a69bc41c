package child_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assay-eval/assay/internal/task/child"
)

// A program that goes on in a scratch directory, in which it has planted links, is led nowhere by them, and
// neither is Assay.
func TestPlantedLinks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]child.Command{"room": {Room: new(child.Room)}, "user": {Apart: true}} {
		if c.Room != nil && child.Rooms() != nil || c.Apart && child.Users() != nil {
			continue
		}
		folder, err := child.NewFolder()
		if err != nil {
			t.Fatal(err)
		}
		outside := t.TempDir()
		secret := filepath.Join(outside, "secret")
		if err := os.WriteFile(secret, []byte("as it was"), 0o600); err != nil {
			t.Fatal(err)
		}
		c.Kept, c.Files = folder.Path, map[string]string{"settings/a.json": "{}", "b.json": "{}"}
		run := func(script string) string {
			c.Args = []string{"/bin/sh", "-c", script}
			out, err := child.Output(t.Context(), c)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return string(out)
		}
		run("id -u > me")
		// What the program could do itself, and a hard link, which some systems allow.
		for _, link := range []struct{ to, at string }{
			{outside, ".tmp"}, {outside, "settings"}, {secret, "b.json"},
		} {
			path := filepath.Join(folder.Path, link.at)
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(link.to, path); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Link(secret, filepath.Join(folder.Path, "hard")); err != nil {
			t.Log(err) // another file system
		}
		c.Args = []string{"/bin/sh", "-c", "cat /tmp/secret .tmp/secret settings/secret hard 2> /dev/null; cat b.json; " +
			"test $(id -u) = $(cat me) && echo same"}
		out, err := child.Output(t.Context(), c)
		if name == "room" { // the hard link is the user's own file, which only a program outside could make
			out = []byte(strings.ReplaceAll(string(out), "as it was", ""))
		}
		if err != nil || string(out) != "{}same\n" {
			t.Errorf("%s: it reads %q, %v", name, out, err)
		}
		if b, err := os.ReadFile(secret); err != nil || string(b) != "as it was" {
			t.Errorf("%s: the secret is %q, %v", name, b, err)
		}
		if b, err := os.ReadFile(filepath.Join(folder.Path, "settings", "a.json")); err != nil || string(b) != "{}" {
			t.Errorf("%s: its settings are %q, %v", name, b, err)
		}
		if left, _ := os.ReadDir(outside); len(left) != 1 {
			t.Errorf("%s: %d files are outside", name, len(left))
		}
		if err := folder.Remove(); err != nil {
			t.Error(err)
		}
	}
}
