package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	sqlite3 "modernc.org/sqlite/lib"
)

// applicationID marks an SQLite file as a store: "Asay" in its header.
const applicationID = 0x41736179

// Migrations bring a store to the newest schema. Their number in order is the
// file's user_version. They are only added, never edited.
//
//go:embed migrations/*.sql
var migrations embed.FS

func migrationNames() []string {
	entries, err := migrations.ReadDir("migrations")
	if err != nil {
		panic("store: embedded migrations: " + err.Error())
	}
	names := make([]string, len(entries))
	for i, e := range entries { // ReadDir sorts by name
		names[i] = "migrations/" + e.Name()
	}
	return names
}

// Page caches in kilobytes, of each connection. What is read in the order of
// attempts looks each trial up in an index, which has thirty megabytes for a million
// and is read over and over where it finds no room; smaller stores take less.
const (
	writeCache = "cache_size(-4000)"
	readCache  = "cache_size(-24000)"
)

func dsn(path, mode string, pragmas ...string) string {
	q := url.Values{"_pragma": append([]string{"busy_timeout(10000)"}, pragmas...)}
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: mode + "&" + q.Encode()}
	return u.String()
}

func readDSN(path string) string { return dsn(path, "mode=ro", readCache, "query_only(1)") }

// frozenDSN reads the main file alone, with no regard for its log or for
// writers, and leaves no trace at all.
func frozenDSN(path string) string { return dsn(path, "immutable=1", readCache, "query_only(1)") }

// resolve returns the absolute path without links, so that the lock and the
// log of one file are found under every name of it.
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
		return "", fmt.Errorf("store: %w", err)
	}
	if _, err := os.Lstat(abs); err == nil {
		return "", hinted(fmt.Errorf("store %s is a link to nothing", path), "remove the link, or create its target's directory")
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(abs))
	if errors.Is(err, fs.ErrNotExist) {
		return "", hinted(fmt.Errorf("store %s: its directory does not exist: %w", path, fs.ErrNotExist), "create it, or use --store another.db")
	}
	if err != nil {
		return "", fmt.Errorf("store: %w", err)
	}
	return filepath.Join(dir, filepath.Base(abs)), nil
}

// size returns the size of the file at path, 0 where there is none.
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
		return 0, hinted(fmt.Errorf("%s: %w: it is %s", path, ErrNotStore, what), "give a file's name, such as --store assay.db")
	}
	return fi.Size(), nil
}

// logSize is size of the log of the store at path.
func logSize(path string) (int64, error) {
	fi, err := os.Stat(path + "-wal")
	if err == nil && !fi.Mode().IsRegular() {
		return 0, hinted(fmt.Errorf("store %s: beside it, where SQLite keeps its log, is %s-wal, which is no regular file", path, filepath.Base(path)),
			"move it away; it is none of the store's")
	}
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("store: %w", err)
	}
	return fi.Size(), nil
}

// inspect refuses, without writing anything, what cannot be opened as a store
// for writing. A missing or empty file is fine.
//
// The file is looked at through SQLite only. Were it opened and closed by
// other means, the system would drop the locks that this process may hold on
// it for another DB.
func inspect(ctx context.Context, path string) error {
	n, err := size(path)
	if err != nil {
		return err
	}
	if n == 0 {
		return refuseOrphanedLog(path)
	}
	if err := refuseStranger(ctx, path); err != nil {
		return err
	}
	if _, err := logSize(path); err != nil {
		return err
	}
	_, version, err := header(ctx, readDSN(path))
	if err != nil {
		// A creation that was cut off is rolled back by the writer, and a
		// directory that cannot be written fails at the lock, with a better
		// message.
		if code(err) == sqlite3.SQLITE_READONLY_ROLLBACK || primary(err) == sqlite3.SQLITE_CANTOPEN {
			return nil
		}
		return explain(path, err)
	}
	return refuseNewer(path, version)
}

// refuseOrphanedLog guards results in a log whose main file is gone: SQLite
// would delete the log of an empty file.
func refuseOrphanedLog(path string) error {
	n, err := logSize(path)
	if err != nil || n == 0 {
		return err
	}
	return hinted(fmt.Errorf("%s: %w: it is missing or empty, but %s-wal holds results", path, ErrNotStore, filepath.Base(path)),
		"put back the main file that belongs to it, or move the -wal file away")
}

// refuseStranger refuses a file that is certainly not a store, or of a newer
// program, leaving not even a file beside it. What it cannot tell it lets pass:
// the main file alone can be in the midst of taking over its log.
func refuseStranger(ctx context.Context, path string) error {
	id, version, err := header(ctx, frozenDSN(path))
	switch {
	case primary(err) == sqlite3.SQLITE_NOTADB:
		return hinted(fmt.Errorf("%s: %w: it is not an SQLite file", path, ErrNotStore), "nothing was written; use --store another.db")
	case primary(err) == sqlite3.SQLITE_CANTOPEN:
		return unreadable(path, err)
	case err != nil:
		return nil
	case id != applicationID:
		return stranger(path)
	}
	return refuseNewer(path, version)
}

func stranger(path string) error {
	return hinted(fmt.Errorf("%s: %w: it is the SQLite file of another program", path, ErrNotStore), "nothing was written; use --store another.db")
}

// unreadable finds the system's reason for which SQLite cannot open a file.
func unreadable(path string, err error) error {
	f, reason := os.Open(path)
	if reason == nil {
		return errors.Join(fmt.Errorf("store %s: %w", path, err), f.Close())
	}
	return hinted(fmt.Errorf("store: %w", reason), "check the permissions of the file, or use --store another.db")
}

func refuseNewer(path string, version int) error {
	if latest := len(migrationNames()); version > latest {
		return hinted(fmt.Errorf("%s: %w (its format is %d, this program knows %d)", path, ErrNewer, version, latest),
			"upgrade assay, or use --store another.db")
	}
	return nil
}

// header reads what marks a store.
func header(ctx context.Context, dsn string) (id, version int, err error) {
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return 0, 0, err
	}
	err = db.QueryRowContext(ctx, "SELECT application_id, user_version FROM pragma_application_id, pragma_user_version").Scan(&id, &version)
	return id, version, errors.Join(err, db.Close())
}

// findReadable returns the name under which SQLite can read the store at path.
func findReadable(ctx context.Context, path string) (string, error) {
	n, err := size(path)
	if err != nil {
		return "", err
	}
	if n == 0 {
		if err := refuseOrphanedLog(path); err != nil {
			return "", err
		}
		return "", hinted(fmt.Errorf("%s: %w", path, ErrNoStore), "\"assay run\" creates it; --store names another")
	}
	if err := refuseStranger(ctx, path); err != nil {
		return "", err
	}
	if _, err := logSize(path); err != nil {
		return "", err
	}
	name := readDSN(path)
	id, version, err := header(ctx, name)
	if primary(err) == sqlite3.SQLITE_CANTOPEN {
		// The directory cannot be written and no log is there to share.
		if name, err = frozenName(path, err); err == nil {
			id, version, err = header(ctx, name)
		}
	}
	if primary(err) == sqlite3.SQLITE_CORRUPT {
		// Perhaps it is cut off. With this, and without any pragma that looks at the
		// schema, SQLite reads what is left.
		name = dsn(path, "mode=ro", "writable_schema(1)", "query_only(1)")
		id, version, err = header(ctx, name)
	}
	switch {
	case err != nil:
		return "", explain(path, err)
	case id != applicationID:
		return "", stranger(path)
	case version < len(migrationNames()):
		if err := refuseOlder(ctx, name, path, version); err != nil {
			return "", err
		}
	}
	return name, refuseNewer(path, version)
}

// refuseOlder refuses a store of an older format, unless its tables are of today's: then
// only the number is wrong, which is damage, and what is damaged can be read.
func refuseOlder(ctx context.Context, name, path string, version int) error {
	db, err := sql.Open("sqlite", name)
	if err != nil {
		return fmt.Errorf("store %s: %w", path, err)
	}
	what, err := mislabeled(ctx, db, version)
	if err = errors.Join(err, db.Close()); err != nil {
		return explain(path, err)
	}
	switch {
	case what != "":
		return nil
	case version < 0:
		return hinted(fmt.Errorf("store %s: %w: its header says format %d, which there never was", path, ErrDamaged, version), "nothing was changed; go back to a backup")
	}
	return hinted(fmt.Errorf("%s: %w", path, ErrOlder), "\"assay run\" on it brings it up to date")
}

// frozenName allows reading the main file alone where that is the whole truth.
func frozenName(path string, cause error) (string, error) {
	n, err := logSize(path)
	if err != nil {
		return "", err
	}
	if n > 0 {
		return "", hinted(fmt.Errorf("store %s: its newest results are in the -wal file, which cannot be read in a directory without write permission: %w", path, cause),
			"copy both files to a directory where you can write")
	}
	return frozenDSN(path), nil
}

// openWriter opens the connection that writes, with the newest schema.
func openWriter(ctx context.Context, path string, opts Options) (*writer, error) {
	pool, err := sql.Open("sqlite", dsn(path, "mode=rwc", writeCache, "synchronous(FULL)"))
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", path, err)
	}
	w := &writer{path: path, pool: pool, ctx: context.WithoutCancel(ctx)}
	if err := w.prepare(ctx, opts); err != nil {
		return nil, errors.Join(explain(path, err), w.close())
	}
	return w, nil
}

func (w *writer) prepare(ctx context.Context, opts Options) (err error) {
	if w.conn, err = w.pool.Conn(ctx); err != nil {
		return err
	}
	if err := migrate(ctx, w.conn, w.path); err != nil {
		return err
	}
	// Only now, and here because a transaction cannot switch it: a migration
	// may replace a table that others refer to.
	if _, err := w.conn.ExecContext(ctx, "PRAGMA foreign_keys = ON"); err != nil {
		return err
	}
	// Only now: the mark of a store is in the main file before a log exists.
	var mode string
	if err := w.conn.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode); err != nil {
		return err
	}
	if mode != "wal" {
		return hinted(fmt.Errorf("store %s: the file system offers no shared memory for SQLite's log", w.path), "put the store on a local disk")
	}
	if err := refuseDamaged(ctx, w.conn, w.path); err != nil {
		return err
	}
	if opts.MaxBytes > 0 {
		if err := limitSize(ctx, w.conn, opts.MaxBytes); err != nil {
			return err
		}
	}
	if err := w.compile(ctx); err != nil {
		return err
	}
	return w.noteFiles(ctx)
}

// refuseDamaged refuses what [DB.Verify] found to be damaged, and what can be seen
// to be in a moment.
func refuseDamaged(ctx context.Context, conn querier, path string) error {
	damaged := func(what string) error {
		return hinted(fmt.Errorf("store %s: %w: %s", path, ErrDamaged, what), doRescue)
	}
	if _, err := os.Stat(markPath(path)); err == nil {
		return damaged("\"assay verify\" found it so, and left " + filepath.Base(markPath(path)))
	}
	has, tells, err := sizes(ctx, conn, path)
	if err != nil {
		return err
	}
	if has < tells {
		return damaged(fmt.Sprintf("%d of its %d bytes are missing", tells-has, tells))
	}
	wrong, err := schemaDiffers(ctx, conn)
	if err != nil {
		return err
	}
	for _, w := range wrong {
		return damaged(w.name + " " + w.what)
	}
	if text, err := wrongFormat(ctx, conn); text != "" || err != nil {
		return errors.Join(damaged(text), err)
	}
	return nil
}

// refuseMislabeled refuses a file whose number of its format is none, or not that of
// its tables. To bring it up to date would fail, and to do what that says would lead
// back here.
func refuseMislabeled(ctx context.Context, db querier, path string, version int) error {
	what := fmt.Sprintf("its header says format %d, which there never was", version)
	if version >= 0 {
		var err error
		if what, err = mislabeled(ctx, db, version); what == "" || err != nil {
			return err
		}
	}
	return hinted(fmt.Errorf("store %s: %w: %s", path, ErrDamaged, what), doRescue)
}

// mislabeled says that a store has today's tables and not its number, if that is so.
func mislabeled(ctx context.Context, db querier, version int) (string, error) {
	if version >= len(migrationNames()) {
		return "", nil
	}
	wrong, err := schemaDiffers(ctx, db)
	if err != nil || len(wrong) > 0 {
		return "", err
	}
	return wrongFormat(ctx, db)
}

func limitSize(ctx context.Context, conn *sql.Conn, limit int64) error {
	var page int64
	if err := conn.QueryRowContext(ctx, "PRAGMA page_size").Scan(&page); err != nil {
		return err
	}
	_, err := conn.ExecContext(ctx, fmt.Sprintf("PRAGMA max_page_count = %d", max(1, limit/page)))
	return err
}

// migrate checks under the write lock that the file is ours or new, and
// applies the migrations that it lacks, all or none.
func migrate(ctx context.Context, conn *sql.Conn, path string) error {
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	if err := applyMigrations(ctx, conn, path); err != nil {
		_, back := conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		return errors.Join(err, back)
	}
	_, err := conn.ExecContext(ctx, "COMMIT")
	return err
}

func applyMigrations(ctx context.Context, conn *sql.Conn, path string) error {
	var id, version, objects int
	err := conn.QueryRowContext(ctx, `SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema)
		FROM pragma_application_id, pragma_user_version`).Scan(&id, &version, &objects)
	if err != nil {
		return err
	}
	if fresh := id == 0 && version == 0 && objects == 0; !fresh && id != applicationID {
		return stranger(path)
	}
	if err := refuseNewer(path, version); err != nil {
		return err
	}
	if err := refuseMislabeled(ctx, conn, path, version); err != nil {
		return err
	}
	names := migrationNames()
	for _, name := range names[version:] {
		if err := apply(ctx, conn, path, name); err != nil {
			return err
		}
	}
	if version == len(names) {
		// On a write-protected file BEGIN IMMEDIATE only reads. This changes no
		// row and fails there.
		_, err := conn.ExecContext(ctx, "UPDATE runs SET id = id WHERE FALSE")
		return err
	}
	if err := checkReferences(ctx, conn, path); err != nil {
		return err
	}
	if version < ledgerFormat {
		if err := sealLedger(ctx, conn); primary(err) == sqlite3.SQLITE_CONSTRAINT {
			return notOurs(path, err)
		} else if err != nil {
			return err
		}
	}
	_, err = conn.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, len(names)))
	return err
}

func apply(ctx context.Context, conn *sql.Conn, path, name string) error {
	text, err := migrations.ReadFile(name)
	if err != nil {
		return err
	}
	if _, err = conn.ExecContext(ctx, string(text)); err == nil {
		return nil
	}
	err = fmt.Errorf("%s: %w", strings.TrimPrefix(name, "migrations/"), err)
	if c := primary(err); c == sqlite3.SQLITE_CONSTRAINT || c == sqlite3.SQLITE_ERROR {
		return notOurs(path, err)
	}
	return err
}

// notOurs refuses a store with rows that its schema would not have let in, or
// with another schema.
func notOurs(path string, err error) error {
	return hinted(fmt.Errorf("store %s cannot be brought up to date: %w: %w", path, ErrDamaged, err),
		"nothing was changed; it holds what no assay wrote; go back to a copy, or use --store another.db")
}

// checkReferences makes up for migrations that run without enforcement of
// foreign keys.
func checkReferences(ctx context.Context, conn *sql.Conn, path string) error {
	var lost int
	if err := conn.QueryRowContext(ctx, "SELECT count(*) FROM pragma_foreign_key_check").Scan(&lost); err != nil {
		return err
	}
	if lost > 0 {
		return notOurs(path, fmt.Errorf("%d rows refer to rows that are not there", lost))
	}
	return nil
}
