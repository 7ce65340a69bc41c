package assay

import (
	"errors"
	"path/filepath"
	"strings"
	"unicode"
)

// A Hint is the code of what helps after an error. Package main words it, because it alone knows how
// the program is called.
type Hint string

// The hints.
const (
	HintReport      Hint = "report"       // what writes a report in JSON
	HintOwnLibrary  Hint = "own_library"  // see an example of a library with own tools
	HintBaseline    Hint = "baseline"     // give a store or JSON lines
	HintExportSide  Hint = "export_side"  // export the side, which is the fact, alone
	HintSides       Hint = "sides"        // compare other names, or file results under another one
	HintVerify      Hint = "verify"       // see what is damaged
	HintLostLibrary Hint = "lost_library" // see what is damaged, or store the tasks again
	HintLostText    Hint = "lost_text"    // store the text of the experiment again
	HintImportTasks Hint = "import_tasks" // how to make a library
	HintImportFile  Hint = "import_file"  // make a library of the file, which is the fact
	HintNewLibrary  Hint = "new_library"  // make a library
	HintNotResults  Hint = "not_results"  // make a library, not a store

	HintRescue   Hint = "rescue"    // a store is damaged: list that, read the rest, or copy it
	HintLoss     Hint = "loss"      // list the damage, or copy the intact rows
	HintRecover  Hint = "recover"   // a backup, or the intact rows
	HintForeign  Hint = "foreign"   // like HintRecover, after another program changed the file
	HintShell    Hint = "shell"     // collect rows that SQLite cannot read; the path is a fact, too
	HintPerhaps  Hint = "perhaps"   // like HintShell, if it is a damaged store
	HintNoRuns   Hint = "no_runs"   // a backup, or like HintShell
	HintRollBack Hint = "roll_back" // an interrupted write
	HintOlder    Hint = "older"     // read it with the version that wrote it, which is a fact
	HintNoStore  Hint = "no_store"  // make a store, or name another
	HintTrials   Hint = "trials"    // list the trials of a store
	HintRescore  Hint = "rescore"   // judge again
	HintDelete   Hint = "delete"    // a backup, or delete the attempt

	HintShow     Hint = "show"      // show the trial
	HintFork     Hint = "fork"      // play forks of the experiment, which is the fact
	HintAgent    Hint = "agent"     // show what an agent prints, and try it again
	HintWorkers  Hint = "workers"   // start workers
	HintServe    Hint = "serve"     // let workers carry out attempts
	HintOrder    Hint = "order"     // an order to the run, which is the fact
	HintLanes    Hint = "lanes"     // list lanes, models and workers
	HintTrialIDs Hint = "trial_ids" // how to name a trial
	HintControl  Hint = "control"   // pages that can act
	HintToken    Hint = "token"     // the address with the token

	HintQuickstart Hint = "quickstart" // run without a file
	HintExample    Hint = "example"    // show an example of a file
	HintLevels     Hint = "levels"     // list the types and difficulties of a library
	HintNewTasks   Hint = "new_tasks"  // write an example of tasks
	HintCheckPath  Hint = "check_path" // like HintNewTasks, if the path is right
	HintTryTool    Hint = "try_tool"   // try a tool
)

// A StorePath is the store that an error is about. As a fact, it stands for the flag that names the
// store, unless that is the default one.
type StorePath string

// DefaultStore is the store of commands without --store.
const DefaultStore = "assay.db"

// Option returns the flag that names the store, after a space, unless that is the default one.
func (p StorePath) Option() string {
	path := string(p)
	if abs, err := filepath.Abs(DefaultStore); path == "" || path == DefaultStore || err == nil && path == abs {
		return ""
	}
	return " --store " + ShellWord(path)
}

// ShellWord quotes an argument of a command if a shell would take it for something else.
func ShellWord(w string) string {
	special := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_./:@=,+%", r)
	}
	if !strings.ContainsFunc(w, special) {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}

// Words returns the words of a hint with some facts, or "" for a code that it does not know. If it is
// nil, codes stand for themselves.
type Words func(hint Hint, facts ...any) string

// Hint returns the words of a hint.
func (w Words) Hint(hint Hint, facts ...any) string {
	if w == nil {
		return string(hint)
	}
	return w(hint, facts...)
}

// Of returns the message of an error, with the words of its hint.
func (w Words) Of(err error) string {
	message := err.Error()
	if e, ok := errors.AsType[*HintedError](err); ok {
		before := "\nhint: "
		if strings.Contains(message, before) {
			before = "; "
		}
		message += before + w.Hint(e.Hint, e.Facts...)
	}
	return message
}

// A HintedError is an error with a hint and the facts that its words name.
type HintedError struct {
	Err   error
	Hint  Hint
	Facts []any
}

// WithHint adds a hint to an error, unless the code is empty.
func WithHint(err error, hint Hint, facts ...any) error {
	if hint == "" {
		return err
	}
	return &HintedError{err, hint, facts}
}

func (e *HintedError) Error() string { return e.Err.Error() }

func (e *HintedError) Unwrap() error { return e.Err }
