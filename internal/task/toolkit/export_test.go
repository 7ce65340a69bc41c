package toolkit

import (
	"encoding/json"

	"github.com/assay-eval/assay"
)

// Call carries out a tool on a state and returns its output and the state afterwards.
func (p *Program) Call(
	tool string, state, arguments json.RawMessage,
) (output, after json.RawMessage, err error) {
	k, err := New(assay.NewCatalog(nil))
	if err != nil {
		return nil, nil, err
	}
	k.program = p
	s := k.Begin(state)
	if output, err = s.call(tool, arguments); err == nil {
		after, err = s.text()
	}
	return output, after, err
}
