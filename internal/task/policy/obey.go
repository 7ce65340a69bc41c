package policy

// Obey returns the probability of full success of an agent that follows a plan to the letter: it
// calls the tools in order, and as often as the plan repeats them in a row. If it retries, it calls
// a tool that has not succeeded by then until it does. A fragile tool must not succeed twice in a
// row.
//
// Each step of the plan has to be needed, so that a step without success means failure.
func (p *Policy) Obey(plan []string, fragile func(tool string) bool, retries bool) float64 {
	o := obedience{p, plan, fragile, retries, make(map[obedientState]float64)}
	return o.value(obedientState{state: p.start()})
}

type obedience struct {
	*Policy
	plan    []string
	fragile func(tool string) bool
	retries bool
	known   map[obedientState]float64
}

// obedientState is where an obedient agent stands: before a call of plan[step].
type obedientState struct {
	state State
	step  int
	ok    bool // the call before was of the same tool, and one of its calls in a row succeeded
}

// value returns the probability of full success.
func (o *obedience) value(at obedientState) float64 {
	finished := o.work.Next(at.state) == finished
	switch {
	case finished && (at.state.Left == 0 || at.step == len(o.plan)):
		return 1
	case at.state.Left == 0, at.step == len(o.plan), !finished && o.rules.Stopped(at.state):
		return 0
	}
	v, ok := o.known[at]
	if !ok {
		v = o.call(at)
		o.known[at] = v
	}
	return v
}

// call returns the value of calling the tool of the step.
func (o *obedience) call(at obedientState) float64 {
	name := o.plan[at.step]
	tool := o.work.Number(name)
	if tool == None {
		return 0
	}
	last := at.step+1 == len(o.plan) || o.plan[at.step+1] != name
	v := 0.0
	for _, w := range o.ways(at.state, tool) {
		then := obedientState{o.after(at.state, tool, w), at.step + 1, at.ok && !last}
		switch {
		case w.chance == 0, w.happens && at.ok && o.fragile(name):
			continue
		case w.happens:
			then.ok = !last
		case at.ok || !last:
		case o.retries:
			then.step = at.step
		default:
			continue
		}
		v += w.chance * o.value(then)
	}
	return v
}
