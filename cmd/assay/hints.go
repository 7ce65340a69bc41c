package main

import (
	"errors"
	"fmt"

	"github.com/assay-eval/assay"
)

// hints words the hints of errors. Verbs stand for the facts.
var hints = map[assay.Hint]string{
	assay.HintBaseline: "name a store, or JSON lines: `assay export --output FILE.jsonl`",
	assay.HintSides: "`assay status` lists models, experiments and runs; run --revision NAME files " +
		"results under another name",
	assay.HintVerify: `"assay store verify" says more`,
	assay.HintLostLibrary: "`assay store verify` lists the damage; with the files, `assay run` stores " +
		"them again",
	assay.HintLostText:    "`assay run` with its file stores it again",
	assay.HintImportTasks: "`assay library import FILE --tools REGISTRY -o OUT.db`",
	assay.HintImportFile:  "import it with `assay library import %s --tools REGISTRY -o OUT.db`",
	assay.HintNewLibrary:  "create a library with `assay library import FILE --tools REGISTRY -o OUT.db`",
	assay.HintNotResults:  "a results store is not a library; create one with `assay library import`",
}

// worded returns the message of an error, with its hint.
func worded(err error) string {
	message := err.Error()
	if e, ok := errors.AsType[*assay.HintedError](err); ok {
		message += "\nhint: " + fmt.Sprintf(hints[e.Hint], e.Facts...)
	}
	return message
}
