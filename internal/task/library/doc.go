// Package library owns the tasks that agents are measured on and the tools
// that these tasks are made of: the thirty built-in tools, the generator of
// the built-in tasks in their five wordings and three mixtures, the library
// file, and the import of foreign JSON libraries.
//
// A library is one immutable SQLite file. It is written whole or not at all
// (see [Create]), opened in milliseconds however large it is, and read task by
// task: [Library.Refs] tells the planner which tasks there are, [Library.Task]
// reads one when an episode needs it. Only the tools are held in memory.
//
// The package runs no tool and knows nothing of luck, prompts or scores.
package library
