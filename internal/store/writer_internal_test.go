package store

import (
	"path/filepath"
	"testing"
)

// The test checks the settings, because it cannot cut the power.
func TestWriterIsDurable(t *testing.T) {
	t.Parallel()
	w, err := openWriter(t.Context(), filepath.Join(t.TempDir(), "assay.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for pragma, want := range map[string]string{
		"journal_mode":   "wal",
		"synchronous":    "2", // FULL: the log is flushed at each commit
		"foreign_keys":   "1",
		"busy_timeout":   "10000",
		"cache_size":     "-4000",
		"application_id": "1098080633",
		"user_version":   "9",
		// Migrations run without it.
		"writable_schema": "0",
	} {
		var got string
		if err := w.conn.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got); err != nil ||
			got != want {
			t.Errorf("%s = %s, %v, want %s", pragma, got, err, want)
		}
	}
	if err := w.close(); err != nil {
		t.Error(err)
	}
}
