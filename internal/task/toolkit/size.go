package toolkit

import (
	"errors"
	"fmt"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// The sizes of values in the memory of a script.
const (
	// itemSize is the size of an element of a list.
	itemSize = 16
	// bytesPerStep is the memory that counts as a step, so a call allocates at most 64 megabytes.
	bytesPerStep = 32
	// maxBits is the size of the largest whole number.
	maxBits = 1 << 16
	// maxRange is the length of the longest range.
	maxRange = 1 << 20
)

// errTooMany is the interpreter's own error; see scriptError.
var errTooMany = errors.New("too many steps")

// spend counts memory as steps, and returns an error if it is too much for one value.
func spend(thread *starlark.Thread, bytes int) error {
	if bytes > MaxSize*itemSize || bytes < 0 {
		return fmt.Errorf("a value would have more than %d bytes", MaxSize*itemSize)
	}
	thread.Steps += uint64(bytes / bytesPerStep)
	if thread.Steps >= MaxSteps {
		return errTooMany
	}
	return nil
}

// lengthOf returns the bytes that a value takes without the values that its elements refer to.
func lengthOf(v starlark.Value) int {
	switch v := v.(type) {
	case starlark.String:
		return len(v)
	case starlark.Bytes:
		return len(v)
	case starlark.Int:
		return v.BigInt().BitLen() / 8
	}
	return itemSize * max(0, starlark.Len(v))
}

// endless is a size that no value may have.
const endless = 1 << 40

// textOf returns about the length of the text of a value. It is endless if it is above the limit,
// because a value can contain the same value many times.
func textOf(v starlark.Value) int {
	total := 0
	var add func(v starlark.Value, depth int)
	add = func(v starlark.Value, depth int) {
		total += 4
		if total > MaxSize || depth > maxDepth {
			return
		}
		switch v := v.(type) {
		case starlark.String:
			total += 2 * len(v)
		case starlark.IterableMapping:
			for _, item := range v.Items() {
				add(item[0], depth+1)
				add(item[1], depth+1)
			}
		case starlark.Iterable:
			for item := range starlark.Elements(v) {
				if add(item, depth+1); total > MaxSize {
					return
				}
			}
		default:
			total += 8 + lengthOf(v)*3
		}
	}
	if add(v, 0); total > MaxSize {
		return endless
	}
	return total
}

// product multiplies sizes without overflow.
func product(a, b int) int {
	if a > 0 && b > endless/a {
		return endless
	}
	return a * b
}

// resultOf estimates the size of a result from above.
func resultOf(op syntax.Token, x, y starlark.Value) (int, error) {
	if n, ok := x.(starlark.Int); ok {
		if m, ok := y.(starlark.Int); ok {
			bits := n.BigInt().BitLen() + m.BigInt().BitLen()
			if bits > maxBits {
				return 0, fmt.Errorf("a whole number would have more than %d bits", maxBits)
			}
			return bits / 8, nil
		}
	}
	switch op {
	case syntax.STAR:
		if n, ok := x.(starlark.Int); ok {
			x, y = y, n
		}
		if n, ok := y.(starlark.Int); ok {
			times, small := n.Int64()
			if !small {
				times = endless
			}
			return product(lengthOf(x), int(max(0, min(times, endless)))), nil
		}
		return 0, nil
	case syntax.PERCENT:
		if format, ok := x.(starlark.String); ok {
			return len(format) + product(strings.Count(string(format), "%"), textOf(y)), nil
		}
		return 0, nil
	}
	return lengthOf(x) + lengthOf(y), nil
}

// operator returns the function of a binary operator that looks at sizes first.
func operator(op syntax.Token) *starlark.Builtin {
	return starlark.NewBuiltin(op.String(), func(
		thread *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple,
	) (starlark.Value, error) {
		n, err := resultOf(op, args[0], args[1])
		if err == nil {
			err = spend(thread, n)
		}
		if err != nil {
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
		n, err := lengthOf(args[0]), error(nil)
		if len(args) > 1 {
			n, err = resultOf(op, args[1], args[0])
		}
		if err == nil {
			err = spend(thread, n)
		}
		return shallow(args[0]), err
	})
}

// charged returns a function that counts the sizes of its arguments as steps.
func charged(b *starlark.Builtin) *starlark.Builtin {
	return starlark.NewBuiltin(b.Name(), func(
		thread *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple,
	) (starlark.Value, error) {
		n := 0
		for _, arg := range args {
			if b.Name() == "str" || b.Name() == "repr" {
				n += textOf(arg)
			} else {
				n += itemSize*max(0, starlark.Len(arg)) + lengthOf(arg)
			}
		}
		if err := spend(thread, n); err != nil {
			return nil, err
		}
		if name := b.Name(); name == "sorted" || name == "min" || name == "max" {
			args, kwargs = keyed(name, args, kwargs)
		}
		return starlark.Call(thread, b, args, kwargs)
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

// method returns a method of a value. If it can make large values, it looks at sizes first.
func method(
	thread *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple,
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
	bound, ok := attr.(*starlark.Builtin)
	if !ok {
		return attr, nil
	}
	list, isList := receiver.(*starlark.List)
	return starlark.NewBuiltin(name, func(
		thread *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple,
	) (starlark.Value, error) {
		if err := spend(thread, methodSize(receiver, name, args, kwargs)); err != nil {
			return nil, err
		}
		if isList && (name == "index" || name == "remove") {
			return find(thread, list, name, args, kwargs)
		}
		return starlark.Call(thread, bound, args, kwargs)
	}), nil
}

// methodSize estimates from above the memory that a method allocates.
func methodSize(
	receiver starlark.Value, name string, args starlark.Tuple, kwargs []starlark.Tuple,
) int {
	n := 0
	for _, arg := range args {
		n += lengthOf(arg)
	}
	switch name {
	case "append", "add", "get", "pop", "setdefault", "insert", "startswith", "endswith":
		return itemSize
	case "join":
		if len(args) == 0 {
			return n
		}
		if list, ok := args[0].(starlark.Iterable); ok {
			for item := range starlark.Elements(list) {
				n += lengthOf(item) + lengthOf(receiver)
			}
		}
		return n
	case "replace":
		return product(lengthOf(receiver)+1, n+1)
	case "format":
		n := lengthOf(receiver)
		for _, arg := range args {
			n += textOf(arg)
		}
		for _, arg := range kwargs {
			n += textOf(arg)
		}
		return product(n, 1+strings.Count(receiver.(starlark.String).GoString(), "{"))
	}
	return n + itemSize*max(1, lengthOf(receiver)) // split makes a list of a text
}
