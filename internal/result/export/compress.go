package export

import (
	"compress/gzip"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// packings are the endings of the names of compressed files, behind that of their format.
var packings = map[string]func(io.Writer) (io.WriteCloser, error){
	".gz": func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil },
	".zst": func(w io.Writer) (io.WriteCloser, error) {
		return zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true))
	},
}

// Packing returns the name of a file without .gz or .zst, and that ending, or "".
func Packing(name string) (unpacked, ending string) {
	for ending := range packings {
		if unpacked, ok := strings.CutSuffix(name, ending); ok {
			return unpacked, ending
		}
	}
	return name, ""
}

// Pack calls write with a writer that compresses what it gets as the name of the file says. Parquet
// has its own compression, and readers seek in it.
func Pack(w io.Writer, name string, f Format, write func(io.Writer) (int, error)) (n int, err error) {
	_, ending := Packing(name)
	if ending == "" || f == Parquet {
		return write(w)
	}
	z, err := packings[ending](w)
	if err != nil {
		return 0, err
	}
	if n, err = write(z); err != nil {
		return n, err
	}
	return n, z.Close()
}
