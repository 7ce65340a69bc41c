package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// Names is a list of names. In a file it can also be a single name, such as
// `all`.
type Names []string

// All stands for every known name.
const All = "all"

// UnmarshalYAML reads a list or a single name.
func (n *Names) UnmarshalYAML(unmarshal func(any) error) error {
	var one string
	if unmarshal(&one) == nil {
		*n = Names{one}
		return nil
	}
	return unmarshal((*[]string)(n))
}

// but returns the names, or nil if they are that one alone.
func (n Names) but(one string) Names {
	if slices.Equal(n, Names{one}) {
		return nil
	}
	return n
}

// Count is a number of tasks. AllTasks means every task of the library.
type Count int

// AllTasks is the Count that `all` stands for.
const AllTasks Count = -1

// UnmarshalText reads a whole number or `all`.
func (c *Count) UnmarshalText(b []byte) error {
	s := string(b)
	if s == All {
		*c = AllTasks
		return nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return fmt.Errorf("%q is not a number of tasks: write a whole number above 0, or all", s)
	}
	*c = Count(n)
	return nil
}

// MarshalJSON writes the number or "all".
func (c Count) MarshalJSON() ([]byte, error) {
	if c == AllTasks {
		return []byte(`"all"`), nil
	}
	return json.Marshal(int(c))
}

// UnmarshalJSON reads the output of MarshalJSON.
func (c *Count) UnmarshalJSON(b []byte) error { return c.UnmarshalText(bytes.Trim(b, `"`)) }

// Duration is a time.Duration written as in Go, such as "150s" or "10m".
type Duration time.Duration

// UnmarshalText reads a positive duration with a unit.
func (d *Duration) UnmarshalText(b []byte) error {
	s := string(b)
	v, err := time.ParseDuration(s)
	if err != nil || v <= 0 {
		return fmt.Errorf("%q is not a duration: add a unit, such as 150s or 10m", s)
	}
	*d = Duration(v)
	return nil
}

// MarshalJSON writes the duration as Go prints it.
func (d Duration) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Duration(d).String())
}

// Size is a number of bytes, written as a number of megabytes or gigabytes, such as "500MB" or "4GB".
type Size int64

var sizeText = regexp.MustCompile(`^([1-9][0-9]{0,5}) ?(MB|GB)$`)

// UnmarshalText reads a size with a unit.
func (s *Size) UnmarshalText(b []byte) error {
	parts := sizeText.FindSubmatch(b)
	if parts == nil {
		return fmt.Errorf("%q is not a size: write megabytes or gigabytes, such as 500MB or 4GB", b)
	}
	n, err := strconv.ParseInt(string(parts[1]), 10, 64)
	if err != nil {
		return err
	}
	if n <<= 20; string(parts[2]) == "GB" {
		n <<= 10
	}
	*s = Size(n)
	return nil
}
