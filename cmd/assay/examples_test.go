//go:build !race

package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/plan"
)

// unanswered returns the questions that an experiment raises and cannot answer: what flawed plans
// cost, without the right plan of the same authority under the same conditions, and what failing
// tools cost, if it compares reliabilities without tools that always work.
func unanswered(e *plan.Experiment) (questions []string) {
	has := func(variant, difficulty string, reliability float64) bool {
		return slices.ContainsFunc(e.EachFactors(), func(f plan.Factors) bool {
			return slices.Contains(f.Variants, variant) && slices.Contains(f.Difficulties, difficulty) &&
				slices.Contains(f.Reliabilities, reliability)
		})
	}
	for _, f := range e.EachFactors() {
		for _, difficulty := range f.Difficulties {
			for _, reliability := range f.Reliabilities {
				for _, variant := range f.Variants {
					_, flawed := assay.FlawOf(variant)
					_, authority := assay.PlainOf(variant)
					right := assay.WithAuthority(assay.Optimal, authority)
					if flawed && !has(right, difficulty, reliability) {
						questions = append(questions, fmt.Sprintf("what %s costs instead of %s at %s, reliability %g",
							variant, right, difficulty, reliability))
					}
					if len(f.Reliabilities) > 1 && reliability < 1 && !has(variant, difficulty, 1) {
						questions = append(questions, fmt.Sprintf("what tools cost at reliability %g instead of 1 with %s at %s",
							reliability, variant, difficulty))
					}
				}
			}
		}
	}
	return questions
}

// exampleExperiments returns all experiments that users copy: the quickstart, the suites, and those of
// the README, the pages, the examples and the help.
func exampleExperiments(t *testing.T) map[string]*plan.Experiment {
	t.Helper()
	all := map[string]*plan.Experiment{"quickstart": plan.Quickstart()}
	for _, name := range plan.Suites {
		e, err := plan.Suite(name)
		if err != nil {
			t.Fatal(err)
		}
		all["suite "+name] = e
	}
	add := func(name, text string) {
		if !strings.Contains(text, "models:") || strings.Contains(text, "base_url:") ||
			strings.Contains(text, "\nagents:") && !strings.Contains(text, "\nname:") {
			return // a providers file
		}
		e, err := plan.Load(file(t, t.TempDir(), "experiment.yaml", text), "m")
		if err == nil {
			all[name] = e
		}
	}
	err := filepath.WalkDir(repository, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if name := d.Name(); name == "testdata" || strings.HasPrefix(name, ".") && path != repository {
				return filepath.SkipDir
			}
			return nil
		}
		switch filepath.Ext(path) {
		case ".md":
			b, err := os.ReadFile(path)
			for i, text := range blocks(string(b), "yaml") {
				add(fmt.Sprintf("%s, block %d", path, i+1), text)
			}
			return err
		case ".yaml":
			b, err := os.ReadFile(path)
			add(path, string(b))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestExamplesAnswerTheirQuestions checks that whoever copies an example gets what it is about: what
// flaws cost compared with the right plan, and what failing tools cost compared with tools that work.
func TestExamplesAnswerTheirQuestions(t *testing.T) {
	t.Parallel()
	all := exampleExperiments(t)
	flawed, failing := 0, 0
	for name, e := range all {
		for _, q := range unanswered(e) {
			t.Errorf("%s does not say %s", name, q)
		}
		for _, f := range e.EachFactors() {
			if slices.ContainsFunc(f.Variants, func(v string) bool { _, ok := assay.FlawOf(v); return ok }) {
				flawed++
			}
			if len(f.Reliabilities) > 1 {
				failing++
			}
		}
	}
	if len(all) < 15 || flawed < 6 || failing < 6 {
		t.Errorf("found %d experiments, %d parts with flaws and %d with failing tools", len(all), flawed, failing)
	}
}

// A screen is what a reader of the quickstart's page sees at once.
const screenWide, screenHigh = 1280, 800

// TestQuickstartPage opens the report of the quickstart as a new user sees it: it has at most four
// screens, no backticks, and only commands that work wherever the file is; it says what its models
// do, and has no warning about itself. What is folded opens.
func TestQuickstartPage(t *testing.T) {
	t.Parallel()
	b := newTab(t)
	dir := t.TempDir()
	r := callAs(t, "go run ./cmd/assay", nil, "run", "--store", filepath.Join(dir, "assay.db"),
		"--sim-latency", "0")
	if r.code != 0 {
		t.Fatalf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
	page := filepath.Join(dir, quickstartReport)
	b.do("open", chromedp.EmulateViewport(screenWide, screenHigh), chromedp.Navigate("file://"+page),
		chromedp.WaitReady(chromedp.CSS(".chart .marks")))
	if high := eval[int](b, "document.documentElement.scrollHeight"); high > 4*screenHigh {
		t.Errorf("the page is %d pixels high, more than four screens", high)
	}
	if wide := eval[int](b, "document.documentElement.scrollWidth"); wide > screenWide {
		t.Errorf("the page is %d pixels wide", wide)
	}
	prose := eval[string](b, `(() => {
		const page = document.body.cloneNode(true);
		page.querySelectorAll("script, style, .episode ol").forEach((e) => e.remove());
		return page.textContent;
	})()`)
	for _, bad := range []string{"`", "go run"} {
		if at := strings.Index(prose, bad); at >= 0 {
			t.Errorf("the page says %q", prose[max(0, at-60):min(len(prose), at+60)])
		}
	}
	for _, m := range plan.Quickstart().Models {
		if does := plan.About(m); does == "" || !strings.Contains(prose, m+" "+does) {
			t.Errorf("the page does not say what %s does", m)
		}
	}
	if n := eval[int](b, `document.querySelectorAll(".warnings").length`); n > 0 {
		t.Error("the demonstration warns of itself")
	}
	closed := `Array.from(document.querySelectorAll("main .fold"), (f) => f.open).filter((open) => !open).length`
	before := eval[int](b, closed)
	// Charts that are still being drawn would move the link away from a mouse.
	b.do("a link", chromedp.Evaluate[chromedp.Void](`document.querySelector('.contents a[href="#section-by-variant"]').click()`),
		chromedp.Poll[chromedp.Void](fmt.Sprintf("%s === %d", closed, before-1)))
	if after := eval[int](b, closed); after != before-1 || before < 10 {
		t.Errorf("%d sections are closed, and %d after a link to one", before, after)
	}
	b.quiet("the quickstart's page")
}
