package library

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/assay-eval/assay"
)

// The identification of a library file. SQLite keeps both numbers in the header, which takes the
// first 100 bytes.
const (
	applicationID = 0x41534c42 // "ASLB", Assay library
	formatVersion = 1
)

// checkKind returns an error unless path is a library file in a format that this program reads.
func checkKind(path string) error {
	head, err := readHead(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("open library %s: no such file\n"+
			"hint: check the path, or use the library \"builtin\"", path)
	case errors.Is(err, errDirectory):
		return fmt.Errorf("open library %s: this is a directory\n"+
			"hint: name the library file inside it", path)
	case err != nil:
		return fmt.Errorf("open library %s: %w", path, err)
	}
	if !bytes.HasPrefix(head, []byte("SQLite format 3\x00")) {
		return notSQLite(path, head)
	}
	if len(head) < 100 {
		return fmt.Errorf("open library %s: the file was cut off after %d bytes\n"+
			"hint: import or copy the library again", path, len(head))
	}
	if id := binary.BigEndian.Uint32(head[68:]); id != applicationID {
		err := fmt.Errorf("open library %s: this SQLite database is not an Assay library "+
			"(application ID %#x, not %#x)", path, id, applicationID)
		return assay.WithHint(err, assay.HintNotResults)
	}
	if v := binary.BigEndian.Uint32(head[60:]); v != formatVersion {
		hint := "update assay, or import the library again with this version"
		if v < formatVersion {
			hint = "import the library again"
		}
		return fmt.Errorf("open library %s: the file has format %d, "+
			"but this program reads format %d\nhint: %s", path, v, formatVersion, hint)
	}
	return nil
}

func notSQLite(path string, head []byte) error {
	text := bytes.TrimLeft(bytes.TrimPrefix(head, byteOrderMark), " \t\r\n")
	switch {
	case len(head) == 0:
		return fmt.Errorf("open library %s: the file is empty\n"+
			"hint: import the library again", path)
	case bytes.HasPrefix(text, lfsPointer):
		return fmt.Errorf("open library %s: %w", path, errLFSPointer)
	case len(text) > 0 && (text[0] == '{' || text[0] == '['):
		err := fmt.Errorf("open library %s: this is a JSON file, not an Assay library", path)
		return assay.WithHint(err, assay.HintImportFile, path)
	}
	err := fmt.Errorf("open library %s: this is not an SQLite file", path)
	return assay.WithHint(err, assay.HintNewLibrary)
}

var (
	byteOrderMark = []byte("\xef\xbb\xbf")
	lfsPointer    = []byte("version https://git-lfs.github.com/spec/")
	errDirectory  = errors.New("is a directory")
	errLFSPointer = errors.New("this is a Git LFS pointer instead of the file's content\n" +
		"hint: fetch the content with `git lfs pull`")
)

// readHead returns the first 512 bytes of a file, or all of a shorter one.
func readHead(path string) ([]byte, error) {
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case st.IsDir():
		return nil, errDirectory
	case !st.Mode().IsRegular(): // opening a pipe could block forever
		return nil, errors.New("not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, 512)
	n, err := io.ReadFull(f, head)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return head[:n], err
}
