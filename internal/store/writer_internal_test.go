package store

import (
	"path/filepath"
	"strconv"
	"testing"
)

// The test checks the settings, because it cannot cut the power.
func TestWriterIsDurable(t *testing.T) {
	t.Parallel()
	w, err := openWriter(t.Context(), filepath.Join(t.TempDir(), "assay.db"), programLayout())
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
		"user_version":   strconv.Itoa(format),
		// The schema is never changed by hand.
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

// TestBatching checks that writes wait for others only while that is worth while.
func TestBatching(t *testing.T) {
	t.Parallel()
	var p batching
	wait := func(n int, want bool) {
		t.Helper()
		if got := p.waits(n); got != want {
			t.Errorf("waits(%d) = %v, want %v", n, got, want)
		}
	}
	for range 100 {
		wait(1, false) // they come one by one
	}
	wait(2, true)
	p.learn(2, 4)
	for range 100 {
		wait(1, true)
		p.learn(1, 2)
	}
	wait(3, true)
	p.learn(3, 5) // others come, but not twice as many
	for range 32 {
		wait(64, false)
	}
	wait(1, false)
	wait(64, true)
}
