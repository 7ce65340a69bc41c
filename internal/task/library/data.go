package library

import (
	"embed"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/yamldoc"
)

//go:embed data/*.yaml
var dataFiles embed.FS

// The content of the data folder. Callers must not change it.
var (
	toolData      = yamldoc.Embedded[toolset](dataFiles, "data/tools.yaml")
	scenarios     = yamldoc.Embedded[[]scenario](dataFiles, "data/scenarios.yaml")
	steps         = yamldoc.Embedded[map[string]toolStep](dataFiles, "data/steps.yaml")
	chains        = yamldoc.Embedded[map[string][]string](dataFiles, "data/chains.yaml")
	veryEasyWords = yamldoc.Embedded[veryEasyWording](dataFiles, "data/very_easy.yaml")
	easyWords     = yamldoc.Embedded[easyWording](dataFiles, "data/easy.yaml")
	mediumWords   = yamldoc.Embedded[mediumWording](dataFiles, "data/medium.yaml")
	hardWords     = yamldoc.Embedded[hardWording](dataFiles, "data/hard.yaml")
	veryHardWords = yamldoc.Embedded[veryHardWording](dataFiles, "data/very_hard.yaml")
)

// phrasedWords has the words of the other phrasings.
var phrasedWords = yamldoc.Embedded[phrasedWording](dataFiles, "data/phrasings.yaml")

// A toolset is the content of tools.yaml, which explains the fields.
type toolset struct {
	Success    string
	Errors     []assay.ToolError
	Categories map[string]category
	Tools      []toolSpec
}

// A category holds the parameters and errors that its tools share.
type category struct {
	Parameters []assay.Parameter
	Errors     []assay.ToolError
}

// A toolSpec distinguishes a built-in tool from the others of its category.
type toolSpec struct {
	Category, Operation, Description string

	Parameters   []assay.Parameter
	Effect       string // see [assay.Tool]
	Options      string // describes the parameter "options"
	Returns      []assay.Return
	Metadata     string // describes the result "metadata"
	Failed       string // describes the error OPERATION_FAILED
	Dependencies []string
}

// A scenario is the subject of a built-in task; scenarios.yaml explains the fields.
type scenario struct {
	Slug, Things, Key, Prefix string

	Label     string
	Values    []string
	Measure   string
	Low, High int

	Team, System string
}

type (
	// plainSteps holds the wordings of each step by its verb.
	plainSteps map[string][]string

	// goalSteps holds the purposes of each step by its verb.
	goalSteps map[string]struct {
		// Goals complete "the team would like to …" and contain {things}.
		Goals []string
		// States complete "once …". They are absent if the step always comes last.
		States []string
	}
)

type (
	phrasedWording struct {
		Reordered struct {
			Last, Before, First, Only []string

			Sole string
			// For stands for an opening that names the team.
			For      string
			Hard     hardFrames
			Purposes []string
			VeryHard []string `yaml:"very_hard"`
		}
		Casual struct {
			First, Next, Last, Only, Tails []string
			For                            string
			HardOpenings                   []string `yaml:"hard_openings"`
			Hard                           hardFrames
			VeryHardOpenings               []string `yaml:"very_hard_openings"`
			VeryHard                       []string `yaml:"very_hard"`
			More                           []string
		}
	}
	veryEasyWording struct {
		Steps plainSteps
	}
	easyWording struct {
		Opening             string
		Joints              []string
		Halfway, Next, Last string
		Steps               plainSteps
	}
	mediumWording struct {
		Openings, Joints, Next, Last, Closings []string
		Steps                                  plainSteps
	}
	hardWording struct {
		Openings, Asides []string

		Frames hardFrames `yaml:",inline"`
		Steps  goalSteps
	}
	// hardFrames put one or two states into a sentence.
	hardFrames struct {
		Alone, First, Next []string

		FirstPair []string `yaml:"first_pair"`
		NextPair  []string `yaml:"next_pair"`
	}
	veryHardWording struct {
		Openings, First, More, Closings []string
		Steps                           goalSteps
	}
)
