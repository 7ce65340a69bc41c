// Package library owns the tasks that agents are measured on and the tools that these tasks use:
// the thirty built-in tools, the generator of the built-in tasks with its five difficulties and
// three mixtures, the library file, and the import of JSON libraries from elsewhere.
//
// A library is one immutable SQLite file. [Create] writes it completely or not at all. [Open]
// takes milliseconds regardless of its size, because only the tools are held in memory: the
// planner lists the tasks with [Library.Refs], and an episode reads its task with [Library.Task].
//
// The folder data holds the built-in tools, scenarios and wordings; its README explains how to
// edit them. Some of their logic is code: draft.go derives names and numbers from a scenario, step.go
// computes the inputs and expected results of a step, and plain.go and goals.go arrange the phrases
// of a description.
//
// The package runs no tools. It does not know chance, prompts or scores.
package library
