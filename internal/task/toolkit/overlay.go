package toolkit

import (
	"fmt"
	"slices"

	"go.starlark.net/starlark"
)

// An overlay is the state of one attempt: a frozen value, which attempts share, and what the calls
// of this attempt changed. A script sees the dicts and lists of the state as views, and never the
// frozen values. A call costs as much as it looks at, however large the state is. It belongs to one
// goroutine.
type overlay struct {
	root starlark.Value
	// kept has the views that may differ from the frozen dict or list that they show, by that. seen
	// has the others that the present call has seen.
	kept, seen map[starlark.Value]view
	dirty      []view // changed by the present call
	frozen     bool
}

func newOverlay(root starlark.Value) *overlay {
	return &overlay{
		root: root, kept: make(map[starlark.Value]view), seen: make(map[starlark.Value]view),
	}
}

func (o *overlay) view(base starlark.Value) (view, bool) {
	if v, ok := o.seen[base]; ok {
		return v, true
	}
	v, ok := o.kept[base]
	return v, ok
}

// A view is a dict or list of the state.
type view interface {
	starlark.Value
	common() *viewNode
	// settle replaces the values that the call put into the view by frozen copies, and returns
	// their size as JSON. Then either keep or drop ends the call.
	settle() (int, error)
	keep()
	drop()
	// flat returns a copy without views.
	flat(f *flattener, depth int) (starlark.Value, error)
	// shallow returns a copy whose elements are views.
	shallow() starlark.Value
}

// A viewNode is the common part of views.
type viewNode struct {
	in   *overlay
	up   view           // the view that this one was reached from; nil for the root
	name starlark.Value // its key in a dict; nil in a list
	base starlark.Value // the frozen dict or list

	changed   bool   // the view, or one below it, may differ from the base
	kids      []view // the changed views below it
	touched   bool   // the view is among the dirty ones
	iterating int
}

func (n *viewNode) common() *viewNode { return n }

// touch prepares a change of a view.
func (n *viewNode) touch(v view) error {
	switch {
	case n.in.frozen:
		return fmt.Errorf("cannot change a frozen %s", v.Type())
	case n.iterating > 0:
		return fmt.Errorf("cannot change a %s during iteration", v.Type())
	}
	if !n.touched {
		n.touched = true
		n.in.dirty = append(n.in.dirty, v)
	}
	for !n.changed {
		n.changed = true
		n.in.kept[n.base] = v
		if n.up != nil {
			up := n.up.common()
			up.kids = append(up.kids, v)
			v, n = n.up, up
		}
	}
	return nil
}

// show returns a value of the state as scripts see it.
func (o *overlay) show(v starlark.Value, up view, name starlark.Value) starlark.Value {
	switch base := v.(type) {
	case fresh:
		return base.Value
	case *starlark.Dict, *starlark.List:
		if w, ok := o.view(base); ok {
			return w
		}
		var w view
		n := viewNode{in: o, up: up, name: name, base: base}
		if d, ok := base.(*starlark.Dict); ok {
			w = &dictView{viewNode: n, dict: d}
		} else {
			w = &listView{viewNode: n}
		}
		o.seen[base] = w
		return w
	}
	return v
}

// end ends a call. It keeps the call's changes unless they cannot be kept, or drops them. fits gets
// their size as JSON.
func (o *overlay) end(keep bool, fits func(size int) error) (err error) {
	if size := 0; keep {
		for _, v := range o.dirty {
			if n := 0; err == nil && isPart(v) {
				n, err = v.settle()
				size += n
			}
		}
		if err == nil && len(o.dirty) > 0 {
			err = fits(size)
		}
	}
	for _, v := range o.dirty {
		if v.common().touched = false; keep && err == nil && isPart(v) {
			v.keep()
		} else {
			v.drop()
		}
	}
	o.dirty = nil
	if len(o.seen) > 0 {
		o.seen = make(map[starlark.Value]view)
	}
	return err
}

// isPart reports whether what a view shows is still a part of the state.
func isPart(v view) bool {
	for n := v.common(); n.up != nil; n = n.up.common() {
		switch up := n.up.(type) {
		case *dictView:
			if now, _, _ := up.find(n.name); now != n.base {
				return false
			}
		case *listView:
			if !slices.Contains(elements(up.list()), n.base) {
				return false
			}
		}
	}
	return true
}

// fresh is a dict or list that a script put into a list of the state.
type fresh struct{ starlark.Value }

func asFresh(v starlark.Value) starlark.Value {
	switch v.(type) {
	case starlark.String, starlark.Int, starlark.Float, starlark.Bool, starlark.NoneType:
		return v
	}
	return fresh{v}
}

// settle returns a frozen copy of a value that a script made, and its size as JSON.
func settle(v starlark.Value) (starlark.Value, int, error) {
	text, err := encode(v)
	if err != nil {
		return nil, 0, err
	}
	if v, err = decode(text); err != nil {
		return nil, 0, err
	}
	v.Freeze()
	return v, len(text), nil
}

// A flattener replaces views by the values that they show.
type flattener struct{ left, replaced int }

// flat returns a value without views. If it has none, that is the value itself.
func flat(v starlark.Value) (starlark.Value, error) {
	return (&flattener{left: MaxSize}).value(v, 0)
}

func (f *flattener) value(v starlark.Value, depth int) (starlark.Value, error) {
	if f.left--; f.left < 0 {
		return nil, fmt.Errorf("the value has more than %d bytes as JSON", MaxSize)
	}
	if depth > maxDepth {
		return nil, fmt.Errorf("values are nested more than %d levels deep, or contain themselves",
			maxDepth)
	}
	before := f.replaced
	switch v := v.(type) {
	case fresh:
		return f.value(v.Value, depth)
	case view:
		if f.replaced++; !v.common().changed {
			return v.common().base, nil
		}
		return v.flat(f, depth)
	case *starlark.List:
		items, err := f.items(slices.Collect(v.Elements()), depth)
		if err != nil || f.replaced > before {
			return starlark.NewList(items), err
		}
	case starlark.Tuple:
		items, err := f.items(v, depth)
		if err != nil || f.replaced > before {
			return starlark.Tuple(items), err
		}
	case *starlark.Dict:
		d, err := f.dict(v, depth)
		if err != nil || f.replaced > before {
			return d, err
		}
	}
	return v, nil
}

func (f *flattener) items(from []starlark.Value, depth int) (to []starlark.Value, err error) {
	to = make([]starlark.Value, len(from))
	for i, v := range from {
		if to[i], err = f.value(v, depth+1); err != nil {
			return nil, err
		}
	}
	return to, nil
}

func (f *flattener) dict(from *starlark.Dict, depth int) (starlark.Value, error) {
	to := starlark.NewDict(from.Len())
	for name, v := range from.Entries() {
		v, err := f.value(v, depth+1)
		if err == nil {
			err = to.SetKey(name, v)
		}
		if err != nil {
			return nil, err
		}
	}
	return to, nil
}

// settled returns a value of the state, which is a frozen one unless it changed, without views.
func (f *flattener) settled(o *overlay, v starlark.Value, depth int) (starlark.Value, error) {
	switch v := v.(type) {
	case fresh:
		return f.value(v, depth)
	case *starlark.Dict, *starlark.List:
		if w, ok := o.kept[v]; ok {
			return f.value(w, depth)
		}
	}
	return v, nil
}
