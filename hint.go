package assay

// A Hint is the code of what helps after an error. Package main words it, because it alone knows how
// the program is called.
type Hint string

// The hints.
const (
	HintBaseline    Hint = "baseline"     // give a store or JSON lines
	HintSides       Hint = "sides"        // compare other names, or file results under another one
	HintVerify      Hint = "verify"       // see what is damaged
	HintLostLibrary Hint = "lost_library" // see what is damaged, or store the tasks again
	HintLostText    Hint = "lost_text"    // store the text of the experiment again
	HintImportTasks Hint = "import_tasks" // how to make a library
	HintImportFile  Hint = "import_file"  // make a library of the file, which is the fact
	HintNewLibrary  Hint = "new_library"  // make a library
	HintNotResults  Hint = "not_results"  // make a library, not a store
)

// A HintedError is an error with a hint and the facts that its words name.
type HintedError struct {
	Err   error
	Hint  Hint
	Facts []any
}

// WithHint adds a hint to an error.
func WithHint(err error, hint Hint, facts ...any) error { return &HintedError{err, hint, facts} }

func (e *HintedError) Error() string { return e.Err.Error() }

func (e *HintedError) Unwrap() error { return e.Err }
