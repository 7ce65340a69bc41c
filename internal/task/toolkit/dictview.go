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
	dict *starlark.Dict // the base
	// own has the members that differ from the base, and set those that the present call set.
	// The value of a member that is gone is absent. Either may be nil.
	own, set *starlark.Dict
	// names has the members in order, and now those of the present call. If they are nil, the names
	// are as before.
	names, now []starlark.Value
}

// absent is the value of a member that a dict had.
var absent starlark.Value = starlark.NewBuiltin("absent", nil)

// Get implements [starlark.Mapping].
func (d *dictView) Get(name starlark.Value) (starlark.Value, bool, error) {
	v, script, err := d.find(name)
	if v != nil && !script {
		v = d.in.show(v, d, name)
	}
	return v, v != nil, err
}

// find returns a member, or nil, and whether the script set it in this call.
func (d *dictView) find(name starlark.Value) (v starlark.Value, script bool, err error) {
	for _, layer := range []*starlark.Dict{d.set, d.own, d.dict} {
		if layer == nil {
			continue
		}
		v, found, err := layer.Get(name)
		if found && v == absent {
			v = nil
		}
		if found || err != nil {
			return v, layer == d.set, err
		}
	}
	return nil, false, nil
}

// Has implements [starlark.Container].
func (d *dictView) Has(name starlark.Value) (bool, error) {
	v, _, _ := d.find(name) // as a dict, which has no key that cannot be one
	return v != nil, nil
}

// keys returns the names of the members in order. The caller must not change them.
func (d *dictView) keys() []starlark.Value {
	switch {
	case d.now != nil:
		return d.now
	case d.names != nil:
		return d.names
	}
	return d.dict.Keys()
}

// Len implements [starlark.Sequence].
func (d *dictView) Len() int {
	if d.now == nil && d.names == nil {
		return d.dict.Len()
	}
	return len(d.keys())
}

// SetKey implements [starlark.HasSetKey].
func (d *dictView) SetKey(name, v starlark.Value) error {
	old, script, err := d.find(name)
	if err != nil {
		return err
	}
	if w, ok := v.(view); ok && !script && w.common().base == old && w.common().in == d.in {
		return nil // state["orders"] += … ends with it
	}
	if err := d.touch(d); err != nil {
		return err
	}
	if old == nil {
		d.now = append(d.changing(), name)
	}
	return d.put(name, v)
}

func (d *dictView) put(name, v starlark.Value) error {
	if d.set == nil {
		d.set = new(starlark.Dict)
	}
	return d.set.SetKey(name, v)
}

// changing returns the names of the members for a change by this call.
func (d *dictView) changing() []starlark.Value {
	if d.now == nil {
		return append(make([]starlark.Value, 0, d.Len()+1), d.keys()...)
	}
	return d.now
}

// remove removes a member and returns it, or nil if there is none.
func (d *dictView) remove(name starlark.Value) (starlark.Value, error) {
	v, found, err := d.Get(name)
	if err != nil || !found {
		return nil, err
	}
	if err := d.touch(d); err != nil {
		return nil, err
	}
	d.now = d.changing()
	i := slices.IndexFunc(d.now, func(k starlark.Value) bool {
		same, err := starlark.Equal(k, name)
		return err == nil && same
	})
	d.now = slices.Delete(d.now, i, i+1)
	return v, d.put(name, absent)
}

// Items implements [starlark.IterableMapping].
func (d *dictView) Items() []starlark.Tuple {
	items := make([]starlark.Tuple, 0, d.Len())
	if d.own == nil && d.set == nil {
		for name, v := range d.dict.Entries() {
			items = append(items, starlark.Tuple{name, d.in.show(v, d, name)})
		}
		return items
	}
	for _, name := range d.keys() {
		v, _, _ := d.Get(name) // it is there
		items = append(items, starlark.Tuple{name, v})
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
	if d.set == nil {
		return 0, nil
	}
	for _, item := range d.set.Items() {
		name, ok := item[0].(starlark.String)
		if !ok {
			return 0, notText(item[0])
		}
		if size += len(name) + 4; item[1] == absent {
			continue
		}
		v, n, err := settle(item[1])
		if err == nil {
			err = d.set.SetKey(name, v)
		}
		if size += n; err != nil {
			return 0, err
		}
	}
	return size, nil
}

// altered returns the names of the members that may differ from the base.
func (d *dictView) altered() (names []starlark.Value) {
	for _, layer := range []*starlark.Dict{d.own, d.set} {
		if layer != nil {
			names = append(names, layer.Keys()...)
		}
	}
	return names
}

func (d *dictView) keep() {
	if d.now != nil {
		slices.SortStableFunc(d.now, compareNames)
		d.names = d.now
	}
	if d.set != nil {
		if d.own == nil {
			d.own = new(starlark.Dict)
		}
		for name, v := range d.set.Entries() {
			_ = d.own.SetKey(name, v) // it can be a key
		}
	}
	d.set, d.now = nil, nil
}

func (d *dictView) drop() { d.set, d.now = nil, nil }

func (d *dictView) flat(f *flattener, depth int) (starlark.Value, error) {
	out := starlark.NewDict(d.Len())
	for _, name := range d.keys() {
		v, script, err := d.find(name)
		if err == nil && script {
			v, err = f.value(v, depth+1)
		} else if err == nil {
			v, err = f.settled(d.in, v, depth+1)
		}
		if err == nil {
			err = out.SetKey(name, v)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
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
	call, ok := dictMethods[name]
	if !ok {
		return nil, nil
	}
	return starlark.NewBuiltin(name, func(
		thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple,
	) (starlark.Value, error) {
		if name == "update" {
			more := new(starlark.Dict)
			update, err := more.Attr(name)
			if err == nil {
				_, err = starlark.Call(thread, update, args, kwargs)
			}
			if err != nil {
				return nil, err
			}
			return starlark.None, d.update(more)
		}
		var key starlark.Value
		var other starlark.Value
		wants := []any{&key, &other}[:call.most]
		err := starlark.UnpackPositionalArgs(name, args, kwargs, call.least, wants...)
		if err != nil {
			return nil, err
		}
		v, err := call.do(d, key, other)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return v, nil
	}), nil
}

// AttrNames implements [starlark.HasAttrs].
func (d *dictView) AttrNames() []string { return d.dict.AttrNames() }

// A dictMethod is a method with a key and another argument, of which some may be missing.
type dictMethod struct {
	least, most int
	do          func(d *dictView, key, other starlark.Value) (starlark.Value, error)
}

var dictMethods = map[string]dictMethod{
	"update": {},
	"keys": {0, 0, func(d *dictView, _, _ starlark.Value) (starlark.Value, error) {
		return starlark.NewList(slices.Clone(d.keys())), nil
	}},
	"values": {0, 0, func(d *dictView, _, _ starlark.Value) (starlark.Value, error) {
		var all []starlark.Value
		for _, item := range d.Items() {
			all = append(all, item[1])
		}
		return starlark.NewList(all), nil
	}},
	"items": {0, 0, func(d *dictView, _, _ starlark.Value) (starlark.Value, error) {
		var all []starlark.Value
		for _, item := range d.Items() {
			all = append(all, item)
		}
		return starlark.NewList(all), nil
	}},
	"clear": {0, 0, func(d *dictView, _, _ starlark.Value) (starlark.Value, error) {
		for _, name := range slices.Clone(d.keys()) {
			if _, err := d.remove(name); err != nil {
				return nil, err
			}
		}
		return starlark.None, nil
	}},
	"popitem": {0, 0, func(d *dictView, _, _ starlark.Value) (starlark.Value, error) {
		if d.Len() == 0 {
			return nil, errors.New("empty dict")
		}
		name := d.keys()[0]
		v, err := d.remove(name)
		return starlark.Tuple{name, v}, err
	}},
	"get": {1, 2, func(d *dictView, key, other starlark.Value) (starlark.Value, error) {
		if v, found, err := d.Get(key); found || err != nil {
			return v, err
		}
		return orNone(other), nil
	}},
	"pop": {1, 2, func(d *dictView, key, other starlark.Value) (starlark.Value, error) {
		v, err := d.remove(key)
		switch {
		case v != nil || err != nil:
			return v, err
		case other == nil:
			return nil, errors.New("missing key")
		}
		return other, nil
	}},
	"setdefault": {1, 2, func(d *dictView, key, other starlark.Value) (starlark.Value, error) {
		if v, found, err := d.Get(key); found || err != nil {
			return v, err
		}
		other = orNone(other)
		return other, d.SetKey(key, other)
	}},
}

func orNone(v starlark.Value) starlark.Value {
	if v == nil {
		return starlark.None
	}
	return v
}

// String implements [starlark.Value].
func (d *dictView) String() string { return asText(d) }

// Type implements [starlark.Value].
func (d *dictView) Type() string { return d.dict.Type() }

// Freeze implements [starlark.Value]. Views are frozen all at once; see [overlay].
func (d *dictView) Freeze() {}

// Truth implements [starlark.Value].
func (d *dictView) Truth() starlark.Bool { return d.Len() > 0 }

// Hash implements [starlark.Value].
func (d *dictView) Hash() (uint32, error) { return d.dict.Hash() }
