package export

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/assay-eval/assay"
)

// Read returns the attempts in a file that [Write] wrote as [JSONL], plain or compressed with gzip
// or zstd. An empty file has no attempts. The sequence can be iterated once.
//
// The sequence ends after the first error, which comes with a zero attempt and contains the line.
// These are errors: an unknown field, a missing field that every version writes, a value that does
// not fit, and an attempt that is neither an outcome nor a fault, or both. A file that does not have
// JSON lines is an [UnreadableError].
func Read(r io.Reader) iter.Seq2[assay.Attempt, error] {
	return func(yield func(assay.Attempt, error) bool) {
		if err := readFile(r, yield); err != nil {
			yield(assay.Attempt{}, fmt.Errorf("read attempts: %w", err))
		}
	}
}

// An UnreadableError reports a file that does not have JSON lines.
type UnreadableError struct {
	Format Format // "" if it is unknown
}

func (e *UnreadableError) Error() string {
	switch e.Format {
	case Parquet:
		return "this is Parquet, and only JSON lines can be read back"
	case CSV:
		return "this is CSV, and only JSON lines can be read back"
	}
	return "these are not JSON lines as they are exported"
}

func readFile(r io.Reader, yield func(assay.Attempt, error) bool) error {
	in, err := Decompress(r)
	if err != nil {
		return err
	}
	defer in.Close()
	return readLines(bufio.NewReaderSize(in, chunk), yield)
}

// Decompress returns the content of a file that may be compressed with gzip or zstd.
func Decompress(r io.Reader) (io.ReadCloser, error) {
	in := bufio.NewReaderSize(r, chunk)
	switch start, _ := in.Peek(4); { // a file that cannot be read gives its error later
	case bytes.HasPrefix(start, []byte("\x1f\x8b")):
		return gzip.NewReader(in)
	case string(start) == "\x28\xb5\x2f\xfd":
		z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	}
	return io.NopCloser(in), nil
}

func readLines(in *bufio.Reader, yield func(assay.Attempt, error) bool) error {
	if err := checkStart(in); err != nil {
		return err
	}
	for number := 1; ; number++ {
		line, end := in.ReadBytes('\n')
		if end != nil && end != io.EOF {
			return end
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			a, err := parseLine(line)
			if err != nil {
				return fmt.Errorf("line %d: %w", number, err)
			}
			if !yield(a, nil) {
				return nil
			}
		}
		if end == io.EOF {
			return nil
		}
	}
}

// checkStart skips a byte order mark, and refuses other formats.
func checkStart(in *bufio.Reader) error {
	if start, _ := in.Peek(3); string(start) == "\ufeff" {
		if _, err := in.Discard(len(start)); err != nil {
			return err
		}
	}
	header := []byte(Columns()[0] + ",")
	switch start, err := in.Peek(len(header)); {
	case len(start) == 0 && err == io.EOF, len(start) > 0 && start[0] == '{':
		return nil
	case len(start) == 0:
		return err
	case bytes.HasPrefix(start, []byte("PAR1")):
		return &UnreadableError{Parquet}
	case bytes.Equal(start, header):
		return &UnreadableError{CSV}
	}
	return &UnreadableError{}
}

// parseLine refuses what is not an attempt, because it would otherwise be counted wrongly.
func parseLine(line []byte) (a assay.Attempt, err error) {
	if err := unmarshal(line, &a); err != nil {
		return assay.Attempt{}, err
	}
	if err := checkFields(&a, line); err != nil {
		return assay.Attempt{}, err
	}
	switch {
	case a.ID == "":
		return assay.Attempt{}, errors.New("trial is empty")
	case a.Number < 1:
		return assay.Attempt{}, fmt.Errorf("attempt is %d, want at least 1", a.Number)
	}
	return a, a.Check()
}

// required lists the fields that every file must have. The other fields were added later or may be
// missing, and are empty then.
var required = []string{
	"trial", "attempt", "experiment", "run", "model", "variant", "severity", "difficulty",
	"task_type", "task", "reliability", "repeat", "seed", "world", "lane", "served_model",
	"level", "ended", "fault", "error_category", "turns", "tool_calls", "required_tools",
	"executed_tools", "coverage", "order_correct", "input_tokens", "output_tokens", "cost_usd",
	"queued_ms", "working_ms", "started_at", "finished_at",
}

// checkFields refuses a line that lacks a required field, or has null where the attempt has a value.
func checkFields(a *assay.Attempt, line []byte) error {
	lacks := func(name string) bool { return !bytes.Contains(line, []byte(`"`+name+`":`)) }
	if !bytes.Contains(line, []byte("null")) && !slices.ContainsFunc(required, lacks) {
		return nil // decoding the line again would take as long as the first time
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(line, &fields); err != nil {
		return err
	}
	for _, name := range required {
		if _, ok := fields[name]; !ok {
			return fmt.Errorf("missing field %s", name)
		}
	}
	for i := range attempts().columns {
		c := &attempts().columns[i]
		if string(fields[c.name]) == "null" && c.of(a).IsValid() {
			return fmt.Errorf("field %s: missing value", c.name)
		}
	}
	return nil
}
