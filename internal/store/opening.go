package store

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"hash"
	"slices"
	"sync/atomic"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/klauspost/compress/zstd"

	"github.com/assay-eval/assay"
)

// An opening is the first part of a transcript's JSON: the rules and the task, which repeats and
// other models share. What depends on it alone is worked out once. It is safe for concurrent use.
type opening struct {
	messages []assay.Message
	sum      hash.Cloner // of the JSON
	body     atomic.Pointer[openingBody]
}

// An openingBody is an opening as one encoder has compressed it.
type openingBody struct {
	by    *zstd.Encoder
	frame []byte
}

// An openingKey has the texts of the messages of an opening, which are all that its JSON depends on.
type openingKey struct{ first, second words }

type words struct {
	role    assay.Role
	content string
}

// openings keeps the latest ones.
type openings struct {
	known *lru.Cache[openingKey, *opening]
}

// The most openings that are kept, and the sizes in bytes of the shortest and the longest.
const mostOpenings, shortestOpening, longestOpening = 512, 1 << 10, 64 << 10

// openingMessages is the number of messages in an opening.
const openingMessages = 2

// transcriptHead is how the JSON of every transcript with a message begins.
const transcriptHead = `{"messages":[`

func newOpenings() *openings {
	known, err := lru.New[openingKey, *opening](mostOpenings)
	if err != nil {
		panic("store: " + err.Error()) // the size is positive
	}
	return &openings{known}
}

// of returns the opening of a transcript, or nil if it does not begin with two long texts.
func (o *openings) of(t *assay.Transcript) (*opening, error) {
	if len(t.Messages) < openingMessages {
		return nil, nil
	}
	first, ok1 := onlyText(&t.Messages[0])
	second, ok2 := onlyText(&t.Messages[1])
	n := len(first.content) + len(second.content)
	if !ok1 || !ok2 || n < shortestOpening || n > longestOpening {
		return nil, nil
	}
	key := openingKey{first, second}
	if known, ok := o.known.Get(key); ok {
		return known, nil
	}
	fresh, err := newOpening(t.Messages[:openingMessages])
	if err == nil {
		o.known.Add(key, fresh)
	}
	return fresh, err
}

// onlyText returns the text of a message, and whether the message has nothing else.
func onlyText(m *assay.Message) (words, bool) {
	return words{m.Role, m.Content},
		m.Reasoning == "" && len(m.Calls) == 0 && m.State == nil && m.CallID == ""
}

func newOpening(messages []assay.Message) (*opening, error) {
	o := &opening{messages: slices.Clone(messages)}
	text, err := o.json()
	if err != nil {
		return nil, err
	}
	h, ok := sha256.New().(hash.Cloner)
	if !ok {
		return nil, errors.New("transcript: SHA-256 cannot be copied")
	}
	h.Write(text)
	o.sum = h
	return o, nil
}

// json returns an opening's JSON, which is not kept.
func (o *opening) json() ([]byte, error) {
	var b bytes.Buffer
	if err := writeJSON(&b, &assay.Transcript{Messages: o.messages}); err != nil {
		return nil, err
	}
	end := bytes.LastIndex(b.Bytes(), []byte(`],"calls":`))
	if end < 0 || !bytes.HasPrefix(b.Bytes(), []byte(transcriptHead)) {
		return nil, errors.New("transcript: its JSON has an unexpected form")
	}
	return b.Bytes()[:end], nil
}

// A script is the JSON of a transcript: that of its opening, if it has one, and the rest.
type script struct {
	opening *opening
	rest    []byte
}

// script encodes a transcript. The rest is in the buffer.
func (o *openings) script(t *assay.Transcript, to *bytes.Buffer) (script, error) {
	head, err := o.of(t)
	if err != nil {
		return script{}, err
	}
	if head == nil {
		err := writeJSON(to, t)
		return script{rest: to.Bytes()}, err
	}
	rest := *t
	rest.Messages = t.Messages[openingMessages:]
	if err := writeJSON(to, &rest); err != nil {
		return script{}, err
	}
	// What follows the opening is the rest without its own head, and with a comma if it goes on
	// with a message.
	tail := to.Bytes()[len(transcriptHead):]
	if len(rest.Messages) > 0 {
		tail = to.Bytes()[len(transcriptHead)-1:]
		tail[0] = ','
	}
	return script{head, tail}, nil
}

// text returns the whole JSON.
func (s script) text() ([]byte, error) {
	if s.opening == nil {
		return s.rest, nil
	}
	text, err := s.opening.json()
	return append(text, s.rest...), err
}

// digest is [digest] of the whole JSON.
func (s script) digest() ([]byte, error) {
	if s.opening == nil {
		return digest(s.rest), nil
	}
	h, err := s.opening.sum.Clone()
	if err != nil {
		return nil, err
	}
	h.Write(s.rest)
	return h.Sum(make([]byte, 0, sha256.Size))[:len(sum{})], nil
}

// compress returns the whole JSON as enc compresses it. An opening is a frame of its own, which is
// compressed once. Decoders join the frames.
func (s script) compress(enc *zstd.Encoder) ([]byte, error) {
	if s.opening == nil {
		return enc.EncodeAll(s.rest, make([]byte, 0, len(s.rest)/4)), nil
	}
	head, err := s.opening.compressed(enc)
	if err != nil {
		return nil, err
	}
	body := make([]byte, 0, len(head)+len(s.rest)/2)
	return enc.EncodeAll(s.rest, append(body, head...)), nil
}

func (o *opening) compressed(enc *zstd.Encoder) ([]byte, error) {
	if known := o.body.Load(); known != nil && known.by == enc {
		return known.frame, nil
	}
	text, err := o.json()
	if err != nil {
		return nil, err
	}
	frame := slices.Clip(enc.EncodeAll(text, make([]byte, 0, len(text)/4)))
	o.body.Store(&openingBody{enc, frame})
	return frame, nil
}
