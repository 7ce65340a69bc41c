// Package assay holds the nouns of Assay, an engine that measures how well language-model
// agents carry out tool workflows when their instructions are flawed and their tools fail.
//
// Data flows from a file to a number:
//
//	experiment.yaml → cells → trials, minus those that are done ⇒ pending trials
//	pending trial → attempt: one episode, a conversation of turns and tool calls
//	episode → Outcome (the model's doing) or Fault (somebody else's)
//	attempt → store, durable before it is counted → report, export, show
//
// A [Trial] is one planned, seeded execution of a [Task] in a [Cell]. Its ID is a hash of its
// content. An [Attempt] is one try at it. The first attempt that ends in an outcome settles
// the trial. If an attempt ends in a fault, the trial stays pending.
//
// The JSON names of the types are Assay's data contract: exports, events and stored transcripts use
// them. The package uses only the standard library, does no I/O and starts no goroutines. Every
// other package may import it, and it imports no other package of Assay.
package assay
