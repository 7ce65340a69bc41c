package toolkit

import (
	"errors"
	"fmt"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// What operators may make. Methods and functions that copy or multiply texts are not bounded, except
// by the limit of steps and the size of what leaves a tool.
const (
	// bytesPerStep is the memory that counts as a step, so operators allocate at most 64 megabytes.
	bytesPerStep = 32
	itemSize     = 16 // bytes of an element of a list
	maxValue     = MaxSize * itemSize
	maxBits      = 1 << 16
	maxRange     = 1 << 20
)

// errTooMany is the interpreter's own error; see scriptError.
var errTooMany = errors.New("too many steps")

// spend counts the result of an operator as steps, or refuses it. x or y may be a number of copies.
func spend(thread *starlark.Thread, op syntax.Token, x, y starlark.Value) error {
	n, isInt := x.(starlark.Int)
	m, areInts := y.(starlark.Int)
	bytes := lengthOf(x) + lengthOf(y)
	switch {
	case isInt && areInts:
		if bits := n.BigInt().BitLen() + m.BigInt().BitLen(); bits > maxBits {
			return fmt.Errorf("a whole number would have more than %d bits", maxBits)
		}
	case op == syntax.STAR && (isInt || areInts):
		if isInt {
			m = n
		}
		copies, small := m.Int64()
		if !small || copies > maxValue {
			copies = maxValue + 1
		}
		bytes *= int(max(0, copies))
	}
	if bytes > maxValue {
		return fmt.Errorf("a value would have more than %d bytes", maxValue)
	}
	if thread.Steps += uint64(bytes / bytesPerStep); thread.Steps >= MaxSteps {
		return errTooMany
	}
	return nil
}

// lengthOf returns the bytes of a text, or of a list or dict without its elements.
func lengthOf(v starlark.Value) int {
	switch v := v.(type) {
	case starlark.String:
		return len(v)
	case starlark.Bytes:
		return len(v)
	}
	return itemSize * max(0, starlark.Len(v))
}

// operator returns the function of a binary operator that looks at sizes first.
func operator(op syntax.Token) *starlark.Builtin {
	return starlark.NewBuiltin(op.String(), func(
		thread *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple,
	) (starlark.Value, error) {
		if err := spend(thread, op, args[0], args[1]); err != nil {
			return nil, err
		}
		return starlark.Binary(op, shallow(args[0]), shallow(args[1]))
	})
}

// growth returns a function that looks at the size of a op= b and returns b. It gets b first, and a
// only if the size of b is not all that is added.
func growth(op syntax.Token) *starlark.Builtin {
	return starlark.NewBuiltin(op.String()+"=", func(
		thread *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple,
	) (starlark.Value, error) {
		a := starlark.Value(starlark.None)
		if len(args) > 1 {
			a = args[1]
		}
		return shallow(args[0]), spend(thread, op, a, args[0])
	})
}

func boundedRange(
	thread *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple,
) (starlark.Value, error) {
	v, err := starlark.Call(thread, starlark.Universe["range"], args, kwargs)
	if err == nil && starlark.Len(v) > maxRange {
		return nil, fmt.Errorf("a range has at most %d numbers", maxRange)
	}
	return v, err
}

// method returns a method of a value. Those of a list that compare its elements see no views.
func method(
	_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple,
) (starlark.Value, error) {
	receiver, name := args[0], string(args[1].(starlark.String))
	object, ok := receiver.(starlark.HasAttrs)
	var attr starlark.Value
	var err error
	if ok {
		attr, err = object.Attr(name)
	}
	if err != nil {
		return nil, err
	}
	if attr == nil {
		return nil, fmt.Errorf("%s has no .%s field or method", receiver.Type(), name)
	}
	list, isList := receiver.(*starlark.List)
	if !isList || name != "index" && name != "remove" {
		return attr, nil
	}
	return starlark.NewBuiltin(name, func(
		thread *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple,
	) (starlark.Value, error) {
		return find(thread, list, name, args, kwargs)
	}), nil
}
