package export

import (
	"fmt"
	"strings"

	"github.com/assay-eval/assay/internal/nearest"
)

// A Format is a kind of file.
type Format string

// The formats.
const (
	JSONL   Format = "jsonl"
	CSV     Format = "csv"
	Parquet Format = "parquet"
)

// Formats lists the formats, the default first.
var Formats = []Format{JSONL, CSV, Parquet}

// ParseFormat returns the format of that name, in any case.
func ParseFormat(name string) (Format, error) {
	for _, f := range Formats {
		if strings.EqualFold(name, string(f)) {
			return f, nil
		}
	}
	return "", unknown(name)
}

func unknown(name string) error {
	names := make([]string, len(Formats))
	for i, f := range Formats {
		names[i] = string(f)
	}
	return fmt.Errorf("unknown export format %q\nhint: %s", name, nearest.Hint(name, names))
}
