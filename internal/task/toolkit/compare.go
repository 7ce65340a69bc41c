package toolkit

import (
	"slices"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// comparison returns the function of an operator that compares values, without views.
func comparison(op syntax.Token) *starlark.Builtin {
	return starlark.NewBuiltin(op.String(), func(
		_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple,
	) (v starlark.Value, err error) {
		x, y := args[0], args[1]
		isIn := op == syntax.IN || op == syntax.NOT_IN
		if _, dict := y.(starlark.Mapping); !isIn || !dict { // a dict looks at its keys only
			if x, err = flat(x); err == nil {
				y, err = flat(y)
			}
		}
		switch {
		case err != nil:
			return nil, err
		case isIn:
			v, err := starlark.Binary(syntax.IN, x, y)
			if err == nil && op == syntax.NOT_IN {
				v = !v.Truth()
			}
			return v, err
		}
		same, err := starlark.Compare(op, x, y)
		return starlark.Bool(same), err
	})
}

// comparer returns Starlark's function of a name, which compares keys without views.
func comparer(name string) *starlark.Builtin {
	return starlark.NewBuiltin(name, func(
		thread *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple,
	) (starlark.Value, error) {
		args, kwargs = keyed(name, args, kwargs)
		return starlark.Call(thread, starlark.Universe[name], args, kwargs)
	})
}

// keyed returns the arguments of a function that compares keys, which have no views then.
func keyed(
	name string, args starlark.Tuple, kwargs []starlark.Tuple,
) (starlark.Tuple, []starlark.Tuple) {
	args, kwargs = slices.Clone(args), slices.Clone(kwargs)
	var key *starlark.Value
	for i, kwarg := range kwargs {
		if kwarg[0] == starlark.String("key") {
			kwargs[i] = slices.Clone(kwarg)
			key = &kwargs[i][1]
		}
	}
	switch {
	case key == nil && name == "sorted" && len(args) > 1:
		key = &args[1]
	case key == nil:
		kwargs = append(kwargs, starlark.Tuple{starlark.String("key"), starlark.None})
		key = &kwargs[len(kwargs)-1][1]
		*key = starlark.NewBuiltin("itself", func(
			_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple,
		) (starlark.Value, error) {
			return args[0], nil
		})
	}
	if of, ok := (*key).(starlark.Callable); ok {
		*key = starlark.NewBuiltin("key", func(
			thread *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple,
		) (starlark.Value, error) {
			v, err := starlark.Call(thread, of, args, nil)
			if err != nil {
				return nil, err
			}
			return flat(v)
		})
	}
	return args, kwargs
}

// shallow returns a value as Starlark's own dict or list, if it is a view.
func shallow(v starlark.Value) starlark.Value {
	if w, ok := v.(view); ok {
		return w.shallow()
	}
	return v
}

// asText returns a view as text.
func asText(v view) string {
	without, err := flat(v)
	if err != nil { // too deep, or too large
		return "..."
	}
	return without.String()
}

// getattr implements getattr(value, name, other); see [method].
func getattr(
	thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple,
) (starlark.Value, error) {
	var object, other starlark.Value
	var name string
	err := starlark.UnpackPositionalArgs(b.Name(), args, kwargs, 2, &object, &name, &other)
	if err != nil {
		return nil, err
	}
	v, err := method(thread, b, starlark.Tuple{object, starlark.String(name)}, nil)
	if err != nil && other != nil {
		return other, nil
	}
	return v, err
}
