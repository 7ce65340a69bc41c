package library

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/assay-eval/assay"
)

// A TaskKey identifies a task within a library, where it is unique.
type TaskKey struct {
	ID         assay.TaskID
	Difficulty string
}

// A packedHead is the first of the JSON values of a part: everything but the tasks.
type packedHead struct {
	Name    string           `json:"name"`
	Source  string           `json:"source"`
	Created time.Time        `json:"created,omitzero"`
	Tools   []assay.Tool     `json:"tools"`
	Script  assay.Script     `json:"script"`
	Server  *assay.MCPServer `json:"server,omitempty"`
	Key     string           `json:"key,omitempty"`
}

// packWindow keeps the memory of packing small: with zstd's usual 4 MB, a run would need 40 MB
// more.
const packWindow = 256 << 10

// Pack returns a part of the library: its tools, their script and server, and some of its tasks, as
// JSON values that are compressed with zstd. [Unpack] makes a library of parts.
func (l *Library) Pack(ctx context.Context, tasks iter.Seq[TaskKey]) ([]byte, error) {
	var part bytes.Buffer
	z, err := zstd.NewWriter(&part, zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(packWindow), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, err
	}
	enc := json.NewEncoder(z)
	err = enc.Encode(packedHead{
		l.meta.Name, l.meta.Source, l.meta.Created,
		l.catalog.All(), l.catalog.Script(), l.catalog.Server(), l.meta.Key,
	})
	for key := range tasks {
		if err != nil {
			break
		}
		var t assay.Task
		if t, err = l.Task(ctx, key.ID, key.Difficulty); err == nil {
			err = enc.Encode(t)
		}
	}
	err = errors.Join(err, z.Close())
	return part.Bytes(), err
}

// Unpack returns a library with the tasks of its parts, and with the digest of the whole library.
// It is a temporary file that Close removes. Path returns the given path, where the library was.
func Unpack(ctx context.Context, parts [][]byte, digest, path string) (*Library, error) {
	if len(parts) == 0 {
		return nil, errors.New("a library without parts")
	}
	var head packedHead
	if err := unpack(parts[0], &head, func(assay.Task) bool { return false }); err != nil {
		return nil, err
	}
	meta := Meta{Name: head.Name, Source: head.Source, Created: head.Created, Key: head.Key}
	catalog := assay.NewCatalog(head.Tools).With(head.Script, head.Server)
	l, err := compiled(ctx, path, meta, catalog, packedTasks(parts))
	if err == nil {
		l.meta.Digest = digest
	}
	return l, err
}

// Packed returns the tasks that parts hold.
func Packed(parts [][]byte) (map[TaskKey]bool, error) {
	keys := make(map[TaskKey]bool)
	for t, err := range packedTasks(parts) {
		if err != nil {
			return nil, err
		}
		keys[TaskKey{t.ID, t.Difficulty}] = true
	}
	return keys, nil
}

// packedTasks yields each task of the parts once.
func packedTasks(parts [][]byte) iter.Seq2[assay.Task, error] {
	return func(yield func(assay.Task, error) bool) {
		seen := make(map[TaskKey]bool)
		for _, part := range parts {
			more := true
			err := unpack(part, new(packedHead), func(t assay.Task) bool {
				if key := (TaskKey{t.ID, t.Difficulty}); !seen[key] {
					seen[key] = true
					more = yield(t, nil)
				}
				return more
			})
			if err != nil {
				yield(assay.Task{}, err)
				return
			}
			if !more {
				return
			}
		}
	}
}

// unpack reads the head of a part and visits its tasks until visit returns false.
func unpack(part []byte, head *packedHead, visit func(assay.Task) bool) error {
	z, err := zstd.NewReader(bytes.NewReader(part), zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderLowmem(true))
	if err != nil {
		return err
	}
	defer z.Close()
	dec := json.NewDecoder(z)
	if err := dec.Decode(head); err != nil {
		return fmt.Errorf("a part of a library: %w", err)
	}
	for dec.More() {
		var t assay.Task
		if err := dec.Decode(&t); err != nil {
			return fmt.Errorf("a part of a library: %w", err)
		}
		if !visit(t) {
			break
		}
	}
	return nil
}
