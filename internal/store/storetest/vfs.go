//go:build unix

package storetest

import (
	"database/sql"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"unsafe"

	"modernc.org/libc"
	_ "modernc.org/sqlite" // its files are watched
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/assay-eval/assay/internal/durable"
)

// The layer is a copy of SQLite's default file system that passes everything on, and notes what is
// written and synced below the directory of a [Disk]. It becomes the default file system, because a
// store does not choose one.
//
// SQLite is C that was translated to Go. Its functions are called by pointers to funcvals, and
// addresses of its memory are integers.

type (
	openFunc      = func(tls *libc.TLS, vfs, name, file uintptr, flags int32, out uintptr) int32
	deleteFunc    = func(tls *libc.TLS, vfs, name uintptr, syncDir int32) int32
	directoryFunc = func(tls *libc.TLS, name, fd uintptr) int32
	getCallFunc   = func(tls *libc.TLS, vfs, name uintptr) uintptr
	setCallFunc   = func(tls *libc.TLS, vfs, name, call uintptr) int32
	closeFunc     = func(tls *libc.TLS, file uintptr) int32
	writeFunc     = func(tls *libc.TLS, file, from uintptr, n int32, at int64) int32
	truncateFunc  = func(tls *libc.TLS, file uintptr, size int64) int32
	syncFunc      = func(tls *libc.TLS, file uintptr, flags int32) int32
)

// at returns what is at an address of SQLite's memory.
func at[T any](address uintptr) *T { return *(**T)(unsafe.Pointer(&address)) }

// pointerTo returns the address by which SQLite calls f, which is not a closure.
func pointerTo[F any](f F) uintptr { return *(*uintptr)(unsafe.Pointer(&f)) }

func funcAt[F any](address uintptr) F { return *(*F)(unsafe.Pointer(&address)) }

// An openFile is a file of a Disk that SQLite has open.
type openFile struct {
	disk *Disk
	path string
	file *file
	// old does the work.
	old *sqlite3.Tsqlite3_io_methods
	// synced says that SQLite has had its first sync, with which it syncs the directory of a new log.
	synced bool
}

var layer struct {
	install       sync.Once
	open, delete  uintptr
	openDirectory uintptr

	mu      sync.Mutex
	disks   map[string]*Disk    // by their directories
	methods map[uintptr]uintptr // ours, by the original ones
	files   sync.Map            // *openFile by its address
}

func install() {
	must := func(err error) {
		if err != nil {
			panic("storetest: " + err.Error())
		}
	}
	db, err := sql.Open("sqlite", ":memory:")
	must(err)
	must(db.Ping()) // SQLite initializes itself
	must(db.Close())
	layer.disks, layer.methods = make(map[string]*Disk), make(map[uintptr]uintptr)

	tls := libc.NewTLS()
	ours := copyOf[sqlite3.Tsqlite3_vfs](tls, sqlite3.Xsqlite3_vfs_find(tls, 0))
	v := at[sqlite3.Tsqlite3_vfs](ours)
	name, err := libc.CString("storetest")
	must(err)
	call, err := libc.CString("openDirectory")
	must(err)
	layer.open, layer.delete = v.FxOpen, v.FxDelete
	layer.openDirectory = funcAt[getCallFunc](v.FxGetSystemCall)(tls, ours, call)
	v.FzName, v.FpNext = name, 0
	v.FxOpen, v.FxDelete = pointerTo[openFunc](open), pointerTo[deleteFunc](remove)
	directory := pointerTo[directoryFunc](openDirectory)
	if rc := funcAt[setCallFunc](v.FxSetSystemCall)(tls, ours, call, directory); rc != 0 {
		panic("storetest: SQLite does not let its directories be watched")
	}
	if rc := sqlite3.Xsqlite3_vfs_register(tls, ours, 1); rc != 0 {
		panic("storetest: SQLite does not accept a file system")
	}
	durable.Watch(func(path string, directory bool) error {
		if d := diskOf(path, directory); d != nil {
			return d.syncedByProgram(path, directory)
		}
		return nil
	})
}

func copyOf[T any](tls *libc.TLS, from uintptr) uintptr {
	to := libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(*new(T))))
	*at[T](to) = *at[T](from)
	return to
}

// diskOf returns the disk that has a file or directory, or nil.
func diskOf(path string, directory bool) *Disk {
	layer.mu.Lock()
	defer layer.mu.Unlock()
	if directory {
		return layer.disks[path]
	}
	return layer.disks[filepath.Dir(path)]
}

func open(tls *libc.TLS, vfs, name, address uintptr, flags int32, out uintptr) int32 {
	rc := funcAt[openFunc](layer.open)(tls, vfs, name, address, flags, out)
	methods := at[sqlite3.Tsqlite3_file](address).FpMethods
	if rc != sqlite3.SQLITE_OK || methods == 0 || name == 0 {
		return rc
	}
	path := libc.GoString(name)
	d := diskOf(path, false)
	if d == nil {
		return rc
	}
	layer.files.Store(address, &openFile{
		disk: d, path: path, file: d.opened(path), old: at[sqlite3.Tsqlite3_io_methods](methods),
	})
	at[sqlite3.Tsqlite3_file](address).FpMethods = methodsFor(tls, methods)
	return rc
}

func methodsFor(tls *libc.TLS, original uintptr) uintptr {
	layer.mu.Lock()
	defer layer.mu.Unlock()
	if ours, ok := layer.methods[original]; ok {
		return ours
	}
	ours := copyOf[sqlite3.Tsqlite3_io_methods](tls, original)
	m := at[sqlite3.Tsqlite3_io_methods](ours)
	m.FxClose, m.FxWrite = pointerTo[closeFunc](closeFile), pointerTo[writeFunc](write)
	m.FxTruncate, m.FxSync = pointerTo[truncateFunc](truncate), pointerTo[syncFunc](syncFile)
	layer.methods[original] = ours
	return ours
}

func fileAt(address uintptr) *openFile {
	f, _ := layer.files.Load(address)
	return f.(*openFile)
}

func closeFile(tls *libc.TLS, address uintptr) int32 {
	f := fileAt(address)
	layer.files.Delete(address)
	return funcAt[closeFunc](f.old.FxClose)(tls, address)
}

func write(tls *libc.TLS, address, from uintptr, n int32, place int64) int32 {
	f := fileAt(address)
	f.disk.event()
	full := f.disk.full()
	if full {
		n = rand.Int32N(n + 1)
	}
	data := append([]byte{}, unsafe.Slice(at[byte](from), n)...)
	f.disk.change(f.file, change{place: place, data: data})
	rc := funcAt[writeFunc](f.old.FxWrite)(tls, address, from, n, place)
	if full {
		return sqlite3.SQLITE_FULL
	}
	return rc
}

func truncate(tls *libc.TLS, address uintptr, size int64) int32 {
	f := fileAt(address)
	f.disk.event()
	f.disk.change(f.file, change{place: size})
	return funcAt[truncateFunc](f.old.FxTruncate)(tls, address, size)
}

func syncFile(tls *libc.TLS, address uintptr, flags int32) int32 {
	f := fileAt(address)
	f.disk.event()
	if !f.disk.sync(f.file) {
		return sqlite3.SQLITE_IOERR_FSYNC
	}
	if f.synced {
		return sqlite3.SQLITE_OK // it takes time, and changes nothing on a simulated disk
	}
	f.synced = true
	return funcAt[syncFunc](f.old.FxSync)(tls, address, flags)
}

func remove(tls *libc.TLS, vfs, name uintptr, syncDir int32) int32 {
	if d := diskOf(libc.GoString(name), false); d != nil {
		d.event()
	}
	return funcAt[deleteFunc](layer.delete)(tls, vfs, name, syncDir)
}

// openDirectory is called for a file when its directory is about to be synced.
func openDirectory(tls *libc.TLS, name, fd uintptr) int32 {
	if d := diskOf(libc.GoString(name), false); d != nil {
		d.event()
		d.syncDir()
	}
	return funcAt[directoryFunc](layer.openDirectory)(tls, name, fd)
}
