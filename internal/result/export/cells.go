package export

import (
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
)

// cells collects the values of one column for Parquet.
type cells struct {
	values []parquet.Value
	bytes  []byte // the text that values point into
	index  int    // index of the column in the file
	// level is the definition level of a value that is not null.
	level    int
	repeated bool // the value continues the list of the previous one
}

// reset prepares c for another column.
func (c *cells) reset(index, level int) {
	c.values, c.bytes = c.values[:0], c.bytes[:0]
	c.index, c.level = index, level
}

// add appends a value. Most columns have no levels, and their writer ignores
// levels. Leaving them out saves a quarter of the time that writing a file
// takes.
func (c *cells) add(v parquet.Value) {
	if c.level == 0 {
		c.values = append(c.values, v)
		return
	}
	repetition := 0
	if c.repeated {
		repetition = 1
	}
	c.values = append(c.values, v.Level(repetition, c.level, c.index))
}

func (c *cells) null() {
	c.values = append(c.values, parquet.NullValue().Level(0, 0, c.index))
}

// list adds the elements of a list.
func (c *cells) list(all []string) {
	if len(all) == 0 {
		c.values = append(c.values, parquet.NullValue().Level(0, c.level-1, c.index))
	}
	for i, s := range all {
		c.repeated = i > 0
		c.text(s)
	}
	c.repeated = false
}

// earliest and latest are the limits of 64-bit nanoseconds since 1970.
var earliest, latest = time.Unix(0, math.MinInt64), time.Unix(0, math.MaxInt64)

// time adds a time. The zero time is null.
func (c *cells) time(t time.Time) error {
	switch {
	case t.IsZero():
		c.null()
		return nil
	case t.Before(earliest) || t.After(latest):
		return fmt.Errorf("%v is not between the years 1678 and 2262", t)
	}
	c.add(parquet.Int64Value(t.UnixNano()))
	return nil
}

// text adds s as valid UTF-8, like encoding/json, because readers refuse files
// with invalid UTF-8.
func (c *cells) text(s string) {
	start := len(c.bytes)
	if utf8.ValidString(s) {
		c.bytes = append(c.bytes, s...)
	} else {
		for _, r := range s {
			c.bytes = utf8.AppendRune(c.bytes, r)
		}
	}
	c.add(parquet.ByteArrayValue(c.bytes[start:]))
}
