package yamldoc

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// prefixes match keys of providers, code hosts and clouds by the prefixes that these give them, and
// JSON web tokens.
var prefixes = regexp.MustCompile(`\b(?:(?:sk|rk|pk|gsk|csk|fw|tgp|hf|r8|nvapi|pplx|xai|fk|` +
	`ghp|gho|ghs|glpat|xox[abprs])[-_]|github_pat_|AIza|AKIA|ASIA|eyJ)[A-Za-z0-9_\-./+=]{12,}`)

// random matches runs of letters and digits in which keys are spelled.
var random = regexp.MustCompile(`[A-Za-z0-9+=]{24,}`)

// userinfo and query match credentials in addresses.
var (
	userinfo = regexp.MustCompile(`[^\s/@"'\[{,]+:[^\s/@"']*@|//[^\s/@"']+@`)
	query    = regexp.MustCompile(`[?&][^=\s&"']+=[^&\s"'},]+`)
)

// named matches a field whose name means that its value is a secret, and keyList a list of keys.
var (
	named = regexp.MustCompile(`(?i)["']?\b[a-z0-9_-]*(?:authorization|api-?key|key|token|secret|` +
		`password|cookie)["']?\s*:\s+("[^"]*"|'[^']*'|[^,}\]]+)`)
	keyList  = regexp.MustCompile(`\bkeys["']?\s*:\s*([^#]+)`)
	item     = regexp.MustCompile(`"[^"]*"|'[^']*'|[^\s,\[\]{}]+`)
	harmless = regexp.MustCompile(`^["']?([A-Z_][A-Z0-9_]{0,63}|none|null|true|false|\$\{[^}]*\}|` +
		`[0-9.]{1,9})["']?$`)
)

// IsKey reports whether a text has a part that is spelled like a key: it has a known prefix, or 24
// characters in a row with letters and digits.
func IsKey(text string) bool {
	return prefixes.MatchString(text) || isRandom(random.FindString(text))
}

func isRandom(run string) bool {
	return strings.ContainsAny(run, "0123456789") &&
		strings.ContainsFunc(run, func(r rune) bool { return r >= 'A' })
}

// hide replaces words that are spelled like a key.
func hide(text string) string {
	text = prefixes.ReplaceAllStringFunc(text, stars)
	return random.ReplaceAllStringFunc(text, func(run string) string {
		if !isRandom(run) {
			return run
		}
		return stars(run)
	})
}

// hideLine replaces possible secrets in a line of a file: words that are spelled like a key,
// credentials in addresses, and the values of fields for secrets. The length stays the same.
func hideLine(line string) string {
	line = hide(line)
	line = userinfo.ReplaceAllStringFunc(line, stars)
	line = query.ReplaceAllStringFunc(line, func(pair string) string {
		name, value, _ := strings.Cut(pair, "=")
		return name + "=" + stars(value)
	})
	for _, place := range []*regexp.Regexp{named, keyList} {
		for _, at := range slices.Backward(place.FindAllStringSubmatchIndex(line, -1)) {
			value := item.ReplaceAllStringFunc(line[at[2]:at[3]], starsUnlessHarmless)
			line = line[:at[2]] + value + line[at[3]:]
		}
	}
	return line
}

// starsUnlessHarmless keeps names of variables, references to them, and numbers.
func starsUnlessHarmless(value string) string {
	if harmless.MatchString(value) {
		return value
	}
	return stars(value)
}

// stars returns one star for each character.
func stars(text string) string { return strings.Repeat("*", utf8.RuneCountInString(text)) }

// Key returns an error that points at the first value that has the prefix of a key, or at the value
// of a field for secrets that is spelled like one. It returns nil if there is no key.
func (d *Document) Key() *Error {
	found := findKey(d.root)
	if found == nil {
		return nil
	}
	return d.Here(found.Line, found.Column, "a key is written into the file",
		"replace the key at its provider, because files are copied; the new one belongs in a "+
			"variable that a providers file names").Bare()
}

// Bare returns the error without the line that it points at.
func (e *Error) Bare() *Error {
	e.Excerpt = ""
	return e
}

// secretName matches the names of fields for secrets.
var secretName = regexp.MustCompile(`(?i)authorization|key|token|secret|password|cookie`)

func findKey(n *yaml.Node) *yaml.Node {
	if n == nil || prefixes.MatchString(n.Value) {
		return n
	}
	for name, value := range fields(n) {
		if secretName.MatchString(name.Value) && IsKey(value.Value) {
			return value
		}
	}
	for _, child := range n.Content {
		if found := findKey(child); found != nil {
			return found
		}
	}
	return nil
}
