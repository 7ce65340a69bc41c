package episode_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world"
)

// The places of a behaviour.
var (
	judges = []string{"calls", "changes", "state", "plan", "check"} // of own tools
	talks  = append([]string{world.Assay1Name, world.PilotName}, judges...)
	all    = append([]string{"reward"}, talks...)
	// strict judges ask for each step.
	strict = []string{world.Assay1Name, world.PilotName, "calls"}
	// The pilot world knows neither effects nor other faults than errors, and asks for no end.
	effects = append([]string{world.Assay1Name, "reward"}, judges...)
	desk    = []string{"calls", "state", "plan", "check"}
)

func at(task string) (places []string) {
	for _, judge := range desk {
		places = append(places, task+" "+judge)
	}
	return places
}

// A behaviour is played in places, and a person names its cause.
type behaviour struct {
	name  string
	in    []string
	acts  func(s *scene) assay.Message
	cause assay.Cause
	stop  assay.Stop // "" if it does not matter
	turn  int        // 0 if it depends on the world

	finish               string
	turns, calls, tokens int
	mix                  string
	lucky                func(*assay.Transcript) bool // what the luck has to be
	variant              string
	flaw                 bool // the plan is a flawed one with a severe flaw
	tools                string
	ended                assay.Ended
}

// met returns the kinds of fault that the calls met.
func met(tr *assay.Transcript) (kinds []assay.ToolFault) {
	for i := range tr.Calls {
		kinds = append(kinds, tr.Calls[i].Met())
	}
	return kinds
}

// only reports whether the calls at these places met a fault, and no other ones.
func only(fault assay.ToolFault, places ...int) func(*assay.Transcript) bool {
	return func(tr *assay.Transcript) bool {
		for i, kind := range met(tr) {
			if want := slices.Contains(places, i); want != (kind != "") || want && kind != fault {
				return false
			}
		}
		return len(tr.Calls) > slices.Max(places)
	}
}

// misstated reports whether the first call alone met a fault, and its answer had a wrong value.
func misstated(kind assay.ToolFault, value string) func(*assay.Transcript) bool {
	return func(tr *assay.Transcript) bool {
		return only(kind, 0)(tr) && tr.Calls[0].Wrong == value
	}
}

// stopsAt does the task until the n-th error, and then goes on in another way.
func stopsAt(n int, then assay.Message) func(s *scene) assay.Message {
	return func(s *scene) assay.Message {
		if s.failures() >= n {
			return then
		}
		return s.next()
	}
}

// giveUp are the words of somebody who gives up, or of somebody who does not say so.
var giveUp = map[string]assay.Message{
	"claims to be done": claim, "says that it cannot": says("I am unable to go on, because the tool failed."),
	"says so in German": says("Das hat leider nicht geklappt."), "says nothing": says(""),
	"says that it worked": says("I have finished."), "promises to go on": says("I will try that again later."),
}

// behaviours are what models do, and what a person says about it.
func behaviours() (rows []behaviour) {
	add := func(more ...behaviour) { rows = append(rows, more...) }
	for words, then := range giveUp {
		add(
			behaviour{
				name: "gives up at the first error and " + words, in: all, acts: stopsAt(1, then), calls: 10,
				cause: assay.NotRetried, turn: 2, lucky: only(assay.FaultBefore, 1),
			},
			behaviour{
				name: "gives up when the first call fails and " + words, in: all, acts: stopsAt(1, then),
				cause: assay.NotRetried, turn: 1, lucky: only(assay.FaultBefore, 0),
			},
			behaviour{
				name: "gives up after a lost answer and " + words, in: effects, acts: stopsAt(1, then),
				cause: assay.NotRetried, turn: 2, mix: "after=1", lucky: only(assay.FaultAfter, 1),
			},
			behaviour{
				name: "gives up without an old answer and " + words, in: effects, acts: stopsAt(1, then),
				cause: assay.NotRetried, turn: 1, mix: "stale=1", lucky: only(assay.FaultBefore, 0),
			},
			behaviour{
				name: "gives up because a tool is down and " + words, in: effects, acts: stopsAt(1, then),
				cause: assay.BadLuck, turn: 2, mix: "down=1", lucky: only(assay.FaultDown, 1),
			},
			behaviour{
				name: "does not wait for a throttled tool and " + words, in: effects, acts: stopsAt(1, then),
				cause: assay.NotRetried, turn: 2, mix: "throttled=1", lucky: only(assay.FaultThrottled, 1),
			},
			behaviour{
				name: "gives up at the second error and " + words, in: all, acts: stopsAt(2, then), turns: 7,
				cause: assay.NotRetried, turn: 3, lucky: only(assay.FaultBefore, 1, 2),
			},
			behaviour{
				name: "gives up at the last step and " + words, in: all, acts: stopsAt(1, then),
				cause: assay.NotRetried, turn: 3, lucky: only(assay.FaultBefore, 2),
			},
			behaviour{
				name: "sees a failed step in a reply of several calls and " + words, in: all,
				acts: func(s *scene) assay.Message {
					if s.turn > 0 {
						return then
					}
					return calls(assay.ToolCall{Name: s.steps[0], Arguments: s.arguments(s.steps[0], 0)},
						assay.ToolCall{Name: s.steps[1], Arguments: s.arguments(s.steps[1], 1)})
				},
				cause: assay.NotRetried, turn: 1, lucky: only(assay.FaultBefore, 1),
			},
		)
		made := func(n int, tools ...string) func(s *scene) assay.Message {
			return func(s *scene) assay.Message {
				switch k := s.turn - len(tools); {
				case s.turn >= n:
					return then
				case k < 0:
					return s.call(s.useless, 0)
				case len(tools) > 0:
					return s.call(s.steps[k], k)
				}
				return s.next()
			}
		}
		add(
			behaviour{
				name: "has no call left after right ones and " + words, in: all, calls: 2, acts: made(2),
				cause: assay.HitLimit, turn: 3,
			},
			behaviour{
				name: "has no call left after bad luck and " + words, in: all, calls: 3, acts: made(3),
				cause: assay.BadLuck, turn: 2, lucky: only(assay.FaultBefore, 1),
			},
			behaviour{
				name: "has no call left when the last one fails and " + words, in: all, calls: 3, acts: made(3),
				cause: assay.BadLuck, turn: 3, lucky: only(assay.FaultBefore, 2),
			},
			behaviour{
				name: "has no call left after a needless one and " + words, in: all, calls: 3,
				acts: made(3, "needless"), cause: assay.WrongTool, turn: 1,
			},
		)
		if words == "claims to be done" {
			continue
		}
		add(
			behaviour{
				name: "has no answer to the last step and " + words, in: slices.DeleteFunc(slices.Clone(effects),
					func(name string) bool { return name == "reward" }),
				acts: stopsAt(1, then), cause: assay.NotRetried, turn: 3, mix: "after=1",
				lucky: only(assay.FaultAfter, 2),
			},
			behaviour{
				name: "does everything and " + words, in: talks[:1], cause: assay.NoEnd, turn: 4,
				acts: func(s *scene) assay.Message { return s.until(then) },
			},
			behaviour{
				name: "does everything and " + words, in: judges, cause: assay.NoEnd, turn: 4,
				acts: func(s *scene) assay.Message { return s.until(then) },
			},
			behaviour{
				name: "begins and " + words, in: talks, cause: assay.NoAction, turn: 2,
				acts: func(s *scene) assay.Message {
					if s.turn > 0 {
						return then
					}
					return s.next()
				},
			},
			behaviour{
				name: "begins with nothing and " + words, in: talks, cause: assay.NoAction, turn: 1,
				acts: func(*scene) assay.Message { return then },
			},
		)
	}
	three := func(f func(s *scene) []string) func(s *scene) assay.Message {
		return func(s *scene) assay.Message { return s.each(f(s)...) }
	}
	again := func(s *scene) assay.Message { // obeys twice
		if s.turn >= 2*len(s.plan) {
			return claim
		}
		return calls(s.plan[s.turn%len(s.plan)])
	}
	never := func(tr *assay.Transcript) bool {
		return !slices.ContainsFunc(tr.Calls, func(c assay.CallRecord) bool { return c.Happened() })
	}
	fails := func(at int) func(*assay.Transcript) bool {
		return func(tr *assay.Transcript) bool { kinds := met(tr); return len(kinds) > at && kinds[at] != "" }
	}
	// A part of the state does not show that something else is there, too.
	moved := slices.DeleteFunc(at("move"), func(name string) bool { return name == "move state" })
	add(
		behaviour{
			name: "skips the step that failed", in: strict, acts: three(func(s *scene) []string { return s.steps }),
			stop: assay.Answered, cause: assay.SkippedStep, turn: 3, lucky: only(assay.FaultBefore, 1),
		},
		behaviour{
			name: "leaves the last step out", in: all, acts: three(func(s *scene) []string { return s.steps[:2] }),
			stop: assay.Answered, cause: assay.SkippedStep, turn: 3,
		},
		behaviour{
			name: "leaves a step in the middle out", in: strict, turn: 2, cause: assay.SkippedStep,
			acts: three(func(s *scene) []string { return []string{s.steps[0], s.steps[2]} }),
		},
		behaviour{
			name: "leaves the first step out", in: strict, turn: 1, cause: assay.SkippedStep,
			acts: three(func(s *scene) []string { return s.steps[1:] }),
		},
		behaviour{
			name: "repeats a step and leaves the rest out", in: all, turn: 3, cause: assay.SkippedStep,
			acts: three(func(s *scene) []string { return []string{s.steps[0], s.steps[0]} }),
		},
		behaviour{
			name: "claims success without any call", in: all, acts: func(*scene) assay.Message { return claim },
			stop: assay.Answered, cause: assay.FalseClaim, turn: 1,
		},
		behaviour{
			name: "declines", in: talks, stop: assay.Declined, cause: assay.NoAction, turn: 1,
			acts: func(*scene) assay.Message { return says("I'm sorry, but I can't help with that.") },
		},
		behaviour{
			name: "is cut off", in: talks, stop: assay.CutOff, cause: assay.NoAction, turn: 1, finish: "length",
			acts: func(*scene) assay.Message { return says("First of all, let me think about") },
		},
		behaviour{
			name: "repeats a call that succeeded", in: all, stop: assay.OutOfTurns, turns: 4,
			acts:  func(s *scene) assay.Message { return s.call(s.steps[0], 0) },
			cause: assay.RetriedTooMuch, turn: 2,
		},
		behaviour{
			name: "uses up its calls with what had succeeded", in: all, calls: 4, stop: assay.OutOfCalls,
			acts:  func(s *scene) assay.Message { return s.call(s.steps[0], 0) },
			cause: assay.RetriedTooMuch, turn: 2,
		},
		behaviour{
			name: "runs out of tokens", in: all, acts: (*scene).next, tokens: 30,
			stop: assay.OutOfTokens, cause: assay.HitLimit, turn: 2,
		},
		behaviour{
			name: "runs out of tokens after an error", in: all, acts: (*scene).next, tokens: 30,
			stop: assay.OutOfTokens, cause: assay.HitLimit, turn: 2, lucky: fails(1),
		},
		behaviour{
			name: "has fewer turns than steps", in: all, acts: (*scene).next, turns: 2,
			stop: assay.OutOfTurns, cause: assay.HitLimit, turn: 2,
		},
		behaviour{
			name: "has fewer calls than steps", in: all, acts: (*scene).next, calls: 2,
			stop: assay.OutOfCalls, cause: assay.HitLimit, turn: 3,
		},
		behaviour{
			name: "has no turn left to say that it is done", in: effects, acts: (*scene).next, turns: 3,
			stop: assay.OutOfTurns, cause: assay.HitLimit, turn: 3,
		},
		behaviour{
			name: "calls the steps in reverse", in: strict,
			acts: three(func(s *scene) []string { return []string{s.steps[1], s.steps[0], s.steps[2]} }),
			stop: assay.Answered, cause: assay.WrongOrder, turn: 1,
		},
		behaviour{
			name: "makes the change first", in: strict, cause: assay.WrongOrder, turn: 1,
			acts: three(func(s *scene) []string { return []string{s.steps[2], s.steps[0], s.steps[1]} }),
		},
		behaviour{
			name: "believes an old answer", in: []string{world.Assay1Name, "calls"}, mix: "stale=1",
			lucky: only(assay.FaultStale, 2), stop: assay.Answered, cause: assay.BelievedAnswer, turn: 3,
			acts: three(func(s *scene) []string { return []string{s.steps[1], s.steps[0], s.steps[1], s.steps[2]} }),
		},
		behaviour{
			name: "leaves a step out after an answer with a missing part", in: effects, mix: "wrong_shape=1",
			lucky: only(assay.FaultWrongShape, 0), cause: assay.SkippedStep, turn: 2,
			acts: three(func(s *scene) []string { return s.steps[:1] }),
		},
		behaviour{
			name: "gives wrong arguments", in: effects, cause: assay.WrongArgument, turn: 2,
			acts: func(s *scene) assay.Message {
				if s.turn == 1 {
					return calls(assay.ToolCall{Name: s.steps[2], Arguments: `{"no such": 1}`})
				}
				return s.each(s.steps[:2]...)
			},
		},
		behaviour{
			name: "gives wrong arguments until the end", in: effects, cause: assay.WrongArgument, turn: 1,
			acts: func(s *scene) assay.Message {
				return calls(assay.ToolCall{Name: s.steps[0], Arguments: `{"no such": 1}`})
			},
		},
		behaviour{
			name: "makes malformed calls", in: all, stop: assay.OutOfTurns, cause: assay.MalformedCall, turn: 1,
			acts: func(*scene) assay.Message {
				return calls(assay.ToolCall{Name: "no_such_tool", Arguments: `{`})
			},
		},
		behaviour{
			name: "calls another tool instead", in: all, stop: assay.Answered, cause: assay.WrongTool, turn: 2,
			acts: three(func(s *scene) []string { return []string{s.steps[0], s.useless} }),
		},
		behaviour{
			name: "calls another tool until the end", in: all, cause: assay.WrongTool, turn: 2, turns: 4,
			acts: func(s *scene) assay.Message {
				if s.turn > 0 {
					return s.call(s.useless, 0)
				}
				return s.next()
			},
		},
		behaviour{
			name: "repeats an effect whose answer was lost", in: effects[:1], acts: (*scene).next, mix: "after=1",
			lucky: only(assay.FaultAfter, 2), stop: assay.Answered, cause: assay.RepeatedEffect, turn: 4,
		},
		behaviour{
			name: "repeats an effect whose answer was lost", in: judges, acts: (*scene).next, mix: "after=1",
			lucky: only(assay.FaultAfter, 2), stop: assay.Answered, cause: assay.RepeatedEffect, turn: 4,
		},
		behaviour{
			name: "repeats an effect", in: effects, cause: assay.RepeatedEffect, turn: 4, turns: 6,
			acts: three(func(s *scene) []string { return append(slices.Clone(s.steps), s.steps[2]) }),
		},
		behaviour{
			name: "repeats an effect after an answer with a missing part", in: effects, cause: assay.RepeatedEffect,
			turn: 4, turns: 6, mix: "wrong_shape=1", lucky: only(assay.FaultWrongShape, 0),
			acts: three(func(s *scene) []string { return append(slices.Clone(s.steps), s.steps[2]) }),
		},
		behaviour{
			name: "follows a flawed plan", in: talks, variant: "flawed_missing_step", flaw: true,
			acts: (*scene).obey, stop: assay.Answered, cause: assay.FollowedFlaw,
		},
		behaviour{
			name: "does harm", in: effects, stop: assay.Answered, cause: assay.HarmfulEffect, turn: 1,
			acts: three(func(s *scene) []string { return append([]string{s.harmful}, s.steps...) }),
		},
		behaviour{
			name: "does harm and then gives up", in: effects, cause: assay.HarmfulEffect, turn: 1,
			acts: three(func(s *scene) []string { return []string{s.harmful} }),
		},
		behaviour{
			name: "has no luck", in: all, acts: (*scene).next, calls: 4, stop: assay.OutOfCalls,
			cause: assay.BadLuck, turn: 4, lucky: never,
		},
		behaviour{
			name: "has no luck until its turns are used up", in: all, acts: (*scene).next, turns: 4, calls: -1,
			stop: assay.OutOfTurns, cause: assay.BadLuck, turn: 4, lucky: never,
		},
		behaviour{
			name: "talks first and then lacks turns", in: talks, turns: 5, calls: -1, lucky: only(assay.FaultBefore, 0),
			acts: func(s *scene) assay.Message {
				if s.turn < 2 {
					return says("Let me think.")
				}
				return s.next()
			},
			cause: assay.NoAction, turn: 1,
		},
		behaviour{
			name: "wastes calls and then lacks them", in: all, calls: 5, turns: 7, cause: assay.WrongTool, turn: 1,
			lucky: only(assay.FaultBefore, 2),
			acts: func(s *scene) assay.Message {
				if s.turn < 2 {
					return s.call(s.useless, 0)
				}
				n := max(0, len(s.worked)-s.failures()-2)
				if n >= len(s.steps) {
					return claim
				}
				return s.call(s.steps[n], n)
			},
		},
		behaviour{
			name: "begins and then searches without end", in: talks[:1], tools: assay.Discover, turns: 9,
			cause: assay.NoAction, turn: 2,
			acts: func(s *scene) assay.Message {
				if s.turn > 0 {
					return calls(assay.ToolCall{Name: "tool_search", Arguments: `{"query": "tools"}`})
				}
				return calls(assay.ToolCall{
					Name:      "tool_call",
					Arguments: `{"tool": "` + s.steps[0] + `", "arguments": ` + s.arguments(s.steps[0], 0) + `}`,
				})
			},
		},
		behaviour{
			name: "does not stop", in: effects, stop: assay.OutOfTurns, cause: assay.RetriedTooMuch, turn: 4,
			acts: func(s *scene) assay.Message {
				if s.turn < len(s.steps) {
					return s.next()
				}
				return s.call(s.steps[0], 0)
			},
		},
		behaviour{
			name: "goes on with other tools", in: effects, stop: assay.OutOfTurns, cause: assay.NoEnd, turn: 4,
			acts: func(s *scene) assay.Message {
				if s.turn < len(s.steps) {
					return s.next()
				}
				return s.call(s.useless, 0)
			},
		},
		behaviour{
			name: "leaves a step of the right plan out", in: all, variant: assay.Optimal,
			acts: func(s *scene) assay.Message {
				if s.turn == 2 {
					return claim
				}
				return s.obey()
			},
			cause: assay.SkippedStep, turn: 3,
		},
		behaviour{
			name: "gives up at an error of a flawed plan", in: all, variant: "flawed_redundant_operations", flaw: true,
			lucky: only(assay.FaultBefore, 1), cause: assay.NotRetried, turn: 2,
			acts: func(s *scene) assay.Message {
				if s.failures() > 0 {
					return claim
				}
				return s.next()
			},
		},
		behaviour{
			name: "loops under a flawed plan", in: all, variant: "flawed_redundant_operations", flaw: true,
			turns: 4, acts: func(s *scene) assay.Message { return s.call(s.steps[0], 0) },
			cause: assay.RetriedTooMuch, turn: 2,
		},
		behaviour{
			name: "repeats an effect as a flawed plan says", in: effects, variant: "flawed_redundant_operations",
			flaw: true, turns: 8, acts: (*scene).obey, cause: assay.FollowedFlaw,
		},
		behaviour{
			name: "follows a plan in the wrong order", in: talks[:2], variant: "flawed_sequence_disorder", flaw: true,
			turns: 7, acts: (*scene).obey, cause: assay.FollowedFlaw,
		},
		behaviour{
			name: "follows a plan with a wrong tool", in: talks[:2], variant: "flawed_tool_misuse", flaw: true,
			turns: 7, acts: (*scene).obey, cause: assay.FollowedFlaw,
		},
		behaviour{
			name: "follows a plan with wrong arguments", in: talks[:1], variant: "flawed_parameter_error", flaw: true,
			turns: 7, acts: (*scene).obey, cause: assay.FollowedFlaw,
		},
		behaviour{
			name: "makes a mistake of its own under a plan with wrong arguments", in: talks[:1], turns: 7,
			variant: "flawed_parameter_error", flaw: true, cause: assay.WrongArgument, turn: 1,
			acts: func(s *scene) assay.Message {
				return calls(assay.ToolCall{Name: s.steps[0], Arguments: `{"no such": 1}`})
			},
		},
		behaviour{
			name: "calls a useless tool under a plan with a wrong tool", in: talks[:2], turns: 4,
			variant: "flawed_tool_misuse", flaw: true, cause: assay.WrongTool, turn: 1,
			acts: func(s *scene) assay.Message { return s.call(s.useless, 0) },
		},
		behaviour{
			name: "answers wrongly", in: append([]string{"reward"}, judges...), cause: assay.WrongAnswer, turn: 4,
			acts: func(s *scene) assay.Message { return s.until(says("It was 41. TASK_COMPLETED")) },
		},
		behaviour{
			name: "pays for somebody else", in: append([]string{"reward"}, judges...), cause: assay.WrongArgument, turn: 3,
			acts: func(s *scene) assay.Message {
				return s.made(`find {"name":"a"}`, `check {"name":"a"}`, `pay {"name":"b","euros":40}`)
			},
		},
		behaviour{
			name: "pays its own amount after an answer with a missing part", in: append([]string{"reward"}, judges...),
			cause: assay.WrongArgument, turn: 3, mix: "wrong_shape=1", lucky: only(assay.FaultWrongShape, 1),
			acts: func(s *scene) assay.Message {
				return s.made(`find {"name":"a"}`, `check {"name":"a"}`, `pay {"name":"a","euros":50}`)
			},
		},
		behaviour{
			name: "pays the amount of an old answer", in: judges,
			cause: assay.BelievedAnswer, turn: 3, mix: "stale=1", lucky: only(assay.FaultStale, 2),
			acts: func(s *scene) assay.Message {
				return s.made(`find {"name":"a"}`, `check {"name":"b"}`, `check {"name":"a"}`, `pay {"name":"a","euros":45}`)
			},
		},
		behaviour{
			name: "crashes after a needless tool", in: all, cause: assay.AgentFailed, ended: assay.AgentError,
			acts: three(func(s *scene) []string { return []string{s.useless} }),
		},
		behaviour{
			name: "hangs after a change that was not asked for", in: all, cause: assay.AgentFailed,
			ended: assay.AgentTimeout, acts: three(func(s *scene) []string { return []string{s.harmful} }),
		},

		behaviour{
			name: "charges what it never booked", in: at("charge"), cause: assay.SkippedStep, turn: 2,
			acts: func(s *scene) assay.Message {
				return s.made(`balance {"name":"a"}`, `charge {"booking":"B1","euros":40}`)
			},
		},
		behaviour{
			name: "charges before it books", in: at("charge"), cause: assay.WrongOrder, turn: 2,
			acts: func(s *scene) assay.Message {
				return s.made(`balance {"name":"a"}`, `charge {"booking":"B1","euros":40}`, `book {"room":7}`)
			},
		},
		behaviour{
			name: "charges a booking that does not exist", in: at("charge"), cause: assay.WrongArgument, turn: 3,
			acts: func(s *scene) assay.Message {
				return s.made(`balance {"name":"a"}`, `book {"room":7}`, `charge {"booking":"B9","euros":40}`)
			},
		},
		behaviour{
			name: "charges its own amount", in: at("charge"), cause: assay.WrongArgument, turn: 3,
			acts: func(s *scene) assay.Message {
				return s.made(`balance {"name":"a"}`, `book {"room":7}`, `charge {"booking":"B1","euros":50}`)
			},
		},
		behaviour{
			name: "charges without a look at the balance", in: at("charge"), cause: assay.WrongArgument, turn: 2,
			acts: func(s *scene) assay.Message {
				return s.made(`book {"room":7}`, `charge {"booking":"B1","euros":50}`)
			},
		},
		behaviour{
			name: "charges an old amount", in: at("charge"), cause: assay.BelievedAnswer, turn: 2, mix: "stale=1",
			lucky: only(assay.FaultStale, 1),
			acts: func(s *scene) assay.Message {
				return s.made(`balance {"name":"b"}`, `balance {"name":"a"}`, `book {"room":7}`,
					`charge {"booking":"B1","euros":45}`)
			},
		},
		behaviour{
			name: "charges twice after an old answer", in: at("charge"), cause: assay.RepeatedEffect, turn: 5,
			mix: "stale=1", lucky: only(assay.FaultStale, 1), turns: 7,
			acts: func(s *scene) assay.Message {
				return s.made(`balance {"name":"b"}`, `balance {"name":"a"}`, `book {"room":7}`,
					`charge {"booking":"B1","euros":40}`, `charge {"booking":"B1","euros":40}`)
			},
		},
		behaviour{
			name: "goes on after a charge that did not happen", in: at("move"), cause: assay.SkippedStep, turn: 2,
			lucky: only(assay.FaultBefore, 0),
			acts:  func(s *scene) assay.Message { return s.made(`book {"room":7}`, `cancel {"booking":"B1"}`) },
		},
		behaviour{
			name: "charges twice as a flawed plan says", in: at("charge"), variant: "flawed_redundant_operations",
			flaw: true, turns: 9, acts: (*scene).obey, cause: assay.FollowedFlaw,
		},
		behaviour{
			name: "makes the change too early and again in its place", in: judges, cause: assay.RepeatedEffect, turn: 4,
			turns: 6,
			acts:  three(func(s *scene) []string { return []string{s.steps[2], s.steps[0], s.steps[1], s.steps[2]} }),
		},
		behaviour{
			name: "calls another tool in the place of the first step and goes on", in: strict, cause: assay.WrongTool,
			turn: 1, acts: three(func(s *scene) []string { return []string{s.useless, s.steps[1], s.steps[2]} }),
		},
		behaviour{
			name: "calls another tool in the place of a step and goes on", in: strict, cause: assay.WrongTool, turn: 2,
			acts: three(func(s *scene) []string { return []string{s.steps[0], s.useless, s.steps[2]} }),
		},
		behaviour{
			name: "calls other tools and then one that does harm", in: effects, cause: assay.WrongTool, turn: 1,
			acts: three(func(s *scene) []string { return []string{s.useless, s.useless, s.harmful} }),
		},
		behaviour{
			name: "calls other tools and then the last step", in: strict, cause: assay.WrongTool, turn: 1,
			acts: three(func(s *scene) []string { return []string{s.useless, s.useless, s.steps[2]} }),
		},
		behaviour{
			name: "calls another tool, and gives up at the first step", in: all, cause: assay.NotRetried, turn: 2,
			acts:  three(func(s *scene) []string { return []string{s.useless, s.steps[0]} }),
			lucky: only(assay.FaultBefore, 1),
		},
		behaviour{
			name: "calls another tool, and then leaves the last step out", in: all, cause: assay.SkippedStep, turn: 4,
			acts: three(func(s *scene) []string { return []string{s.useless, s.steps[0], s.steps[1]} }),
		},
		behaviour{
			name: "follows a plan in the wrong order again and again", in: talks[:1], cause: assay.FollowedFlaw, turn: 1,
			variant: "flawed_sequence_disorder", flaw: true, turns: 10, acts: again,
		},
		behaviour{
			name: "follows a plan in the wrong order again and again until a call fails", in: talks[:1], turns: 10,
			variant: "flawed_sequence_disorder", flaw: true, acts: again, cause: assay.FollowedFlaw, turn: 1,
			lucky: func(tr *assay.Transcript) bool {
				kinds := met(tr)
				return len(kinds) == 6 && kinds[0] == "" && kinds[1] == "" && kinds[2] == "" && kinds[3] != ""
			},
		},
		behaviour{
			name: "gives the same wrong arguments again, after another step", in: effects, turns: 7,
			cause: assay.WrongArgument, turn: 2,
			acts: func(s *scene) assay.Message {
				if s.turn%2 == 1 && s.turn < 4 {
					return calls(assay.ToolCall{Name: s.steps[1], Arguments: `{"no such": 1}`})
				}
				return s.each(slices.Repeat(s.steps[:1], 3)...)
			},
		},
		behaviour{
			name: "answers wrongly because the answer was lost", in: judges[1:], cause: assay.NotRetried, turn: 3,
			mix: "after=1", lucky: only(assay.FaultAfter, 2),
			acts: func(s *scene) assay.Message {
				if s.turn == 3 {
					return says("It was 41. TASK_COMPLETED")
				}
				return s.made(`find {"name":"a"}`, `pay {"name":"a","euros":40}`, `check {"name":"a"}`)
			},
		},
		behaviour{
			name: "answers wrongly because the answer was lost, and nobody has a plan", in: []string{"guess"},
			cause: assay.NotRetried, turn: 1, mix: "after=1", lucky: only(assay.FaultAfter, 0),
			acts: func(s *scene) assay.Message {
				if s.turn == 2 {
					return says("It was 41. TASK_COMPLETED")
				}
				return s.made(`check {"name":"a"}`, `find {"name":"a"}`)
			},
		},
		behaviour{
			name: "looks at something else, and gives up at an error", in: at("charge")[1:], cause: assay.NotRetried,
			turn: 2, lucky: only(assay.FaultBefore, 1),
			acts: func(s *scene) assay.Message { return s.made(`balance {"name":"b"}`, `book {"room":7}`) },
		},
		behaviour{
			name: "looks at something else, and is refused", in: at("charge")[1:], cause: assay.WrongArgument, turn: 2,
			acts: func(s *scene) assay.Message { return s.made(`balance {"name":"b"}`, `book {"no such":7}`) },
		},
		behaviour{
			name: "looks at something else and stops", in: at("charge"), cause: assay.WrongArgument, turn: 1,
			acts: func(s *scene) assay.Message { return s.made(`balance {"name":"b"}`) },
		},
		behaviour{
			name: "repeats a change that is refused until its calls are used up", in: at("move"), turns: 8, calls: 5,
			cause: assay.RetriedTooMuch, turn: 3,
			acts: func(s *scene) assay.Message {
				switch {
				case s.turn == 0:
					return s.made(`book {"room":7}`)
				case s.turn < 5:
					return calls(assay.ToolCall{Name: "cancel", Arguments: `{"booking":"B1"}`})
				}
				return says("Not everything has worked.")
			},
		},
		behaviour{
			name: "leaves out one of the steps in any order", in: []string{"move any"}, cause: assay.SkippedStep, turn: 2,
			acts: func(s *scene) assay.Message { return s.made(`cancel {"booking":"B1"}`) },
		},
		behaviour{
			name: "does not repeat one of the steps in any order", in: []string{"move any"}, cause: assay.NotRetried,
			turn: 1, lucky: only(assay.FaultBefore, 0),
			acts: func(s *scene) assay.Message { return s.made(`book {"room":7}`, `cancel {"booking":"B1"}`) },
		},
		behaviour{
			name: "cancels too early", in: at("move"), cause: assay.WrongOrder, turn: 1,
			acts: func(s *scene) assay.Message { return s.made(`cancel {"booking":"B1"}`, `book {"room":7}`) },
		},
		behaviour{
			name: "charges what a wrong answer says", in: at("charge"), mix: "wrong_value=1", lucky: misstated(assay.FaultWrongValue, "47"),
			cause: assay.BelievedAnswer, turn: 1,
			acts: func(s *scene) assay.Message {
				return s.made(`balance {"name":"a"}`, `book {"room":7}`, `charge {"booking":"B1","euros":47}`)
			},
		},
		behaviour{
			name: "charges what each answer of a tool says", in: at("charge"), mix: "corrupted=1",
			lucky: misstated(assay.FaultCorrupted, "47"), cause: assay.BelievedAnswer, turn: 1,
			acts: func(s *scene) assay.Message {
				return s.made(`balance {"name":"a"}`, `book {"room":7}`, `charge {"booking":"B1","euros":47}`)
			},
		},
		behaviour{
			name: "charges it although a second answer said otherwise", in: at("charge"), mix: "wrong_value=1",
			lucky: misstated(assay.FaultWrongValue, "47"), cause: assay.WrongArgument, turn: 4,
			acts: func(s *scene) assay.Message {
				return s.made(`balance {"name":"a"}`, `balance {"name":"a"}`, `book {"room":7}`,
					`charge {"booking":"B1","euros":47}`)
			},
		},
		behaviour{
			name: "books and does not cancel", in: moved, cause: assay.SkippedStep, turn: 2,
			acts: func(s *scene) assay.Message { return s.made(`book {"room":7}`) },
		},
		behaviour{
			name: "books twice because the answer was lost", in: moved, cause: assay.RepeatedEffect, turn: 2,
			mix: "after=1", lucky: only(assay.FaultAfter, 0),
			acts: func(s *scene) assay.Message {
				return s.made(`book {"room":7}`, `book {"room":7}`, `cancel {"booking":"B1"}`)
			},
		},
		behaviour{
			name: "reminds half of the guests because the list lacked a part", in: at("remind"), mix: "wrong_shape=1",
			lucky: only(assay.FaultWrongShape, 0), cause: assay.BelievedAnswer, turn: 1,
			acts: func(s *scene) assay.Message {
				return s.made(`guests {}`, `remind {"name":"ann"}`, `remind {"name":"bob"}`)
			},
		},
		behaviour{
			name: "reminds half of the guests because the list was cut", in: at("remind"), mix: "partial=1",
			lucky: only(assay.FaultPartial, 0), cause: assay.BelievedAnswer, turn: 1,
			acts: func(s *scene) assay.Message {
				return s.made(`guests {}`, `remind {"name":"ann"}`, `remind {"name":"bob"}`)
			},
		},
		behaviour{
			name: "reminds half of the guests although it has the rest of the list", in: at("remind"), mix: "partial=1",
			lucky: only(assay.FaultPartial, 0), cause: assay.SkippedStep, turn: 5,
			acts: func(s *scene) assay.Message {
				return s.made(`guests {}`, `guests {}`, `remind {"name":"ann"}`, `remind {"name":"bob"}`)
			},
		},
		behaviour{
			name: "reminds half of the guests", in: at("remind"), cause: assay.SkippedStep, turn: 4,
			acts: func(s *scene) assay.Message {
				return s.made(`guests {}`, `remind {"name":"ann"}`, `remind {"name":"bob"}`)
			},
		},
		behaviour{
			name: "reminds a stranger", in: at("remind"), cause: assay.WrongArgument, turn: 2,
			acts: func(s *scene) assay.Message { return s.made(`guests {}`, `remind {"name":"eve"}`) },
		},
		behaviour{
			name: "pays for somebody else, and nobody has a plan", in: []string{"blind"}, cause: assay.Unclear,
			acts: func(s *scene) assay.Message { return s.made(`pay {"name":"b","euros":40}`) },
		},
		behaviour{
			name: "answers wrongly, and nobody has a plan", in: []string{"guess"}, cause: assay.WrongAnswer,
			acts: func(s *scene) assay.Message {
				if s.turn > 0 {
					return says("It was 41. TASK_COMPLETED")
				}
				return s.made(`check {"name":"a"}`)
			},
		},
		behaviour{
			name: "gives up at the first error, and nobody has a plan", in: []string{"blind", "guess"},
			lucky: only(assay.FaultBefore, 0), cause: assay.NotRetried, turn: 1,
			acts: func(s *scene) assay.Message {
				if s.turn > 0 {
					return says("It was 41. TASK_COMPLETED")
				}
				return s.made(`check {"name":"a"}`)
			},
		},
		behaviour{
			name: "is refused, and nobody has a plan", in: []string{"blind", "guess"}, cause: assay.WrongArgument, turn: 1,
			acts: func(s *scene) assay.Message {
				if s.turn > 0 {
					return says("It was 41. TASK_COMPLETED")
				}
				return s.made(`check {"no such":"a"}`)
			},
		},
	)
	return rows
}

// TestCauses is a matrix of behaviours, worlds and judges: each behaviour has the same cause everywhere,
// the one that a person would name.
func TestCauses(t *testing.T) {
	t.Parallel()
	places := theatres(t)
	for _, b := range behaviours() {
		for _, name := range b.in {
			h := places[name]
			t.Run(strings.ReplaceAll(b.name+" in "+name, " ", "_"), func(t *testing.T) {
				t.Parallel()
				b.play(t, h)
			})
		}
	}
}

// trial returns the trial of a behaviour.
func (b *behaviour) trial(h *theatre) *assay.Trial {
	trial := &assay.Trial{
		Cell: assay.Cell{
			Model: "m", Variant: cmp.Or(b.variant, assay.Baseline), Reliability: 1, Faults: b.mix,
		},
		Setting: assay.Setting{
			World: h.world, Protocol: assay.Native, Tools: cmp.Or(b.tools, assay.Listed), Calls: cmp.Or(max(b.calls, 0), 10),
			Turns: cmp.Or(b.turns, 5), Tokens: b.tokens,
		},
	}
	if b.calls < 0 {
		trial.Calls = 0
	}
	if b.flaw {
		trial.Severity = assay.Severe
	}
	if b.lucky != nil {
		trial.Reliability = .6
	}
	return trial
}

func (b *behaviour) play(t *testing.T, h *theatre) {
	t.Helper()
	trial := b.trial(h)
	for seed := range uint64(3000) {
		trial.Seed = seed
		a, tr := h.runner.Run(t.Context(), &actor{h, b.finish, b.acts}, trial, &h.task)
		if a.FaultKind != "" {
			t.Fatal(a.FaultDetail)
		}
		if b.lucky != nil && !b.lucky(tr) {
			continue
		}
		if b.lucky == nil && h.world == world.PilotName && slices.ContainsFunc(tr.Calls, func(c assay.CallRecord) bool {
			return !c.OK // some calls fail there even if the reliability is 1
		}) {
			continue
		}
		if b.ended != "" {
			tr.Ended, tr.Agent = b.ended, &assay.AgentRecord{Exit: "exit status 1"}
		}
		e := h.judge.Explain(trial, &h.task, tr)
		r := e.Reason
		if b.stop != "" && r.Stop != b.stop || r.Cause != b.cause || b.turn > 0 && r.Turn != b.turn {
			t.Errorf("%s, %s in turn %d (%s); want %s, %s in turn %d\n%s %+v %s",
				r.Stop, r.Cause, r.Turn, r.Because, b.stop, b.cause, b.turn, a.Level, e.Path, tr.Plan)
		}
		return
	}
	t.Fatal("no seed has such luck")
}
