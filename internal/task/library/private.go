package library

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/assay-eval/assay"
)

// insertKey adds a table with the seed of a private library. Other libraries do without it.
func insertKey(ctx context.Context, tx *sql.Tx, key string) error {
	if key == "" {
		return nil
	}
	_, err := tx.ExecContext(ctx,
		`CREATE TABLE private (key TEXT NOT NULL); INSERT INTO private VALUES (?)`, key)
	return err
}

// readKey returns the seed of a private library, or "" for another library.
func readKey(ctx context.Context, q sqlQuerier) (key string, err error) {
	there, err := hasTable(ctx, q, "private")
	if err != nil || !there {
		return "", err
	}
	err = each(ctx, q, func(scan func(...any) error) error { return scan(&key) },
		`SELECT key FROM private`)
	return key, err
}

func hasTable(ctx context.Context, q sqlQuerier, name string) (there bool, err error) {
	err = each(ctx, q, func(func(...any) error) error {
		there = true
		return nil
	}, `SELECT name FROM sqlite_master WHERE type = 'table' AND name = ?`, name)
	return there, err
}

// Commitment returns a digest of everything that the library's tools and tasks say: SHA-256 in hex.
// Whoever publishes it in advance cannot change a task later without being noticed. It gives
// nothing away about a private library, because its seed cannot be guessed.
func (l *Library) Commitment(ctx context.Context) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, "assay library commitment 1")
	enc := json.NewEncoder(h)
	if err := enc.Encode(l.catalog.All()); err != nil {
		return "", err
	}
	if err := enc.Encode(l.catalog.Script()); err != nil {
		return "", err
	}
	if err := enc.Encode(l.catalog.Server()); err != nil {
		return "", err
	}
	err := each(ctx, l.db, func(scan func(...any) error) error {
		var body string
		if err := scan(&body); err != nil {
			return err
		}
		_, err := fmt.Fprintf(h, "%d %s\n", len(body), body)
		return err
	}, `SELECT body FROM tasks ORDER BY id, difficulty`)
	if err != nil {
		return "", fmt.Errorf("read the tasks of library %s: %w", l.meta.Name, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// KeyOf returns the key of the library that parts belong to, or "" unless it is private.
func KeyOf(parts [][]byte) (string, error) {
	if len(parts) == 0 {
		return "", nil
	}
	var head packedHead
	err := unpack(parts[0], &head, func(assay.Task) bool { return false })
	return head.Key, err
}
