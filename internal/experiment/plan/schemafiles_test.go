package plan_test

import (
	"fmt"
	"strings"

	"github.com/assay-eval/assay/internal/experiment/plan"
)

// experimentFiles returns experiment files and whether they are valid.
func experimentFiles() map[string]bool {
	files := map[string]bool{
		string(plan.QuickstartFile):     true,
		"name: x\n":                     false,
		"models: []\n":                  false,
		"models: [a, a]\n":              false,
		"models: [' a']\n":              false,
		"models: ['']\n":                false,
		"models: a\n":                   false,
		"models: [org/a b:c]\n":         true,
		"models: [{name: a}, a@high]\n": true,
		"models: [{name: a, label: x, effort: max, thinking: 0, seed: -1, tool_choice: none, " +
			"temperature: 0, top_p: 1, max_tokens: 1, extra: {a: {b: [1]}}, headers: {X-A: b}}]\n": true,
		"models: [{name: a, effort: most}]\n": false, "models: [{label: x, effort: low}]\n": false,
		"models: [{name: a, label: x y, effort: low}]\n":           false,
		"models: [{name: a, thinking: -1}]\n":                      false,
		"models: [{name: a, thinking: 0.5}]\n":                     false,
		"models: [{name: a, seed: 0.5}]\n":                         false,
		"models: [{name: a, tool_choice: any}]\n":                  false,
		"models: [{name: a, label: x, extra: {tools: []}}]\n":      false,
		"models: [{name: a, label: x, extra: 1}]\n":                false,
		"models: [{name: a, label: x, headers: {X-API-Key: b}}]\n": false,
		"models: [{name: a, label: x, headers: {x-api-key: b}}]\n": false,
		"models: [{name: a, label: x, headers: {a: '${B}'}}]\n":    false,
		"models: [a]\nvarients: [x]\n":                             false,
	}
	for line, good := range map[string]bool{
		"name: a b": false, "name: a.b_c-1": true, "name: -a": false,
		"name: " + strings.Repeat("a", 100): true, "name: " + strings.Repeat("a", 101): false,
		"seed: -7": true, "seed: x": false, "seed: 1.5": false,
		"library: ../tasks.assay": true, "library: []": false,
		"variants: cot": true, "variants: [cot, cot]": false, "variants: [plain, optimal]": true,
		"variants: all": true,
		"variants: [logical, flawed_missing_step]": true, "variants: flawd": false,
		"variants: [flawed_]": false, "variants: {}": false,
		"variants: []": false, "task_types: []": false, "difficulties: []": false, "plan_authority: []": false,
		"severities: []": true, "severities: [severe]": false, "severities: severe": false,
		"variants: [cot, flawed]\nseverities: [light, all]":    true,
		"variants: operational\nseverities: light":             true,
		"variants: plain\nseverities: light":                   false,
		"variants: [flawed]\nseverities: [bad]":                false,
		"variants: [plain]\nseverities: []":                    true,
		"severities: all\nparts: [{name: x, variants: [all]}]": true,
		"parts: []": false, "parts: {}": false, "parts: [x]": false, "parts: [{}]": false,
		"parts: [{name: x}, {name: y-1.2}]": true, "parts: [{name: x y}]": false,
		"parts: [{name: x, models: [a, 'b*']}]": true, "parts: [{name: x, models: []}]": false,
		"parts: [{name: x, models: a}]":               false,
		"parts: [{name: x, models: ['']}, {name: y}]": false, "parts: [{name: x, seed: 1}]": false,
		"parts: [{name: x, world: pilot}]": false,
		"parts: [{name: x, variants: flawed, severities: [light], difficulties: hard_biased, " +
			"task_types: all, reliabilities: [1], tasks_per_type: all, repeats: 3}]": true,
		"parts: [{name: x, variants: [x]}]": false, "parts: [{name: x, severities: [x]}]": false,
		"parts: [{name: x, difficulties: x}]":   false,
		"parts: [{name: x, task_types: x}]":     false,
		"parts: [{name: x, reliabilities: []}]": false,
		"parts: [{name: x, tasks_per_type: 0}]": false,
		"parts: [{name: x, repeats: 0}]":        false, "parts: [{name: x, repeats: 10001}]": false,
		"parts: [{name: x, tasks_per_type: 1.5}]": false,
		"world: pilot": true, "world: assay-2": false, "protocol: tags": true,
		"protocol: xml":          false,
		"several_calls: execute": true, "several_calls: refuse": true, "several_calls: true": false,
		"failures: {}": true, "failures: {persistence: 0.3, burst: 0}": true,
		"failures: {kinds: {after: 0.25, before: 0.75}}": true,
		"failures: {kinds: {late: 1}}":                   false, "failures: {kinds: {}}": false,
		"failures: {kinds: after}": false, "failures: {kinds: {after: 1.5, before: -0.5}}": false,
		"failures: {burst: 1}": false, "failures: {persistence: -0.1}": false,
		"failures: 0.3": false, "failures: {bursts: 0.1}": false,
		"world: pilot\nfailures: {burst: 0.1}":   false,
		"world: assay-1\nfailures: {burst: 0.1}": true,
		"loops: {}":                              true,
		"loops: {repeat: {after: 2, then: stop}, search: off, ping_pong: {}, monologue: " +
			"{then: record}, error: {after: 200}}": true,
		"loops: off": false, "loops: {repeats: off}": false, "loops: {repeat: on}": false,
		"loops: {repeat: 3}": false, "loops: {repeat: {after: 1}}": false,
		"loops: {repeat: {after: 2.5}}": false, "loops: {repeat: {then: off}}": false,
		"loops: {repeat: {when: 3}}": false, "loops: [repeat]": false,
		"difficulties: hard": true, "difficulties: [easy, all]": true,
		"difficulties: harder": false, "difficulties: [medium_biased, easy]": true,
		"task_types: [data_pipeline]": true, "task_types: pipeline": false,
		"reliabilities: [0, 0.25, 1]": true, "reliabilities: []": false,
		"reliabilities: [80]":   false,
		"reliabilities: [-0.1]": false, "reliabilities: 0.8": false,
		"reliabilities: [0.8, 0.80]": false,
		"tasks_per_type: all":        true, "tasks_per_type: 1": true, "tasks_per_type: 0": false,
		"tasks_per_type: many": false,
		"repeats: 10000":       true, "repeats: 10001": false, "repeats: 0": false,
		"limits: {turns: 200}": true, "limits: {turns: 201}": false, "limits: {turns: 0}": false,
		"limits: {turn: 1}":    false,
		"limits: {calls: 199}": true, "limits: {calls: 201}": false, "limits: {calls: 0}": false,
		"limits: {request: 1h2m3.5s}": true, "limits: {request: .5s}": true,
		"limits: {request: 1.h}": true,
		"limits: {request: 150}": false, "limits: {request: 0s}": false,
		"limits: {request: -1s}": false,
		"limits: {trial: 10 m}":  false, "limits: {trial: 2d}": false,
		"limits: {trial: 300ms}": true, "limits: {trial: 7us}": true,
		"limits: {tokens: 1, usd: 0.01}": true, "limits: {tokens: 0}": false,
		"limits: {tokens: -1}":  false,
		"limits: {tokens: 1.5}": false, "limits: {tokens: all}": false, "limits: {usd: 0}": false,
		"limits: {usd: -0.5}": false, "limits: {usd: 2}": true,
		"budget: {}": true,
		"budget: {usd: 50, tokens: 20000000, per_model: {usd: 10, tokens: 5000000}, " +
			"per_cell: {tokens: 200000}}": true,
		"budget: {usd: 0}": false, "budget: {tokens: -1}": false, "budget: {tokens: 0.5}": false,
		"budget: 50": false, "budget: {eur: 1}": false,
		"budget: {per_model: {usd: -1}}": false, "budget: {per_model: {tokens: 0}}": false,
		"budget: {per_model: {tokens: 1.5}}": false,
		"budget: {per_cell: {usd: 0}}":       false, "budget: {per_cell: {tokens: 0}}": false,
		"budget: {per_cell: {per_model: {}}}": false,
		"budget: {Budget: {usd: 1}}":          false,
		"stop: {}":                            true, "stop: {hopeless: {}}": true,
		"stop: {hopeless: , malformed: }": true, "stop: {hopeles: {}}": false,
		"stop: {hopeless: {after: 5, below: 0.2, per: model}}": true,
		"stop: {malformed: {after: 5, above: 0.5, per: cell}}": true,
		"stop: {hopeless: {after: 4}}":                         false,
		"stop: {malformed: {after: 0}}":                        false,
		"stop: {malformed: {after: 5.5}}":                      false,
		"stop: {hopeless: {below: 0}}":                         false,
		"stop: {hopeless: {below: 1}}":                         false,
		"stop: {hopeless: {below: 2}}":                         false,
		"stop: {malformed: {above: 0}}":                        false, "stop: {malformed: {above: 1}}": false,
		"stop: {malformed: {above: -0.8}}": false,
		"stop: {hopeless: {above: 0.5}}":   false, "stop: {malformed: {below: 0.5}}": false,
		"stop: {hopeless: {per: run}}": false, "stop: {malformed: {per: cells}}": false,
		"stop: {hopeless: true}": false,
		"sampling: {}":           true, "sampling: {temperature: 2, top_p: 1, max_tokens: 1}": true,
		"sampling: {temperature: 2.1}": false, "sampling: {temperature: -1}": false,
		"sampling: {top_p: 0}": false, "sampling: {max_tokens: 0}": false,
		"sampling: {max_tokens: 1.5}": false,
		"sampling: {seed: 7, effort: low, thinking: 5, tool_choice: auto, extra: {a: 1}, " +
			"headers: {A: b}}": true,
		"sampling: {effort: lower}": false, "sampling: {label: x}": false,
		"providers: p.yaml": true, "providers: {}": false,
	} {
		files["models: [a]\n"+line+"\n"] = good
	}
	for n, good := range map[int]bool{100: true, 101: false} {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "  - name: p%d\n", i)
		}
		files["models: [a]\nparts:\n"+b.String()] = good
	}
	return files
}

// providersFiles returns providers files and whether they are valid.
func providersFiles() map[string]bool {
	files := map[string]bool{providersText: true, "providers: {}\n": false, "provider: {}\n": false}
	type change [2]string
	for good, changes := range map[bool][]change{
		true: {
			{"${GATEWAY_URL}", "${GATEWAY_URL}/more"},
			{"protocol: azure", "protocol: openai"},
			{"[KEY_0, KEY_1]", "[_K]"},
			{"rpm: 600", "rpm: 0"},
			{"rpm: 600", "itpm: 1000, otpm: 100, rpd: 5000"},
			{"concurrency: 5", "concurrency: 0"},
			{"{limits: {concurrency: 5, rpm: 600, tpm: 200000}}", ""},
			{"keys: [AZ]", "keys: [AZ]\n    headers: {X-Team: a, X-Key: '${GATEWAY_URL}'}"},
		},
		false: {
			{"${GATEWAY_URL}", "gateway.example.com"},
			{"${GATEWAY_URL}", "ftp://gateway.example.com"},
			{"${GATEWAY_URL}", "http:///v1"},
			{"protocol: azure", "protocol: Azure"},
			{"    api_version: 2025-04-01-preview\n", ""},
			{"[KEY_0, KEY_1]", "[]"},
			{"[KEY_0, KEY_1]", "[sk-abc]"},
			{"keys: [AZ]", "key: [AZ]"},
			{"rpm: 600", "rpm: -1"},
			{"rpm: 600", "rpm: 0.5"},
			{"rpm: 600", "rpx: 600"},
			{"rpm: 600", "itpm: -1"},
			{"rpm: 600", "otpm: -1"},
			{"rpm: 600", "rpd: -1"},
			{"rpm: 600", "rpd: 1.5"},
			{"concurrency: 5", "concurrency: -5"},
			{"tpm: 200000", "tpm: -1"},
			{"input: 0.27", "input: -0.27"},
			{"      m: {limits: {concurrency: 5, rpm: 600, tpm: 200000}}", "      {}"},
			{"deployments: [m-1, m-2]", "deployments: m-1"},
			{"keys: [AZ]", "keys: [AZ]\n    headers: [X]"},
			{"deployments: [m-1, m-2]", "headers: {X_Team: a}"},
		},
	} {
		for _, c := range changes {
			files[strings.Replace(providersText, c[0], c[1], 1)] = good
		}
	}
	for field, good := range map[string]bool{
		"sandbox: auto": true, "sandbox: bubblewrap": true, "sandbox: none": true, "sandbox: user": true, "sandbox: docker": false,
		"read: tools": true, "read: [/opt/agent, tools]": true, `read: [""]`: false,
		"network: open": true, "network: closed": true, "network: none": false,
		"limits: {memory: 500MB, disk: 4 GB, processes: 100}": true, "limits: {memory: 4}": false,
		"limits: {memory: 0GB}": false, "limits: {disk: 1TB}": false, "limits: {processes: -1}": false,
		"limits: {cores: 2}": false,
	} {
		files[providersText+"agents:\n  x:\n    command: [sh]\n    model: sim/careful\n    "+field+"\n"] = good
	}
	for way, good := range map[string]bool{
		"command: [sh]": true, "acp: [sh]": true, "preset: opencode-acp": true, "url: 'http://h/run'": true,
		"preset: emacs": false, "acp: []": false, "acp: [sh]\n    command: [sh]": false, "timeout: 1m": false,
		"acp: [sh]\n    next: [sh]": false,
	} {
		files[providersText+"agents:\n  x:\n    model: sim/careful\n    "+way+"\n"] = good
	}
	return files
}
