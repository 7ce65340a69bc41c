package toolkit

import (
	"cmp"
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

// A view is a value of the state that calls can change, such as a dict or a list.
type view interface {
	starlark.Value
	common() *viewNode
	// holds reports whether the value of a view below it is still a part.
	holds(kid *viewNode) bool
	// differ tells how the value differs from its base.
	differ(d *differ, at location)
	// part returns a part of the value by its name or index.
	part(name string) (starlark.Value, bool)
	// alter carries out a change of a part.
	alter(name string, c Change) error
	// settle replaces the values that the call put into the view by frozen copies, and returns
	// their size as JSON. Then either keep or drop ends the call.
	settle() (int, error)
	keep()
	drop()
	// raw returns the dict or list, whose elements are not views.
	raw() starlark.Value
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

// isView reports whether a script's value is the view of a value of the state.
func (n *viewNode) isView(v, of starlark.Value) bool {
	w, ok := v.(view)
	return ok && w.common().base == of && w.common().in == n.in
}

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

// layers are what calls made of a dict or a list: own is what earlier calls kept, and now what the
// present call makes of that, in which values that the script set are fresh. Either may be nil.
type layers[T any] struct{ own, now *T }

// latest returns the latest layer, or nil if no call has changed anything.
func (l *layers[T]) latest() *T { return cmp.Or(l.now, l.own) }

func (l *layers[T]) keep() { l.own, l.now = l.latest(), nil }
func (l *layers[T]) drop() { l.now = nil }

// show returns a value of the state as scripts see it.
func (o *overlay) show(v starlark.Value, up view, name starlark.Value) starlark.Value {
	if made, ok := v.(fresh); ok {
		return made.Value
	}
	newView := viewOf(v)
	if newView == nil {
		return v
	}
	if w, ok := o.view(v); ok {
		return w
	}
	w := newView(viewNode{in: o, up: up, name: name, base: v})
	o.seen[v] = w
	return w
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
		if !n.up.holds(n) {
			return false
		}
	}
	return true
}

// fresh is a value that the present call put into the state.
type fresh struct{ starlark.Value }

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
		f.replaced++
		n := v.common()
		if !n.changed {
			return n.base, nil
		}
		return f.copy(v.raw(), depth, n.in)
	case *starlark.List, starlark.Tuple, *starlark.Dict:
		if without, err := f.copy(v, depth, nil); err != nil || f.replaced > before {
			return without, err
		}
	}
	return v, nil
}

// copy returns a copy of a dict, list or tuple without views. It is of the state if there is an
// overlay.
func (f *flattener) copy(
	v starlark.Value, depth int, in *overlay,
) (to starlark.Value, err error) {
	part := func(v starlark.Value) (starlark.Value, error) {
		if in != nil {
			return f.settled(in, v, depth+1)
		}
		return f.value(v, depth+1)
	}
	if d, ok := v.(*starlark.Dict); ok {
		to := starlark.NewDict(d.Len())
		for name, v := range d.Entries() {
			if v, err = part(v); err == nil {
				err = to.SetKey(name, v)
			}
			if err != nil {
				return nil, err
			}
		}
		return to, nil
	}
	all := slices.Collect(starlark.Elements(v.(starlark.Iterable)))
	for i, v := range all {
		if all[i], err = part(v); err != nil {
			return nil, err
		}
	}
	if _, ok := v.(starlark.Tuple); ok {
		return starlark.Tuple(all), nil
	}
	return starlark.NewList(all), nil
}

// settled returns a value of the state, which is a frozen one unless it changed, without views.
func (f *flattener) settled(o *overlay, v starlark.Value, depth int) (starlark.Value, error) {
	if made, ok := v.(fresh); ok {
		return f.value(made, depth)
	}
	if viewOf(v) != nil {
		if w, ok := o.kept[v]; ok {
			return f.value(w, depth)
		}
	}
	return v, nil
}
