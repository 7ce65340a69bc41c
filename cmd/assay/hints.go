package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
)

// collectRows is for a damaged store whose path is the second fact.
const collectRows = `"sqlite3 %[2]s .recover | sqlite3 found.db" collects more rows, and ` +
	`"assay store recover --store found.db NEW" proves them`

// copyIntact is advice for a damaged store.
const copyIntact = `go back to a backup, or copy the intact rows with "assay store recover%[1]s"`

// hints words the hints of errors. Verbs stand for the facts; the first one of a store is the flag
// that names it.
var hints = map[assay.Hint]string{
	assay.HintBaseline:   "name a store, or JSON lines: `assay export --output FILE.jsonl`",
	assay.HintExportSide: "export it alone: `assay export --where model=%s --output FILE.jsonl`",
	assay.HintSides: "`assay status` lists models, experiments and runs; run --revision NAME files " +
		"results under another name",
	assay.HintReport:     "`assay report --json` writes a report, and a published site has one as report.json",
	assay.HintOwnLibrary: "`assay init` writes an example of such a library",
	assay.HintVerify:     `"assay store verify" says more`,
	assay.HintLostLibrary: "`assay store verify` lists the damage; with the files, `assay run` stores " +
		"them again",
	assay.HintLostText:    "`assay run` with its file stores it again",
	assay.HintImportTasks: "`assay library import FILE --tools REGISTRY -o OUT.db`",
	assay.HintImportFile:  "import it with `assay library import %s --tools REGISTRY -o OUT.db`",
	assay.HintNewLibrary:  "create a library with `assay library import FILE --tools REGISTRY -o OUT.db`",
	assay.HintRescue: `nothing was changed; "assay store verify%[1]s" lists the damage, ` +
		`"assay export%[1]s" reads the intact rows, "assay store recover%[1]s" copies them to a new store`,
	assay.HintLoss: `"assay store verify%[1]s" lists the damage, "assay store recover%[1]s" copies the ` +
		`intact rows`,
	assay.HintRecover: copyIntact,
	assay.HintForeign: "the file was changed by another program; " + copyIntact,
	assay.HintShell:   collectRows,
	assay.HintPerhaps: "if it is a damaged store, " + collectRows,
	assay.HintNoRuns:  "go back to a backup; " + collectRows,
	assay.HintRollBack: `its -journal file belongs to an interrupted write, or to another store: ` +
		`"assay run%[1]s" rolls back the write; if it belongs to another store, move it away`,
	assay.HintOlder: `nothing is lost: read it with %[2]s, or begin a new one with --store another.db; ` +
		`if this version wrote it, its header is damaged, and "assay store recover%[1]s" copies its rows`,
	assay.HintNoStore: `"assay run%[1]s" creates it; to use another one, give --store`,
	assay.HintTrials:  `"assay export%[1]s" lists the trials that were tried`,
	assay.HintRescore: `"assay store rescore%[1]s" judges it again`,
	assay.HintDelete: "it does not come from that run; go back to a backup, or delete it with " +
		`"assay store delete%[1]s"`,
	assay.HintShow:       "`assay show%[1]s` shows them",
	assay.HintFork:       "`assay fork %[1]s` plays some",
	assay.HintAgent:      "`assay check` shows what the agent prints; correct it, and `assay run` tries it again",
	assay.HintWorkers:    "start assay worker as the run says",
	assay.HintServe:      "`assay run --serve` lets workers carry out its attempts",
	assay.HintOrder:      "assay ctl %s%s",
	assay.HintLanes:      "`assay ctl status%[1]s` lists them",
	assay.HintTrialIDs:   "a trial is named by the first 4 letters of its ID, or more, as `assay export%[1]s` lists them",
	assay.HintControl:    "start `assay view` with --control to act",
	assay.HintToken:      "open the address that `assay view` printed last",
	assay.HintQuickstart: "`assay run` without a file runs the built-in quickstart",
	assay.HintExample:    "`assay run --help` has an example",
	assay.HintLevels:     "`assay library inspect` lists the types and difficulties it has",
	assay.HintNewTasks:   "`assay init` writes an example",
	assay.HintCheckPath:  "check the path; `assay init` writes an example",
	assay.HintTryTool:    "`assay library call` tries a tool",
	assay.HintNotResults: "a results store is not a library; create one with `assay library import`",
}

// validateCommand shows why tasks of the library that follows are unsound.
const validateCommand = "assay library validate "

// words implements [assay.Words].
func words(hint assay.Hint, facts ...any) string {
	text := hints[hint]
	if !strings.Contains(text, "%") {
		return text
	}
	all := slices.Clone(facts)
	for i, fact := range all {
		if path, ok := fact.(assay.StorePath); ok {
			all[i] = path.Option()
		}
	}
	return fmt.Sprintf(text, all...)
}
