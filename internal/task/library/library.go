package library

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	_ "modernc.org/sqlite" // driver "sqlite"

	"github.com/assay-eval/assay"
)

// ErrTaskNotFound is in the chain of the error for a task, or a wording of a
// task, that a library does not have.
var ErrTaskNotFound = errors.New("no such task")

// A Library is an open library file. It is safe for concurrent use.
type Library struct {
	path    string
	meta    Meta
	catalog *assay.Catalog
	db      *sql.DB
	task    *sql.Stmt
	// tools identifies the tools, "" for the built-in ones; see [Library.Digest].
	tools string
	// private says that the file is ours alone and goes away with Close.
	private bool
}

// Meta describes a library.
type Meta struct {
	Name string `json:"name"`
	// Source tells where the tasks came from: a generator with its version or
	// an imported file.
	Source string `json:"source"`
	// Created is when the library was made; zero where that is not told, as
	// in the built-in library, which is always the same.
	Created time.Time `json:"created,omitzero"`
	// Digest identifies the content, tools and tasks: 128 bits of SHA-256 in
	// hex. Like Tools and Tasks it is set by [Create].
	Digest string `json:"digest"`
	Tools  int    `json:"tools"`
	Tasks  int    `json:"tasks"`
}

// A Count says how many tasks there are of a type at a difficulty.
type Count struct {
	Type       string `json:"type"`
	Difficulty string `json:"difficulty"`
	Tasks      int    `json:"tasks"`
}

// maxConns bounds the connections of a library, each with a page cache of its
// own of cacheKB.
const (
	maxConns = 4
	cacheKB  = 1024
)

// Open opens a library file to read. It writes nothing, neither the file nor
// beside it, and takes no time that grows with the number of tasks. The file
// must not change while it is open; [Create] replaces a file rather than
// changing it.
func Open(ctx context.Context, path string) (*Library, error) {
	if err := checkKind(path); err != nil {
		return nil, err
	}
	dsn, err := readOnlyDSN(path)
	if err != nil {
		return nil, fmt.Errorf("open library %s: %w", path, err)
	}
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, fmt.Errorf("open library %s: %w", path, err)
	}
	db.SetMaxOpenConns(maxConns)
	db.SetMaxIdleConns(maxConns)
	l := &Library{path: path, db: db}
	if err := l.load(ctx); err != nil {
		db.Close()
		if ctx.Err() != nil {
			return nil, fmt.Errorf("open library %s: %w", path, context.Cause(ctx))
		}
		return nil, l.damaged(err)
	}
	return l, nil
}

func readOnlyDSN(path string) (string, error) {
	dsn, err := fileURL(path)
	if err != nil {
		return "", err
	}
	q := url.Values{"mode": {"ro"}, "immutable": {"1"}, "_pragma": {
		fmt.Sprintf("cache_size(-%d)", cacheKB), "query_only(1)",
	}}
	return dsn + "?" + q.Encode(), nil
}

// fileURL is the URL by which SQLite opens path, whatever characters it has.
func fileURL(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	abs = filepath.ToSlash(abs)
	if !strings.HasPrefix(abs, "/") { // a Windows drive
		abs = "/" + abs
	}
	return (&url.URL{Scheme: "file", Path: abs}).String(), nil
}

// load reads what is held in memory.
func (l *Library) load(ctx context.Context) error {
	var created string
	err := l.db.QueryRowContext(ctx, `SELECT name, source, created, digest, tools, tasks FROM meta`).
		Scan(&l.meta.Name, &l.meta.Source, &created, &l.meta.Digest, &l.meta.Tools, &l.meta.Tasks)
	if err != nil {
		return fmt.Errorf("meta: %w", err)
	}
	if created != "" {
		if l.meta.Created, err = time.Parse(time.RFC3339, created); err != nil {
			return fmt.Errorf("meta: %w", err)
		}
	}
	tools, err := l.readTools(ctx)
	if err != nil {
		return fmt.Errorf("tools: %w", err)
	}
	if len(tools) != l.meta.Tools {
		return fmt.Errorf("tools: %d of %d are there", len(tools), l.meta.Tools)
	}
	l.catalog = assay.NewCatalog(tools)
	if l.tools, err = toolsDigest(tools); err != nil {
		return fmt.Errorf("tools: %w", err)
	}
	l.task, err = l.db.PrepareContext(ctx, `SELECT digest, body FROM tasks WHERE id = ? AND difficulty = ?`)
	return err
}

func (l *Library) readTools(ctx context.Context) ([]assay.Tool, error) {
	var tools []assay.Tool
	err := each(ctx, l.db, func(scan func(...any) error) error {
		var body []byte
		if err := scan(&body); err != nil {
			return err
		}
		var t assay.Tool
		if err := json.Unmarshal(body, &t); err != nil {
			return err
		}
		tools = append(tools, t)
		return nil
	}, `SELECT json FROM tools ORDER BY ord`)
	return tools, err
}

// Close releases the library. Tasks already read stay valid.
func (l *Library) Close() error {
	err := l.db.Close()
	if l.private {
		err = errors.Join(err, os.RemoveAll(filepath.Dir(l.path)))
	}
	return err
}

// Catalog returns the library's tools.
func (l *Library) Catalog() *assay.Catalog { return l.catalog }

// Meta returns what the library tells about itself.
func (l *Library) Meta() Meta { return l.meta }

// Path returns the file that the library is read from.
func (l *Library) Path() string { return l.path }

// Task reads one task in one wording. It has three outcomes: the task; an
// error with [ErrTaskNotFound] in its chain; another error, when the file
// cannot be read or the task is not what was once written.
func (l *Library) Task(ctx context.Context, id assay.TaskID, difficulty string) (assay.Task, error) {
	var digest string
	var body []byte
	err := l.task.QueryRowContext(ctx, string(id), difficulty).Scan(&digest, &body)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return assay.Task{}, l.notFound(ctx, id, difficulty)
	case err != nil:
		return assay.Task{}, fmt.Errorf("read task %q from library %s: %w", id, l.meta.Name, err)
	}
	if digestOf(body) != digest {
		return assay.Task{}, l.damaged(fmt.Errorf("task %q does not match its digest", id))
	}
	var t assay.Task
	if err := json.Unmarshal(body, &t); err != nil {
		return assay.Task{}, l.damaged(fmt.Errorf("task %q: %w", id, err))
	}
	if t.ID != id || t.Difficulty != difficulty { // the index leads astray
		return assay.Task{}, l.damaged(fmt.Errorf("in place of task %q at difficulty %q is %q at %q", id, difficulty, t.ID, t.Difficulty))
	}
	return t, nil
}

func (l *Library) notFound(ctx context.Context, id assay.TaskID, difficulty string) error {
	var have []string
	err := each(ctx, l.db, func(scan func(...any) error) error {
		var d string
		if err := scan(&d); err != nil {
			return err
		}
		have = append(have, d)
		return nil
	}, `SELECT difficulty FROM tasks WHERE id = ?`, string(id))
	if err != nil {
		return fmt.Errorf("read task %q from library %s: %w", id, l.meta.Name, err)
	}
	if len(have) == 0 {
		return fmt.Errorf("task %q at difficulty %q: %w in library %s (%s)", id, difficulty, ErrTaskNotFound, l.meta.Name, l.path)
	}
	sortDifficulties(have)
	return fmt.Errorf("task %q at difficulty %q: %w in library %s (%s)\nhint: the library has this task at: %s",
		id, difficulty, ErrTaskNotFound, l.meta.Name, l.path, strings.Join(have, ", "))
}

// Refs returns the tasks of a type at a difficulty, sorted by ID; none is not
// an error.
func (l *Library) Refs(ctx context.Context, taskType, difficulty string) ([]assay.TaskRef, error) {
	var refs []assay.TaskRef
	err := each(ctx, l.db, func(scan func(...any) error) error {
		var r assay.TaskRef
		if err := scan(&r.ID, &r.Digest); err != nil {
			return err
		}
		r.Digest = l.withTools(r.Digest)
		refs = append(refs, r)
		return nil
	}, `SELECT id, digest FROM tasks WHERE type = ? AND difficulty = ? ORDER BY id`, taskType, difficulty)
	if err != nil {
		return nil, fmt.Errorf("list tasks of library %s: %w", l.meta.Name, err)
	}
	return refs, nil
}

// Digest identifies a task of the library together with the tools that it is
// about: the same task over other tools is another one. Over the built-in tools
// it is [assay.Task.Digest].
func (l *Library) Digest(t *assay.Task) string { return l.withTools(t.Digest()) }

func (l *Library) withTools(digest string) string {
	if l.tools == "" {
		return digest
	}
	return digestOf([]byte("assay task and tools 1\x00" + digest + "\x00" + l.tools))
}

// builtinTools is what toolsDigest would give the built-in tools.
var builtinTools = sync.OnceValues(func() (string, error) { return hashTools(Tools()) })

// toolsDigest identifies tools, "" for the built-in ones.
func toolsDigest(tools []assay.Tool) (string, error) {
	digest, err := hashTools(tools)
	builtin, builtinErr := builtinTools()
	if err = errors.Join(err, builtinErr); err != nil || digest == builtin {
		return "", err
	}
	return digest, nil
}

func hashTools(tools []assay.Tool) (string, error) {
	b, err := json.Marshal(tools)
	return digestOf(b), err
}

// Counts returns how many tasks there are of each type at each difficulty, in
// the order of [assay.TaskTypes], and of [assay.Difficulties] and then
// [assay.Mixtures]; zeros are left out.
func (l *Library) Counts(ctx context.Context) ([]Count, error) {
	var counts []Count
	err := each(ctx, l.db, func(scan func(...any) error) error {
		var c Count
		if err := scan(&c.Type, &c.Difficulty, &c.Tasks); err != nil {
			return err
		}
		counts = append(counts, c)
		return nil
	}, `SELECT type, difficulty, count(*) FROM tasks GROUP BY type, difficulty`)
	if err != nil {
		return nil, fmt.Errorf("count tasks of library %s: %w", l.meta.Name, err)
	}
	sortCounts(counts)
	return counts, nil
}

// Verify reads the whole file and reports whether it is what was once
// written: each task matches its digest, the index the tasks, and all of it
// the library's digest.
func (l *Library) Verify(ctx context.Context) error {
	err := l.verify(ctx)
	if ctx.Err() != nil {
		return fmt.Errorf("verify library %s: %w", l.path, context.Cause(ctx))
	}
	if err != nil {
		return l.damaged(err)
	}
	return nil
}

func (l *Library) verify(ctx context.Context) error {
	var state string
	if err := l.db.QueryRowContext(ctx, `PRAGMA integrity_check(1)`).Scan(&state); err != nil {
		return err
	}
	if state != "ok" {
		return errors.New(state)
	}
	err := each(ctx, l.db, func(scan func(...any) error) error {
		var id, digest string
		var body sql.RawBytes
		if err := scan(&id, &digest, &body); err != nil {
			return err
		}
		if digestOf(body) != digest {
			return fmt.Errorf("task %q does not match its digest", id)
		}
		return nil
	}, `SELECT id, digest, body FROM tasks`)
	if err != nil {
		return err
	}
	digest, err := libraryDigest(ctx, l.db)
	if err != nil {
		return err
	}
	if digest != l.meta.Digest {
		return fmt.Errorf("its content has the digest %s, not %s", digest, l.meta.Digest)
	}
	return nil
}

func (l *Library) damaged(err error) error {
	return fmt.Errorf("library %s is damaged: %w\nhint: import or copy the library again", l.path, err)
}

// querier is what *sql.DB and *sql.Tx have in common here.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// each calls f for every row; f gets the row's Scan.
func each(ctx context.Context, q querier, f func(scan func(...any) error) error, query string, args ...any) error {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := f(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// libraryDigest hashes the tools in order and the tasks by ID and difficulty.
func libraryDigest(ctx context.Context, q querier) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, "assay library 1")
	write := func(format string) func(func(...any) error) error {
		return func(scan func(...any) error) error {
			var a, b, c, d string
			if err := scan(&a, &b, &c, &d); err != nil {
				return err
			}
			_, err := fmt.Fprintf(h, format, a, b, c, d)
			return err
		}
	}
	if err := each(ctx, q, write("tool %s %s%s%s\n"), `SELECT ord, json, '', '' FROM tools ORDER BY ord`); err != nil {
		return "", err
	}
	if err := each(ctx, q, write("task %q %q %q %s\n"), `SELECT id, difficulty, type, digest FROM tasks ORDER BY id, difficulty`); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}

// digestOf is [assay.Task.Digest] of the task whose JSON is body.
func digestOf(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:16])
}

func sortDifficulties(s []string) {
	slices.SortFunc(s, func(a, b string) int {
		return slices.Index(difficulties, a) - slices.Index(difficulties, b)
	})
}

func sortCounts(counts []Count) {
	slices.SortFunc(counts, func(a, b Count) int {
		if d := slices.Index(assay.TaskTypes, a.Type) - slices.Index(assay.TaskTypes, b.Type); d != 0 {
			return d
		}
		return slices.Index(difficulties, a.Difficulty) - slices.Index(difficulties, b.Difficulty)
	})
}
