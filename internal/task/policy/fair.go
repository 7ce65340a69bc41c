package policy

// Fair returns the success of an agent that made these calls, without its luck: the best policy's
// chance of success from the start, less what each of the agent's decisions cost. A call costs by
// how much it lowers that chance on average over its own luck, and stopping costs the chance that
// was left. So the mean of Fair over luck is the agent's chance of success; and no decision is
// better than the best one, so Fair is at most [Policy.Success], except for rounding.
//
// Each call has its [Call.Chance]. An agent that succeeds without the work that the policy knows
// has lost nothing since its last call.
func (p *Policy) Fair(calls []Call, success bool) float64 {
	s, ruined := p.start(), false
	value := func(s State, ruined bool) float64 {
		if ruined {
			return 0
		}
		return p.solve(s).success
	}
	r, ruinous := p.rules.(ruinous)
	fair := p.Success()
	for _, c := range calls {
		fair -= value(s, ruined)
		if c.Mistake {
			s.pass()
			fair += value(s, ruined)
			continue
		}
		tool := p.work.Number(c.Tool)
		ruins := ruinous && r.Ruins(s, tool)
		ways := p.waysWith(s, c.Chance, tool)
		if c.Out {
			ways = refused
		}
		for _, w := range ways {
			if w.idle = c.Idle; w.chance > 0 {
				fair += w.chance * value(p.after(s, tool, w), ruined || ruins && w.happens)
			}
		}
		s, ruined = p.after(s, tool, c.way()), ruined || ruins && c.OK
	}
	if !success {
		fair -= value(s, ruined)
	}
	return fair
}

// Rules are ruinous if a success of a tool may make full success impossible.
type ruinous interface{ Ruins(s State, tool int) bool }
