package library

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/durable"
	"github.com/assay-eval/assay/internal/task/child"
)

// The index covers the columns that planning reads, so planning need not read any bodies.
const schema = `
CREATE TABLE meta (
	name TEXT NOT NULL, source TEXT NOT NULL, created TEXT NOT NULL,
	digest TEXT NOT NULL, tools INTEGER NOT NULL, tasks INTEGER NOT NULL
);
CREATE TABLE tools (ord INTEGER PRIMARY KEY, json TEXT NOT NULL);
CREATE TABLE tasks (
	id TEXT NOT NULL, difficulty TEXT NOT NULL, type TEXT NOT NULL,
	digest TEXT NOT NULL, body TEXT NOT NULL,
	PRIMARY KEY (id, difficulty)
);
CREATE INDEX tasks_by_type ON tasks (type, difficulty, id, digest);
`

// errNoTasks is the error of creating a library without tasks.
var errNoTasks = errors.New("the library has no tasks")

// Create writes a library file and replaces any file at path. It never leaves a partial library at
// path; when it returns nil, the complete file is on disk. Create sets the digest and counts of
// meta. It returns an error if there are no tools or tasks, or if two tasks have the same ID and
// difficulty.
func Create(
	ctx context.Context, path string, meta Meta, tools []assay.Tool, tasks iter.Seq[assay.Task],
) error {
	if err := create(ctx, path, &meta, assay.NewCatalog(tools), withoutErrors(tasks)); err != nil {
		return fmt.Errorf("create library %s: %w", path, err)
	}
	return nil
}

// withoutErrors pairs each task with a nil error.
func withoutErrors(tasks iter.Seq[assay.Task]) iter.Seq2[assay.Task, error] {
	return func(yield func(assay.Task, error) bool) {
		for t := range tasks {
			if !yield(t, nil) {
				return
			}
		}
	}
}

// create is like [Create], but reading the tasks may fail. It completes the library's metadata,
// which are written after the last task.
func create(
	ctx context.Context, path string, meta *Meta,
	catalog *assay.Catalog, tasks iter.Seq2[assay.Task, error],
) error {
	tmp, err := temporary(path)
	if err != nil {
		return err
	}
	defer os.Remove(tmp) // fails after the rename
	if err := writeContent(ctx, tmp, meta, catalog, tasks); err != nil {
		return err
	}
	if err := syncPath(tmp); err != nil {
		return err
	}
	if err := os.Rename(tmp, path); err != nil {
		return err
	}
	return durable.SyncDir(filepath.Dir(path))
}

// compiled writes a library to a temporary file, which Close removes, and opens it. It takes the
// path of the file that it was made of, if there is one.
func compiled(
	ctx context.Context, origin string, meta Meta,
	catalog *assay.Catalog, tasks iter.Seq2[assay.Task, error],
) (*Library, error) {
	folder, err := child.NewFolder()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(folder.Path, "library.db")
	if err = writeContent(ctx, file, &meta, catalog, tasks); err == nil {
		var l *Library
		if l, err = Open(ctx, file); err == nil {
			l.folder, l.origin = folder, origin
			return l, nil
		}
	}
	return nil, errors.Join(err, folder.Remove())
}

// temporary creates an empty file next to path that other users may read.
func temporary(path string) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return "", err
	}
	if err := errors.Join(f.Chmod(0o644), f.Close()); err != nil {
		os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

// writeContent writes a library to path. It doesn't protect against crashes, because the file still
// has its temporary name.
func writeContent(
	ctx context.Context, path string, meta *Meta,
	catalog *assay.Catalog, tasks iter.Seq2[assay.Task, error],
) (err error) {
	dsn, err := writeDSN(path)
	if err != nil {
		return err
	}
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()

	head := fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d;",
		applicationID, formatVersion)
	if _, err := tx.ExecContext(ctx, head+schema); err != nil {
		return err
	}
	if meta.Tools, err = insertTools(ctx, tx, catalog.All()); err != nil {
		return err
	}
	if err := insertCarriers(ctx, tx, catalog); err != nil {
		return err
	}
	if err := insertKey(ctx, tx, meta.Key); err != nil {
		return err
	}
	if meta.Tasks, err = insertTasks(ctx, tx, tasks); err != nil {
		return err
	}
	if meta.Digest, err = libraryDigest(ctx, tx); err != nil {
		return err
	}
	if err := insertMeta(ctx, tx, *meta); err != nil {
		return err
	}
	return tx.Commit()
}

func writeDSN(path string) (string, error) {
	dsn, err := fileURL(path)
	if err != nil {
		return "", err
	}
	q := url.Values{"_pragma": {"journal_mode(OFF)", "synchronous(OFF)"}}
	return dsn + "?" + q.Encode(), nil
}

func insertTools(ctx context.Context, tx *sql.Tx, tools []assay.Tool) (int, error) {
	if len(tools) == 0 {
		return 0, errors.New("the library has no tools")
	}
	names := make(map[string]bool, len(tools))
	for i, t := range tools {
		if names[t.Name] {
			return 0, fmt.Errorf("tool %s is defined twice", t.Name)
		}
		names[t.Name] = true
		body, err := json.Marshal(t)
		if err != nil {
			return 0, fmt.Errorf("tool %s: %w", t.Name, err)
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO tools VALUES (?, ?)`, i, string(body))
		if err != nil {
			return 0, err
		}
	}
	return len(tools), nil
}

// insertCarriers adds a table of the script and server that carry out a library's own tools. Other
// libraries do without it, so that their bytes stay.
func insertCarriers(ctx context.Context, tx *sql.Tx, c *assay.Catalog) error {
	if !c.Own() {
		return nil
	}
	var server []byte
	if c.Server() != nil {
		var err error
		if server, err = json.Marshal(c.Server()); err != nil {
			return err
		}
	}
	_, err := tx.ExecContext(ctx, `CREATE TABLE carriers (
		name TEXT NOT NULL, source TEXT NOT NULL, server TEXT NOT NULL);
		INSERT INTO carriers VALUES (?, ?, ?)`, c.Script().Name, c.Script().Source, string(server))
	if base := c.Script().Base; err == nil && len(base) > 0 {
		_, err = tx.ExecContext(ctx, `CREATE TABLE bases (body TEXT NOT NULL);
			INSERT INTO bases VALUES (?)`, string(base))
	}
	return err
}

func insertTasks(
	ctx context.Context, tx *sql.Tx, tasks iter.Seq2[assay.Task, error],
) (int, error) {
	stmt, err := tx.PrepareContext(ctx,
		`INSERT INTO tasks VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`)
	if err != nil {
		return 0, err
	}
	defer stmt.Close()
	n := 0
	for t, err := range tasks {
		if err != nil {
			return 0, err
		}
		body, err := json.Marshal(t)
		if err != nil {
			return 0, fmt.Errorf("task %q: %w", t.ID, err)
		}
		digest := digestOf(body)
		if len(t.Phrasings) > 0 {
			digest = t.Digest()
		}
		res, err := stmt.ExecContext(ctx,
			string(t.ID), t.Difficulty, t.Type, digest, string(body))
		if err != nil {
			return 0, fmt.Errorf("task %q: %w", t.ID, err)
		}
		if added, err := res.RowsAffected(); err != nil || added == 0 {
			return 0, errors.Join(err,
				fmt.Errorf("task %q at difficulty %q occurs twice", t.ID, t.Difficulty))
		}
		n++
	}
	if n == 0 {
		return 0, errNoTasks
	}
	return n, nil
}

func insertMeta(ctx context.Context, tx *sql.Tx, m Meta) error {
	var created string
	if !m.Created.IsZero() {
		created = m.Created.UTC().Format(time.RFC3339)
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO meta VALUES (?, ?, ?, ?, ?, ?)`,
		m.Name, m.Source, created, m.Digest, m.Tools, m.Tasks)
	return err
}

func syncPath(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(durable.SyncFile(f), f.Close())
}
