package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestImportListsDatabases imports a file twice. The second import fails but prints the same,
// and the list names the file once. Names in the file cannot control the terminal.
func TestImportListsDatabases(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := filepath.Join(dir, "assay.db")
	evil := file(t, dir, "evil.json", `{"version": "3.0", "last_updated": "\u001b[2J",
		"models": {"\u001b[31mred\u202e\nnew line": {"by_prompt_type": {}}}}`)
	first := must(t, nil, "store", "import", evil, "--store", db)
	obeyed := strings.ContainsAny(first.out, "\x1b\u202e") ||
		strings.Contains(first.out, "\nnew line")
	if obeyed || !strings.Contains(first.out, "red") {
		t.Errorf("names reach the terminal as %q", first.out)
	}
	if strings.Contains(first.out, " : ") ||
		!strings.Contains(first.out, "   summary is missing;") {
		t.Errorf("a finding about the whole file is printed as %q", first.out)
	}
	again := call(t, nil, "store", "import", evil, "--store", db)
	if again.code != exitError || again.out != first.out ||
		!strings.Contains(again.err, "already imported") {
		t.Errorf("second import: exit code %d, %s%s", again.code, again.out, again.err)
	}
	list := must(t, nil, "store", "import", "--store", db).out
	if strings.Count(list, "\n") != 1 || !strings.Contains(list, "evil.json: 0 aggregates, ") {
		t.Errorf("the list is %q", list)
	}
	var all []importLine
	decode(t, must(t, nil, "store", "import", "--store", db, "--json").out, &all)
	if len(all) != 1 || all[0].Findings == 0 || all[0].At.IsZero() {
		t.Errorf("the list as JSON is %+v", all)
	}
	empty := quickRun(t, oneModel)
	out := must(t, nil, "store", "import", "--store", empty).out
	if !strings.Contains(out, "no database of the original") {
		t.Errorf("the list of an empty store is %q", out)
	}
}

func TestImportRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := filepath.Join(dir, "assay.db")
	latin := file(t, dir, "latin.json", "{\"version\": \"3.0\",\n\"models\": {\"caf\xe9\": {}}}")
	for name, c := range map[string]struct {
		args   []string
		code   int
		prints string
	}{
		"empty": {
			[]string{file(t, dir, "empty.json", "")},
			exitError,
			"empty.json: the file is empty",
		},
		"cut": {
			[]string{file(t, dir, "cut.json", `{"version": `)},
			exitError,
			"cut.json:1:13: the file is truncated",
		},
		"not UTF-8": {
			[]string{latin},
			exitError,
			"latin.json:2:16: the text is not UTF-8",
		},
		"a flag": {
			[]string{"--bogus"},
			exitUsage,
			"unknown flag: --bogus\nhint: `assay store import --help`",
		},
		"two files": {[]string{"x", "y"}, exitUsage, "accepts at most 1 arg"},
		"dry list":  {[]string{"--dry-run"}, exitUsage, "no file is named"},
		"no store":  {nil, exitError, "store not found"},
	} {
		t.Run(name, func(t *testing.T) {
			args := append(append([]string{"store", "import"}, c.args...), "--store", db)
			wantError(t, c.code, c.prints, args...)
		})
	}
}

// TestSignalEndsImport imports from a pipe to which no program writes.
func TestSignalEndsImport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skip(err)
	}
	writer, err := os.OpenFile(fifo, os.O_RDWR, 0) // keeps the pipe open
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	signals := make(chan os.Signal, 1)
	var out, errs strings.Builder
	signals <- syscall.SIGTERM
	code := run([]string{"store", "import", fifo, "--store", filepath.Join(dir, "assay.db")},
		&process{
			in: strings.NewReader(""), out: &out, err: &errs, name: "assay", signals: signals,
			env: func(string) (string, bool) { return "", false },
		})
	if code != exitInterrupted || !strings.Contains(errs.String(), "interrupted\nhint: ") {
		t.Errorf("exit code %d, %s", code, errs.String())
	}
}
