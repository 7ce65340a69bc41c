package episode

import (
	"strings"

	"github.com/assay-eval/assay"
)

// An askedFor knows which calls of tools the replies of a model have asked for. An agent that has
// another model that Assay does not see makes calls that no reply asked for.
type askedFor struct {
	calls   map[string]int // calls of replies that were not carried out yet, by name
	texts   []string       // where a reply may name a tool: in a text, code, or a list of calls
	unasked int
}

// hear notes the calls of a reply.
func (k *askedFor) hear(m *assay.Message) {
	if k.calls == nil {
		k.calls = make(map[string]int)
	}
	k.texts = append(k.texts, m.Content)
	for _, c := range m.Calls {
		k.calls[c.Name]++
		k.texts = append(k.texts, c.Arguments)
	}
}

// carryOut counts a call unless a reply asked for it. Agents put prefixes before the names of tools,
// and some have them in texts, perhaps for several calls.
func (k *askedFor) carryOut(tool string) {
	for name, n := range k.calls {
		if n > 0 && strings.HasSuffix(name, tool) {
			k.calls[name]--
			return
		}
	}
	for _, text := range k.texts {
		if strings.Contains(text, tool) {
			return
		}
	}
	k.unasked++
}
