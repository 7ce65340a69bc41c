package store

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/assay-eval/assay"
)

// applicationID marks an SQLite file as a store: "Asay" in its header.
const applicationID = 0x41736179

// format is the number of the schema, which a store has as its user_version. New fields do not change
// it: see [layout]. If schema.sql has to change, raise it, and have bringUpToDate change the stores of
// the formats since oldest, so that every store that a program could read can be read for ever.
const (
	format = 18
	oldest = 16
)

//go:embed schema.sql
var schemaText string

// tables makes the tables, indexes and views of a store.
var tables = schemaText + newLayout(nil, nil).outcomesView() + ";\n"

// schema makes the tables of a store and the triggers that keep their rows.
var schema = tables + triggers()

// triggers returns the triggers of the tables whose rows are never changed and never deleted.
func triggers() string {
	const keep = "CREATE TRIGGER %[1]s_keep BEFORE UPDATE ON %[1]s\n" +
		"BEGIN SELECT raise(ABORT, '%[1]s are never changed'); END;\n"
	const stay = "CREATE TRIGGER %[1]s_stay BEFORE DELETE ON %[1]s\n" +
		"BEGIN SELECT raise(ABORT, '%[1]s are never deleted'); END;\n"
	text := ""
	for _, table := range []string{
		"runs", "specs", "ends", "libraries", "trials", "attempts", "transcripts", "dictionaries",
		"controls", "scores", "classifications", "costs", "imports", "attempt_seals", "seals", "deletions",
		"dropped",
	} {
		text += fmt.Sprintf(keep+stay, table)
	}
	return text
}

// createTables makes the tables of a store in an empty file, and refuses the file of another
// program.
func createTables(
	ctx context.Context, conn *sql.Conn, path string, known *layout,
) (l *layout, err error) {
	return l, inTransaction(ctx, conn, func() error {
		if err := createIfEmpty(ctx, conn, path); err != nil {
			return err
		}
		has, err := readLayout(ctx, conn, known)
		if err == nil {
			l, err = widen(ctx, conn, has, known)
		}
		return err
	})
}

func inTransaction(ctx context.Context, conn *sql.Conn, change func() error) error {
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	if err := change(); err != nil {
		_, rollback := conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		return errors.Join(err, rollback)
	}
	_, err := conn.ExecContext(ctx, "COMMIT")
	return err
}

func createIfEmpty(ctx context.Context, conn *sql.Conn, path string) error {
	var id, version, objects int
	err := conn.QueryRowContext(ctx, `SELECT application_id, user_version,
			(SELECT count(*) FROM sqlite_schema)
		FROM pragma_application_id, pragma_user_version`).Scan(&id, &version, &objects)
	switch {
	case err != nil:
		return err
	case id == 0 && version == 0 && objects == 0:
		mark := fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d",
			applicationID, format)
		_, err = conn.ExecContext(ctx, schema+mark)
		return err
	case id != applicationID:
		return stranger(path)
	}
	if err := refuseFormat(ctx, conn, path, version); err != nil {
		return err
	}
	if version < format {
		return bringUpToDate(ctx, conn)
	}
	// On a write-protected file BEGIN IMMEDIATE succeeds. This changes no row, but fails.
	_, err = conn.ExecContext(ctx, "UPDATE runs SET id = id WHERE FALSE")
	return err
}

// In format 16 the schema had a list of the kinds of faults, so that no later version could have added
// one.
const (
	faultsOf16 = `CONSTRAINT known_fault CHECK (fault = '' OR fault IN ('rate_limited', 'overloaded', 'server',
			'network', 'timeout', 'auth', 'quota', 'not_found', 'bad_request', 'content_filter',
			'malformed', 'identity', 'harness', 'interrupted', 'tool_server', 'agent'))`
	faultsOf17 = "CONSTRAINT short_fault CHECK (length(CAST(fault AS BLOB)) <= 40)"
)

// since18 are the tables, indexes, triggers and views that stores got in format 18, in the order in
// which they can be made.
var since18 = []string{
	"table costs", "index costs_attempt", "trigger costs_keep", "trigger costs_stay", "view spend",
	"view outcomes",
}

// lacks reports whether a store that is only read is of a format without a table.
func (db *DB) lacks(ctx context.Context, table string) (lacks bool, err error) {
	if !slices.Contains(since18, "table "+table) {
		return false, nil
	}
	err = db.reader.QueryRowContext(ctx, `SELECT user_version BETWEEN ? AND 17
			AND NOT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = ?)
		FROM pragma_user_version`, oldest, table).Scan(&lacks)
	return lacks, db.wrap(err)
}

// bringUpToDate changes the schema of a store of an older format. SQLite has no statement that
// changes a constraint, and allows this one.
func bringUpToDate(ctx context.Context, conn *sql.Conn) error {
	var version int
	if err := conn.QueryRowContext(ctx, "PRAGMA schema_version").Scan(&version); err != nil {
		return err
	}
	_, err := conn.ExecContext(ctx, "PRAGMA writable_schema = ON")
	if err == nil {
		_, err = conn.ExecContext(ctx, "UPDATE sqlite_schema SET sql = replace(sql, ?, ?) "+
			"WHERE type = 'table' AND name = 'attempts'", faultsOf16, faultsOf17)
	}
	if err == nil {
		_, err = conn.ExecContext(ctx, fmt.Sprintf(
			"PRAGMA schema_version = %d; PRAGMA user_version = %d", version+1, format))
	}
	_, off := conn.ExecContext(ctx, "PRAGMA writable_schema = RESET")
	fresh, unknown := freshSchema()
	if err = errors.Join(err, off, unknown); err != nil {
		return err
	}
	for _, name := range since18 {
		if _, err := conn.ExecContext(ctx, fresh[name]); err != nil {
			return err
		}
	}
	return nil
}

// refuseFormat refuses a store of another format. It names the program that wrote the store, if
// that is known.
func refuseFormat(ctx context.Context, db querier, path string, version int) error {
	if version >= oldest && version <= format {
		return nil
	}
	kind, by, program := ErrOlder, "the version that wrote it", ""
	query := "SELECT program FROM runs ORDER BY seq DESC LIMIT 1"
	if version > format {
		kind = ErrNewer
	}
	if db.QueryRowContext(ctx, query).Scan(&program) == nil && program != "" {
		by = "assay " + program + ", which wrote it"
	}
	err := fmt.Errorf("%s: %w (its format is %d, this program reads %d to %d)",
		path, kind, version, oldest, format)
	if kind == ErrNewer {
		return hinted(err, "upgrade to "+by+", or use --store another.db")
	}
	return coded(err, assay.HintOlder, path, by)
}

// refuseDamaged refuses a store that [DB.Verify] found to be damaged, or that a quick look finds
// to be damaged.
func refuseDamaged(ctx context.Context, conn querier, path string) error {
	if _, err := os.Stat(markPath(path)); err == nil {
		return damaged(path, "a check found damage and wrote "+filepath.Base(markPath(path)))
	}
	wrong, err := schemaDiffers(ctx, conn)
	if err != nil {
		return err
	}
	if len(wrong) > 0 {
		return damaged(path, wrong[0].name+" "+wrong[0].what)
	}
	return nil
}
