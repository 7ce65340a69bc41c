package toolkit

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// A listView shows a list of the state.
type listView struct {
	viewNode
	layers[starlark.List]
}

func (l *listView) list() *starlark.List {
	return cmp.Or(l.latest(), l.base.(*starlark.List))
}

func (l *listView) raw() starlark.Value { return l.list() }

// changing returns the list for a change by this call.
func (l *listView) changing() (*starlark.List, error) {
	if err := l.touch(l); err != nil {
		return nil, err
	}
	if l.now == nil {
		l.now = starlark.NewList(elements(l.list()))
	}
	return l.now, nil
}

// Len implements [starlark.Sequence].
func (l *listView) Len() int { return l.list().Len() }

// Index implements [starlark.Indexable].
func (l *listView) Index(i int) starlark.Value { return l.in.show(l.list().Index(i), l, nil) }

// SetIndex implements [starlark.HasSetIndex].
func (l *listView) SetIndex(i int, v starlark.Value) error {
	if l.isView(v, l.list().Index(i)) {
		return nil
	}
	list, err := l.changing()
	if err != nil {
		return err
	}
	return list.SetIndex(i, fresh{v})
}

// Slice implements [starlark.Sliceable].
func (l *listView) Slice(start, end, step int) starlark.Value {
	return starlark.NewList(l.shown(l.list().Slice(start, end, step).(*starlark.List)))
}

func (l *listView) shown(list *starlark.List) []starlark.Value {
	all := make([]starlark.Value, 0, list.Len())
	for v := range list.Elements() {
		all = append(all, l.in.show(v, l, nil))
	}
	return all
}

// Iterate implements [starlark.Iterable].
func (l *listView) Iterate() starlark.Iterator {
	l.iterating++
	return &iterator{viewNode: &l.viewNode, n: l.Len(), at: l.Index}
}

func (l *listView) settle() (size int, err error) {
	list := l.list()
	for i, v := range elements(list) {
		made, ok := v.(fresh)
		if !ok {
			continue
		}
		v, n, err := settle(made.Value)
		if err == nil {
			err = list.SetIndex(i, v)
		}
		if size += n; err != nil {
			return 0, err
		}
	}
	return size, nil
}

func (l *listView) shallow() starlark.Value { return starlark.NewList(l.shown(l.list())) }

// Binary implements [starlark.HasBinary] for l += other. Other operators never see a view.
func (l *listView) Binary(
	op syntax.Token, other starlark.Value, side starlark.Side,
) (starlark.Value, error) {
	more, ok := other.(starlark.Iterable)
	switch {
	case side == starlark.Right:
		return nil, nil
	case op == syntax.PLUS && ok:
		list, err := l.changing()
		if err != nil {
			return nil, err
		}
		for v := range starlark.Elements(more) {
			if err := list.Append(fresh{v}); err != nil {
				return nil, err
			}
		}
		return l, nil
	}
	return starlark.Binary(op, l.shallow(), other) // l *= 2
}

// Attr implements [starlark.HasAttrs].
func (l *listView) Attr(name string) (starlark.Value, error) {
	if attr, err := l.base.(*starlark.List).Attr(name); attr == nil || err != nil {
		return nil, err
	}
	return starlark.NewBuiltin(name, func(
		thread *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple,
	) (starlark.Value, error) {
		switch name {
		case "index", "remove":
			return find(thread, l, name, args, kwargs)
		case "extend":
			var more starlark.Iterable
			if err := starlark.UnpackPositionalArgs(name, args, kwargs, 1, &more); err != nil {
				return nil, err
			}
			_, err := l.Binary(syntax.PLUS, more, starlark.Left)
			return starlark.None, err
		}
		list, err := l.changing()
		if err != nil {
			return nil, err
		}
		if args = slices.Clone(args); len(args) > 0 && (name == "append" || name == "insert") {
			args[len(args)-1] = fresh{args[len(args)-1]}
		}
		v, err := callMethod(thread, list, name, args, kwargs)
		if err != nil {
			return nil, err
		}
		return l.in.show(v, l, nil), nil
	}), nil
}

// AttrNames implements [starlark.HasAttrs].
func (l *listView) AttrNames() []string { return l.base.(*starlark.List).AttrNames() }

// String implements [starlark.Value].
func (l *listView) String() string { return asText(l) }

// Type implements [starlark.Value].
func (l *listView) Type() string { return l.base.Type() }

// Freeze implements [starlark.Value]. Views are frozen all at once; see [overlay].
func (l *listView) Freeze() {}

// Truth implements [starlark.Value].
func (l *listView) Truth() starlark.Bool { return l.Len() > 0 }

// Hash implements [starlark.Value].
func (l *listView) Hash() (uint32, error) { return l.base.Hash() }

// find carries out the methods index and remove of a list, which compare its elements.
func find(
	thread *starlark.Thread, list starlark.HasAttrs, name string,
	args starlark.Tuple, kwargs []starlark.Tuple,
) (starlark.Value, error) {
	without, err := flat(list)
	if err != nil {
		return nil, err
	}
	if args = slices.Clone(args); len(args) > 0 {
		if args[0], err = flat(args[0]); err != nil {
			return nil, err
		}
	}
	at, err := callMethod(thread, without.(*starlark.List), "index", args, kwargs)
	if err != nil || name == "index" {
		return at, err
	}
	if _, err := callMethod(thread, list, "pop", starlark.Tuple{at}, nil); err != nil {
		return nil, err
	}
	return starlark.None, nil
}

func callMethod(
	thread *starlark.Thread, of starlark.HasAttrs, name string,
	args starlark.Tuple, kwargs []starlark.Tuple,
) (starlark.Value, error) {
	method, err := of.Attr(name)
	if err != nil {
		return nil, err
	}
	return starlark.Call(thread, method, args, kwargs)
}

// An iterator yields the elements of a view.
type iterator struct {
	*viewNode
	i, n int
	at   func(int) starlark.Value
}

// Next implements [starlark.Iterator].
func (i *iterator) Next(p *starlark.Value) bool {
	if i.i == i.n {
		return false
	}
	*p = i.at(i.i)
	i.i++
	return true
}

// Done implements [starlark.Iterator].
func (i *iterator) Done() { i.iterating-- }

func (l *listView) holds(kid *viewNode) bool { return slices.Contains(elements(l.list()), kid.base) }

func (l *listView) differ(diff *differ, at location) {
	l.elements(diff, at)
	for i, now := range elements(l.list()) {
		for _, kid := range l.kids {
			if now == kid.common().base && !diff.replaced(at.below(i)) {
				kid.differ(diff, at.below(i))
			}
		}
	}
}

// elements compares the elements without their common beginning and end.
func (l *listView) elements(diff *differ, at location) {
	before, now := elements(l.base.(*starlark.List)), elements(l.list())
	first, last := 0, 0
	for first < min(len(before), len(now)) && before[first] == now[first] {
		first++
	}
	for last < min(len(before), len(now))-first &&
		before[len(before)-1-last] == now[len(now)-1-last] {
		last++
	}
	before, now = before[:len(before)-last], now[:len(now)-last]
	for i := first; i < max(len(before), len(now)); i++ {
		switch {
		case i >= len(before):
			diff.add("add", at.below(i), now[i])
		case i >= len(now):
			diff.add("remove", at.below(len(now)), nil)
		default:
			diff.replace(at.below(i), before[i], now[i])
		}
	}
}

func (l *listView) part(name string) (starlark.Value, bool) {
	if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < l.Len() {
		return l.Index(i), true
	}
	return nil, false
}

func (l *listView) alter(name string, c Change) error {
	value, err := decode(c.Value)
	if err != nil {
		return err
	}
	i, err := strconv.Atoi(name)
	if err == nil && (i < 0 || i > l.Len() || i == l.Len() && c.Op != "add") {
		err = fmt.Errorf("there is nothing at %s", c.Path)
	}
	if err != nil {
		return err
	}
	list, err := l.changing()
	if err != nil {
		return err
	}
	all := elements(list)
	switch c.Op {
	case "remove":
		all = slices.Delete(all, i, i+1)
	case "add":
		all = slices.Insert(all, i, starlark.Value(fresh{value}))
	default:
		all[i] = fresh{value}
	}
	l.now = starlark.NewList(all)
	return nil
}
