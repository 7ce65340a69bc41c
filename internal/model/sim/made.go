package sim

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/workflow"
	"github.com/assay-eval/assay/internal/task/world"
	"github.com/assay-eval/assay/internal/task/world/assay1"
)

// A character is a model whose truth is known: the probabilities of what it does. Its decisions are
// independent of each other. Two characters that meet the same task draw the same numbers, so one
// with a higher probability decides for a thing whenever the other one does.
type character struct {
	rightTool, rightArguments, followsFlaw, retries, notices, repeatsEffect, claimsFalsely, random float64
	confidentRight, confidentWrong, hurtByInterface, hurtByPhrasing                                float64
	seed                                                                                           uint64
}

// A Parameter is a probability of [Made] that users can set.
type Parameter struct {
	Name string
	// Does completes the sentence "the probability that the model …".
	Does string
	of   func(*character) *float64
}

// Parameters lists the parameters of [Made]. Besides them, seed=N draws other numbers.
var Parameters = []Parameter{
	{
		"right_tool", "chooses the right tool for a step that no plan gives it",
		func(c *character) *float64 { return &c.rightTool },
	},
	{
		"right_arguments", "gives a step the right arguments",
		func(c *character) *float64 { return &c.rightArguments },
	},
	{
		"follows_flaw", "follows a plan that is wrong, to the letter, instead of the task",
		func(c *character) *float64 { return &c.followsFlaw },
	},
	{
		"retries", "tries again after a call that failed, instead of giving up",
		func(c *character) *float64 { return &c.retries },
	},
	{
		"notices", "notices that a call did not happen although its answer looks like a success, or that a list goes on",
		func(c *character) *float64 { return &c.notices },
	},
	{
		"repeats_effect", "repeats a call with an effect whose answer was lost, although it happened",
		func(c *character) *float64 { return &c.repeatsEffect },
	},
	{
		"claims_falsely", "says that it is done although it knows that a step is missing",
		func(c *character) *float64 { return &c.claimsFalsely },
	},
	{
		"random", "decides anew in each repeat of a task, instead of as in all others",
		func(c *character) *float64 { return &c.random },
	},
	{
		"confident_right", "states on average, if asked, when it has made no mistake that it knows of",
		func(c *character) *float64 { return &c.confidentRight },
	},
	{
		"confident_wrong", "states on average, if asked, when it has made one",
		func(c *character) *float64 { return &c.confidentWrong },
	},
	{
		"hurt_by_interface", "loses its way with another interface of the tools than their own, and gives up",
		func(c *character) *float64 { return &c.hurtByInterface },
	},
	{
		"hurt_by_phrasing", "leaves out the last step of a task that is not put in its plain words",
		func(c *character) *float64 { return &c.hurtByPhrasing },
	},
}

// faultless never errs. A parameter that a name leaves out has its value.
var faultless = character{rightTool: 1, rightArguments: 1, retries: 1, notices: 1, confidentRight: 1}

// A Preset is a character with a name.
type Preset struct {
	Name string
	// Does completes the sentence "the model …".
	Does string
	is   character
}

// Presets lists the characters with names. The last one is faultless.
var Presets = []Preset{
	{
		Careful, "doubts plans, checks results and tries again when a tool fails",
		character{
			rightTool: .95, rightArguments: .99, followsFlaw: .25, retries: .97, notices: .95,
			repeatsEffect: .02, claimsFalsely: .1, random: .3, confidentRight: .9, confidentWrong: .4,
			hurtByInterface: .03, hurtByPhrasing: .02,
		},
	},
	{
		Eager, "does what the plan says, never gives up, and always says that it is done",
		character{
			rightTool: .9, rightArguments: .98, followsFlaw: .75, retries: .98, notices: .3,
			repeatsEffect: .5, claimsFalsely: .95, random: .3, confidentRight: .95, confidentWrong: .9,
			hurtByInterface: .08, hurtByPhrasing: .05,
		},
	},
	{
		Brittle, "doubts most flawed plans, but gives up when a call fails",
		character{
			rightTool: .95, rightArguments: .98, followsFlaw: .35, retries: .2, notices: .8,
			repeatsEffect: .05, claimsFalsely: .8, random: .3, confidentRight: .8, confidentWrong: .6,
			hurtByInterface: .25, hurtByPhrasing: .15,
		},
	},
	{Made, "does what the parameters in its name say, and makes no mistake without any", faultless},
}

// characterOf reads the name of a model: a preset, or a preset with parameters, as in
// sim/made:right_tool=0.9+retries=0.5. It returns false if it is another model's name.
func characterOf(model string) (c character, ok bool, err error) {
	name, settings, more := strings.Cut(model, ":")
	i := slices.IndexFunc(Presets, func(p Preset) bool { return p.Name == name })
	if i < 0 {
		return c, false, nil
	}
	c = Presets[i].is
	if !more {
		return c, true, nil
	}
	known := []string{"seed"}
	for _, p := range Parameters {
		known = append(known, p.Name)
	}
	set := make(map[string]bool)
	for word := range strings.SplitSeq(settings, "+") {
		parameter, value, _ := strings.Cut(word, "=")
		i := slices.Index(known, parameter)
		switch {
		case i < 0:
			return c, true, &NameError{
				fmt.Sprintf("%s has no parameter %q", name, parameter), assay.NameHint(parameter, known),
			}
		case set[parameter]:
			return c, true, &NameError{fmt.Sprintf("%s is set twice", parameter), ""}
		case i == 0:
			c.seed, err = strconv.ParseUint(value, 10, 64)
			if err != nil {
				return c, true, &NameError{
					fmt.Sprintf("seed is %q, want a whole number", value), "for example seed=7",
				}
			}
		default:
			p, err := strconv.ParseFloat(value, 64)
			if err != nil || !(p >= 0 && p <= 1) { // also true for NaN
				return c, true, &NameError{
					fmt.Sprintf("%s is %q, want a probability from 0 to 1", parameter, value),
					"for example " + parameter + "=0.9",
				}
			}
			*Parameters[i-1].of(&c) = p
		}
		set[parameter] = true
	}
	return c, true, nil
}

// A NameError is a mistake in the parameters of a model's name.
type NameError struct{ Message, Hint string }

func (e *NameError) Error() string { return e.Message }

// About completes the sentence "the model …" for a model that has it. It is "" for others.
func About(model string) string {
	i := slices.IndexFunc(Presets, func(p Preset) bool { return p.Name == model })
	if i < 0 {
		return ""
	}
	return Presets[i].Does
}

// CheckName returns a [*NameError] if a model is a preset or a judge whose parameters are wrong.
func CheckName(model string) error {
	_, _, err := characterOf(model)
	_, _, wrong := errsOf(model)
	return cmp.Or(err, wrong)
}

// decides draws whether the character does something at a step of the task, for the n-th time.
func (c *character) decides(v *agentView, what string, step, n int, probability float64) bool {
	return c.draws(v, what, step, n) < probability
}

// draws returns a number from [0,1).
func (c *character) draws(v *agentView, what string, step, n int) float64 {
	draw := func(seed uint64, what string) float64 {
		sum := sha256.Sum256(fmt.Appendf(nil, "assay made 1\x00%d\x00%d\x00%s\x00%s\x00%d\x00%d",
			c.seed, seed, v.known, what, step, n))
		return float64(binary.BigEndian.Uint64(sum[:8])>>11) / (1 << 53)
	}
	seed := uint64(0)
	if draw(0, "random "+what) < c.random {
		seed = v.seed
	}
	return draw(seed, what)
}

// asksConfidence is in the question how likely a model has succeeded.
const asksConfidence = "one number from 0 to 100"

// spread is how far a stated confidence may be from its mean, at most.
const spread = .2

// confidence answers that question. The mean of what it states depends on whether it was right, and
// everything within the spread is as likely, unless that would leave [0,1].
func (c *character) confidence(v *agentView, right bool) assay.Message {
	mean := c.confidentWrong
	if right {
		mean = c.confidentRight
	}
	wide := min(spread, mean, 1-mean)
	stated := mean + wide*(2*c.draws(v, "confidence", 0, len(v.calls))-1)
	return assay.Message{Role: assay.Assistant, Content: strconv.FormatFloat(math.Round(1000*stated)/10, 'f', -1, 64)}
}

// plays returns the next message of a character. It goes through the calls so far, and decides what
// it does after each: the same decision in every turn. So nobody can talk it out of giving up.
func (c *character) plays(m *Models, v *agentView) assay.Message {
	asked := strings.Contains(v.asked, asksConfidence)
	if msg, wait := v.look(); wait && !asked {
		return msg
	}
	v.known = v.description
	if m.tasks != nil {
		if task, ok := m.tasks(v.description); ok {
			v.known = strings.TrimSpace(task.Description)
		}
	}
	v.rephrased = v.known != strings.TrimSpace(v.description)
	if !v.rephrased {
		v.known = v.description
	}
	steps := c.steps(m, v)
	if v.level != "" && c.decides(v, "interface", 0, 0, c.hurtByInterface) {
		return c.lost(v, steps, asked)
	}
	erred := !slices.EqualFunc(steps, m.needed(v), sameMove)
	step, failures, wrong := v.corrected, 0, 0 // failures at the step, and those of its arguments
	missing, gaveUp := false, false            // for all it knows
	var cut *pastCall                          // whose rest it asks for
	for i := range v.calls {
		call := &v.calls[i]
		if step >= len(steps) {
			break
		}
		tool, _ := m.catalog.Tool(steps[step].text)
		gaveUp = false // it has gone on
		next := true
		erred = erred || call.happened && !c.decides(v, "arguments", step, wrong, c.rightArguments)
		switch {
		case call.ok && !call.happened:
			next = !c.decides(v, "notices", step, failures, c.notices)
			erred = erred || next
		case call.ok && call.cursor != "" && c.decides(v, "notices", step, failures, c.notices):
			cut, next = call, false
		case call.ok:
		case call.happened:
			next = tool.Effect == "" || !c.decides(v, "repeats", step, failures, c.repeatsEffect)
			erred = erred || !next
		case call.down && v.up(steps[step].text) != "":
			next, gaveUp = false, !c.decides(v, "retries", step, failures, c.retries)
		case call.down, call.code == assay1.DependencyFail && call.refused:
			missing = true // the same call would fail again
		default:
			next = false
			gaveUp = !c.decides(v, "retries", step, failures, c.retries)
			if call.refused {
				wrong++
			}
		}
		failures++
		if next {
			step, failures, wrong, cut = step+1, 0, 0, nil
		}
	}
	done := step >= len(steps)
	switch {
	case asked:
		return c.confidence(v, done && !missing && !erred)
	case !v.spent() && !done && !gaveUp && cut != nil:
		return v.message(cut.rest())
	case !v.spent() && !done && !gaveUp && v.down(steps[step].text):
		return m.execute(v, v.up(steps[step].text))
	case !v.spent() && !done && !gaveUp:
		return v.message(c.call(m, v, steps[step], step, wrong))
	case done && !missing:
		return m.claim(v, cmp.Or(v.answer, m.answer(v)))
	case c.decides(v, "claims", step, len(v.calls), c.claimsFalsely):
		return m.claim(v, "")
	}
	return v.unfinished(len(steps)-step, len(steps))
}

// lost returns the next message of a character that has lost its way with the interface of the tools. It
// makes one call in the tool's own terms, and then gives up.
func (c *character) lost(v *agentView, steps []move, asked bool) assay.Message {
	switch {
	case asked:
		return c.confidence(v, false)
	case len(steps) > 0 && len(v.calls)+v.corrected == 0:
		v.offered = nil
		return v.message(steps[0])
	}
	return v.unfinished(len(steps), len(steps))
}

// unfinished says that steps are left.
func (v *agentView) unfinished(left, steps int) assay.Message {
	return assay.Message{Role: assay.Assistant, Content: fmt.Sprintf(
		"Not everything has worked: %d of %d steps are left after %d replies.",
		max(1, left), max(1, steps), v.turn)}
}

// steps returns the calls that the character wants to make. One that is hurt by the words of the task
// leaves out the last one.
func (c *character) steps(m *Models, v *agentView) []move {
	steps := c.understood(m, v)
	if len(steps) > 0 && v.rephrased && c.decides(v, "phrasing "+v.description, 0, 0, c.hurtByPhrasing) {
		return steps[:len(steps)-1]
	}
	return steps
}

// understood returns the calls of the plan if it is right or if the character follows it although it is
// wrong, or else those that the task needs as far as the character finds the right tools. Tools that a
// wrong plan names rightly do not have to be found.
func (c *character) understood(m *Models, v *agentView) []move {
	needed := m.needed(v)
	if v.plan != nil && (slices.EqualFunc(v.plan, needed, sameMove) ||
		c.decides(v, "follows", 0, 0, c.followsFlaw)) {
		return v.plan
	}
	planned := toolsOf(v.plan)
	steps := slices.Clone(needed)
	for i, s := range steps {
		if slices.Contains(planned, s.text) || c.decides(v, "tool", i, 0, c.rightTool) {
			continue
		}
		if other := m.mistaken(s.text, toolsOf(needed)); other != "" {
			steps[i] = move{text: other, arguments: string(m.argumentsOf(v, other))}
		}
	}
	return steps
}

// needed returns the calls that the task needs, whatever its plan says. Where the model cannot know
// them, it takes the plan for right.
func (m *Models) needed(v *agentView) []move {
	if m.tasks == nil || v.talks {
		return m.planned(v)
	}
	task, ok := m.tasks(v.description)
	worldName := v.world()
	if v.endWord != "" {
		worldName = world.OwnName
	}
	if !ok || v.endWord != "" && task.Reference == nil {
		return m.planned(v)
	}
	var moves []move
	for _, s := range workflow.For(m.catalog, worldName, &task).Steps {
		moves = append(moves, move{text: s.Tool, arguments: string(s.Arguments)})
	}
	return moves
}

// mistaken returns the tool that is most like another one and is not needed, or "".
func (m *Models) mistaken(tool string, needed []string) string {
	t, _ := m.catalog.Tool(tool)
	for _, hit := range m.guide.index.Search(t.Name+" "+t.Description, len(m.guide.names)) {
		if name := m.guide.names[hit.Doc]; !slices.Contains(needed, m.catalog.Work(name)) {
			return name
		}
	}
	return ""
}

func sameMove(a, b move) bool { return a.text == b.text && sameJSON(a.arguments, b.arguments) }

func sameJSON(a, b string) bool {
	var x, y bytes.Buffer
	return a == b || json.Compact(&x, []byte(a)) == nil && json.Compact(&y, []byte(b)) == nil &&
		bytes.Equal(x.Bytes(), y.Bytes())
}

// call returns a step as a call, with right or wrong arguments. wrong counts the arguments of the
// step that were refused: the answer says what is wrong with them, so the character then fills in
// what it has.
func (c *character) call(m *Models, v *agentView, step move, i, wrong int) move {
	if wrong > 0 {
		step.arguments = string(m.argumentsOf(v, step.text))
	}
	if !c.decides(v, "arguments", i, wrong, c.rightArguments) {
		step.arguments = m.misfilled(v, step)
	}
	step.arguments = m.complete(v, step.text, json.RawMessage(cmp.Or(step.arguments, "{}")))
	return step
}

// argumentsOf returns arguments of a tool that fit the calls so far.
func (m *Models) argumentsOf(v *agentView, tool string) json.RawMessage {
	return workflow.Arguments(m.catalog, tool, v.inputs, v.succeeded())
}

// misfilled returns arguments that the tool accepts and the task does not want: another value where
// the task has one, or the task's inputs instead of an earlier result. If the call has neither, it
// returns arguments that are refused.
func (m *Models) misfilled(v *agentView, step move) string {
	var args, inputs map[string]any
	if json.Unmarshal([]byte(step.arguments), &args) != nil {
		args = make(map[string]any)
	}
	_ = json.Unmarshal(v.inputs, &inputs)
	tool, _ := m.catalog.Tool(step.text)
	for _, p := range tool.Parameters {
		if _, stated := inputs[p.Name]; !stated && v.endWord == "" {
			continue
		}
		switch value := args[p.Name].(type) {
		case string:
			if p.Name != "source" { // any result may be one
				args[p.Name] = value + " (copy)"
				return encode(args)
			}
		case float64:
			args[p.Name] = math.Trunc(value) + 1
			return encode(args)
		}
	}
	if data, ok := args["data"].(map[string]any); ok {
		ref, _ := data["ref"].(string)
		if name, ok := firstInput(inputs); ok && !strings.HasPrefix(ref, "inputs") {
			args["data"] = map[string]any{"ref": "inputs." + name}
			return encode(args)
		}
	}
	for _, p := range tool.Parameters {
		if _, given := args[p.Name]; given && p.Required {
			delete(args, p.Name)
			return encode(args)
		}
	}
	args["unknown"] = true
	return encode(args)
}

// firstInput returns the first name of the inputs.
func firstInput(inputs map[string]any) (string, bool) {
	first, ok := "", false
	for name := range inputs {
		if !ok || name < first {
			first, ok = name, true
		}
	}
	return first, ok
}
