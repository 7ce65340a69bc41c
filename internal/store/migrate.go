package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	sqlite3 "modernc.org/sqlite/lib"
)

// applicationID marks an SQLite file as a store: "Asay" in its header.
const applicationID = 0x41736179

// migrations bring a store to the latest schema. A file's user_version is the number of
// migrations that it has. New ones are added, and existing ones are never edited.
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

// migrate checks under the write lock that the file is a store or new, and applies the
// migrations that it lacks, all or none.
func migrate(ctx context.Context, conn *sql.Conn, path string) error {
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	if err := applyMigrations(ctx, conn, path); err != nil {
		_, rollback := conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		return errors.Join(err, rollback)
	}
	_, err := conn.ExecContext(ctx, "COMMIT")
	return err
}

func applyMigrations(ctx context.Context, conn *sql.Conn, path string) error {
	var id, version, objects int
	err := conn.QueryRowContext(ctx, `SELECT application_id, user_version,
			(SELECT count(*) FROM sqlite_schema)
		FROM pragma_application_id, pragma_user_version`).Scan(&id, &version, &objects)
	if err != nil {
		return err
	}
	fresh := id == 0 && version == 0 && objects == 0
	if !fresh && id != applicationID {
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
		// On a write-protected file BEGIN IMMEDIATE succeeds. This changes no row, but fails.
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
	mark := "PRAGMA application_id = %d; PRAGMA user_version = %d"
	_, err = conn.ExecContext(ctx, fmt.Sprintf(mark, applicationID, len(names)))
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

// notOurs refuses a store with another schema, or with rows that its schema forbids.
func notOurs(path string, err error) error {
	err = fmt.Errorf("store %s cannot be brought up to date: %w: %w", path, ErrDamaged, err)
	return hinted(err,
		"nothing was changed; another program has written to it; "+
			"go back to a backup, or use --store another.db")
}

// checkReferences checks foreign keys, because migrations run while they are not enforced.
func checkReferences(ctx context.Context, conn *sql.Conn, path string) error {
	var lost int
	query := "SELECT count(*) FROM pragma_foreign_key_check"
	if err := conn.QueryRowContext(ctx, query).Scan(&lost); err != nil {
		return err
	}
	if lost > 0 {
		return notOurs(path, fmt.Errorf("%d rows refer to missing rows", lost))
	}
	return nil
}

// refuseDamaged refuses a store that [DB.Verify] found to be damaged, or that a quick look finds
// to be damaged.
func refuseDamaged(ctx context.Context, conn querier, path string) error {
	damaged := func(what string) error {
		return hinted(fmt.Errorf("store %s: %w: %s", path, ErrDamaged, what), doRescue)
	}
	if _, err := os.Stat(markPath(path)); err == nil {
		return damaged("\"assay verify\" found damage and wrote " + filepath.Base(markPath(path)))
	}
	actual, stated, err := sizes(ctx, conn, path)
	if err != nil {
		return err
	}
	if actual < stated {
		return damaged(fmt.Sprintf("%d of its %d bytes are missing", stated-actual, stated))
	}
	wrong, err := schemaDiffers(ctx, conn)
	if err != nil {
		return err
	}
	if len(wrong) > 0 {
		return damaged(wrong[0].name + " " + wrong[0].what)
	}
	text, err := wrongFormat(ctx, conn)
	if err == nil && text != "" {
		err = damaged(text)
	}
	return err
}

// refuseMislabeled refuses a file whose header states a format that does not exist, or that its
// tables do not have. A migration of it would fail with a hint that leads back here.
func refuseMislabeled(ctx context.Context, db querier, path string, version int) error {
	what := fmt.Sprintf("its header states format %d, which does not exist", version)
	if version >= 0 {
		var err error
		if what, err = mislabeled(ctx, db, version); what == "" || err != nil {
			return err
		}
	}
	return hinted(fmt.Errorf("store %s: %w: %s", path, ErrDamaged, what), doRescue)
}

// mislabeled describes the problem if a store has the latest tables but states an older format.
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
