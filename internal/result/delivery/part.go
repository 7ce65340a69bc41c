package delivery

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/assay-eval/assay/internal/store"
)

// A Part is one output of a [Delivery].
type Part struct {
	io.Writer
	name string // as the user wrote it
	// place is where the file will appear, with symbolic links resolved. It is empty if the
	// bytes go to something that exists already: standard output, a device or a pipe.
	place    string
	existing os.FileInfo // the file that was there before, or nil
	file     *os.File    // nil for standard output, and once it is closed
	lock     *store.Reservation
}

// IsFile reports whether the part appears as a separate file.
func (p *Part) IsFile() bool { return p.place != "" }

// Name returns the path that the user gave.
func (p *Part) Name() string { return p.name }

// same reports whether two parts would mix, or one would replace the other.
func (p *Part) same(q *Part) bool {
	switch {
	case p.IsFile() && q.IsFile():
		return p.place == q.place
	case p.existing != nil && q.existing != nil:
		return os.SameFile(p.existing, q.existing)
	}
	return p.name == q.name
}

// hidden returns the path of a hidden file next to the part's place.
func (p *Part) hidden(suffix string) string {
	return filepath.Join(filepath.Dir(p.place), "."+filepath.Base(p.place)+suffix)
}

// readerWait is how long to wait for the reader of a pipe, which may be starting together with
// us. It is so short that the wait need not end with a signal.
const readerWait = 2 * time.Second

// attach opens a device or a pipe. It doesn't block: if a pipe has no reader, the operating
// system would wait for one forever, even after a signal.
func (p *Part) attach() (err error) {
	flags := os.O_WRONLY | os.O_APPEND
	if p.existing != nil && p.existing.Mode()&os.ModeNamedPipe != 0 {
		flags |= syscall.O_NONBLOCK
	}
	for began := time.Now(); ; time.Sleep(readerWait / 100) {
		p.file, err = os.OpenFile(p.name, flags, 0)
		p.Writer = p.file
		switch {
		case flags&syscall.O_NONBLOCK == 0 || !errors.Is(err, syscall.ENXIO):
			return err
		case time.Since(began) > readerWait:
			return errors.New("the pipe has no reader\nhint: start its reader first")
		}
	}
}

// create locks the part's place and creates the hidden file. If the part will replace a file, it
// gets the permissions of that file.
func (p *Part) create() (err error) {
	p.lock, err = store.Reserve(p.hidden(".lock"))
	if errors.Is(err, store.ErrReserved) {
		return errors.New("another program is writing it\n" +
			"hint: wait until it is done, or choose another path")
	}
	if err != nil {
		return err
	}

	if err = os.Remove(p.hidden(".part")); err == nil || errors.Is(err, os.ErrNotExist) {
		mode := os.FileMode(0o666)
		if p.existing != nil {
			mode = p.existing.Mode().Perm()
		}
		p.file, err = os.OpenFile(p.hidden(".part"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if err == nil && p.existing != nil {
			err = p.permit(mode)
		}
	}
	if err != nil {
		return errors.Join(err, p.lock.Release())
	}
	p.Writer = p.file
	return nil
}

// permit restores permissions that the umask may have removed.
func (p *Part) permit(mode os.FileMode) error {
	fi, err := p.file.Stat()
	if err == nil && fi.Mode().Perm() != mode {
		err = p.file.Chmod(mode)
	}
	if err != nil {
		err = errors.Join(err, p.file.Close(), os.Remove(p.hidden(".part")))
	}
	return err
}

// Finish closes the part after its last byte. [Delivery.Deliver] finishes all parts; call Finish
// earlier to keep fewer files open.
func (p *Part) Finish() (err error) {
	if p.file == nil {
		return nil
	}
	if p.IsFile() {
		err = store.SyncFile(p.file)
	}
	if err = errors.Join(err, p.file.Close()); err != nil {
		err = fmt.Errorf("write %s: %w", p.name, err)
	}
	p.file = nil
	return err
}
