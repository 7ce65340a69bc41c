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

// TestDescriptions holds what is true of every description.
func TestDescriptions(t *testing.T) {
	t.Parallel()
	catalog := assay.NewCatalog(library.Tools())
	bad := regexp.MustCompile(`(?i)[{}]|  |\b(unknown|unspecified|undefined|null|nil|n/a|tbd)\b|%!|[.,;:] ?[.,;]`)
	sentences := regexp.MustCompile(`^[A-Z].*[A-Za-z0-9]\.$`)
	texts := make(map[string]assay.TaskID) // by difficulty and text
	for _, task := range generated() {
		key := task.Difficulty + "\n" + task.Description
		if other, dup := texts[key]; dup {
			t.Errorf("%s and %s have one description at %s: %s", other, task.ID, task.Difficulty, task.Description)
		}
		texts[key] = task.ID
		if task.Wording != "" { // as at that difficulty
			continue
		}
		lower := strings.ToLower(task.Description)
		for _, name := range catalog.Names() {
			if strings.Contains(lower, name) || strings.Contains(lower, strings.ReplaceAll(name, "_", " ")) {
				t.Errorf("%s tells at %s the name of %s: %s", task.ID, task.Difficulty, name, task.Description)
			}
		}
		if found := bad.FindString(task.Description); found != "" {
			t.Errorf("%s has %q at %s: %s", task.ID, found, task.Difficulty, task.Description)
		}
		if n := len(strings.Fields(task.Description)); n < 5 || n > 200 {
			t.Errorf("%s has %d words at %s: %s", task.ID, n, task.Difficulty, task.Description)
		}
		if !sentences.MatchString(task.Description) {
			t.Errorf("%s is no sentence at %s: %s", task.ID, task.Difficulty, task.Description)
		}
	}
}

// TestPlainWordingsMentionTheirValues: very_easy and easy say what the inputs
// say, and very_easy has a sentence for every step, easy at most three.
func TestPlainWordingsMentionTheirValues(t *testing.T) {
	t.Parallel()
	keys := []string{
		"source", "input_format", "output_format", "archive", "gateway", "queue", "contract", "system",
		"destination", "pattern", "prefix", "group_by", "host",
	}
	for _, task := range generated() {
		if task.Wording != "" || task.Difficulty != "very_easy" && task.Difficulty != "easy" {
			continue
		}
		in, text := decode(t, task.Inputs), strings.ToLower(task.Description)
		for _, key := range keys {
			v, ok := in[key].(string)
			if ok && !strings.Contains(text, strings.ToLower(v)) {
				t.Errorf("%s does not mention its %s %s at %s: %s", task.ID, key, v, task.Difficulty, task.Description)
			}
		}
		n := len(regexp.MustCompile(`\. |\.$`).FindAllString(task.Description, -1))
		if task.Difficulty == "very_easy" && n != len(task.Required) || n > 3 && task.Difficulty == "easy" {
			t.Errorf("%s has %d sentences at %s: %s", task.ID, n, task.Difficulty, task.Description)
		}
	}
}

// keywords are the words by which a tool's operation is asked for directly.
// "reads" and "readings" are left out: they are things that tasks are about.
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

// asksFor returns the tools that a word is a keyword of.
func asksFor(word string) (tools []string) {
	for name, re := range keywords {
		if re.MatchString(word) {
			tools = append(tools, name)
		}
	}
	return tools
}

// TestKeywords: very_easy names the operation of every required tool, and from
// medium on no description names any.
func TestKeywords(t *testing.T) {
	t.Parallel()
	total, named := make(map[string]int), make(map[string]int)
	tools := make(map[string][]string) // by word
	for _, task := range generated() {
		if task.Wording != "" {
			continue
		}
		plain := task.Difficulty == "very_easy" || task.Difficulty == "easy"
		var asked []string
		for _, w := range strings.FieldsFunc(task.Description, func(r rune) bool { return !unicode.IsLetter(r) }) {
			if _, ok := tools[w]; !ok {
				tools[w] = asksFor(w)
			}
			if len(tools[w]) > 0 && !plain {
				t.Errorf("%s says %q at %s, which gives away %v: %s", task.ID, w, task.Difficulty, tools[w], task.Description)
			}
			asked = append(asked, tools[w]...)
		}
		for _, name := range task.Required {
			total[task.Difficulty]++
			if slices.Contains(asked, name) {
				named[task.Difficulty]++
			} else if task.Difficulty == "very_easy" {
				t.Errorf("%s does not say what %s does: %s", task.ID, name, task.Description)
			}
		}
	}
	for _, difficulty := range assay.Difficulties {
		t.Logf("%-10s %4d of %d required tools are asked for by their own word", difficulty, named[difficulty], total[difficulty])
	}
}

// TestClausesFindTheirTools guards what keyword agents live on at easy: a
// clause for each step, which put to a search mostly finds the tool that it
// asks for.
func TestClausesFindTheirTools(t *testing.T) {
	t.Parallel()
	search := world.NewSearch(assay.NewCatalog(library.Tools()))
	ends := regexp.MustCompile(`\. |; |, then `)
	hits, all := make(map[string]int), make(map[string]int)
	for task := range at("easy") {
		clauses := ends.Split(task.Description, -1)
		if len(clauses) != len(task.Required) {
			t.Errorf("%s has %d clauses for %d tools: %s", task.ID, len(clauses), len(task.Required), task.Description)
			continue
		}
		for i, c := range clauses {
			for _, key := range []string{"", task.Required[i]} {
				all[key]++
				if found := search.Tools(c); len(found) > 0 && found[0].Name == task.Required[i] {
					hits[key]++
				}
			}
		}
	}
	for key, n := range all {
		if least := map[bool]float64{true: .9, false: .5}[key == ""]; float64(hits[key]) < least*float64(n) {
			t.Errorf("%q: %d of %d clauses find their tool first", key, hits[key], n)
		}
	}
}

// clauseEnds is where agents take any description apart.
var clauseEnds = regexp.MustCompile(`[.;:]\s+|,\s+(?:and\s+)?|\s+(?:and|then)\s+|\.$`)

// TestSearchFindsLessAtHigherDifficulty puts the clauses of every description
// to the search of the worlds: how many of the required tools come first for
// one of them, or are among its results, falls from very_easy to very_hard.
func TestSearchFindsLessAtHigherDifficulty(t *testing.T) {
	t.Parallel()
	search := world.NewSearch(assay.NewCatalog(library.Tools()))
	type tally struct{ first, found, all int }
	sums := make(map[string]tally)
	for _, task := range generated() {
		if task.Wording != "" {
			continue
		}
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
	share := func(n, all int) float64 { return float64(n) / float64(all) }
	for _, typ := range append([]string{""}, assay.TaskTypes...) {
		first, found := 1.01, 1.01
		for _, difficulty := range assay.Difficulties {
			n := sums[strings.TrimSpace(difficulty+" "+typ)]
			t.Logf("%-20s %-10s %.3f come first, %.3f are found", typ, difficulty, share(n.first, n.all), share(n.found, n.all))
			if share(n.first, n.all) >= first || share(n.found, n.all) > found {
				t.Errorf("%s: a search finds more at %s than before", typ, difficulty)
			}
			first, found = share(n.first, n.all), share(n.found, n.all)
		}
	}
	if n := sums["easy"]; share(n.first, n.all) < .9 {
		t.Errorf("only %d of %d tools come first at easy", n.first, n.all)
	}
	if n := sums["very_hard"]; share(n.first, n.all) > .2 || n.first == 0 {
		t.Errorf("%d of %d tools come first at very_hard", n.first, n.all)
	}
}

// TestWords logs how long descriptions are.
func TestWords(t *testing.T) {
	t.Parallel()
	sum, n := make(map[string]int), make(map[string]int)
	for _, task := range generated() {
		for _, key := range []string{task.Difficulty, task.Difficulty + " " + task.Type} {
			sum[key] += len(strings.Fields(task.Description))
			n[key]++
		}
	}
	for _, typ := range append([]string{""}, assay.TaskTypes...) {
		for _, difficulty := range slices.Concat(assay.Difficulties, assay.Mixtures) {
			key := strings.TrimSpace(difficulty + " " + typ)
			t.Logf("%-20s %-13s %5.1f words", typ, difficulty, float64(sum[key])/float64(n[key]))
		}
	}
	if sum["very_easy"]/n["very_easy"] >= sum["easy"]/n["easy"] {
		t.Errorf("very_easy has %d words for %d tasks, easy %d", sum["very_easy"], n["very_easy"], sum["easy"])
	}
}

// TestInputsAreWhatTheTextsSay: whatever a description quotes, such as a path, a
// number or a format, stands in the inputs.
func TestInputsAreWhatTheTextsSay(t *testing.T) {
	t.Parallel()
	month := regexp.MustCompile(`(January|February|March|April|May|June|July|August|September|October|November|December) (20\d\d)`)
	format := regexp.MustCompile(`\b(CSV|JSON|XML|YAML)\b`)
	for _, task := range generated() {
		if task.Wording != "" { // as at that difficulty
			continue
		}
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
			if !strings.Contains(in, w) && !strings.Contains(in, fmt.Sprintf(`"ttl_seconds":%d`, 60*minutes)) {
				t.Errorf("%s says %q at %s, its inputs do not: %s\n%s", task.ID, w, task.Difficulty, task.Description, in)
			}
		}
	}
}
