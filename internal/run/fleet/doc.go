// Package fleet carries out attempts on other machines. A [Coordinator] belongs to the run: it
// offers attempts as assignments, and [Worker] programs take them, carry them out and send them
// back. Plan, lanes, keys and the store stay with the run: the requests of an attempt to its model
// are calls to the coordinator, which sends them through the lanes.
//
// # Who may work on an assignment
//
// The coordinator alone knows who holds an assignment. Each time a worker begins one, the
// coordinator gives out a new token, and only messages with the latest token count. A worker
// reports its assignments to the coordinator every second. Within a lease of the last word of a
// worker, the coordinator offers its assignments again. It may come back and go on as long as no
// other worker has begun them.
//
// The queue (JetStream) only has to bring an assignment to some worker sooner or later. It may
// deliver one twice, late, or never: the coordinator refuses unexpected messages, and offers
// assignments again that no worker holds.
//
// # Calls
//
// Every call can be repeated without harm, so a lost message is a call that is made again. A reply
// that takes long is asked for again every few seconds. An attempt is over for its worker when the
// coordinator confirms it, once the attempt is on disk.
//
// The run keeps the replies of a bare model. So a worker that begins an attempt again, after another
// one was lost, gets the same replies to the same requests at once, up to the turn that was in flight:
// see [Rewinder].
//
// This package does not know flags, lanes or the store. [Hub] and [Link] are the two ends of the
// network: [Exchange] and [Remote] over NATS, and a simulated one in tests.
package fleet
