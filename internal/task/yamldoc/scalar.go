package yamldoc

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// A scalar without quotes means the same in every field; docs/files.md has the table. The YAML
// library reads some scalars differently where it wants a number than where it wants any value, so
// each gets the tag and the spelling of its meaning before the library sees it.

// Decimal matches numbers. Disputed matches those that programs, or versions of YAML, read in
// different ways; zeros matches the most frequent of them.
var (
	decimal  = regexp.MustCompile(`^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$`)
	zeros    = regexp.MustCompile(`^[-+]?0[0-9_]`)
	disputed = regexp.MustCompile(`^[-+]?(0[xX][0-9a-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|` +
		`([0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)([eE][-+]?[0-9]+)?)$`)
)

// A settler gives the scalars of a document their meaning. It refuses those that can be read in
// several ways, and empty ones where a value is needed.
type settler struct {
	*Document
	members map[reflect.Type]map[string]reflect.Type // of the structs so far, by the names in files
}

// settle settles the scalars below a node, which will become a value of a type.
func (s *settler) settle(n *yaml.Node, t reflect.Type) *Error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if n.Kind == yaml.ScalarNode && !isNull(n) {
		if err := s.single(n, t); err != nil {
			return err
		}
	}
	if t.Kind() == reflect.Slice && n.Kind != yaml.SequenceNode {
		return s.settle(n, t.Elem()) // a list may be written as its only item
	}
	switch n.Kind {
	case yaml.MappingNode:
		return s.settleFields(n, t)
	case yaml.SequenceNode:
		return s.settleItems(n, t)
	case yaml.ScalarNode:
		return s.settleScalar(n, t)
	}
	return nil
}

func (s *settler) settleItems(n *yaml.Node, t reflect.Type) *Error {
	of := anything
	if t.Kind() == reflect.Slice {
		of = t.Elem()
	}
	for _, item := range n.Content {
		if isNull(item) && (item.Value == "" || of != anything) {
			return s.Here(item.Line, item.Column, "this item of the list is empty",
				`remove it, or put it into quotes if it is text: "`+item.Value+`"`)
		}
		if err := s.settle(item, of); err != nil {
			return err
		}
	}
	return nil
}

func (s *settler) settleFields(n *yaml.Node, t reflect.Type) *Error {
	for name, value := range fields(n) {
		of := s.member(t, name.Value)
		empty := fmt.Sprintf("%q has no value", name.Value)
		switch {
		case !isNull(value):
		case value.Value == "" && !s.hasColon(name, value):
			hint := "write a colon and a value behind it; a text with a comma needs quotes"
			if plain := plainNumber(s.aroundComma(n, name), false); plain != "" {
				hint = "write " + plain + ", or quotes around a text with a comma"
			}
			return s.Here(name.Line, name.Column, empty, hint)
		case t.Kind() == reflect.Map && isSingle(of):
			return s.Here(value.Line, value.Column, empty, "remove it, or write a value")
		}
		if err := s.settle(value, of); err != nil {
			return err
		}
	}
	return nil
}

// aroundComma returns a number that commas have torn to members of a mapping: the value before the
// given empty member, and the digits from there on.
func (s *settler) aroundComma(n, empty *yaml.Node) string {
	at := slices.Index(n.Content, empty)
	if at < 2 || !digits.MatchString(empty.Value) {
		return ""
	}
	text := n.Content[at-1].Value
	for ; at < len(n.Content); at += 2 {
		name, value := n.Content[at], n.Content[at+1]
		if !digits.MatchString(name.Value) || !isNull(value) || s.hasColon(name, value) {
			break
		}
		text += "," + name.Value
	}
	return text
}

// hasColon reports whether a colon is between a name and an empty value, which brackets do not need.
func (s *settler) hasColon(name, value *yaml.Node) bool {
	if name.Line != value.Line {
		return true
	}
	lines := bytes.SplitN(s.source, []byte("\n"), name.Line+1)
	text := firstRunes(string(lines[name.Line-1]), value.Column-1)
	return strings.HasSuffix(strings.TrimRight(text, " \t"), ":")
}

// isSingle reports whether values of a type are single texts, numbers or truth values.
func isSingle(t reflect.Type) bool {
	return t.Kind() == reflect.String || isNumber(t) || t.Kind() == reflect.Bool
}

// single returns an error if a value of a type cannot be a scalar.
func (s *settler) single(n *yaml.Node, t reflect.Type) *Error {
	if readsItself(t) {
		return nil
	}
	value, hint := n.Value, ""
	if n.Style&quoted != 0 {
		value = strconv.Quote(value)
	}
	found := "wrong type: found " + goWord(n.Tag)
	switch t.Kind() {
	case reflect.Slice:
		item := t.Elem()
		if plain := plainNumber(n.Value, item.Kind() < reflect.Float32); isNumber(item) && plain != "" {
			hint = "write [" + plain + "]"
		} else if holds(n, item) || readsItself(item) {
			hint = "write [" + value + "]"
		}
		return s.Here(n.Line, n.Column, found+", want a list", hint)
	case reflect.Struct:
		named := func(f reflect.StructField) bool { return yamlName(f) != "" && yamlName(f) != "-" }
		all := reflect.VisibleFields(t)
		if first := slices.IndexFunc(all, named); first >= 0 && holds(n, all[first].Type) {
			hint = fmt.Sprintf("write {%s: %s}", yamlName(all[first]), value)
		}
		return s.Here(n.Line, n.Column, found+", want a mapping", hint)
	}
	return nil
}

// holds reports whether a type has a scalar as a value, for a hint.
func holds(n *yaml.Node, t reflect.Type) bool {
	return t.Kind() == reflect.String && n.Tag == "!!str" || isNumber(t) && decimal.MatchString(n.Value)
}

// readsItself reports whether a type has a method that reads it from a file.
func readsItself(t reflect.Type) bool {
	_, yaml := reflect.PointerTo(t).MethodByName("UnmarshalYAML")
	_, text := reflect.PointerTo(t).MethodByName("UnmarshalText")
	return yaml || text || t == reflect.TypeFor[time.Duration]()
}

// The texts that are taken for numbers. Other units may be a factor, or another currency.
var (
	digits   = regexp.MustCompile(`^[0-9]+$`)
	measured = regexp.MustCompile(`^(?:\$|USD)? ?([-+]?[0-9][0-9.,]*) ?(%|\$|USD|dollars?|s|seconds?|tokens?|` +
		`calls?|turns?|tasks?|trials?)?$`)
	thousands = regexp.MustCompile(`^[-+]?[1-9][0-9]{0,2}(,[0-9]{3})+(\.[0-9]+)?$`)
)

// plainNumber returns the number that is meant by a text with a unit or a comma, or "".
func plainNumber(text string, whole bool) string {
	parts := measured.FindStringSubmatch(text)
	if parts == nil {
		return ""
	}
	number, unit := parts[1], parts[2]
	switch {
	case thousands.MatchString(number):
		number = strings.ReplaceAll(number, ",", "")
	case strings.Count(number, ",") == 1 && !strings.Contains(number, "."):
		number = strings.Replace(number, ",", ".", 1)
	}
	if !decimal.MatchString(number) || zeros.MatchString(number) {
		return ""
	}
	if unit == "%" {
		x, _ := strconv.ParseFloat(number, 64)
		number = strconv.FormatFloat(math.Round(x*1e9)/1e11, 'f', -1, 64)
	}
	if whole && strings.Contains(number, ".") {
		return ""
	}
	return number
}

func isNumber(t reflect.Type) bool { return t.Kind() >= reflect.Int && t.Kind() <= reflect.Float64 }

// anything is the type of values of any kind.
var anything = reflect.TypeFor[any]()

// member returns the type of a member of a mapping that will become a value of type t.
func (s *settler) member(t reflect.Type, name string) reflect.Type {
	switch t.Kind() {
	case reflect.Map:
		return t.Elem()
	case reflect.Struct:
		if s.members[t] == nil {
			s.members[t] = make(map[string]reflect.Type)
			for _, f := range reflect.VisibleFields(t) {
				s.members[t][yamlName(f)] = f.Type
			}
		}
		if of, ok := s.members[t][name]; ok && name != "" {
			return of
		}
	}
	return anything
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// glued matches a comment that is probably the rest of a text, as in order #7.
var glued = regexp.MustCompile(`^#[\pL\d]`)

const quoted = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle

// settleScalar settles a scalar. What becomes text stays as it is written.
func (s *settler) settleScalar(n *yaml.Node, t reflect.Type) *Error {
	number := decimal.MatchString(n.Value) && !zeros.MatchString(n.Value)
	switch {
	case isNull(n):
	case n.Style&quoted == 0 && strings.Contains(n.Value, " ") && glued.MatchString(n.LineComment):
		return s.Here(n.Line, n.Column, "this text ends before "+n.LineComment+", because # begins a comment",
			"put the text into quotes, or write a space behind # if it is a comment")
	case n.Style&(quoted|yaml.TaggedStyle) != 0:
		if isNumber(t) && number {
			return s.Here(n.Line, n.Column, "a number in quotes is text", "write "+n.Value+" without quotes")
		}
		return s.dressed(n, t)
	case isNumber(t) && n.Tag == "!!str":
		return s.dressed(n, t)
	case t.Kind() == reflect.Bool && n.Tag == "!!str": // the library knows yes and off
		return s.Here(n.Line, n.Column, "wrong type: found text, want true or false", "")
	case t.Kind() == reflect.String, t.Kind() == reflect.Struct:
		n.Tag = "!!str"
	case number:
		return s.settleNumber(n)
	case disputed.MatchString(n.Value), // the library reads _ as nothing, wherever it is
		n.Tag != "!!str" && strings.Contains(n.Value, "_"):
		return s.ambiguous(n, t)
	}
	return nil
}

// dressed returns an error with the plain number, if a number is wanted and a text is one with a unit
// or a comma.
func (s *settler) dressed(n *yaml.Node, t reflect.Type) *Error {
	if !isNumber(t) || readsItself(t) {
		return nil
	}
	plain := plainNumber(n.Value, t.Kind() < reflect.Float32)
	if plain == "" {
		return nil
	}
	want := "a number"
	if t.Kind() < reflect.Float32 {
		want = "a whole number"
	}
	return s.Here(n.Line, n.Column, "wrong type: found text, want "+want, "write "+plain)
}

// settleNumber gives a number its shortest spelling, which is never that of -0.
func (s *settler) settleNumber(n *yaml.Node) *Error {
	if !strings.ContainsAny(n.Value, ".eE") {
		n.Tag, n.Value = "!!int", strings.TrimPrefix(n.Value, "+")
		if n.Value == "-0" {
			n.Value = "0"
		}
		return nil // check has refused those of more than 64 bits
	}
	x, err := strconv.ParseFloat(n.Value, 64)
	if err != nil {
		return s.Here(n.Line, n.Column, "the number is too large",
			"write a smaller one, or put it in quotes if it is text")
	}
	if x == 0 {
		x = 0 // and not -0
	}
	n.Tag, n.Value = "!!float", strconv.FormatFloat(x, 'g', -1, 64)
	return nil
}

// ambiguous returns the error of a number that is spelled in a way that is read differently.
func (s *settler) ambiguous(n *yaml.Node, t reflect.Type) *Error {
	message := fmt.Sprintf("%s can be read in several ways", n.Value)
	plain := strings.ReplaceAll(n.Value, "_", "")
	if zeros.MatchString(n.Value) {
		message = fmt.Sprintf("the number %s begins with 0", n.Value)
		sign := plain[:len(plain)-len(strings.TrimLeft(plain, "-+"))]
		if plain = strings.TrimLeft(plain, "-+0"); plain == "" || plain[0] < '0' || plain[0] > '9' {
			plain = "0" + plain
		}
		plain = sign + plain
	} else if x, err := strconv.ParseInt(plain, 0, 64); err == nil {
		plain = strconv.FormatInt(x, 10)
	}
	hint := "write " + plain + " if it is a number"
	if t == anything {
		hint += fmt.Sprintf(", or %q in quotes if it is text", n.Value)
	}
	return s.Here(n.Line, n.Column, message, hint)
}
