package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// A record keeps what worlds came to in a file, so that a long simulation goes on after it was killed: a
// line with the program, and a line for each world in the order of seeds. Without a file, it keeps nothing.
type record struct{ file *os.File }

// A builtBy is the first line.
type builtBy struct {
	Program string `json:"program"` // SHA-256
}

// openRecord opens the record of this program, and returns the worlds that it has. The last line may be cut.
func openRecord(path string) (*record, []*result, error) {
	if path == "" {
		return new(record), nil, nil
	}
	program, err := os.ReadFile(self())
	if err != nil {
		return nil, nil, err
	}
	id := builtBy{fmt.Sprintf("%x", sha256.Sum256(program))}
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	isNew := len(text) == 0
	text = text[:bytes.LastIndexByte(text, '\n')+1]
	lines := json.NewDecoder(bytes.NewReader(text))
	if by := (builtBy{}); !isNew && (lines.Decode(&by) != nil || by != id) {
		return nil, nil, fmt.Errorf("%s is not of this build of the program; name a new file", path)
	}
	var all []*result
	for lines.More() {
		all = append(all, new(result))
		if err := lines.Decode(all[len(all)-1]); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return nil, nil, err
	}
	r := &record{file}
	if err = file.Truncate(int64(len(text))); err == nil {
		_, err = file.Seek(0, io.SeekEnd)
	}
	if err == nil && isNew {
		err = r.write(id)
	}
	return r, all, err
}

// add keeps a world.
func (k *record) add(r *result) error {
	if k.file == nil {
		return nil
	}
	short := *r
	short.Items, short.Story = nil, nil
	return k.write(&short)
}

func (k *record) write(v any) error {
	line, err := json.Marshal(v)
	if err == nil {
		_, err = k.file.Write(append(line, '\n'))
	}
	return err
}
