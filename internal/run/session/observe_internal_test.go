package session

import (
	"testing"

	"github.com/assay-eval/assay"
)

// TestFunctionsOfTurnsAreKeptOnce shows a session the turns of an agent that sends the same functions
// with two requests and others with the third.
func TestFunctionsOfTurnsAreKeptOnce(t *testing.T) {
	t.Parallel()
	var f flights
	f.begin(&assay.Trial{ID: "t"})
	for _, names := range [][]string{{"a", "b"}, {"a", "b"}, {"a", "c"}} {
		var c Chat
		for _, name := range names {
			c.Request.Functions = append(c.Request.Functions, assay.Function{
				Name: name, Parameters: []byte(`{"type":"object"}`),
			})
		}
		f.chat("t", c)
	}
	got := f.chats("t")
	first := func(i int) *assay.Function { return &got[i].Request.Functions[0] }
	if len(got) != 3 || first(0) != first(1) || first(1) == first(2) ||
		got[2].Request.Functions[1].Name != "c" {
		t.Errorf("turns %+v", got)
	}
}
