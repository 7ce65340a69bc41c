package store

import (
	"encoding/binary"
	"errors"
	"math"
)

// tableLeaf is the kind of pages with rows: see "Database File Format" at sqlite.org.
const tableLeaf = 13

var errCell = errors.New("not a row")

// rowsIn returns the rows of a tableLeaf that can be decoded. load returns the pages on which long
// rows continue. A NULL in the first column of a table stands for the row ID, which is returned
// there.
func rowsIn(page []byte, load func(n int64) ([]byte, error)) (rows [][]any) {
	at := 8
	for range binary.BigEndian.Uint16(page[3:]) {
		if at+2 > len(page) {
			break
		}
		cell := int(binary.BigEndian.Uint16(page[at:]))
		at += 2
		if cell < at || cell >= len(page) {
			continue
		}
		if row, err := rowAt(page, cell, load); err == nil && len(row) > 0 {
			rows = append(rows, row)
		}
	}
	return rows
}

func rowAt(page []byte, at int, load func(n int64) ([]byte, error)) ([]any, error) {
	r := cellReader{page[at:], true}
	size, id := r.varint(), int64(r.varint())
	if !r.ok || size > maxTranscript {
		return nil, errCell
	}
	local := localSize(len(page), int(size))
	payload := r.take(local)
	if local < int(size) {
		next := r.take(4)
		if !r.ok {
			return nil, errCell
		}
		var err error
		if payload, err = joined(payload, int(size), next, load); err != nil {
			return nil, err
		}
	}
	if !r.ok {
		return nil, errCell
	}
	row, err := decodeRow(payload)
	if err == nil && len(row) > 0 && row[0] == nil {
		row[0] = id
	}
	return row, err
}

// localSize returns how much of a row of some size is on the page where it begins.
func localSize(page, size int) int {
	most, least := page-35, (page-12)*32/255-23
	if size <= most {
		return size
	}
	if n := least + (size-least)%(page-4); n <= most {
		return n
	}
	return least
}

// joined returns a row that continues on other pages. Each begins with the number of the next.
func joined(begin []byte, size int, next []byte, load func(int64) ([]byte, error)) ([]byte, error) {
	whole := append([]byte(nil), begin...)
	for len(whole) < size {
		b, err := load(int64(binary.BigEndian.Uint32(next)))
		if err != nil {
			return nil, err
		}
		next = b[:4]
		whole = append(whole, b[4:min(len(b), 4+size-len(whole))]...)
	}
	return whole, nil
}

// decodeRow decodes a row: the length of its header, the types of its values, and the values.
func decodeRow(b []byte) (row []any, err error) {
	types := cellReader{b, true}
	length := types.varint()
	if !types.ok || length > uint64(len(b)) {
		return nil, errCell
	}
	values := cellReader{b[length:], true}
	types.rest = b[len(b)-len(types.rest) : max(int(length), len(b)-len(types.rest))]
	for len(types.rest) > 0 && types.ok && values.ok {
		row = append(row, values.value(types.varint()))
	}
	if !types.ok || !values.ok || len(values.rest) > 0 {
		return nil, errCell
	}
	return row, nil
}

// A cellReader reads from the beginning of some bytes. ok is false once they do not suffice.
type cellReader struct {
	rest []byte
	ok   bool
}

func (r *cellReader) take(n int) []byte {
	if n < 0 || n > len(r.rest) {
		r.ok, r.rest = false, nil
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *cellReader) varint() (n uint64) {
	for i := range 9 {
		b := r.take(1)
		if !r.ok {
			return 0
		}
		if i == 8 {
			return n<<8 | uint64(b[0])
		}
		n = n<<7 | uint64(b[0]&0x7f)
		if b[0] < 0x80 {
			return n
		}
	}
	return n
}

// value reads a value of a type.
func (r *cellReader) value(kind uint64) any {
	switch {
	case kind == 0:
		return nil
	case kind <= 6:
		return r.integer([]int{0, 1, 2, 3, 4, 6, 8}[kind])
	case kind == 7:
		return math.Float64frombits(uint64(r.integer(8)))
	case kind <= 9:
		return int64(kind - 8)
	case kind < 12 || kind > 2*maxTranscript:
		r.ok = false
		return nil
	case kind%2 == 0:
		return append([]byte{}, r.take(int(kind-12)/2)...)
	}
	return string(r.take(int(kind-13) / 2))
}

func (r *cellReader) integer(bytes int) int64 {
	b := r.take(bytes)
	if !r.ok {
		return 0
	}
	n := int64(int8(b[0]))
	for _, x := range b[1:] {
		n = n<<8 | int64(x)
	}
	return n
}
