package document_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/assay-eval/assay/internal/result/document"
)

// sample returns a document with every feature: a chart of each kind, tables with and without
// signs, warnings, facts and episodes.
func sample() *document.Document {
	return &document.Document{
		Title: "Eight models, five plans, one benchmark",
		Summary: []document.Point{
			{
				Label: "Best",
				Text:  "claude-sonnet-4 with its plan fully succeeds in 68 % of 900 trials.",
			},
			{
				Label: "More than chance?",
				Text:  "Yes: it scored 6.8 points higher than gpt-4o (q < .001).",
			},
		},
		Lead: "7,200 of 7,200 trials are done. Models differ most where the plan they are given is wrong, and none comes close to the best that luck allows.",
		Warnings: []document.Warning{
			{
				Title: "Two models are served by the same weights",
				Text:  "qwen-max and qwen-max-latest gave the same answer, to the letter, in 812 of 900 trials at temperature 0.7. Independent models agree in about 40. Compare the served model in the provider's console before you compare their figures.",
				Where: []string{"qwen-max", "qwen-max-latest"},
			},
			{
				Title: "A cell is at the floor",
				Text:  "No trial of 60 succeeded, and 57 ended without a tool call. That is how a wrong protocol looks.\nRead one of its transcripts.",
				Where: []string{"llama-3.1-8b · flawed_tool_misuse · 0.6"},
			},
		},
		Sections: []document.Section{
			{
				ID: "success", Title: "Who succeeds", Lead: "The share of trials that end in full success, over all variants, with its 95 % interval.",
				Chart: &document.Chart{
					Text: "A bar for each model: claude-sonnet-4 leads with 68 %, llama-3.1-8b is last with 12 %. Lines are 95 % intervals.",
					Spec: spec(barSpec(8)),
				},
				Table: successTable(), Notes: []string{"Intervals are Wilson's and take trials as independent.", "A fault is never a failure: it is not counted."},
			},
			{
				ID: "reliability", Title: "When tools fail", Lead: "Full success as tools become less reliable. The dashed line is the best that any agent could do.",
				Chart: &document.Chart{
					Text: "All models fall with reliability, in parallel to the ceiling, which falls from 100 % to 54 %.",
					Spec: spec(lineSpec()),
				},
			},
			{
				ID: "flaws", Title: "What a wrong plan costs", Lead: "Percentage points against the same tasks with the right plan.",
				Chart: &document.Chart{
					Text: "A heat map of models and flaws. Missing steps cost most, up to 31 points; redundant operations nearly nothing.",
					Spec: spec(heatSpec()),
				},
				Table: flawTable(),
			},
			{
				ID: "turns", Title: "How long episodes are",
				Chart: &document.Chart{
					Text: "Most episodes take 4 to 6 turns; a second hump at 10 is the turn limit.",
					Spec: spec(histogramSpec()),
				},
				Notes: []string{"The limit is 10 turns."},
			},
			{
				ID: "cost", Title: "What success costs", Lead: "A model further up for the same money is the better buy.",
				Chart: &document.Chart{
					Text: "Cost per trial from 0.0004 to 0.09 dollars against success from 12 to 68 %.",
					Spec: spec(scatterSpec()),
				},
			},
			{
				ID: "series", Title: "Fourteen at once",
				Chart: &document.Chart{
					Text: "Fourteen lines, to see that their colours differ.",
					Spec: spec(manySpec(14)),
				},
			},
			{
				ID: "left-out", Title: "What was left out",
				Lead: "Nothing was left out.\nEvery flaw applies to every task of this suite.",
			},
		},
		Facts: []document.Fact{
			{"Assay", "0.9.0"},
			{"Experiment", "five-plans.yaml, seed 42, world assay-1"},
			{"Store", "five-plans.db, snapshot sha256:9f2c…41aa"},
			{"Command", "assay report five-plans.yaml --format html"},
		},
		Episodes: []document.Episode{
			{
				ID: "a3f9", Title: "a3f9: llama-3.1-8b, flawed_tool_misuse, reliability 0.6", Lead: "It named a tool that is not in the library, twice, and gave up.",
				Steps: []document.Step{
					{"system", "You are an agent that uses tools. Finish with <done/>."},
					{
						"user",
						"Read the sales file, filter the rows of March and write a summary.\n\nPlan:\n1. file_reader\n2. data_filter\n3. report_writer",
					},
					{
						"assistant",
						"I will read the file first:\n```json\n{\"tool\": \"file_raeder\", \"path\": \"sales.csv\"}\n```\nThen I filter.",
					},
					{"", "The tool is not in the library: a correction."},
					{
						"tool",
						`{"error": "UNKNOWN_TOOL", "message": "there is no tool file_raeder", "detail": "` + strings.Repeat(
							"0123456789abcdef",
							20,
						) + `"}`,
					},
					{"assistant", "I cannot go on."},
				},
			},
			{
				ID:    "77b0",
				Title: "77b0: gpt-4o-mini, optimal, reliability 0.9",
				Lead:  "Full success in three turns.",
				Steps: []document.Step{
					{"user", "Sort the list."},
					{"assistant", "<tool_call>{\"name\": \"sorter\"}</tool_call>"},
					{"tool", "sorted"},
					{"assistant", "Done."},
				},
			},
		},
	}
}

var models = []string{
	"claude-sonnet-4",
	"gpt-4o",
	"qwen-max",
	"qwen-max-latest",
	"gemini-2.5-flash",
	"deepseek-v3",
	"gpt-4o-mini",
	"llama-3.1-8b",
}

func rate(i int) float64 { return []float64{68.2, 61.4, 57.8, 57.1, 49.3, 44.9, 31.6, 12.2}[i%8] }

func number(v float64) *float64 { return &v }

func spec(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

func successTable() *document.Table {
	t := &document.Table{Columns: []document.Column{
		{Head: "Model", Names: true},
		{Head: "Done"},
		{Head: "Full success", Hint: "Every required tool worked, in the right order."},
		{Head: "95 % interval"},
		{
			Head: "Best possible",
			Hint: "What an agent that always does the best thing would reach with this luck.",
		},
		{Head: "Of best"},
		{Head: "Partial success"},
		{Head: "Turns"},
		{Head: "Cost, $"},
		{Head: "Worst episode", Names: true},
	}}
	for i, m := range models {
		row := []document.Cell{
			{Text: m},
			{Text: "900/900", Value: number(900)},
			{
				Text:  fmt.Sprintf("%.1f %%", rate(i)),
				Value: number(rate(i)),
				Note:  fmt.Sprintf("%.0f–%.0f", rate(i)-3.2, rate(i)+3.1),
				Hint: fmt.Sprintf(
					"95 %% interval %.1f – %.1f %%, n = 900", rate(i)-3.2, rate(i)+3.1,
				),
			},
			{
				Text:  fmt.Sprintf("%.1f – %.1f", rate(i)-3.2, rate(i)+3.1),
				Value: number(rate(i) - 3.2),
			},
			{Text: "79.4 %", Value: number(79.4)},
			{Text: fmt.Sprintf("%.1f %%", rate(i)/.794), Value: number(rate(i) / .794)},
			{Text: fmt.Sprintf("%.1f %%", 30-rate(i)/4), Value: number(30 - rate(i)/4)},
			{Text: fmt.Sprintf("%.1f", 9-rate(i)/15), Value: number(9 - rate(i)/15)},
			{Text: fmt.Sprintf("%.2f", cost(i)*900), Value: number(cost(i) * 900)},
			{Text: "–"},
		}
		switch i {
		case 0:
			row[2].Tone = document.Good
		case 6:
			row[9] = document.Cell{Text: "77b0", Episode: "77b0"}
		case 7:
			row[2].Tone = document.Bad
			row[8] = document.Cell{
				Text: "0.36", Value: number(.36), Tone: document.Muted,
				Hint: "the provider told of no prices",
			}
			row[9] = document.Cell{Text: "a3f9", Episode: "a3f9"}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

var flaws = []string{
	"missing step",
	"parameter error",
	"sequence disorder",
	"tool misuse",
	"redundant operations",
	"logical inconsistency",
	"semantic drift",
}

func flawCost(m, f int) float64 {
	return math.Round(10*(6-[]float64{31, 12, 17, 21, 3, 14, 9}[f]*(0.45+float64(m)*0.08))) / 10
}

func flawTable() *document.Table {
	t := &document.Table{
		Columns: []document.Column{{Head: "Model", Names: true}, {Head: "Difficulty", Names: true}},
	}
	for _, f := range flaws {
		t.Columns = append(t.Columns, document.Column{Head: strings.ToUpper(f[:1]) + f[1:]})
	}
	t.Columns = append(
		t.Columns, document.Column{Head: "Mean of flaws"},
		document.Column{Head: "Remark", Names: true},
	)
	for i, m := range models[:4] {
		row := []document.Cell{{Text: m}, {Text: "hard"}}
		sum := 0.0
		for f := range flaws {
			v := flawCost(i, f)
			c := document.Cell{Text: signed(v), Value: number(v)}
			switch {
			case v < -12:
				c.Tone = document.Bad
			case v > 3:
				c.Tone = document.Good
			case f == 6:
				c.Tone = document.Muted
			}
			sum += v
			row = append(row, c)
		}
		row = append(
			row, document.Cell{Text: signed(sum / 7), Value: number(sum / 7)},
			document.Cell{Text: []string{"steady", "", "see the warning", "see the warning"}[i]},
		)
		t.Rows = append(t.Rows, row)
	}
	return t
}

func signed(v float64) string { return strings.Replace(fmt.Sprintf("%+.1f", v), "-", "−", 1) }

func cost(i int) float64 {
	return []float64{.09, .041, .022, .021, .0061, .0043, .0012, .0004}[i%8]
}

type m = map[string]any
