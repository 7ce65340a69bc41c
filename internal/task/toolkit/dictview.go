package toolkit

import (
	"errors"
	"fmt"
	"slices"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// A dictView shows a dict of the state. Calls of the same attempt see its members in alphabetical
// order, and those that they added themselves at the end.
type dictView struct {
	viewNode
	layers[members]
}

// members are how a dict differs from its base.
type members struct {
	set   *starlark.Dict   // the members that were set; the value of one that is gone is absent
	names []starlark.Value // of all members, in order; nil if they are as before
}

// absent is the value of a member that a dict had.
var absent starlark.Value = starlark.NewBuiltin("absent", nil)

func (d *dictView) dict() *starlark.Dict { return d.base.(*starlark.Dict) }

// find returns a member as the state has it, or nil.
func (d *dictView) find(name starlark.Value) (starlark.Value, error) {
	v, found, err := d.dict().Get(name)
	if m := d.latest(); m != nil && err == nil {
		if now, set, _ := m.set.Get(name); set {
			v, found = now, now != absent
		}
	}
	if !found {
		v = nil
	}
	return v, err
}

// keys returns the names of the members in order. The caller must not change them.
func (d *dictView) keys() []starlark.Value {
	for _, m := range []*members{d.now, d.own} {
		if m != nil && m.names != nil {
			return m.names
		}
	}
	return d.dict().Keys()
}

// all yields the members in order, as the state has them.
func (d *dictView) all(yield func(name, v starlark.Value) bool) {
	if d.latest() == nil {
		d.dict().Entries()(yield)
		return
	}
	for _, name := range d.keys() {
		v, _ := d.find(name) // it is there
		if !yield(name, v) {
			return
		}
	}
}

// put sets a member, or removes it if the value is nil.
func (d *dictView) put(name, v starlark.Value) error {
	if err := d.touch(d); err != nil {
		return err
	}
	old, err := d.find(name)
	if err != nil {
		return err
	}
	if d.now == nil {
		d.now = &members{set: new(starlark.Dict)}
		if d.own != nil {
			for name, v := range d.own.set.Entries() {
				_ = d.now.set.SetKey(name, v) // it was a key
			}
		}
	}
	if (v == nil || old == nil) && d.now.names == nil {
		d.now.names = slices.Clone(d.keys())
	}
	switch {
	case v == nil:
		d.now.names = slices.DeleteFunc(d.now.names, func(k starlark.Value) bool {
			same, err := starlark.Equal(k, name)
			return err == nil && same
		})
		return d.now.set.SetKey(name, absent)
	case old == nil:
		d.now.names = append(d.now.names, name)
	}
	return d.now.set.SetKey(name, fresh{v})
}

// Get implements [starlark.Mapping].
func (d *dictView) Get(name starlark.Value) (starlark.Value, bool, error) {
	v, err := d.find(name)
	return d.in.show(v, d, name), v != nil, err
}

// Has implements [starlark.Container].
func (d *dictView) Has(name starlark.Value) (bool, error) {
	v, _ := d.find(name) // as a dict, which has no key that cannot be one
	return v != nil, nil
}

// Len implements [starlark.Sequence].
func (d *dictView) Len() int {
	if d.latest() == nil {
		return d.dict().Len()
	}
	return len(d.keys())
}

// SetKey implements [starlark.HasSetKey].
func (d *dictView) SetKey(name, v starlark.Value) error {
	old, err := d.find(name)
	if err != nil || d.isView(v, old) { // state["orders"] += … ends with it
		return err
	}
	return d.put(name, v)
}

// Items implements [starlark.IterableMapping].
func (d *dictView) Items() []starlark.Tuple {
	items := make([]starlark.Tuple, 0, d.Len())
	for name, v := range d.all {
		items = append(items, starlark.Tuple{name, d.in.show(v, d, name)})
	}
	return items
}

// Iterate implements [starlark.Iterable].
func (d *dictView) Iterate() starlark.Iterator {
	d.iterating++
	names := d.keys()
	at := func(i int) starlark.Value { return names[i] }
	return &iterator{viewNode: &d.viewNode, n: len(names), at: at}
}

func (d *dictView) settle() (size int, err error) {
	if d.now == nil {
		return 0, nil
	}
	for _, item := range d.now.set.Items() {
		name, ok := item[0].(starlark.String)
		if !ok {
			return 0, notText(item[0])
		}
		made, ok := item[1].(fresh)
		if ok || item[1] == absent {
			size += len(name) + 4
		}
		if !ok {
			continue
		}
		v, n, err := settle(made.Value)
		if err == nil {
			err = d.now.set.SetKey(name, v)
		}
		if size += n; err != nil {
			return 0, err
		}
	}
	return size, nil
}

func (d *dictView) keep() {
	switch {
	case d.now == nil:
	case d.now.names != nil:
		slices.SortStableFunc(d.now.names, compareNames)
	case d.own != nil:
		d.now.names = d.own.names
	}
	d.layers.keep()
}

func (d *dictView) raw() starlark.Value {
	if d.latest() == nil {
		return d.base
	}
	out := starlark.NewDict(d.Len())
	for name, v := range d.all {
		_ = out.SetKey(name, v) // it is a key
	}
	return out
}

func (d *dictView) shallow() starlark.Value {
	out := starlark.NewDict(d.Len())
	for _, item := range d.Items() {
		_ = out.SetKey(item[0], item[1]) // it was a key
	}
	return out
}

// Binary implements [starlark.HasBinary] for d |= other. Other operators never see a view.
func (d *dictView) Binary(
	op syntax.Token, other starlark.Value, side starlark.Side,
) (starlark.Value, error) {
	more, ok := other.(starlark.IterableMapping)
	if op != syntax.PIPE || side == starlark.Right || !ok {
		return nil, nil
	}
	return d, d.update(more)
}

func (d *dictView) update(more starlark.IterableMapping) error {
	for _, item := range more.Items() {
		if err := d.SetKey(item[0], item[1]); err != nil {
			return err
		}
	}
	return nil
}

// Attr implements [starlark.HasAttrs].
func (d *dictView) Attr(name string) (starlark.Value, error) {
	if attr, err := d.dict().Attr(name); attr == nil || err != nil {
		return nil, err
	}
	return starlark.NewBuiltin(name, func(
		thread *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple,
	) (v starlark.Value, err error) {
		switch name {
		case "update":
			more := new(starlark.Dict)
			if _, err := callMethod(thread, more, name, args, kwargs); err != nil {
				return nil, err
			}
			return starlark.None, d.update(more)
		case "get", "pop", "setdefault":
			var key, other starlark.Value
			if err := starlark.UnpackPositionalArgs(name, args, kwargs, 1, &key, &other); err != nil {
				return nil, err
			}
			v, err = d.member(name, key, other)
		default:
			if err := starlark.UnpackPositionalArgs(name, args, kwargs, 0); err != nil {
				return nil, err
			}
			v, err = d.whole(name)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return v, nil
	}), nil
}

// whole carries out the methods without arguments.
func (d *dictView) whole(method string) (starlark.Value, error) {
	if method == "keys" {
		return starlark.NewList(slices.Clone(d.keys())), nil
	}
	var list []starlark.Value
	for _, item := range d.Items() {
		switch method {
		case "items":
			list = append(list, item)
		case "values":
			list = append(list, item[1])
		case "popitem":
			return item, d.put(item[0], nil)
		default:
			if err := d.put(item[0], nil); err != nil {
				return nil, err
			}
		}
	}
	switch method {
	case "popitem":
		return nil, errors.New("empty dict")
	case "clear":
		return starlark.None, nil
	}
	return starlark.NewList(list), nil
}

// member carries out the methods get, pop and setdefault. The other value may be missing.
func (d *dictView) member(method string, key, other starlark.Value) (starlark.Value, error) {
	v, found, err := d.Get(key)
	switch {
	case err != nil:
		return nil, err
	case found && method == "pop":
		return v, d.put(key, nil)
	case found:
		return v, nil
	case other == nil && method == "pop":
		return nil, errors.New("missing key")
	case other == nil:
		other = starlark.None
	}
	if method == "setdefault" {
		err = d.SetKey(key, other)
	}
	return other, err
}

// AttrNames implements [starlark.HasAttrs].
func (d *dictView) AttrNames() []string { return d.dict().AttrNames() }

// String implements [starlark.Value].
func (d *dictView) String() string { return asText(d) }

// Type implements [starlark.Value].
func (d *dictView) Type() string { return d.base.Type() }

// Freeze implements [starlark.Value]. Views are frozen all at once; see [overlay].
func (d *dictView) Freeze() {}

// Truth implements [starlark.Value].
func (d *dictView) Truth() starlark.Bool { return d.Len() > 0 }

// Hash implements [starlark.Value].
func (d *dictView) Hash() (uint32, error) { return d.base.Hash() }

func (d *dictView) holds(kid *viewNode) bool {
	now, _ := d.find(kid.name)
	return now == kid.base
}

func (d *dictView) differ(diff *differ, at location) {
	d.members(diff, at)
	kids := slices.Clone(d.kids)
	slices.SortFunc(kids, func(a, b view) int {
		return compareNames(a.common().name, b.common().name)
	})
	for _, kid := range kids {
		name, base := kid.common().name, kid.common().base
		before, _, _ := d.dict().Get(name)
		if before == base && d.holds(kid.common()) {
			kid.differ(diff, at.below(string(name.(starlark.String))))
		}
	}
}

// members compares the members.
func (d *dictView) members(diff *differ, at location) {
	m := d.latest()
	if m == nil {
		return
	}
	names := m.set.Keys()
	slices.SortFunc(names, compareNames)
	for _, name := range names {
		before, had, _ := d.dict().Get(name)
		now, _ := d.find(name)
		to := at.below(string(name.(starlark.String)))
		switch {
		case now != nil && had:
			diff.replace(to, before, now)
		case now != nil:
			diff.add("add", to, now)
		case had:
			diff.add("remove", to, nil)
		}
	}
}

func (d *dictView) part(name string) (starlark.Value, bool) {
	v, found, err := d.Get(starlark.String(name))
	return v, found && err == nil
}

func (d *dictView) alter(name string, c Change) error {
	value, err := decode(c.Value)
	switch {
	case err != nil:
		return err
	case c.Op == "remove":
		return d.put(starlark.String(name), nil)
	}
	return d.SetKey(starlark.String(name), value)
}
