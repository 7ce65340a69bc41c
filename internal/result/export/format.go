package export

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
)

// A Format is a file format.
type Format string

// The formats of this package.
const (
	JSONL   Format = "jsonl"
	CSV     Format = "csv"
	Parquet Format = "parquet"
)

// Formats of other systems. Other packages write them; manifests contain their
// names.
const (
	ATIF    Format = "atif"
	Inspect Format = "inspect"
	EEE     Format = "eee"
	Hub     Format = "hf"
	V3      Format = "v3"
)

// Formats lists the formats that this package writes, starting with the
// default. Foreign lists the others, of which Directories are several files. Public are for collections
// of results, and have figures besides attempts.
var (
	Formats     = []Format{JSONL, CSV, Parquet}
	Foreign     = []Format{Inspect, ATIF, EEE, Hub, V3}
	Directories = []Format{Inspect, EEE, Hub}
	Public      = []Format{EEE, Hub}
)

// FormatNames returns the names of all formats.
func FormatNames() []string {
	var names []string
	for _, f := range slices.Concat(Formats, Foreign) {
		names = append(names, string(f))
	}
	return names
}

// ParseFormat returns the format with the given name, ignoring case.
func ParseFormat(name string) (Format, error) {
	for _, f := range FormatNames() {
		if strings.EqualFold(name, f) {
			return Format(f), nil
		}
	}
	return "", unknown(name)
}

func unknown(name string) error {
	return fmt.Errorf("unknown export format %q\nhint: %s",
		name, assay.NameHint(name, FormatNames()))
}
