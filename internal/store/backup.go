package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Backup copies the store as it is now to a new file, even while a run writes to it. The copy
// appears complete or not at all, and is as private as the store. The journal of the copy has what
// runs have left unfinished. Backup returns the snapshot of the copy. If the store is known to be
// damaged, it returns [ErrDamaged], because a run could write to the copy.
func (db *DB) Backup(ctx context.Context, path string) (snapshot string, err error) {
	mode, err := strictest(db.path)
	if err != nil {
		return "", err
	}
	t, err := newTarget(path, mode)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, t.close()) }()

	// Check before copying, to fail at once, and again after it, because another process may
	// have found damage meanwhile.
	err = refuseDamaged(ctx, db.reader, db.path)
	var left *Journal
	if err == nil { // before the copy, so that each attempt is in one of both
		left, err = ReadJournal(journalPath(db.path))
	}
	if err == nil {
		defer left.Close(false)
		err = db.copyTo(ctx, t.part)
	}
	if err == nil {
		err = refuseDamaged(ctx, db.reader, db.path)
	}
	if err != nil {
		return "", explain(db.path, fmt.Errorf("backup: %w", err))
	}

	copied, err := OpenReadOnly(ctx, t.part)
	if err != nil {
		return "", fmt.Errorf("read the backup: %w", err)
	}
	snapshot, err = copied.Snapshot(ctx)
	if err == nil {
		err = copyJournal(ctx, copied, left)
	}
	if err = errors.Join(err, copied.Close()); err != nil {
		return "", fmt.Errorf("read the backup: %w", err)
	}
	return snapshot, t.place()
}

// copyTo opens a separate connection, because the reader's may not write to any file.
func (db *DB) copyTo(ctx context.Context, path string) error {
	conn, err := sql.Open("sqlite", dsn(db.path, "mode=ro", readCache))
	if err != nil {
		return err
	}
	_, err = conn.ExecContext(ctx, "VACUUM INTO ?", path)
	return errors.Join(err, conn.Close(), flush(path))
}
