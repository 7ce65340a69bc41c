package fleet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/bridge"
)

// The calls of workers.
const (
	callHello  = "hello"  // a worker introduces itself
	callBeat   = "beat"   // it lives, and works on these assignments
	callBye    = "bye"    // it goes
	callBegin  = "begin"  // it has got an assignment from the queue
	callChat   = "chat"   // a request of an attempt to its model
	callResult = "result" // an attempt has ended
)

var calls = []string{callHello, callBeat, callBye, callBegin, callChat, callResult}

// A Job describes a run to its workers.
type Job struct {
	Experiment string
	// Run identifies the run. Workers begin anew when a different run answers.
	Run assay.RunID
	// Budget is the working time of an attempt; see episode.NewRunner.
	Budget time.Duration
	Tools  []assay.Tool
	Script assay.Script
	Server *assay.MCPServer
	// Variables names the environment variables that agents and servers get from the machine on
	// which they start, and that are set where the run is.
	Variables []string
	// Agents has the foreign agents by listed model. Other models are bare.
	Agents map[string]bridge.Agent
	// User is true if a model speaks as the user of an environment.
	User bool
}

type hello struct {
	Worker  string // unique
	Name    string // as its user calls it
	Program string
	Slots   int
}

type welcome struct {
	// Refused is the reason why the worker cannot work for this run.
	Refused string `json:",omitempty"`
	Lease   time.Duration
	Job     Job
}

// A held is an assignment as its worker names it.
type held struct {
	Assignment string
	Token      string // of the lease, which only its worker knows
}

type beat struct {
	Worker string
	Run    assay.RunID
	// Leaving is true if the worker takes no more assignments.
	Leaving     bool
	Assignments []held
	// Agents counts agents by listed model and by their states.
	Agents map[string]map[assay.AgentState]int `json:",omitempty"`
}

type beatReply struct {
	// Unknown is true if the coordinator does not know the worker, which has to introduce itself.
	Unknown bool `json:",omitempty"`
	// Ended is true if the run is over.
	Ended bool `json:",omitempty"`
	// Drain is true if the worker should finish its assignments and go.
	Drain bool `json:",omitempty"`
	// Over has the assignments that the worker should drop.
	Over []held `json:",omitempty"`
}

type begin struct {
	Worker, Assignment string
	// Try is unique to a delivery of an assignment. It stays the same if the call is repeated.
	Try string
}

type beginning struct {
	// Over is true if the assignment has no work for this worker.
	Over  bool `json:",omitempty"`
	Token string
	Trial assay.Trial
	Task  assay.Task
}

type chat struct {
	held
	// N numbers the requests of an attempt from 1. The replies to requests below Seen have
	// arrived.
	N, Seen int
	Request assay.Request
	// Again is true if the coordinator has the request and was to be asked again for its reply, so
	// that Request is empty.
	Again bool `json:",omitempty"`
	// GivenUp is true if the attempt does not wait for the reply any more.
	GivenUp bool `json:",omitempty"`
}

type chatReply struct {
	// Over is true if the assignment is over for this worker, and Wait if the reply is still to
	// come.
	Over     bool `json:",omitempty"`
	Wait     bool `json:",omitempty"`
	Response assay.Response
	Fault    *assay.Fault `json:",omitempty"`
}

type attemptResult struct {
	held
	Attempt    assay.Attempt
	Transcript assay.Transcript
	Spans      []assay.Span // of the transcript, whose JSON leaves them out
}

type receipt struct {
	// Over is true if the worker can forget the attempt: it is on disk, or not wanted. Wait is
	// true if it is still being saved.
	Over, Wait bool `json:",omitempty"`
}

// A message begins with a letter for the format of the rest: JSON, compressed JSON, or a text with
// the reason why a call cannot be answered.
const (
	plainJSON      = 'j'
	compressedJSON = 'z'
	whyNot         = 'e'
	compressFrom   = 2 << 10 // bytes
	// maxMessage limits the size of a decompressed message, in bytes.
	maxMessage = 256 << 20
)

var (
	compressor = sync.OnceValue(func() *zstd.Encoder {
		w, _ := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest),
			zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true))
		return w
	})
	decompressor = sync.OnceValue(func() *zstd.Decoder {
		r, _ := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxMessage), zstd.WithDecoderLowmem(true))
		return r
	})
)

// encode writes a message. It fails if raw JSON in the message is not valid.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte(plainJSON)
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	if b.Len() < compressFrom {
		return b.Bytes(), nil
	}
	return compressor().EncodeAll(b.Bytes()[1:], []byte{compressedJSON}), nil
}

// refusal writes the answer to a call that cannot be answered, however often it is repeated.
func refusal(err error) []byte { return append([]byte{whyNot}, err.Error()...) }

// decode reads a message. It fails with the text of a refusal.
func decode(b []byte, v any) error {
	if len(b) == 0 {
		return errors.New("an empty message")
	}
	kind, b := b[0], b[1:]
	switch kind {
	case plainJSON:
	case whyNot:
		return errors.New(string(b))
	case compressedJSON:
		var err error
		if b, err = decompressor().DecodeAll(b, nil); err != nil {
			return fmt.Errorf("decompress: %w", err)
		}
	default:
		return fmt.Errorf("a message of unknown kind %q", kind)
	}
	return json.Unmarshal(b, v)
}
