//go:build !race

package main

import "testing"

// TestHintsAreOnTheNamedStore checks that a command in a hint works on the store of the command that
// failed.
func TestHintsAreOnTheNamedStore(t *testing.T) {
	t.Parallel()
	root := newRoot(&process{name: "assay"})
	for text, want := range map[string]string{
		"`assay status` lists them":              "`assay status --store a b.db` lists them",
		`"assay store verify" says more`:         `"assay store verify --store a b.db" says more`,
		"`assay ctl resume m` goes on":           "`assay ctl resume --store a b.db m` goes on",
		"`assay store recover whole.db`":         "`assay store recover --store a b.db whole.db`",
		"`assay status --store c.db` lists them": "`assay status --store c.db` lists them",
		"`assay library import FILE -o OUT.db`":  "`assay library import FILE -o OUT.db`",
		"`assay nothing`":                        "`assay nothing`",
	} {
		if got := onStore(root, text, "a b.db"); got != want {
			t.Errorf("%s became %s, want %s", text, got, want)
		}
	}
}
