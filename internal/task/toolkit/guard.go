package toolkit

import (
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// builtins are what a script has besides Starlark's own functions.
func builtins() starlark.StringDict {
	return starlark.StringDict{"fail": starlark.NewBuiltin("fail", fail)}
}

// fail implements fail(code, text).
func fail(
	_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple,
) (starlark.Value, error) {
	var e ToolError
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "code", &e.Code, "text?", &e.Text); err != nil {
		return nil, err
	}
	return nil, &e
}

func guard(*syntax.File) {}
