package assay

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Contradiction describes why two names cannot name one model, such as "size 7b and 72b". It
// returns "" if they may. A name that leaves something out does not contradict any name, because
// people call deployments whatever they like: eval-prod may be any model, but qwen2.5-72b is not
// qwen2.5-7b. It knows the families of common models and the ways in which their names are spelled.
func Contradiction(a, b string) string {
	x, y := traitsOf(a), traitsOf(b)
	if x.size != "" && y.size != "" && x.size != y.size {
		return fmt.Sprintf("size %s and %s", x.size, y.size)
	}
	if len(x.families) == 0 || len(y.families) == 0 {
		return ""
	}
	shared := ""
	for _, f := range x.families {
		for _, g := range y.families {
			if f.name != g.name {
				continue
			}
			shared = f.name
			if f.contradicts(g) {
				return fmt.Sprintf("version %s and %s", f.text, g.text)
			}
		}
	}
	if shared == "" {
		return fmt.Sprintf("family %s and %s", x.families[0].name, y.families[0].name)
	}
	for i := range kinds {
		k, l := strings.Join(x.kinds[i], " "), strings.Join(y.kinds[i], " ")
		oneIsPlain := k == "" || l == ""
		if k != l && (!oneIsPlain || kinds[i].plain(shared)) {
			return fmt.Sprintf("kind %s and %s", cmp.Or(k, "plain"), cmp.Or(l, "plain"))
		}
	}
	if !strings.HasSuffix(x.date, y.date) && !strings.HasSuffix(y.date, x.date) {
		return fmt.Sprintf("date %s and %s", x.date, y.date)
	}
	return ""
}

// traits are the parts of a name that can contradict the parts of another.
type traits struct {
	size     string
	families []family
	kinds    [len(kinds)][]string // the words of each group, sorted
	date     string
}

// A family is a model's family with its possible versions, without punctuation: gpt-4-1 may be
// gpt-4.1 or the first deployment of gpt-4. The versions are empty if the name has no version.
type family struct {
	name, text string
	versions   []string
}

func (f family) contradicts(g family) bool {
	agree := func(version string) bool { return slices.Contains(g.versions, version) }
	return len(f.versions) > 0 && len(g.versions) > 0 && !slices.ContainsFunc(f.versions, agree)
}

// kinds are groups of words that distinguish the models of a family. Two different words of a group
// contradict each other. A word contradicts its absence in families whose plain name is a model
// too.
var kinds = [...]struct {
	words []string
	plain func(family string) bool
}{
	{[]string{"mini", "nano"}, func(family string) bool {
		return slices.Contains([]string{"gpt", "grok", "o"}, family)
	}},
	{[]string{"coder", "vl", "distill", "lite"}, func(string) bool { return true }},
	{[]string{"opus", "sonnet", "haiku", "instant"}, never},
	{[]string{"flash", "pro", "ultra"}, never},
	{[]string{"tiny", "small", "medium", "large"}, never},
	{[]string{"max", "plus", "turbo"}, never},
	{[]string{"scout", "maverick"}, never},
	{[]string{"chat", "reasoner"}, never},
	{[]string{"base", "instruct", "thinking"}, never},
}

func never(string) bool { return false }

var (
	separators = regexp.MustCompile(`[^a-z0-9.]+`)
	sizeText   = regexp.MustCompile(`^((\d+x)?\d+(\.\d+)?b|\d{2,}m|e\d+b)$`)
	// otherSize matches the length of the context, the number of experts, and active parameters.
	otherSize  = regexp.MustCompile(`^(\d+[ek]|a\d+(\.\d+)?b)$`)
	familyText = regexp.MustCompile(`\b(?:chat)?(gpt-oss|gpt|o|claude|gemini|gemma|codellama|` +
		`llama|qwen|qwq|deepseek|codestral|ministral|magistral|devstral|pixtral|mixtral|mistral|` +
		`phi|command-[ar]|kimi|glm|grok|minimax|jamba|nemotron)` +
		`(?:[-.]?v?([a-z]?\d{1,2})(?:([.p-])(\d))?(-o|[a-z]*))?\b`)
)

func traitsOf(name string) (t traits) {
	parts := partsOf(strings.ToLower(name))
	t.date = parts.date
	var rest []string
	for _, word := range separators.Split(parts.core, -1) {
		switch {
		case otherSize.MatchString(word):
		case sizeText.MatchString(word):
			t.size = cmp.Or(t.size, word)
		case !t.addKind(word):
			rest = append(rest, word)
		}
	}
	for _, m := range familyText.FindAllStringSubmatch(strings.Join(rest, "-"), -1) {
		t.addFamily(m[0], m[1], m[2], m[3], m[4], m[5])
	}
	for _, words := range t.kinds {
		slices.Sort(words)
	}
	return t
}

// addKind adds a word that distinguishes the models of a family. It returns false for other words.
func (t *traits) addKind(word string) bool {
	for i, k := range kinds {
		if slices.Contains(k.words, word) {
			if !slices.Contains(t.kinds[i], word) {
				t.kinds[i] = append(t.kinds[i], word)
			}
			return true
		}
	}
	return false
}

// addFamily adds a family from the parts of its text, such as claude, 3, -, 5 or gpt, 4, o.
func (t *traits) addFamily(text, name, major, separator, minor, suffix string) {
	if name == "gpt" && strings.HasPrefix(major, "o") { // gpt-o3
		name, major = "o", major[1:]
	}
	if name == "o" && major == "" {
		return
	}
	suffix = strings.TrimPrefix(suffix, "-")
	for _, k := range kinds { // as in gpt4omini
		for _, word := range k.words {
			if rest, ok := strings.CutSuffix(suffix, word); ok && t.addKind(word) {
				suffix = rest
			}
		}
	}
	if len(suffix) > 1 {
		suffix = ""
	}
	f := family{name: name, text: text}
	if major != "" {
		f.versions = append(f.versions, major+minor+suffix)
		if separator == "-" && name != "claude" {
			f.versions = append(f.versions, major+suffix)
		}
	}
	t.families = append(t.families, f)
}
