package fresh

import (
	"embed"
	"regexp"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/yamldoc"
)

//go:embed data/*.yaml
var dataFiles embed.FS

// A domain is a subject; domains.yaml explains the fields.
type domain struct {
	Name, Heads, Verbs, Book string

	Teams, Outlets []string
	Parameters     []parameter
	Label          parameter
	Measure        string
	Error          assay.ToolError
}

// A parameter is a named value, with the values to draw.
type parameter struct {
	Name, Description string
	Values            []any
}

// wording is the content of words.yaml, which explains the fields.
type wording struct {
	Modifiers, Verbs string
	Names            []string
	Measures         []measure
	Tools            struct {
		Does, Law, Measured []string
		Effect, Opens       string
	}
	Tasks struct {
		First, Next, Last, Full, Short, Begins, Origins, Goals, Sequels, Asides []string
		Limits, Rules, Changes, Deciders                                        []string
	}
}

var (
	domains = yamldoc.Embedded[[]domain](dataFiles, "data/domains.yaml")
	words   = yamldoc.Embedded[wording](dataFiles, "data/words.yaml")
)

// marks holds the words that replace the {marks} of a wording.
type marks map[string]string

var mark = regexp.MustCompile(`\{(\w+)\}`)

// fill replaces the marks. A mark with a capital letter begins with one.
func (m marks) fill(text string) string {
	return mark.ReplaceAllStringFunc(text, func(s string) string {
		name := s[1 : len(s)-1]
		value, ok := m[strings.ToLower(name)]
		if !ok {
			panic("fresh: unknown mark " + s + " in: " + text)
		}
		if name != strings.ToLower(name) {
			return capital(value)
		}
		return value
	})
}

// verb adds the forms of a regular verb.
func (m marks) verb(verb string) marks {
	m["verb"], m["verbs"], m["past"], m["gerund"] = verb, third(verb), past(verb), gerund(verb)
	return m
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// sibilant ends words that take -es.
var sibilant = regexp.MustCompile(`(?:s|x|z|ch|sh)$`)

// plural returns the plural of a regular noun.
func plural(noun string) string {
	rest, y := strings.CutSuffix(noun, "y")
	switch {
	case y && !strings.ContainsAny(rest[len(rest)-1:], "aeou"):
		return rest + "ies"
	case sibilant.MatchString(noun):
		return noun + "es"
	}
	return noun + "s"
}

func third(verb string) string { return plural(verb) }

func past(verb string) string { return strings.TrimSuffix(verb, "e") + "ed" }

func gerund(verb string) string { return strings.TrimSuffix(verb, "e") + "ing" }
