// Package adapter shows agents another interface of the tools of a task than the tools' own, and
// translates between the two: one to one, in both directions.
//
// Names of parameters and fields are written differently, results are wrapped, nested or flattened,
// and values have other formats, by the level of the interface. Names of tools, errors and everything
// that the task says stay as they are. The choices are drawn for each task from its ID and its tools,
// so they are the same for all models, difficulties, plans and repeats, and a higher level keeps the
// choices of a lower one. Worlds and verdicts know nothing of it.
package adapter

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/toolkit"
	"github.com/assay-eval/assay/internal/task/world/assay1"
)

// Notes say to models what is special about an interface. A change of them, or of the rules, needs
// other names of interfaces, because trials with other interfaces are others.
var Notes = map[string]string{
	assay.MildInterface: "The tools write names in their own way" + spelled + "list them.",
	assay.Medium:        "The tools write names and results in their own way" + spelled + "list them.",
	assay.Severe:        "The tools write names, results and values in their own way" + spelled + "list and describe them.",
}

const spelled = ": a parameter may have the name of an input, or a name that is mentioned above, in another case or " +
	"shortened, and what is said about that name holds all the same. Use everything exactly as the tools "

// LevelIn returns the level whose note a text has, or "".
func LevelIn(text string) string {
	for level, note := range Notes {
		if strings.Contains(text, note) {
			return level
		}
	}
	return ""
}

// An Adapter translates between the tools of a task and their interface as agents meet it. A nil one
// changes nothing. It is immutable and safe for concurrent use.
type Adapter struct {
	style
	level  string
	names  naming
	tools  map[string]*codec // of arguments
	fields map[string]bool   // the names that fields of results are known to have
}

// A style has the choices that are drawn for a task. Higher levels use more of them.
type style struct {
	casing   casing
	shortens bool
	shape    *shape   // nil if results keep theirs
	formats  *formats // nil if values keep theirs
}

// Of returns the adapter of a level for a task. It is nil for the tools' own interface.
func Of(level string, catalog *assay.Catalog, task *assay.Task) *Adapter {
	if level == "" || level == assay.PlainInterface {
		return nil
	}
	tools := slices.DeleteFunc(slices.Clone(catalog.All()), func(t assay.Tool) bool {
		return len(task.Tools) > 0 && !slices.Contains(task.Tools, t.Name)
	})
	schemas := make([]schema, len(tools))
	known := make(map[string]bool)
	var parameters []string
	for i, t := range tools {
		schemas[i] = schemaOf(t)
		schemas[i].each(func(name string) {
			known[name] = true
			parameters = append(parameters, name)
		})
		for _, r := range t.Returns {
			known[r.Name] = true
		}
	}
	for _, name := range fieldsOf(catalog) {
		known[name] = true
	}
	a := &Adapter{level: level, tools: make(map[string]*codec), fields: known}
	a.draw(level, dice(task, tools), parameters)
	a.names = newNaming(known, a.style)
	for i, t := range tools {
		a.tools[t.Name] = a.codecOf(schemas[i])
	}
	return a
}

// fieldsOf returns names that fields of results have, as far as they are known beside those that tools
// declare. Other keys of results may be data, such as the names of people, and stay as they are.
func fieldsOf(catalog *assay.Catalog) []string {
	if !catalog.Own() {
		return assay1.Fields
	}
	kit, err := toolkit.Of(catalog)
	if err != nil {
		return nil // no call can be carried out
	}
	return kit.Fields()
}

func dice(task *assay.Task, tools []assay.Tool) *rand.Rand {
	text := "assay interface 1\x00" + string(task.ID)
	for _, t := range tools {
		text += "\x00" + t.Name
	}
	sum := sha256.Sum256([]byte(text))
	return rand.New(rand.NewPCG(binary.BigEndian.Uint64(sum[:8]), binary.BigEndian.Uint64(sum[8:])))
}

// draw makes the choices. All are drawn at every level, so that levels share them.
func (a *Adapter) draw(level string, dice *rand.Rand, parameters []string) {
	able := slices.DeleteFunc(slices.Clone(casings), func(c casing) bool {
		changed := 0
		for _, name := range parameters {
			if c.join(wordsOf(name)) != name {
				changed++
			}
		}
		return 2*changed < len(parameters)
	})
	if len(able) == 0 {
		able = casings
	}
	a.casing = able[dice.IntN(len(able))]
	shortens := dice.IntN(2) == 0
	s, f := drawShape(dice), drawFormats(dice)
	switch level {
	case assay.MildInterface:
		if a.shortens = shortens; shortens {
			a.casing = keep
		}
	case assay.Severe:
		a.formats = f
		fallthrough
	default:
		a.shortens, a.shape = true, s
	}
}

// Schema returns the schema of a tool's arguments as offered.
func (a *Adapter) Schema(tool string, own json.RawMessage) json.RawMessage {
	if a == nil || a.tools[tool] == nil {
		return own
	}
	v, err := parse(string(own))
	if err != nil {
		return own
	}
	return json.RawMessage(a.offered(a.tools[tool], v).String())
}

// Text returns a description as offered: with the names and formats that it mentions as they are
// offered.
func (a *Adapter) Text(text string) string {
	if a == nil {
		return text
	}
	text = a.mentioned(text)
	if a.formats != nil {
		text = a.formats.described(text)
	}
	return text
}

// Note says to a model what is special about the interface.
func (a *Adapter) Note() string {
	if a == nil {
		return ""
	}
	if a.formats == nil {
		return Notes[a.level]
	}
	return Notes[a.level] + " " + a.formats.note()
}

// Returns returns the fields of a tool's result as offered, each with its path.
func (a *Adapter) Returns(fields []assay.Return) []assay.Return {
	if a == nil || fields == nil {
		return fields
	}
	out := slices.Clone(fields)
	for i, f := range out {
		out[i].Description = a.Text(f.Description)
		out[i].Name = a.names.offer(f.Name)
		if a.shape != nil {
			out[i].Name = a.shape.path(out[i].Name, f.Type == "object" || f.Type == "array")
		}
		if a.formats != nil && slices.Contains([]string{"boolean", "integer", "number"}, f.Type) {
			out[i].Type = "string"
		}
	}
	return out
}

// Gives returns the fields of a plan's step, written as "name (type)", as offered.
func (a *Adapter) Gives(fields []string) []string {
	if a == nil {
		return fields
	}
	var out []string
	for _, text := range fields {
		name, kind, _ := strings.Cut(strings.TrimSuffix(text, ")"), " (")
		f := a.Returns([]assay.Return{{Name: name, Type: kind}})[0]
		out = append(out, f.Name+" ("+f.Type+")")
	}
	return out
}

// Name returns a name of a parameter or field as it is offered.
func (a *Adapter) Name(own string) string {
	if a == nil {
		return own
	}
	return a.names.offer(own)
}

// Offer returns the arguments of a call, which may be wrong, as the interface has them.
func (a *Adapter) Offer(tool string, own json.RawMessage) json.RawMessage {
	if a == nil || a.tools[tool] == nil {
		return own
	}
	v, err := parse(string(own))
	if err != nil {
		return own
	}
	return json.RawMessage(a.tools[tool].offer(v).String())
}

// Read returns the arguments of a call in the tool's own terms, as the inverse of Offer. If the call
// does not keep to the interface, mistake says why.
func (a *Adapter) Read(tool, written string) (own, mistake string) {
	if a == nil || a.tools[tool] == nil {
		return written, ""
	}
	v, err := parse(written)
	if err != nil {
		return written, ""
	}
	r := new(reading)
	before := v.String()
	if own = a.tools[tool].read(v, r, "").String(); own == before {
		own = written
	}
	return own, r.mistake
}

// Output returns a result as the interface shows it.
func (a *Adapter) Output(own string) string {
	return a.translated(own, func(v value) value {
		v = a.rename(v)
		if a.formats != nil {
			v = a.formats.swap(v)
		}
		if a.shape != nil {
			v = a.shape.wrap(v)
		}
		return v
	})
}

// Original returns a result in the tool's own terms, as the inverse of Output.
func (a *Adapter) Original(shown string) string {
	return a.translated(shown, func(v value) value {
		if a.shape != nil {
			v = a.shape.unwrap(v)
		}
		if a.formats != nil {
			v = a.formats.swap(v)
		}
		return a.rename(v)
	})
}

func (a *Adapter) translated(text string, translate func(value) value) string {
	if a == nil {
		return text
	}
	v, err := parse(text)
	if err != nil {
		return text
	}
	return translate(v).String()
}

// rename swaps the names of fields with those that are offered.
func (a *Adapter) rename(v value) value {
	return v.mapped(func(name string) string { return a.names.offer(name) }, nil)
}

// Error returns the text of a tool's error as the interface shows it. If it is about the arguments,
// each word that is the name of a parameter is meant as one.
func (a *Adapter) Error(tool, text string, aboutArguments bool) string {
	if a == nil || a.tools[tool] == nil {
		return text
	}
	if !aboutArguments {
		return a.mentioned(text)
	}
	c := a.tools[tool]
	return word.ReplaceAllStringFunc(text, func(name string) string {
		if _, ok := c.members[name]; ok {
			return c.names.offer(name)
		}
		return name
	})
}

// Said returns what an agent says in the tools' own formats, because people need not know how the
// tools write dates and times.
func (a *Adapter) Said(text string) string {
	if a == nil || a.formats == nil {
		return text
	}
	return a.formats.said(text)
}

var (
	word = regexp.MustCompile(`[\pL\pN_][\pL\pN_-]*`)
	// mention matches a word that can only be a name: it is quoted, or it has a joint within.
	mention = regexp.MustCompile("[`'\"][A-Za-z][A-Za-z0-9_-]*[`'\"]|\\b[A-Za-z][A-Za-z0-9]*_[A-Za-z0-9_]+\\b|\\b[a-z][a-z0-9]*[A-Z][A-Za-z0-9]*\\b")
)

// mentioned replaces the names of parameters and fields in a text for people. A word that may be an
// ordinary one stays.
func (a *Adapter) mentioned(text string) string {
	return mention.ReplaceAllStringFunc(text, func(m string) string {
		quote := ""
		if strings.ContainsAny(m[:1], "`'\"") {
			if m[len(m)-1] != m[0] {
				return m
			}
			quote = m[:1]
		}
		name := strings.Trim(m, "`'\"")
		if !a.fields[name] {
			return m
		}
		return quote + a.names.offer(name) + quote
	})
}
