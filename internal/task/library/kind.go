package library

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// What the head of a library file says. Both numbers stand in the header that
// SQLite keeps in the first 100 bytes.
const (
	applicationID = 0x41534c42 // "ASLB", Assay library
	formatVersion = 1
)

// checkKind reports what is wrong with a path that does not name a library
// file of a format that this program reads.
func checkKind(path string) error {
	head, err := readHead(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("open library %s: no such file\nhint: check the path, or use the library \"builtin\"", path)
	case errors.Is(err, errDirectory):
		return fmt.Errorf("open library %s: it is a directory\nhint: name the library file inside it", path)
	case err != nil:
		return fmt.Errorf("open library %s: %w", path, err)
	}
	if !bytes.HasPrefix(head, []byte("SQLite format 3\x00")) {
		return notSQLite(path, head)
	}
	if len(head) < 100 {
		return fmt.Errorf("open library %s: the file is cut off after %d bytes\nhint: import or copy the library again", path, len(head))
	}
	if id := binary.BigEndian.Uint32(head[68:]); id != applicationID {
		return fmt.Errorf("open library %s: it is an SQLite database, but no Assay library (application id %#x, not %#x)\nhint: is it a results store? A library is made with `assay library import`", path, id, applicationID)
	}
	if v := binary.BigEndian.Uint32(head[60:]); v != formatVersion {
		hint := "update assay, or import the library again with this version"
		if v < formatVersion {
			hint = "import the library again"
		}
		return fmt.Errorf("open library %s: it has format %d, this program reads format %d\nhint: %s", path, v, formatVersion, hint)
	}
	return nil
}

func notSQLite(path string, head []byte) error {
	text := bytes.TrimLeft(bytes.TrimPrefix(head, byteOrderMark), " \t\r\n")
	switch {
	case len(head) == 0:
		return fmt.Errorf("open library %s: the file is empty\nhint: import the library again", path)
	case bytes.HasPrefix(text, lfsPointer):
		return fmt.Errorf("open library %s: it is a Git LFS pointer, not the file itself\nhint: fetch the content with `git lfs pull`", path)
	case len(text) > 0 && (text[0] == '{' || text[0] == '['):
		return fmt.Errorf("open library %s: it is a JSON file, no Assay library\nhint: import it with `assay library import %s --tools REGISTRY -o OUT.db`", path, path)
	}
	return fmt.Errorf("open library %s: it is no SQLite file\nhint: a library is made with `assay library import FILE --tools REGISTRY -o OUT.db`", path)
}

var (
	byteOrderMark = []byte("\xef\xbb\xbf")
	lfsPointer    = []byte("version https://git-lfs.github.com/spec/")
	errDirectory  = errors.New("is a directory")
)

// readHead returns at most the first 512 bytes of a file.
func readHead(path string) ([]byte, error) {
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case st.IsDir():
		return nil, errDirectory
	case !st.Mode().IsRegular(): // to open a pipe might wait for ever
		return nil, errors.New("it is no regular file")
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
