package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestImportAgain: what was found in a file can be read again, and so can which files
// were taken in.
func TestImportAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := filepath.Join(dir, "assay.db")
	evil := file(t, dir, "evil.json", `{"version": "3.0", "last_updated": "\u001b[2J", "models": {"\u001b[31mred\u202e\nnew line": {"by_prompt_type": {}}}}`)
	first := must(t, nil, "import", "legacy", evil, "--store", db)
	if strings.ContainsAny(first.out, "\x1b\u202e") || strings.Contains(first.out, "\nnew line") || !strings.Contains(first.out, "red") {
		t.Errorf("names reach the terminal as %q", first.out)
	}
	if strings.Contains(first.out, " : ") || strings.Contains(first.out, "  : ") || !strings.Contains(first.out, "   summary is missing;") {
		t.Errorf("what is about the whole file is said as %q", first.out)
	}
	again := call(t, nil, "import", "legacy", evil, "--store", db)
	if again.code != exitError || again.out != first.out || !strings.Contains(again.err, "already imported") {
		t.Errorf("again: exit code %d, %s%s", again.code, again.out, again.err)
	}
	list := must(t, nil, "import", "legacy", "--store", db).out
	if strings.Count(list, "\n") != 1 || !strings.Contains(list, "evil.json: 0 aggregates, ") {
		t.Errorf("the list is %q", list)
	}
	var all []importLine
	if err := json.Unmarshal([]byte(must(t, nil, "import", "legacy", "--store", db, "--json").out), &all); err != nil || len(all) != 1 || all[0].Findings == 0 || all[0].At.IsZero() {
		t.Errorf("%+v, %v", all, err)
	}
	empty := quickRun(t, oneModel)
	if out := must(t, nil, "import", "legacy", "--store", empty).out; !strings.Contains(out, "no database of the original") {
		t.Errorf("a store without any: %q", out)
	}
}

// TestImportRefuses: messages say where, and what was perhaps meant.
func TestImportRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := filepath.Join(dir, "assay.db")
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"empty":     {[]string{"legacy", file(t, dir, "empty.json", "")}, exitError, "empty.json: the file is empty"},
		"cut":       {[]string{"legacy", file(t, dir, "cut.json", `{"version": `)}, exitError, "cut.json:1:13: the file is truncated"},
		"not UTF-8": {[]string{"legacy", file(t, dir, "latin.json", "{\"version\": \"3.0\",\n\"models\": {\"caf\xe9\": {}}}")}, exitError, "latin.json:2:16: the text is not UTF-8"},
		"misspelt":  {[]string{"legcy", "x.json"}, exitUsage, "did you mean legacy?"},
		"a flag":    {[]string{"--bogus"}, exitUsage, "unknown flag: --bogus\nhint: `assay import --help`"},
		"its flag":  {[]string{"legacy", "--bogus"}, exitUsage, "unknown flag: --bogus\nhint: `assay import legacy --help`"},
		"two files": {[]string{"legacy", "x", "y"}, exitUsage, "accepts at most 1 arg"},
		"dry list":  {[]string{"legacy", "--dry-run"}, exitUsage, "no file is named"},
		"no store":  {[]string{"legacy"}, exitError, "store not found"},
	} {
		if r := call(t, nil, append(append([]string{"import"}, c.args...), "--store", db)...); r.code != c.code || !strings.Contains(r.err, c.says) {
			t.Errorf("%s: exit code %d, %s, want %d, %s", name, r.code, r.err, c.code, c.says)
		}
	}
}

// TestImportEnds: a signal ends an import, also one that waits for what it reads.
func TestImportEnds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skip(err)
	}
	writer, err := os.OpenFile(fifo, os.O_RDWR, 0) // who writes nothing
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	signals := make(chan os.Signal, 1)
	var out, errs strings.Builder
	signals <- syscall.SIGTERM
	code := run([]string{"import", "legacy", fifo, "--store", filepath.Join(dir, "assay.db")}, &process{
		in: strings.NewReader(""), out: &out, err: &errs, name: "assay", signals: signals,
		env: func(string) (string, bool) { return "", false },
	})
	if code != exitInterrupted || !strings.Contains(errs.String(), "interrupted\nhint: ") {
		t.Errorf("exit code %d, %s", code, errs.String())
	}
}
