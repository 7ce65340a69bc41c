package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"syscall"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/assay-eval/assay"
)

// Page caches of each connection, in kilobytes. Readers in the order of attempts look up each
// trial in an index. For a million trials it has 30 MB, and is read over and over if the cache is
// too small. Small stores use less.
const (
	writeCache = "cache_size(-4000)"
	readCache  = "cache_size(-24000)"
	// The log is folded into the main file whenever it has 4000 pages, or 16 MB. New trials are
	// spread over the whole index, so the same pages are in the log again and again.
	writeLog = "wal_autocheckpoint(4000)"
)

func dsn(path, mode string, pragmas ...string) string {
	q := url.Values{"_pragma": append([]string{"busy_timeout(10000)"}, pragmas...)}
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: mode + "&" + q.Encode()}
	return u.String()
}

func readDSN(path string) string { return dsn(path, "mode=ro", readCache, "query_only(1)") }

// frozenDSN reads only the main file. It ignores the log and writers, and leaves no trace.
func frozenDSN(path string) string { return dsn(path, "immutable=1", readCache, "query_only(1)") }

// resolve returns the absolute path without links, so that a file's lock and log are found under
// each of its names.
func resolve(path string) (string, error) {
	if path == "" {
		return "", hinted(errors.New("store has no path"), "name a file with --store")
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("store %s: %w", path, err)
	}
	if target, err := filepath.EvalSymlinks(abs); err == nil {
		return target, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("store %s: %w", path, err)
	}
	if _, err := os.Lstat(abs); err == nil {
		return "", hinted(fmt.Errorf("store %s is a link to a missing file", path),
			"remove the link, or create its target's directory")
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(abs))
	if errors.Is(err, fs.ErrNotExist) {
		err := fmt.Errorf("store %s: its directory does not exist: %w", path, fs.ErrNotExist)
		return "", hinted(err, "create it, or use --store another.db")
	}
	if err != nil {
		return "", fmt.Errorf("store %s: %w", path, err)
	}
	return filepath.Join(dir, filepath.Base(abs)), nil
}

// size returns the size of the file at path, or 0 if it does not exist.
func size(path string) (int64, error) {
	fi, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("store: %w", err)
	case !fi.Mode().IsRegular():
		what := "not a regular file"
		if fi.IsDir() {
			what = "a directory"
		}
		return 0, hinted(fmt.Errorf("%s: %w: it is %s", path, ErrNotStore, what),
			"name a file, such as --store assay.db")
	}
	return fi.Size(), nil
}

// logSize returns the size of the log of the store at path.
func logSize(path string) (int64, error) {
	fi, err := os.Stat(path + "-wal")
	if err == nil && !fi.Mode().IsRegular() {
		name := filepath.Base(path) + "-wal"
		err := fmt.Errorf("store %s: its log %s is not a regular file", path, name)
		return 0, hinted(err, "move it away; it does not belong to the store")
	}
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("store: %w", err)
	}
	return fi.Size(), nil
}

// inspect refuses files that cannot be opened as a store for writing. It does not write, and
// accepts a missing or empty file.
//
// It opens the file only through SQLite. If the file were opened and closed in another way, the
// system would drop the locks that this process may hold on it for another DB.
func inspect(ctx context.Context, path string) error {
	n, err := size(path)
	if err != nil {
		return err
	}
	if n == 0 {
		return refuseOrphanedLog(path)
	}
	if err := refuseHardLink(path); err != nil {
		return err
	}
	_, err = findReadable(ctx, path)
	// The writer rolls back an interrupted creation. A directory that cannot be written fails at
	// the lock, which has a better message.
	if c := code(err); c == sqlite3.SQLITE_READONLY_ROLLBACK ||
		c == sqlite3.SQLITE_READONLY_DIRECTORY || c&0xff == sqlite3.SQLITE_CANTOPEN {
		return nil
	}
	return err
}

// refuseHardLink refuses a file that has several names. Its lock and its log are found by its name,
// so two runs under different names would write at once. It removes the name that a copy had while it
// was made, which a kill or a power cut may have left.
func refuseHardLink(path string) error {
	fi, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	part := partOf(path)
	if unfinished, gone := os.Stat(part); gone == nil && os.SameFile(fi, unfinished) {
		err = os.Remove(part)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			fi, err = os.Stat(path)
		}
	}
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	s, ok := fi.Sys().(*syscall.Stat_t)
	if !ok || s.Nlink < 2 {
		return nil
	}
	err = fmt.Errorf("store %s: its file has %d names (hard links), and runs under different "+
		"names would destroy it", path, s.Nlink)
	return hinted(err, fmt.Sprintf("\"find DIRECTORY -samefile %s\" lists them; remove all but one while "+
		"no run works; a symbolic link is a safe second name", filepath.Base(path)))
}

// refuseOrphanedLog protects results in a log whose main file is missing, because SQLite deletes
// the log of an empty file.
func refuseOrphanedLog(path string) error {
	n, err := logSize(path)
	if err != nil || n == 0 {
		return err
	}
	return hinted(fmt.Errorf("%s: %w: it is missing or empty, but %s-wal holds results",
		path, ErrNotStore, filepath.Base(path)),
		"put back the main file that belongs to it, or move the -wal file away")
}

// refuseStranger refuses a file that is certainly not a store of this format. It leaves no file
// beside it. If it is uncertain, it accepts the file, because the log may just be
// being folded into it.
func refuseStranger(ctx context.Context, path string) error {
	name := frozenDSN(path)
	id, err := header(ctx, name, path)
	switch {
	case primary(err) == sqlite3.SQLITE_NOTADB && !hasJournal(path):
		return notDatabase(path)
	case primary(err) == sqlite3.SQLITE_CANTOPEN:
		return unreadable(path, err)
	case errors.Is(err, ErrNewer), errors.Is(err, ErrOlder):
		return err
	case err == nil && id != applicationID:
		return stranger(path)
	}
	return nil
}

// hasJournal reports whether SQLite has left a journal of an interrupted write. After a power cut
// during the creation of a store, the first page may be missing that the journal undoes.
func hasJournal(path string) bool {
	const magic = "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"
	f, err := os.Open(path + "-journal")
	if err != nil {
		return false
	}
	defer f.Close()
	start := make([]byte, len(magic))
	_, err = io.ReadFull(f, start)
	return err == nil && string(start) == magic
}

func notDatabase(path string) error {
	return hinted(fmt.Errorf("%s: %w: it is not an SQLite file", path, ErrNotStore),
		"nothing was written; use --store another.db")
}

func stranger(path string) error {
	return hinted(fmt.Errorf("%s: %w: it is the SQLite file of another program", path, ErrNotStore),
		"nothing was written; use --store another.db")
}

// unreadable returns the system's reason why SQLite cannot open a file.
func unreadable(path string, err error) error {
	f, reason := os.Open(path)
	if reason == nil {
		return errors.Join(fmt.Errorf("store %s: %w", path, err), f.Close())
	}
	return hinted(fmt.Errorf("store: %w", reason),
		"check the permissions of the file, or use --store another.db")
}

// header reads the field of the header that marks a store, and refuses a store of another format.
func header(ctx context.Context, dsn, path string) (id int, err error) {
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return 0, err
	}
	var version int
	query := "SELECT application_id, user_version FROM pragma_application_id, pragma_user_version"
	err = db.QueryRowContext(ctx, query).Scan(&id, &version)
	if err == nil && id == applicationID {
		err = refuseFormat(ctx, db, path, version)
	}
	return id, errors.Join(err, db.Close())
}

// findReadable returns the data source name with which SQLite can read the store at path.
func findReadable(ctx context.Context, path string) (string, error) {
	n, err := size(path)
	if err != nil {
		return "", err
	}
	if n == 0 {
		if err := refuseOrphanedLog(path); err != nil {
			return "", err
		}
		return "", missing(path)
	}
	if err := refuseStranger(ctx, path); err != nil {
		return "", err
	}
	if _, err := logSize(path); err != nil {
		return "", err
	}
	name := readDSN(path)
	id, err := header(ctx, name, path)
	if primary(err) == sqlite3.SQLITE_CANTOPEN || code(err) == sqlite3.SQLITE_READONLY_DIRECTORY {
		// The directory cannot be written, and there is no log to share.
		if name, err = frozenName(path, err); err == nil {
			id, err = header(ctx, name, path)
		}
	}
	if primary(err) == sqlite3.SQLITE_CORRUPT {
		// The file may be cut off. With this pragma, and without one that reads the schema,
		// SQLite reads the rest.
		name = dsn(path, "mode=ro", "writable_schema(1)", "query_only(1)")
		id, err = header(ctx, name, path)
	}
	switch {
	case primary(err) == sqlite3.SQLITE_NOTADB:
		return "", notDatabase(path)
	case err != nil:
		return "", explain(path, err)
	case id != applicationID:
		return "", stranger(path)
	}
	return name, nil
}

func missing(path string) error {
	if _, err := os.Stat(path); err == nil {
		return coded(fmt.Errorf("%s is empty: %w", path, ErrNoStore), assay.HintNoStore, path)
	}
	return coded(fmt.Errorf("%s: %w", path, ErrNoStore), assay.HintNoStore, path)
}

// frozenName allows reading only the main file if there is no log.
func frozenName(path string, cause error) (string, error) {
	n, err := logSize(path)
	if err != nil {
		return "", err
	}
	if n > 0 {
		return "", hinted(fmt.Errorf("store %s: its latest results are in the -wal file, "+
			"which cannot be read in a directory without write permission: %w", path, cause),
			"copy both files to a directory where you can write")
	}
	return frozenDSN(path), nil
}

// openWriter opens the connection that writes, and makes the tables of a new store.
func openWriter(ctx context.Context, path string, known *layout) (*writer, error) {
	pool, err := sql.Open("sqlite", dsn(path, "mode=rwc", writeCache, writeLog, "synchronous(FULL)",
		"secure_delete(1)")) // so that no recovery finds rows that users deleted
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", path, err)
	}
	w := newWriter(context.WithoutCancel(ctx), nil)
	w.path, w.pool = path, pool
	if err := w.prepare(ctx, known); err != nil {
		return nil, errors.Join(explain(path, err), w.close())
	}
	return w, nil
}

func (w *writer) prepare(ctx context.Context, known *layout) (err error) {
	if w.conn, err = w.pool.Conn(ctx); err != nil {
		return err
	}
	if w.layout, err = createTables(ctx, w.conn, w.path, known); err != nil {
		return err
	}
	if _, err := w.conn.ExecContext(ctx, "PRAGMA foreign_keys = ON"); err != nil {
		return err
	}
	// The log is created after the tables, so that the main file is marked as a store
	// before a log exists.
	var mode string
	if err := w.conn.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode); err != nil {
		return err
	}
	if mode != "wal" {
		err := fmt.Errorf("store %s: the file system has no shared memory for SQLite's log", w.path)
		return hinted(err, "put the store on a local disk")
	}
	if err := refuseDamaged(ctx, w.conn, w.path); err != nil {
		return err
	}
	if err := w.learnLast(); err != nil {
		return err
	}
	if err := w.renewLog(); err != nil {
		return err
	}
	return w.noteFiles()
}
