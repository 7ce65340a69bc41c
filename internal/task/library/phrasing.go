package library

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/fresh"
	"github.com/assay-eval/assay/internal/task/phrasing"
)

// phrasings returns the texts of the task by its descriptions and then by their phrasings. Pick is the
// task's number in its type.
func (d *draft) phrasings(pick int) map[string]map[string]string {
	texts := make(map[string]map[string]string)
	for _, difficulty := range assay.Difficulties {
		plain := d.describe(difficulty, pick)
		dice := func(name string) *rand.Rand {
			return phrasing.Dice(d.Slug, d.period, strings.Join(d.verbs, " "), difficulty, name)
		}
		texts[plain] = map[string]string{
			assay.Reordered: d.reorder(dice(assay.Reordered), difficulty, pick),
			assay.Casual:    d.chat(dice(assay.Casual), difficulty, pick),
			assay.Typed:     d.mistype(dice(assay.Typed), plain),
		}
	}
	return texts
}

// reorder states the same in another order.
func (d *draft) reorder(dice *rand.Rand, difficulty string, pick int) string {
	d.dated, d.located = false, false
	w := phrasedWords().Reordered
	switch difficulty {
	case "hard":
		words := hardWords()
		goal, states := d.wants(words.Steps, words.Openings, d.verbs, difficulty)
		text, lead := d.premises(w.Hard, states), phrasing.Pick(dice, w.Purposes)
		if len(states) == 0 {
			lead = w.Sole
		}
		return joined(append(text, lead, goal), d.choose(words.Asides, difficulty, "aside"))
	case "very_hard":
		words := veryHardWords()
		goal, states := d.wants(words.Steps, words.Openings, d.essential(), difficulty)
		text := append(d.conditions(w.VeryHard, words.More, states), goal)
		if len(states) == 0 {
			text = []string{w.Sole, goal}
		}
		return joined(text, d.choose(words.Closings, difficulty, "closing"))
	}
	steps := d.wordings(difficulty, pick)
	for _, step := range steps {
		if mentions(step, "{url}") { // what came from there is not in the file
			d.dated, d.located = true, true
		}
		if mentions(step, "{file}", "{of}", "{url}") {
			break
		}
	}
	var text []string
	for i, step := range slices.Backward(steps) {
		lead := w.Before
		switch {
		case len(steps) == 1:
			lead = w.Only
		case i == len(steps)-1:
			lead = w.Last
		case i == 0:
			lead = w.First
		}
		text = append(text, phrasing.Pick(dice, lead)+d.fill(step)+".")
	}
	if d.namesTeam(difficulty, pick) {
		text = append(text, d.fill(w.For))
	}
	return joined(text, d.closing(difficulty))
}

// chat says the same as to a colleague.
func (d *draft) chat(dice *rand.Rand, difficulty string, pick int) string {
	d.dated, d.located = false, false
	w := phrasedWords().Casual
	switch difficulty {
	case "hard":
		words := hardWords()
		goal, states := d.wants(words.Steps, w.HardOpenings, d.verbs, difficulty)
		text := append([]string{goal}, d.premises(w.Hard, states)...)
		return phrasing.Chat(dice, append(text, d.choose(words.Asides, difficulty, "aside")))
	case "very_hard":
		words := veryHardWords()
		goal, states := d.wants(words.Steps, w.VeryHardOpenings, d.essential(), difficulty)
		text := append([]string{goal}, d.conditions(w.VeryHard, w.More, states)...)
		if c := d.choose(words.Closings, difficulty, "closing"); c != "" {
			text = append(text, c)
		}
		return phrasing.Chat(dice, text)
	}
	steps := d.wordings(difficulty, pick)
	var text []string
	for i, step := range steps {
		lead := w.Next
		switch {
		case len(steps) == 1:
			lead = w.Only
		case i == 0:
			lead = w.First
		case i == len(steps)-1:
			lead = w.Last
		}
		text = append(text, phrasing.Pick(dice, lead)+d.fill(step)+phrasing.Pick(dice, w.Tails))
	}
	if d.namesTeam(difficulty, pick) {
		text = append(text, d.fill(w.For))
	}
	if c := d.closing(difficulty); c != "" {
		text = append(text, c)
	}
	return phrasing.Chat(dice, text)
}

// joined joins sentences and a last one, which may be empty.
func joined(text []string, last string) string {
	return strings.TrimSpace(strings.Join(append(text, last), " "))
}

// namesTeam reports whether a description that states the steps in order begins with the team.
func (d *draft) namesTeam(difficulty string, pick int) bool {
	switch difficulty {
	case "easy":
		return d.opensEasy(pick)
	case "medium":
		return d.choose(mediumWords().Openings, difficulty, "opening") != ""
	}
	return false
}

// closing returns the sentence that ends a description that states the steps in order, or "".
func (d *draft) closing(difficulty string) string {
	if difficulty != "medium" {
		return ""
	}
	return strings.TrimSpace(d.fill(d.choose(mediumWords().Closings, difficulty, "closing")))
}

// mistype makes typing errors in words that name nothing.
func (d *draft) mistype(dice *rand.Rand, description string) string {
	var names []string
	for _, v := range d.names {
		if text, ok := v.(string); ok {
			names = append(names, text)
		}
	}
	kept := phrasing.Words(names...)
	return phrasing.Type(dice, description, func(word string) bool { return kept[word] }, vocabulary())
}

// vocabulary has all words of descriptions that are no names.
var vocabulary = sync.OnceValue(func() map[string]bool {
	var texts []string
	for _, file := range []string{"very_easy", "easy", "medium", "hard", "very_hard"} {
		b, err := dataFiles.ReadFile("data/" + file + ".yaml")
		if err != nil {
			panic("library: " + err.Error())
		}
		texts = append(texts, string(b))
	}
	return phrasing.Words(texts...)
})

// A NoPhrasing is the error of a task that does not exist in the words of a phrasing.
type NoPhrasing struct{ Message, Hint string }

func (e *NoPhrasing) Error() string { return e.Message }

// Phrase returns a task at a difficulty in the words of a phrasing, which give it another digest. It
// returns a [*NoPhrasing] if the task does not have them.
func (l *Library) Phrase(
	ctx context.Context, task assay.TaskRef, difficulty, name string,
) (assay.TaskRef, error) {
	_, digest, err := l.put(ctx, task.ID, difficulty, name)
	return assay.TaskRef{ID: task.ID, Digest: l.withTools(digest)}, err
}

// TaskOf reads the task of a trial, in the words of its phrasing.
func (l *Library) TaskOf(ctx context.Context, trial *assay.Trial) (assay.Task, error) {
	t, _, err := l.put(ctx, trial.Task, trial.Difficulty, trial.Phrasing)
	return t, err
}

// put reads a task in the words of a phrasing, and its digest without the tools.
func (l *Library) put(
	ctx context.Context, id assay.TaskID, difficulty, name string,
) (t assay.Task, digest string, err error) {
	t, digest, err = l.read(ctx, id, difficulty)
	if err == nil && name != "" {
		var texts map[string]string
		if texts, err = l.textsOf(&t, name); err == nil {
			t.Description = texts[name]
			digest = t.Digest()
		}
	}
	t.Phrasings = nil // it shows one text
	return t, digest, err
}

// textsOf returns the other texts of a task by their phrasings. It returns an error if a phrasing is not
// among them.
func (l *Library) textsOf(t *assay.Task, name string) (map[string]string, error) {
	texts := l.allTexts(t)
	if texts[name] != "" {
		return texts, nil
	}
	no := &NoPhrasing{
		Message: fmt.Sprintf("task %s of %s has no phrasing %s", t.ID, l.Path(), name),
		Hint: fmt.Sprintf("add phrasings: {%s: the same task in these words} to the task, or leave the phrasing out",
			name),
	}
	switch _, version := l.grammar(); {
	case l.Own():
	case version != "":
		no.Message += ", because its tasks are of " + version
		no.Hint = "generate a library with this version of the program"
	default:
		no.Message += ", because no grammar of this program has made it"
		no.Hint = "use the built-in library, a generated one, or tasks of your own that have phrasings"
	}
	return nil, no
}

// allTexts returns the other texts of a task by their phrasings.
func (l *Library) allTexts(t *assay.Task) map[string]string {
	if l.Own() {
		return t.Phrasings
	}
	grammar, _ := l.grammar()
	if grammar == nil {
		return nil
	}
	texts, ok := l.texts.Get(t.ID)
	if !ok {
		texts = grammar(t.ID)
		l.texts.Add(t.ID, texts)
	}
	return texts[t.Description]
}

// A grammar returns the texts of a task, by its descriptions and then by their phrasings.
type grammar func(assay.TaskID) map[string]map[string]string

// findGrammar returns the grammar that has made the library's tasks. It returns nil if none has, and the
// name of a grammar of another version.
func (l *Library) findGrammar() (g grammar, other string) {
	if found := generatorText.FindStringSubmatch(l.meta.Source); found != nil {
		if found[1] != GeneratorVersion {
			return nil, "generator " + found[1]
		}
		return builtinGrammar(l.catalog), ""
	}
	version, seed := l.meta.Grammar()
	switch version {
	case "":
		return nil, ""
	case fresh.Version:
		return fresh.New(cmp.Or(l.meta.Key, seed)).Phrasings, ""
	}
	return nil, "grammar " + version
}

var (
	generatorText = regexp.MustCompile(`^generator (\S+?)(?:,|$)`)
	grammarText   = regexp.MustCompile(`^grammar (\S+), (?:a private seed|seed (\d+)), `)
)

// Grammar returns the version of the grammar that has drawn the library's tools, and the seed unless it
// is private. The version is "" if somebody else has made them.
func (m Meta) Grammar() (version, seed string) {
	found := grammarText.FindStringSubmatch(m.Source)
	if found == nil {
		return "", ""
	}
	return found[1], found[2]
}

func builtinGrammar(catalog *assay.Catalog) grammar {
	return func(id assay.TaskID) map[string]map[string]string {
		prefix, number, _ := strings.Cut(string(id), "-")
		ord := slices.IndexFunc(assay.TaskTypes, func(typ string) bool { return idPrefix(typ) == prefix })
		k, err := strconv.Atoi(number)
		if err != nil || ord < 0 || k < 1 || k > MaxTasksPerType {
			return nil
		}
		return builtinDraft(catalog, ord, assay.TaskTypes[ord], k-1).phrasings(k - 1)
	}
}

// phrasedTexts is how many tasks a library keeps the texts of. A task has ten kilobytes of them.
const phrasedTexts = 128
