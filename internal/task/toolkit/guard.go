package toolkit

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// Starlark's operators know its own dicts and lists only, not views of the state, and a single one
// can allocate gigabytes. They are therefore rewritten before a script is compiled, to calls of
// functions that look at the sizes first and show no views. These functions have names that no script
// can use.

// operators are the binary operators that can make large values.
var operators = []syntax.Token{syntax.PLUS, syntax.STAR, syntax.PIPE}

// assignments are the operators of assignments such as a += b.
var assignments = map[syntax.Token]syntax.Token{
	syntax.PLUS_EQ: syntax.PLUS, syntax.STAR_EQ: syntax.STAR, syntax.PIPE_EQ: syntax.PIPE,
}

// comparisons are the binary operators that look into values, which may have views of the state.
var comparisons = []syntax.Token{
	syntax.EQL, syntax.NEQ, syntax.LT, syntax.LE, syntax.GT, syntax.GE, syntax.IN, syntax.NOT_IN,
}

// The names of the functions that replace operators and methods.
const (
	operatorName = "operator " // followed by the operator
	growthName   = "growth "   // followed by the operator of an assignment
	methodName   = "method "
)

// guard rewrites a script.
func guard(file *syntax.File) error {
	r := &rewriter{}
	r.fields(reflect.ValueOf(file).Elem())
	return r.err
}

type rewriter struct{ err error }

var (
	exprType = reflect.TypeFor[syntax.Expr]()
	stmtType = reflect.TypeFor[syntax.Stmt]()
)

// fields rewrites the expressions in the fields of a node.
func (r *rewriter) fields(node reflect.Value) {
	for i := range node.NumField() {
		if node.Type().Field(i).IsExported() {
			r.value(node.Field(i))
		}
	}
}

func (r *rewriter) value(v reflect.Value) {
	switch {
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			r.value(v.Index(i))
		}
	case v.Type() == exprType:
		if e, ok := v.Interface().(syntax.Expr); ok {
			v.Set(reflect.ValueOf(r.expr(e)))
		}
	case v.Type() == stmtType:
		if s, ok := v.Interface().(syntax.Stmt); ok {
			r.stmt(s)
		}
	case v.Kind() == reflect.Interface:
		switch clause := v.Interface().(type) { // of a comprehension
		case *syntax.ForClause, *syntax.IfClause:
			r.fields(reflect.ValueOf(clause).Elem())
		}
	}
}

func (r *rewriter) stmt(s syntax.Stmt) {
	r.fields(reflect.ValueOf(s).Elem())
	a, ok := s.(*syntax.AssignStmt)
	if !ok {
		return
	}
	op, grows := assignments[a.Op]
	if !grows {
		return
	}
	if op == syntax.PLUS || op == syntax.PIPE { // the right side is all that is added
		a.RHS = callOf(growthName+op.String(), a.OpPos, a.RHS)
		return
	}
	if hasCall(a.LHS) && r.err == nil {
		r.err = fmt.Errorf("%s: the left side of %s has a call; assign its result to a "+
			"variable first", a.OpPos, a.Op)
	}
	a.RHS = callOf(growthName+op.String(), a.OpPos, a.RHS, a.LHS)
}

// hasCall reports whether an expression makes a call, which must not happen twice. Operators are
// calls by now, too, but of functions without effects.
func hasCall(e syntax.Expr) (found bool) {
	syntax.Walk(e, func(n syntax.Node) bool {
		if c, ok := n.(*syntax.CallExpr); ok {
			f, named := c.Fn.(*syntax.Ident)
			found = found || !named || !strings.HasPrefix(f.Name, operatorName)
		}
		return true
	})
	return found
}

func (r *rewriter) expr(e syntax.Expr) syntax.Expr {
	if call, ok := e.(*syntax.CallExpr); ok {
		r.call(call)
		return call
	}
	r.fields(reflect.ValueOf(e).Elem())
	switch e := e.(type) {
	case *syntax.BinaryExpr:
		for _, op := range slices.Concat(operators, comparisons) {
			if e.Op == op {
				return callOf(operatorName+op.String(), e.OpPos, e.X, e.Y)
			}
		}
	case *syntax.DotExpr:
		name := &syntax.Literal{
			Token: syntax.STRING, TokenPos: e.NamePos, Raw: e.Name.Name, Value: e.Name.Name,
		}
		return callOf(methodName, e.NamePos, e.X, name)
	}
	return e
}

// call rewrites the parts of a call. Named arguments are not operators, although they look so.
func (r *rewriter) call(c *syntax.CallExpr) {
	c.Fn = r.expr(c.Fn)
	for i, arg := range c.Args {
		switch arg := arg.(type) {
		case *syntax.BinaryExpr:
			if arg.Op == syntax.EQ {
				arg.Y = r.expr(arg.Y)
				continue
			}
		case *syntax.UnaryExpr: // *args and **kwargs
			r.fields(reflect.ValueOf(arg).Elem())
			continue
		}
		c.Args[i] = r.expr(arg)
	}
}

func callOf(name string, pos syntax.Position, args ...syntax.Expr) *syntax.CallExpr {
	return &syntax.CallExpr{
		Fn: &syntax.Ident{NamePos: pos, Name: name}, Lparen: pos, Args: args, Rparen: pos,
	}
}

// builtins are the functions that a script has besides Starlark's own, and the functions that
// replace some of these.
func builtins() starlark.StringDict {
	all := starlark.StringDict{
		"fail":     starlark.NewBuiltin("fail", fail),
		"range":    starlark.NewBuiltin("range", boundedRange),
		"print":    starlark.NewBuiltin("print", silence),
		"getattr":  starlark.NewBuiltin("getattr", getattr),
		methodName: starlark.NewBuiltin(methodName, method),
	}
	for _, op := range operators {
		all[operatorName+op.String()] = operator(op)
		all[growthName+op.String()] = growth(op)
	}
	for _, op := range comparisons {
		all[operatorName+op.String()] = comparison(op)
	}
	for _, name := range []string{"max", "min", "sorted"} {
		all[name] = comparer(name)
	}
	return all
}

// fail implements fail(code, text).
func fail(
	_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple,
) (starlark.Value, error) {
	var e ToolError
	err := starlark.UnpackArgs(b.Name(), args, kwargs, "code", &e.Code, "text?", &e.Text)
	if err != nil {
		return nil, err
	}
	return nil, &e
}

func silence(
	*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple,
) (starlark.Value, error) {
	return starlark.None, nil
}
