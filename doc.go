// Package assay holds the nouns of Assay, an engine that measures how well
// language-model agents carry out tool workflows when instructions are flawed
// and tools fail.
//
// The walk of the data, from a file to a number:
//
//	experiment.yaml → cells → trials, minus those done in the store ⇒ pending
//	pending → attempts: one episode each, a conversation of turns and tool calls
//	episode → Outcome (what the model earned) or Fault (what it did not do)
//	attempt → store, durable before it is counted → report, export, show
//
// A [Trial] is one planned, seeded execution of a [Task] in a [Cell]; its
// identity is its content. An [Attempt] is one try at it. The first attempt
// that ends in an outcome settles the trial; a fault leaves it pending.
//
// The JSON names of the types here are Assay's data contract: exports, events
// and stored transcripts use them. The package needs only the standard
// library, does no I/O and starts no goroutine.
package assay
