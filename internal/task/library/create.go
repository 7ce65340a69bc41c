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
	"runtime"
	"time"

	"github.com/assay-eval/assay"
)

// The index covers what planning asks for, so that it reads no bodies.
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

// errNoTasks is why a library without tasks is not made.
var errNoTasks = errors.New("the library has no tasks")

// Create writes a library file and replaces what was at path. At no time is
// there a part of a library at path; when Create returns nil, the whole is on
// disk. Digest and counts of meta are set by Create. A library
// without tools or tasks, or with two tasks of one ID and difficulty, is an
// error.
func Create(ctx context.Context, path string, meta Meta, tools []assay.Tool, tasks iter.Seq[assay.Task]) error {
	if _, err := create(ctx, path, meta, tools, withoutErrors(tasks)); err != nil {
		return fmt.Errorf("create library %s: %w", path, err)
	}
	return nil
}

// withoutErrors yields tasks that never end in an error.
func withoutErrors(tasks iter.Seq[assay.Task]) iter.Seq2[assay.Task, error] {
	return func(yield func(assay.Task, error) bool) {
		for t := range tasks {
			if !yield(t, nil) {
				return
			}
		}
	}
}

// create is [Create] for tasks that may end in an error. It returns the
// library's meta as written.
func create(ctx context.Context, path string, meta Meta, tools []assay.Tool, tasks iter.Seq2[assay.Task, error]) (Meta, error) {
	tmp, err := temporary(path)
	if err != nil {
		return Meta{}, err
	}
	defer os.Remove(tmp) // in vain once it is renamed
	meta, err = fill(ctx, tmp, meta, tools, tasks)
	if err != nil {
		return Meta{}, err
	}
	if err := syncPath(tmp); err != nil {
		return Meta{}, err
	}
	if err := os.Rename(tmp, path); err != nil {
		return Meta{}, err
	}
	return meta, syncDir(filepath.Dir(path))
}

// temporary makes an empty file beside path that others may read.
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

// fill writes the content without care for crashes: the file is not yet at
// its place.
func fill(ctx context.Context, path string, meta Meta, tools []assay.Tool, tasks iter.Seq2[assay.Task, error]) (_ Meta, err error) {
	dsn, err := writeDSN(path)
	if err != nil {
		return Meta{}, err
	}
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return Meta{}, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return Meta{}, err
	}
	defer tx.Rollback()
	head := fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d;", applicationID, formatVersion)
	if _, err := tx.ExecContext(ctx, head+schema); err != nil {
		return Meta{}, err
	}
	if meta.Tools, err = insertTools(ctx, tx, tools); err != nil {
		return Meta{}, err
	}
	if meta.Tasks, err = insertTasks(ctx, tx, tasks); err != nil {
		return Meta{}, err
	}
	if meta.Digest, err = libraryDigest(ctx, tx); err != nil {
		return Meta{}, err
	}
	if err := insertMeta(ctx, tx, meta); err != nil {
		return Meta{}, err
	}
	return meta, tx.Commit()
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
			return 0, fmt.Errorf("tool %s is there twice", t.Name)
		}
		names[t.Name] = true
		body, err := json.Marshal(t)
		if err != nil {
			return 0, fmt.Errorf("tool %s: %w", t.Name, err)
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO tools VALUES (?, ?)`, i, string(body)); err != nil {
			return 0, err
		}
	}
	return len(tools), nil
}

func insertTasks(ctx context.Context, tx *sql.Tx, tasks iter.Seq2[assay.Task, error]) (int, error) {
	stmt, err := tx.PrepareContext(ctx, `INSERT INTO tasks VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`)
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
		res, err := stmt.ExecContext(ctx, string(t.ID), t.Difficulty, t.Type, digestOf(body), string(body))
		if err != nil {
			return 0, fmt.Errorf("task %q: %w", t.ID, err)
		}
		if added, err := res.RowsAffected(); err != nil || added == 0 {
			return 0, errors.Join(err, fmt.Errorf("task %q at difficulty %q is there twice", t.ID, t.Difficulty))
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
	return errors.Join(f.Sync(), f.Close())
}

// syncDir makes a rename in dir last. Windows can open no directory for it.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
