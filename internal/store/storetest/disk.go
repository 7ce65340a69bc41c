//go:build unix

package storetest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// sector is how many bytes a disk writes entirely or not at all.
const sector = 512

// A Disk knows what a power cut would leave of the files in a directory, whether SQLite wrote them
// or this program did. Its files are real, and so are locks on them.
//
// Nothing that was not synced need be there after a cut: of what was written, each sector may have
// any of its versions since the last sync, and the same is true of names, where a file that was
// renamed keeps at least one. What SQLite writes is known write by write. What this program writes is
// known as it is when it is synced, and as it is at the cut.
type Disk struct {
	dir    string
	faults Faults

	mu    sync.Mutex // guards the fields below
	files map[uint64]*file
	names map[string]uint64 // that survive a cut, with inode numbers
	// happens is called before each write, sync and deletion.
	happens func()
	syncs   int
}

// Faults are what a disk does wrong. It is safe to change them while the disk is used.
type Faults struct {
	mu sync.Mutex
	// Full makes writes of SQLite fail, and syncs by this program, as where space is only found then. A
	// part of what SQLite writes may be written.
	Full bool
	// FailedSyncs makes syncs fail. As on Linux, what was to be synced then can still be
	// read, but the next sync does not write it.
	FailedSyncs bool
	// Lies makes the disk ignore that files are synced, and DirLies that directories are.
	Lies, DirLies bool
	// Forgetful makes the disk ignore that this program syncs directories, as if it did not.
	Forgetful bool
	// NoChecksums makes a cut mend the checksums of SQLite's logs, so that what is torn is not noticed.
	NoChecksums bool
}

// A file has the content that survives a cut, and the changes since, of which any part may.
type file struct {
	synced, now []byte
	changes     []change
	watched     bool // SQLite writes it, and each write is known
}

// write notes the content of a file that this program writes: it has added to what was synced, or written
// all of it anew.
func (f *file) write(content []byte) {
	f.now, f.changes = content, nil
	switch added, ok := bytes.CutPrefix(content, f.synced); {
	case !ok:
		f.changes = []change{{}, {0, bytes.Clone(content)}}
	case len(added) > 0:
		f.changes = []change{{int64(len(f.synced)), bytes.Clone(added)}}
	}
}

// A change writes data at a place, or cuts the file off there if data is nil.
type change struct {
	place int64
	data  []byte
}

func (c change) apply(to []byte) []byte {
	if c.data == nil {
		return to[:min(int64(len(to)), c.place)]
	}
	if end := int(c.place) + len(c.data); end > len(to) {
		to = append(to, make([]byte, end-len(to))...)
	}
	copy(to[c.place:], c.data)
	return to
}

// torn returns the parts of a change that each were or were not written.
func (c change) torn(r *rand.Rand) (parts []change) {
	for at := 0; at < len(c.data); {
		end := min(len(c.data), at+sector-int(c.place+int64(at))%sector)
		if r.IntN(2) == 0 {
			parts = append(parts, change{c.place + int64(at), c.data[at:end]})
		}
		at = end
	}
	return parts
}

// NewDisk returns a disk for a directory whose files have been there for long. Use it from the
// directory's own path only. Subdirectories are not part of it.
func NewDisk(dir string) (*Disk, error) {
	layer.install.Do(install)
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	d := &Disk{dir: dir, files: make(map[uint64]*file)}
	if d.names, err = d.list(); err != nil {
		return nil, err
	}
	defer d.register()
	for name, inode := range d.names {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		d.files[inode] = &file{synced: b}
	}
	return d, nil
}

func (d *Disk) register() {
	layer.mu.Lock()
	defer layer.mu.Unlock()
	layer.disks[d.dir] = d
}

// Forget ends the simulation. Files that are open may still be used.
func (d *Disk) Forget() {
	layer.mu.Lock()
	defer layer.mu.Unlock()
	delete(layer.disks, d.dir)
}

// Dir returns the directory.
func (d *Disk) Dir() string { return d.dir }

// Watch has a function called before each write, sync and deletion by SQLite, and each sync by this
// program. It may cut the power.
func (d *Disk) Watch(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.happens = f
}

// Syncs returns how often something was synced.
func (d *Disk) Syncs() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.syncs
}

// Set changes what the disk does wrong.
func (d *Disk) Set(change func(*Faults)) {
	d.faults.mu.Lock()
	defer d.faults.mu.Unlock()
	change(&d.faults)
}

func (d *Disk) full() bool { return d.fails(func(f *Faults) bool { return f.Full }) }

func (d *Disk) fails(how func(*Faults) bool) bool {
	d.faults.mu.Lock()
	defer d.faults.mu.Unlock()
	return how(&d.faults)
}

func (d *Disk) event() {
	d.mu.Lock()
	happens := d.happens
	d.mu.Unlock()
	if happens != nil {
		happens()
	}
}

// list returns the files of the directory. Shared memory is no file of a disk.
func (d *Disk) list() (map[string]uint64, error) {
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return nil, err
	}
	names := make(map[string]uint64)
	for _, e := range entries {
		fi, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if fi.Mode().IsRegular() && !strings.HasSuffix(e.Name(), "-shm") {
			names[e.Name()] = inodeOf(fi)
		}
	}
	return names, nil
}

func inodeOf(fi fs.FileInfo) uint64 { return uint64(fi.Sys().(*syscall.Stat_t).Ino) }

// fileOf returns the file with an inode number, which has never been synced if it is new.
func (d *Disk) fileOf(inode uint64) *file {
	f := d.files[inode]
	if f == nil {
		f = new(file)
		d.files[inode] = f
	}
	return f
}

// opened returns a file that SQLite has just opened.
func (d *Disk) opened(path string) *file {
	d.mu.Lock()
	defer d.mu.Unlock()
	fi, err := os.Stat(path)
	if err != nil {
		return new(file)
	}
	f := d.fileOf(inodeOf(fi))
	if !f.watched {
		f.watched = true
		// This is the first time, so the process has no locks that end when the file is closed.
		f.now, _ = os.ReadFile(path)
		if !bytes.Equal(f.now, f.synced) {
			f.changes = append(f.changes, change{}, change{0, bytes.Clone(f.now)})
		}
	}
	return f
}

func (d *Disk) change(f *file, c change) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f.now = c.apply(f.now)
	f.changes = append(f.changes, c)
}

// sync reports whether it succeeds.
func (d *Disk) sync(f *file) bool {
	if d.fails(func(f *Faults) bool { return f.FailedSyncs }) {
		d.mu.Lock()
		defer d.mu.Unlock()
		f.changes = nil
		return false
	}
	lies := d.fails(func(f *Faults) bool { return f.Lies })
	d.mu.Lock()
	defer d.mu.Unlock()
	d.syncs++
	if lies {
		return true
	}
	for _, c := range f.changes {
		f.synced = c.apply(f.synced)
	}
	f.changes = nil
	return true
}

func (d *Disk) syncDir() {
	if d.fails(func(f *Faults) bool { return f.DirLies }) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	names, err := d.list()
	if err != nil {
		return
	}
	d.syncs++
	d.names = names
	for inode, f := range d.files {
		gone := true
		for _, known := range names {
			gone = gone && known != inode
		}
		if gone && !f.watched {
			delete(d.files, inode)
		}
	}
}

// syncedByProgram notes a sync that has succeeded, unless this disk fails it.
func (d *Disk) syncedByProgram(path string, directory bool) error {
	d.event()
	if directory {
		if !d.fails(func(f *Faults) bool { return f.Forgetful }) {
			d.syncDir()
		}
		return nil
	}
	fi, err := os.Stat(path)
	if err != nil {
		return err
	}
	// SQLite has no lock on the file that would end when it is closed, because the program, which has
	// synced it, closes it too.
	if d.full() {
		return syscall.ENOSPC
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	d.mu.Lock()
	f := d.fileOf(inodeOf(fi))
	f.write(content)
	d.mu.Unlock()
	if !d.sync(f) {
		return syscall.EIO
	}
	return nil
}

// An Image is the content of a disk.
type Image struct {
	names map[string]uint64
	files map[uint64][]byte
}

// Files returns the content of the files by their names.
func (i *Image) Files() map[string][]byte {
	all := make(map[string][]byte)
	for name, inode := range i.names {
		all[name] = i.files[inode]
	}
	return all
}

// Write makes the files in a directory.
func (i *Image) Write(dir string) error {
	first := make(map[uint64]string)
	for _, name := range slices.Sorted(maps.Keys(i.names)) {
		path, inode := filepath.Join(dir, name), i.names[name]
		var err error
		if known, ok := first[inode]; ok {
			err = os.Link(known, path)
		} else {
			first[inode] = path
			err = os.WriteFile(path, i.files[inode], 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Kill returns the disk as the next process finds it if this one is killed: its files are copied to
// another directory, and a power cut may still take away what was not synced. Programs that use the
// first directory no longer matter.
func (d *Disk) Kill(dir string) (*Disk, error) {
	i, err := d.image(func(_, now map[string]uint64) map[string]uint64 { return now },
		func(f *file) []byte { return f.now })
	if err == nil {
		err = i.Write(dir)
	}
	if err != nil {
		return nil, err
	}
	next, err := NewDisk(dir)
	if err != nil {
		return nil, err
	}
	next.mu.Lock()
	defer next.mu.Unlock()
	renamed := make(map[uint64]uint64)
	for name, inode := range next.names {
		renamed[i.names[name]] = inode
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	next.names = make(map[string]uint64)
	for name, inode := range d.names {
		if renamed[inode] == 0 {
			renamed[inode] = inode | 1<<63 // no system gives such numbers
		}
		next.names[name] = renamed[inode]
	}
	for old, inode := range renamed {
		f := *d.fileOf(old)
		f.synced, f.now, f.changes = bytes.Clone(f.synced), bytes.Clone(f.now), slices.Clone(f.changes)
		next.files[inode] = &f
	}
	return next, nil
}

// Cut returns what a power cut leaves.
func (d *Disk) Cut(r *rand.Rand) (*Image, error) {
	// The extremes are more likely than if each part were lost by itself.
	names, contents := r.IntN(4), r.IntN(5)
	return d.image(func(synced, now map[string]uint64) map[string]uint64 {
		return cutNames(synced, now, names, r)
	}, func(f *file) []byte {
		left := f.cut(contents, r)
		if d.fails(func(f *Faults) bool { return f.NoChecksums }) {
			mendLog(left)
		}
		return left
	})
}

// mendLog computes the checksums of a write-ahead log anew, if it is one: see "Database File Format"
// at sqlite.org.
func mendLog(log []byte) {
	const header, frame = 32, 24
	if len(log) < header || binary.BigEndian.Uint32(log)&^1 != 0x377f0682 {
		return
	}
	order := binary.ByteOrder(binary.LittleEndian)
	if log[3]&1 == 1 {
		order = binary.BigEndian
	}
	page, salt := int(binary.BigEndian.Uint32(log[8:])), log[16:24]
	var s0, s1 uint32
	add := func(b []byte) {
		for ; len(b) >= 8; b = b[8:] {
			s0 += order.Uint32(b) + s1
			s1 += order.Uint32(b[4:]) + s0
		}
	}
	add(log[:24])
	for rest := log[header:]; len(rest) >= frame+page; rest = rest[frame+page:] {
		if !bytes.Equal(rest[8:16], salt) {
			return
		}
		add(rest[:8])
		add(rest[frame : frame+page])
		binary.BigEndian.PutUint32(rest[16:], s0)
		binary.BigEndian.PutUint32(rest[20:], s1)
	}
}

const (
	nothing = iota // of what was not synced is kept
	everything
	beginning // of each file's changes, the last one torn
)

func (f *file) cut(how int, r *rand.Rand) []byte {
	left := bytes.Clone(f.synced)
	n := len(f.changes)
	switch how {
	case nothing:
		return left
	case beginning:
		n = r.IntN(n + 1)
	}
	for i, c := range f.changes[:n] {
		whole := how == everything || how == beginning && i < n-1 || how > beginning && r.IntN(3) == 0
		switch {
		case whole:
			left = c.apply(left)
		case how == beginning || r.IntN(2) == 0:
			for _, part := range c.torn(r) {
				left = part.apply(left)
			}
		}
	}
	return left
}

// cutNames draws for each name whether it still names what it did when the directory was synced.
func cutNames(synced, now map[string]uint64, how int, r *rand.Rand) map[string]uint64 {
	left := make(map[string]uint64)
	all := maps.Clone(synced)
	maps.Copy(all, now)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		from := synced
		if how == everything || how > everything && r.IntN(2) == 0 {
			from = now
		}
		if inode, ok := from[name]; ok {
			left[name] = inode
		}
	}
	named := make(map[uint64]bool)
	for _, inode := range left {
		named[inode] = true
	}
	survives := make(map[uint64]bool) // it has a name before and after
	for _, inode := range synced {
		survives[inode] = true
	}
	for name, inode := range now {
		if survives[inode] && !named[inode] {
			left[name] = inode
		}
	}
	return left
}

func (d *Disk) image(
	choose func(synced, now map[string]uint64) map[string]uint64, content func(*file) []byte,
) (*Image, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now, err := d.list()
	if err != nil {
		return nil, err
	}
	for name, inode := range now {
		f := d.fileOf(inode)
		if f.watched {
			continue
		}
		content, err := os.ReadFile(filepath.Join(d.dir, name))
		if err != nil {
			delete(now, name)
			continue
		}
		f.write(content)
	}
	i := &Image{choose(d.names, now), make(map[uint64][]byte)}
	for _, inode := range i.names {
		if i.files[inode] == nil {
			i.files[inode] = content(d.fileOf(inode))
		}
	}
	return i, nil
}
