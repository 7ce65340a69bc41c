package library

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	_ "modernc.org/sqlite" // driver "sqlite"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/child"
)

// ErrTaskNotFound means that a library doesn't have a task, or not at the given difficulty.
var ErrTaskNotFound = errors.New("task not found")

// A Library is an open library file. It is safe for concurrent use.
type Library struct {
	path    string
	meta    Meta
	catalog *assay.Catalog
	db      *sql.DB
	task    *sql.Stmt
	// tools is a digest of the tools, or "" for the built-in tools; see [Library.Digest].
	tools string
	// folder has the file if it is a temporary one, which Close removes.
	folder *child.Folder
	// origin is the file that a temporary one was made of.
	origin string
	// answers are the answers of reference plans by the text of their task, once they were needed.
	answers func() map[string][]string
	// described has the rows of tasks by a hash of their description, and rephrased by those of their other
	// texts, once they were needed.
	described, rephrased func() map[uint64]int64
	// grammar is the one that has made the tasks, once it was needed, and texts are the latest texts that
	// it gave.
	grammar func() (grammar, string)
	texts   *lru.Cache[assay.TaskID, map[string]map[string]string]
}

// Meta describes a library.
type Meta struct {
	Name string `json:"name"`
	// Source is where the tasks came from: a generator with its version, or an imported file.
	Source string `json:"source"`
	// Created is the creation time, or zero if it was not recorded. The built-in library doesn't
	// record it, because its bytes are always the same.
	Created time.Time `json:"created,omitzero"`
	// Digest identifies the content, which is tools and tasks: 128 bits of SHA-256 in hex. [Create]
	// sets Digest, Tools and Tasks.
	Digest string `json:"digest"`
	Tools  int    `json:"tools"`
	Tasks  int    `json:"tasks"`
	// Private means that reports and exports leave out the texts of tasks and the names of tools.
	// Key is the seed of a private library. Nothing prints it.
	Private bool   `json:"private,omitempty"`
	Key     string `json:"-"`
}

// A Count is the number of tasks of a type at a difficulty.
type Count struct {
	Type       string `json:"type"`
	Difficulty string `json:"difficulty"`
	Tasks      int    `json:"tasks"`
}

// maxConns limits the connections of a library. Each has its own page cache of cacheKB.
const (
	maxConns = 4
	cacheKB  = 1024
)

// Open opens a library file for reading. It never writes to the file or its directory, and its time
// doesn't depend on the number of tasks. The file must not change while it is open; [Create]
// replaces a file instead of changing it.
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
	l.answers = sync.OnceValue(l.readAnswers)
	l.described = sync.OnceValue(l.readDescribed)
	l.rephrased = sync.OnceValue(l.readRephrased)
	l.grammar = sync.OnceValues(l.findGrammar)
	l.texts, _ = lru.New[assay.TaskID, map[string]map[string]string](phrasedTexts) // the size is positive
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

// fileURL returns a URL for SQLite. It works for paths with any characters.
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

// load reads the metadata and the tools, and prepares the query for tasks.
func (l *Library) load(ctx context.Context) error {
	var created string
	m := &l.meta
	row := l.db.QueryRowContext(ctx, `SELECT name, source, created, digest, tools, tasks FROM meta`)
	err := row.Scan(&m.Name, &m.Source, &created, &m.Digest, &m.Tools, &m.Tasks)
	if err != nil {
		return fmt.Errorf("meta: %w", err)
	}
	if created != "" {
		if m.Created, err = time.Parse(time.RFC3339, created); err != nil {
			return fmt.Errorf("meta: %w", err)
		}
	}
	if m.Key, err = readKey(ctx, l.db); err != nil {
		return fmt.Errorf("key: %w", err)
	}
	m.Private = m.Key != ""
	tools, err := l.readTools(ctx)
	if err != nil {
		return fmt.Errorf("tools: %w", err)
	}
	if len(tools) != m.Tools {
		return fmt.Errorf("tools: found %d of %d", len(tools), m.Tools)
	}
	script, server, err := readCarriers(ctx, l.db)
	if err != nil {
		return fmt.Errorf("tools: %w", err)
	}
	l.catalog = assay.NewCatalog(tools).With(script, server)
	if l.tools, err = toolsDigest(l.catalog); err != nil {
		return fmt.Errorf("tools: %w", err)
	}
	l.task, err = l.db.PrepareContext(ctx,
		`SELECT digest, body FROM tasks WHERE id = ? AND difficulty = ?`)
	return err
}

// readCarriers returns the carriers of a library's own tools: a script with its base, a server or
// both. They are empty and nil for other libraries.
func readCarriers(ctx context.Context, q sqlQuerier) (
	script assay.Script, server *assay.MCPServer, err error,
) {
	there, err := hasTable(ctx, q, "carriers")
	if err != nil || !there {
		return script, nil, err
	}
	var text string
	err = each(ctx, q, func(scan func(...any) error) error {
		return scan(&script.Name, &script.Source, &text)
	}, `SELECT name, source, server FROM carriers`)
	if err == nil && text != "" {
		err = json.Unmarshal([]byte(text), &server)
	}
	if err == nil {
		there, err = hasTable(ctx, q, "bases")
	}
	if err == nil && there {
		err = each(ctx, q, func(scan func(...any) error) error {
			return scan((*[]byte)(&script.Base))
		}, `SELECT body FROM bases`)
	}
	return script, server, err
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

// Close closes the library. Tasks that were read before stay valid.
func (l *Library) Close() error {
	err := errors.Join(l.catalog.Close(), l.db.Close())
	if l.folder != nil {
		err = errors.Join(err, l.folder.Remove())
	}
	return err
}

// Catalog returns the library's tools.
func (l *Library) Catalog() *assay.Catalog { return l.catalog }

// Meta returns the library's metadata.
func (l *Library) Meta() Meta { return l.meta }

// Path returns the path of the library file.
func (l *Library) Path() string { return cmp.Or(l.origin, l.path) }

// Task reads one task at one difficulty. If the library doesn't have it, the error wraps
// [ErrTaskNotFound]. Task returns other errors if the file cannot be read or the task has changed
// since it was written.
func (l *Library) Task(
	ctx context.Context, id assay.TaskID, difficulty string,
) (assay.Task, error) {
	t, _, err := l.read(ctx, id, difficulty)
	return t, err
}

// read reads a task and its digest without the tools.
func (l *Library) read(
	ctx context.Context, id assay.TaskID, difficulty string,
) (t assay.Task, digest string, err error) {
	var body []byte
	err = l.task.QueryRowContext(ctx, string(id), difficulty).Scan(&digest, &body)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return assay.Task{}, "", l.notFound(ctx, id, difficulty)
	case err != nil:
		return assay.Task{}, "", fmt.Errorf("read task %q from library %s: %w", id, l.meta.Name, err)
	}
	if err := json.Unmarshal(body, &t); err != nil {
		return assay.Task{}, "", l.damaged(fmt.Errorf("task %q: %w", id, err))
	}
	if digestOf(body) != digest && (t.Phrasings == nil || t.Digest() != digest) {
		return assay.Task{}, "", l.damaged(fmt.Errorf("task %q does not match its digest", id))
	}
	if t.ID != id || t.Difficulty != difficulty { // the index is wrong
		err := fmt.Errorf("found task %q at difficulty %q instead of %q at %q",
			t.ID, t.Difficulty, id, difficulty)
		return assay.Task{}, "", l.damaged(err)
	}
	return t, digest, nil
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
	err = fmt.Errorf("%w: %q at difficulty %q in library %s (%s)",
		ErrTaskNotFound, id, difficulty, l.meta.Name, l.path)
	if len(have) == 0 {
		return err
	}
	sortDifficulties(have)
	return fmt.Errorf("%w\nhint: the library has this task at %s", err, strings.Join(have, ", "))
}

// Refs returns the tasks of a type at a difficulty, sorted by ID. An empty list is not an error.
func (l *Library) Refs(
	ctx context.Context, taskType, difficulty string,
) ([]assay.TaskRef, error) {
	var refs []assay.TaskRef
	err := each(ctx, l.db, func(scan func(...any) error) error {
		var r assay.TaskRef
		if err := scan(&r.ID, &r.Digest); err != nil {
			return err
		}
		r.Digest = l.withTools(r.Digest)
		refs = append(refs, r)
		return nil
	}, `SELECT id, digest FROM tasks WHERE type = ? AND difficulty = ? ORDER BY id`,
		taskType, difficulty)
	if err != nil {
		return nil, fmt.Errorf("list tasks of library %s: %w", l.meta.Name, err)
	}
	return refs, nil
}

// Counts returns the number of tasks of each type at each difficulty. It sorts them in the order of
// [assay.TaskTypes], then of [assay.Difficulties] and [assay.Mixtures], and omits zeros.
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

func (l *Library) damaged(err error) error {
	return fmt.Errorf("library %s is damaged: %w\n"+
		"hint: import or copy the library again", l.path, err)
}

// sqlQuerier is implemented by *sql.DB and *sql.Tx.
type sqlQuerier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// each calls f for every row with the row's Scan.
func each(
	ctx context.Context, q sqlQuerier, f func(scan func(...any) error) error,
	query string, args ...any,
) error {
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

func sortDifficulties(s []string) {
	slices.SortFunc(s, func(a, b string) int {
		return slices.Index(difficulties, a) - slices.Index(difficulties, b)
	})
}

func sortCounts(counts []Count) {
	slices.SortFunc(counts, func(a, b Count) int {
		return cmp.Or(
			slices.Index(assay.TaskTypes, a.Type)-slices.Index(assay.TaskTypes, b.Type),
			strings.Compare(a.Type, b.Type),
			slices.Index(difficulties, a.Difficulty)-slices.Index(difficulties, b.Difficulty),
		)
	})
}
