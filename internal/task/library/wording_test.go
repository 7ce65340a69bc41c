//go:build !race

// The tests of this file read many texts in one goroutine each, so the race detector is of no use.

package library_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/world"
)

// Descriptions are distinct sentences of reasonable length. They contain no tool names, unreplaced
// marks or placeholders.
func TestDescriptions(t *testing.T) {
	t.Parallel()
	catalog := assay.NewCatalog(library.Tools())
	bad := regexp.MustCompile(`(?i)[{}]|  |\b(unknown|unspecified|undefined|null|nil|n/a|tbd)\b` +
		`|%!|[.,;:] ?[.,;]`)
	sentences := regexp.MustCompile(`^[A-Z].*[A-Za-z0-9]\.$`)
	for task := range oncePerWording {
		where := fmt.Sprintf("%s at %s: %s", task.ID, task.Difficulty, task.Description)
		lower := strings.ToLower(task.Description)
		for _, name := range catalog.Names() {
			spaced := strings.ReplaceAll(name, "_", " ")
			if strings.Contains(lower, name) || strings.Contains(lower, spaced) {
				t.Errorf("the description contains the tool name %s: %s", name, where)
			}
		}
		if found := bad.FindString(task.Description); found != "" {
			t.Errorf("the description contains %q: %s", found, where)
		}
		if n := len(strings.Fields(task.Description)); n < 5 || n > 200 {
			t.Errorf("the description has %d words: %s", n, where)
		}
		if !sentences.MatchString(task.Description) {
			t.Errorf("the description is not a sentence: %s", where)
		}
	}

	texts := make(map[string]assay.TaskID) // by difficulty and description
	for _, task := range generated() {
		key := task.Difficulty + ": " + task.Description
		if other, dup := texts[key]; dup {
			t.Errorf("%s and %s have the same description at %s", other, task.ID, key)
		}
		texts[key] = task.ID
	}
}

// The difficulties very_easy and easy state the values of the inputs that the required tools have
// parameters for. Very_easy has one sentence per step, easy has at most three.
func TestPlainWordingsMentionTheirValues(t *testing.T) {
	t.Parallel()
	keys := []string{
		"source", "input_format", "output_format", "archive", "gateway", "queue", "contract",
		"system", "destination", "pattern", "prefix", "group_by", "host",
	}
	ends := regexp.MustCompile(`\. |\.$`)
	catalog := assay.NewCatalog(library.Tools())
	for task := range oncePerWording {
		if task.Difficulty != "very_easy" && task.Difficulty != "easy" {
			continue
		}
		where := fmt.Sprintf("%s at %s: %s", task.ID, task.Difficulty, task.Description)
		in, text := decode(t, task.Inputs), strings.ToLower(task.Description)
		for _, key := range keys {
			v, ok := in[key].(string)
			ok = ok && slices.ContainsFunc(task.Required, func(name string) bool {
				tool, _ := catalog.Tool(name)
				return slices.ContainsFunc(tool.Parameters, func(p assay.Parameter) bool {
					return p.Name == key && p.Required
				})
			})
			if ok && !strings.Contains(text, strings.ToLower(v)) {
				t.Errorf("the description lacks the %s %s: %s", key, v, where)
			}
		}
		n := len(ends.FindAllString(task.Description, -1))
		wrong := n > 3
		if task.Difficulty == "very_easy" {
			wrong = n != len(task.Required)
		}
		if wrong {
			t.Errorf("the description has %d sentences: %s", n, where)
		}
	}
}

// keywords match the words that ask for a tool's operation directly. They don't match "reads" and
// "readings", which are data in some scenarios.
var keywords = map[string]*regexp.Regexp{
	"file_operations_reader":      words(`read(|er|ers|ing)`),
	"file_operations_scanner":     words(`scan(|s|ned|ner|ning)`),
	"network_fetcher":             words(`fetch\w*`),
	"integration_authenticator":   words(`authenticat\w*`),
	"utility_logger":              words(`log(|s|ged|ger|ging)`),
	"data_processing_parser":      words(`pars(e|es|ed|er|ing)`),
	"data_processing_filter":      words(`filter\w*`),
	"file_operations_converter":   words(`conver(t|s)\w*`),
	"file_operations_compressor":  words(`compress\w*`),
	"network_monitor":             words(`monitor\w*`),
	"network_router":              words(`rout(e|es|ed|er|ing)`),
	"computation_predictor":       words(`predict\w*`),
	"computation_simulator":       words(`simulat\w*`),
	"computation_optimizer":       words(`optimi\w*`),
	"integration_mapper":          words(`map(|s|ped|per|ping)`),
	"integration_queue":           words(`queu\w*`),
	"integration_scheduler":       words(`schedul\w*`),
	"integration_connector":       words(`connect\w*`),
	"utility_cache":               words(`cach\w*`),
	"utility_tracker":             words(`track\w*`),
	"utility_helper":              words(`help(|s|ed|er|ing|ful)`),
	"data_processing_transformer": words(`transform\w*`),
	"data_processing_validator":   words(`validat\w*`),
	"data_processing_aggregator":  words(`aggregat\w*`),
	"network_validator":           words(`(validat|verif)\w*`),
	"network_poster":              words(`post(|s|ed|er|ing)`),
	"computation_analyzer":        words(`analy\w*`),
	"computation_calculator":      words(`calculat\w*`),
	"file_operations_writer":      words(`writ(e|es|er|ing|ten)|wrote`),
	"utility_notifier":            words(`notif\w*`),
}

func words(forms string) *regexp.Regexp { return regexp.MustCompile(`(?i)^(` + forms + `)$`) }

// asksFor returns the tools that have a word as a keyword.
func asksFor(word string) (tools []string) {
	for name, re := range keywords {
		if re.MatchString(word) {
			tools = append(tools, name)
		}
	}
	return tools
}

// Very_easy uses a keyword of every required tool. From medium on, no description uses any keyword.
func TestOnlyPlainWordingsUseKeywords(t *testing.T) {
	t.Parallel()
	total, named := make(map[string]int), make(map[string]int)
	tools := make(map[string][]string) // by word
	notLetter := func(r rune) bool { return !unicode.IsLetter(r) }
	for task := range oncePerWording {
		where := fmt.Sprintf("%s at %s: %s", task.ID, task.Difficulty, task.Description)
		plain := task.Difficulty == "very_easy" || task.Difficulty == "easy"
		var asked []string
		for _, w := range strings.FieldsFunc(task.Description, notLetter) {
			if _, ok := tools[w]; !ok {
				tools[w] = asksFor(w)
			}
			if len(tools[w]) > 0 && !plain {
				t.Errorf("the word %q reveals %v: %s", w, tools[w], where)
			}
			asked = append(asked, tools[w]...)
		}
		for _, name := range task.Required {
			total[task.Difficulty]++
			if slices.Contains(asked, name) {
				named[task.Difficulty]++
			} else if task.Difficulty == "very_easy" {
				t.Errorf("the description has no keyword of %s: %s", name, where)
			}
		}
	}
	for _, difficulty := range assay.Difficulties {
		t.Logf("%-10s has keywords of %4d of %d required tools",
			difficulty, named[difficulty], total[difficulty])
	}
}

// Keyword agents depend on this: at easy there is one clause per step, and searching for a clause
// mostly finds its tool first.
func TestClausesFindTheirTools(t *testing.T) {
	t.Parallel()
	search := world.NewSearch(assay.NewCatalog(library.Tools()))
	ends := regexp.MustCompile(`\. |; |, then `)
	const all = ""
	hits, total := make(map[string]int), make(map[string]int)
	for task := range at("easy") {
		clauses := ends.Split(task.Description, -1)
		if len(clauses) != len(task.Required) {
			t.Errorf("%s has %d clauses for %d tools: %s",
				task.ID, len(clauses), len(task.Required), task.Description)
			continue
		}
		for i, c := range clauses {
			for _, tool := range []string{all, task.Required[i]} {
				total[tool]++
				if found := search.Tools(c); len(found) > 0 && found[0].Name == task.Required[i] {
					hits[tool]++
				}
			}
		}
	}
	for tool, n := range total {
		least := .5
		if tool == all {
			least = .9
		}
		if float64(hits[tool]) < least*float64(n) {
			t.Errorf("%q: only %d of %d clauses find their tool first", tool, hits[tool], n)
		}
	}
}

// clauseEnds is where agents split any description.
var clauseEnds = regexp.MustCompile(`[.;:]\s+|,\s+(?:and\s+)?|\s+(?:and|then)\s+|\.$`)

// A tally counts required tools: those that a search finds first, those that it finds at all, and
// all of them.
type tally struct{ first, found, all int }

// share returns the shares of tools that come first and that are found.
func (n tally) share() (first, found float64) {
	return float64(n.first) / float64(n.all), float64(n.found) / float64(n.all)
}

// Searching for the clauses of a description finds fewer of the required tools at each higher
// difficulty.
func TestSearchFindsLessAtHigherDifficulty(t *testing.T) {
	t.Parallel()
	sums := searchResults()
	for _, typ := range append([]string{""}, assay.TaskTypes...) {
		lastFirst, lastFound := 1.01, 1.01
		for _, difficulty := range assay.Difficulties {
			first, found := sums[strings.TrimSpace(difficulty+" "+typ)].share()
			t.Logf("%-20s %-10s %.3f come first, %.3f are found", typ, difficulty, first, found)
			if first >= lastFirst || found > lastFound {
				t.Errorf("%s: a search finds more at %s than before", typ, difficulty)
			}
			lastFirst, lastFound = first, found
		}
	}
	if first, _ := sums["easy"].share(); first < .9 {
		t.Errorf("at easy only %.3f of the tools come first", first)
	}
	if first, _ := sums["very_hard"].share(); first > .25 || first == 0 {
		t.Errorf("at very_hard %.3f of the tools come first", first)
	}
}

// searchResults searches for the clauses of every description. It returns tallies by difficulty,
// and by difficulty and type.
func searchResults() map[string]tally {
	search := world.NewSearch(assay.NewCatalog(library.Tools()))
	sums := make(map[string]tally)
	for task := range oncePerWording {
		var first, found []string
		for _, clause := range clauseEnds.Split(task.Description, -1) {
			for i, tool := range search.Tools(clause) {
				if i == 0 {
					first = append(first, tool.Name)
				}
				found = append(found, tool.Name)
			}
		}
		for _, key := range []string{task.Difficulty, task.Difficulty + " " + task.Type} {
			n := sums[key]
			for _, name := range task.Required {
				n.all++
				if slices.Contains(first, name) {
					n.first++
				}
				if slices.Contains(found, name) {
					n.found++
				}
			}
			sums[key] = n
		}
	}
	return sums
}

// Whatever a description quotes, such as a path, a number or a format, occurs in the inputs.
func TestInputsAreWhatTheTextsSay(t *testing.T) {
	t.Parallel()
	month := regexp.MustCompile(`(January|February|March|April|May|June|July|August|` +
		`September|October|November|December) (20\d\d)`)
	format := regexp.MustCompile(`\b(CSV|JSON|XML|YAML)\b`)
	for task := range oncePerWording {
		var quoted []string
		for _, w := range strings.Fields(month.ReplaceAllString(task.Description, "")) {
			if w = strings.Trim(w, ".,;:"); strings.ContainsAny(w, "0123456789/#:") {
				quoted = append(quoted, w)
			}
		}
		for _, f := range format.FindAllString(task.Description, -1) {
			quoted = append(quoted, strings.ToLower(f))
		}
		in := string(task.Inputs)
		for _, w := range quoted {
			minutes, _ := strconv.Atoi(w)
			ttl := fmt.Sprintf(`"ttl_seconds":%d`, 60*minutes)
			if !strings.Contains(in, w) && !strings.Contains(in, ttl) {
				t.Errorf("%s at %s: the inputs lack %q: %s\n%s",
					task.ID, task.Difficulty, w, task.Description, in)
			}
		}
	}
}

// A larger library starts with the tasks of a smaller one, and descriptions stay distinct.
func TestGenerateNExtendsTheBuiltinTasks(t *testing.T) {
	t.Parallel()
	builtin := make(map[string]assay.Task)
	for _, task := range generated() {
		if task.Wording == "" {
			builtin[string(task.ID)+task.Difficulty] = task
		}
	}
	for _, n := range []int{1, 43, library.MaxTasksPerType} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			tasks, err := library.GenerateN(n)
			if err != nil {
				t.Fatal(err)
			}
			total, same := 0, 0
			texts := make(map[string]assay.TaskID)
			for task := range tasks {
				total++
				if n > library.TasksPerType && task.Wording != "" {
					continue
				}
				key := task.Difficulty + "\n" + task.Description
				if other, dup := texts[key]; dup {
					t.Errorf("%s and %s have the same description at %s", other, task.ID, key)
				}
				texts[key] = task.ID
				if want, ok := builtin[string(task.ID)+task.Difficulty]; ok {
					same++
					if task.Digest() != want.Digest() {
						t.Errorf("%s at %s is not the built-in task", task.ID, task.Difficulty)
					}
				}
			}
			if want := 25 * min(n, library.TasksPerType); total != 40*n || same != want {
				t.Errorf("got %d tasks, %d of them built-in, want %d and %d",
					total, same, 40*n, want)
			}
		})
	}
}
