package toolkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"go.starlark.net/starlark"

	"github.com/assay-eval/assay"
)

// A Session is the state of the tools during one attempt. It belongs to one goroutine.
type Session struct {
	kit   *Kit
	state *overlay
	start json.RawMessage // the state in the beginning; nil if it has the library's base
	calls int             // that succeeded
	size  int             // of the state or its changes, from above
	err   error           // why there is no state
}

// Begin returns a session that begins with a state: what it has beyond the base of the library, or
// all of it if there is no base.
func (k *Kit) Begin(state json.RawMessage) *Session {
	s := &Session{kit: k}
	var root starlark.Value
	if k.base != nil {
		if root, s.err = k.base(); s.err == nil {
			s.state = newOverlay(root)
			s.err = s.merge(state)
		}
		return s
	}
	if len(state) == 0 {
		state = json.RawMessage("{}")
	}
	s.start, s.size = state, len(state)
	root, s.err = k.frozen(state)
	s.state = newOverlay(root)
	return s
}

// frozen returns the value of a state. Attempts share it.
func (k *Kit) frozen(state json.RawMessage) (starlark.Value, error) {
	if v, ok := k.states.Get(string(state)); ok {
		return v, nil
	}
	v, err := decode(state)
	if err != nil {
		return starlark.None, err
	}
	v.Freeze()
	k.states.Add(string(state), v)
	return v, nil
}

// merge puts the members of an object into the state. Objects in both are merged.
func (s *Session) merge(state json.RawMessage) error {
	more, err := decode(state)
	if err != nil {
		return err
	}
	var merge func(into starlark.HasSetKey, more *starlark.Dict) error
	merge = func(into starlark.HasSetKey, more *starlark.Dict) error {
		for name, v := range more.Entries() {
			old, _, err := into.Get(name)
			if err != nil {
				return err
			}
			a, both := old.(starlark.HasSetKey)
			b, object := v.(*starlark.Dict)
			if both && object {
				err = merge(a, b)
			} else {
				err = into.SetKey(name, v)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	into, ok := s.root().(starlark.HasSetKey)
	object, also := more.(*starlark.Dict)
	if !ok || !also {
		return errors.New("the state is not an object")
	}
	if err := merge(into, object); err != nil {
		return err
	}
	return s.state.end(true, s.fits)
}

// Err returns the reason why there is no state, or nil.
func (s *Session) Err() error { return s.err }

func (s *Session) root() starlark.Value { return s.state.show(s.state.root, nil, nil) }

// fits returns an error if changes that have a size make the state too large.
func (s *Session) fits(size int) error {
	if s.size += size; s.size <= MaxSize {
		return nil
	}
	text, err := s.text()
	if err != nil {
		s.size -= size // the call is dropped
		return err
	}
	s.size = len(text)
	return nil
}

// text returns the state, or how it differs from what it began with if the library has a base.
func (s *Session) text() (json.RawMessage, error) {
	if s.start == nil {
		changes, err := s.Changes()
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(changes)
		if len(text) > MaxSize {
			err = fmt.Errorf("the changes of the state have more than %d bytes as JSON", MaxSize)
		}
		return text, err
	}
	return encode(s.root())
}

// Call carries out a tool. A call that fails does not change the state. The error is the tool's
// answer, a *[ToolError], or a fault: the script is wrong.
func (s *Session) Call(
	_ context.Context, tool string, arguments json.RawMessage,
) (json.RawMessage, error) {
	output, err := s.call(tool, arguments)
	if refusal := (*ToolError)(nil); errors.As(err, &refusal) {
		return nil, refusal
	}
	if err != nil {
		return nil, &assay.Fault{
			Kind: assay.ToolServer, Detail: Broke("the tool "+tool, err), Err: err,
			Hopeless: true,
		}
	}
	s.calls++
	return output, nil
}

// call carries out a tool. The error is a *[ToolError] or a *[ScriptError].
func (s *Session) call(tool string, arguments json.RawMessage) (json.RawMessage, error) {
	if s.err != nil {
		return nil, &ScriptError{Message: s.err.Error()}
	}
	args, err := decode(arguments)
	if err != nil {
		return nil, &ScriptError{Message: err.Error()}
	}
	named, ok := args.(*starlark.Dict)
	if !ok {
		return nil, &ScriptError{Message: "the arguments are not an object"}
	}
	result, err := s.kit.program.call(tool, starlark.Tuple{s.root()}, named.Items())
	if err != nil {
		_ = s.state.end(false, s.fits) // it cannot fail
		return nil, err
	}
	output, err := encode(result)
	if failed := s.state.end(err == nil, s.fits); err == nil {
		err = failed
	}
	if err != nil {
		return nil, s.kit.program.misfit(tool, err)
	}
	return output, nil
}

// State returns the state after the calls so far. If the library has a base, that is a JSON Patch of
// the base.
func (s *Session) State() (json.RawMessage, error) {
	if s.start != nil && s.calls == 0 {
		return s.start, nil
	}
	if s.err != nil {
		return nil, s.err
	}
	return s.text()
}
