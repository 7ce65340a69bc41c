package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/export"
	"github.com/assay-eval/assay/internal/result/legacy"
	"github.com/assay-eval/assay/internal/run/job"
	"github.com/assay-eval/assay/internal/store"
)

type exportFlags struct {
	store, format, output, calls string
	experiment, run              string
	snapshot, since              string
	where                        []string
	check                        string
}

func newExport(p *process) *cobra.Command {
	var f exportFlags
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write attempts for other programs: JSON lines, CSV, Parquet, Inspect, the original's",
		Long: `Export writes one record for each attempt, outcomes and faults alike: a record has
either a level or a fault. With --output files appear whole or not at all, and a manifest
beside them, FILE.manifest.json, says which state of the store they are of, what was
chosen, what could not be read, what each column means, and the files' digests. --check
proves them. Nothing is ever written over a store.

  jsonl, csv   text; the same fields
  parquet      typed; for pandas, Polars, DuckDB and others
  inspect      logs for the viewer of Inspect, one for each experiment and model, and
               manifest.json, into the directory that --output names
  v3, csv50    the master_database.json and the 50 columns of the 2025 original

--experiment chooses the trials that an experiment plans, whichever experiment's run
carried them out, as reports do. A value of --where may be several, with commas between
them; one that has commas is tried as a whole too.

A snapshot names a state of a store for ever: --snapshot exports that state again, and
--since what is new after it.`,
		Example: `  assay export --format csv --output results.csv
  assay export --experiment quickstart | jq -r .level | sort | uniq -c
  assay export --format parquet --output results.parquet --calls calls.parquet
  assay export --where model=gpt-4o --where level=failure,partial_success
  assay export --since 1200-3f2a9c71d0aa --output new.jsonl
  assay export --format inspect --output logs
  assay export --check results.csv`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := noneEmpty(cmd); err != nil {
				return err
			}
			if f.check != "" && cmd.Flags().NFlag() > 1 {
				return usageError("--check takes no other flag")
			}
			if f.check != "" {
				return checkExport(cmd.Context(), p, f.check)
			}
			e := &exporter{process: p, flags: f, bare: make(map[bareAttempt]bool)}
			if err := e.parse(); err != nil {
				return err
			}
			return e.run(cmd.Context())
		},
	}
	storeFlag(cmd, &f.store)
	names := export.FormatNames()
	flags := cmd.Flags()
	flags.StringVar(&f.format, "format", string(export.JSONL), strings.Join(names, ", "))
	flags.StringVarP(&f.output, "output", "o", "-", "the `file` to write; - is standard output")
	flags.StringVar(&f.calls, "calls", "", "write the tool calls of the attempts to this `file` too, in the same format")
	flags.StringVar(&f.experiment, "experiment", "", "only attempts at the trials that this experiment plans")
	flags.StringVar(&f.run, "run", "", "only attempts of this run, or of the one whose ID begins so")
	flags.StringVar(&f.snapshot, "snapshot", "", "the state of the store to export; the present one by default")
	flags.StringVar(&f.since, "since", "", "only attempts that came, or were judged again, after this snapshot")
	flags.StringArrayVar(&f.where, "where", nil, "only attempts with `FIELD=VALUE`, or FIELD!=VALUE; may be given several times")
	flags.StringVar(&f.check, "check", "", "export nothing, but say whether this exported `file`, or directory of logs, is whole")
	choice(cmd, "format", names...)
	_ = cmd.RegisterFlagCompletionFunc("experiment", namesIn(&f.store, experimentNames))
	return cmd
}

// An exporter carries out one export.
type exporter struct {
	process  *process
	flags    exportFlags
	format   export.Format
	where    export.Where
	db       *store.DB
	filter   store.Filter
	scope    *scope // that of --experiment, or nil for all attempts
	snapshot string
	// bare are attempts without their transcripts, and whether these cannot be read:
	// of others the store has none.
	bare map[bareAttempt]bool
}

type bareAttempt struct {
	trial  assay.TrialID
	number int
}

// noneEmpty refuses flags that were given without a value: a script whose variable is
// empty would get all that the flag was to leave out.
func noneEmpty(cmd *cobra.Command) error {
	for _, name := range []string{"store", "format", "output", "calls", "experiment", "run", "snapshot", "since", "check"} {
		if f := cmd.Flags().Lookup(name); f.Changed && f.Value.String() == "" {
			return usageError("--%s is empty\nhint: leave it out, or give it a value", name)
		}
	}
	return nil
}

// parse checks the flags that have to do with one another or with nothing stored.
func (e *exporter) parse() (err error) {
	f := &e.flags
	if e.format, err = export.ParseFormat(f.format); err != nil {
		return usageError("%w", err)
	}
	if e.where, err = export.ParseWhere(f.where); err != nil {
		return usageError("--where: %w", err)
	}
	if f.calls != "" && !slices.Contains(export.Formats, e.format) {
		return usageError("--calls: %s has no table of tool calls\nhint: jsonl, csv and parquet have one", e.format)
	}
	if e.format == export.Inspect && f.output == "-" {
		return usageError("Inspect's logs are several files\nhint: --output names a directory for them, such as --output logs")
	}
	return nil
}

func (e *exporter) run(ctx context.Context) (err error) {
	if e.db, err = e.process.openToRead(ctx, e.flags.store); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.db.Close()) }()
	if err := e.choose(ctx); err != nil {
		return err
	}
	switch e.format {
	case export.Inspect:
		err = e.inspect(ctx)
	case export.V3, export.CSV50:
		err = e.legacy(ctx)
	default:
		err = e.table(ctx)
	}
	if err != nil {
		return err
	}
	return e.incomplete()
}

// choose finds what the flags name in the store.
func (e *exporter) choose(ctx context.Context) (err error) {
	f := &e.flags
	e.snapshot = f.snapshot
	if e.snapshot == "" {
		if e.snapshot, err = e.db.Snapshot(ctx); err != nil && !errors.Is(err, store.ErrDamaged) {
			return err
		}
	}
	e.filter = store.Filter{Snapshot: e.snapshot, Since: f.since}
	if f.run != "" {
		if e.filter.Run, err = chooseRun(ctx, e.db, f.run); err != nil {
			return err
		}
	}
	if f.experiment == "" {
		return nil
	}
	chosen, err := chooseExperiments(ctx, e.db, []string{f.experiment})
	if err != nil {
		return err
	}
	if e.scope, err = e.scopeOf(ctx, chosen[0]); err != nil || e.scope.planned == nil {
		return err
	}
	n, _, err := e.db.Unplanned(ctx, f.experiment, func(id assay.TrialID) bool { return e.scope.planned[id] })
	if n > 0 {
		fmt.Fprintf(e.process.err, "assay: the store has %s made for %s at trials that it no longer plans; they are left out\n", counted(n, "attempt"), f.experiment)
	}
	return err
}

// chooseRun returns the run whose ID is, or begins with, a text.
func chooseRun(ctx context.Context, db *store.DB, text string) (assay.RunID, error) {
	runs, err := db.Runs(ctx, "")
	if err != nil {
		return "", err
	}
	var all, fit []string
	for _, r := range runs {
		id := string(r.ID)
		if id == text {
			return r.ID, nil
		}
		if all = append(all, id); len(text) >= 4 && strings.HasPrefix(id, text) {
			fit = append(fit, id)
		}
	}
	switch len(fit) {
	case 0:
		err := fmt.Errorf("the store has no run %q", text)
		if hint := assay.NameHint(text, all); hint != "" {
			err = fmt.Errorf("%w\nhint: %s", err, hint)
		}
		return "", err
	case 1:
		return assay.RunID(fit[0]), nil
	}
	return "", usageError("%q could be several runs\nhint: write one of %s", text, strings.Join(fit, ", "))
}

// A scope is the attempts of an experiment: those at the trials that it plans, for
// whichever experiment they were made.
type scope struct {
	experiment string
	planned    map[assay.TrialID]bool // nil where it cannot be planned again
	models     map[string]int         // counts them
	// made are the attempts that were made for it at other trials, which belong to it
	// too where no experiment was named, so that each belongs somewhere.
	made bool
}

// scopeOf plans an experiment. Where that fails its attempts are those that were made
// for it, and the user is told.
func (e *exporter) scopeOf(ctx context.Context, x store.Experiment) (*scope, error) {
	s := &scope{experiment: x.Name, made: e.flags.experiment == ""}
	j, err := job.Reopen(ctx, x)
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		s.made = true
		first, _, _ := strings.Cut(err.Error(), "\n")
		fmt.Fprintf(e.process.err, "assay: experiment %s cannot be planned again, so what is exported of it is the attempts that were made for it: %s\n", x.Name, first)
		return s, nil
	}
	s.planned, s.models = make(map[assay.TrialID]bool, j.Planned()), make(map[string]int)
	for t := range j.Trials() {
		s.planned[t.ID] = true
		s.models[t.Model]++
	}
	return s, j.Close()
}

func (s *scope) has(a *assay.Attempt) bool {
	return s == nil || s.planned[a.ID] || s.made && a.Experiment == s.experiment
}

// attempts streams the chosen attempts.
func (e *exporter) attempts(ctx context.Context) iter.Seq2[assay.Attempt, error] {
	return filtered(e.scoped(ctx), e.where)
}

// scoped streams what is chosen by all but --where.
func (e *exporter) scoped(ctx context.Context) iter.Seq2[assay.Attempt, error] {
	return only(e.db.Attempts(ctx, e.filter), e.scope.has)
}

// filtered passes on the attempts that where chooses, and errors.
func filtered(attempts iter.Seq2[assay.Attempt, error], where export.Where) iter.Seq2[assay.Attempt, error] {
	return only(attempts, where.Has)
}

func only(attempts iter.Seq2[assay.Attempt, error], has func(*assay.Attempt) bool) iter.Seq2[assay.Attempt, error] {
	return func(yield func(assay.Attempt, error) bool) {
		for a, err := range attempts {
			if (err != nil || has(&a)) && !yield(a, err) {
				return
			}
		}
	}
}

// transcripts streams the chosen attempts with their transcripts. Attempts that come
// without are remembered.
func (e *exporter) transcripts(ctx context.Context, f store.Filter, in *scope) iter.Seq2[store.Stored, error] {
	return func(yield func(store.Stored, error) bool) {
		for s, err := range e.db.Transcripts(ctx, f) {
			a := &s.Attempt
			damaged := errors.Is(err, store.ErrDamaged) && a.ID != ""
			if damaged {
				err = nil
			}
			if err == nil && !(in.has(a) && e.where.Has(a)) {
				continue
			}
			if err == nil && s.Transcript == nil {
				e.bare[bareAttempt{a.ID, a.Number}] = damaged
			}
			if !yield(s, err) {
				return
			}
		}
	}
}

// missing counts what the export lacks so far.
func (e *exporter) missing() export.Missing {
	m := export.Missing{Attempts: e.db.Skipped()}
	for _, damaged := range e.bare {
		if damaged {
			m.Transcripts++
		} else {
			m.NotKept++
		}
	}
	return m
}

// incomplete is the error that something could not be read.
func (e *exporter) incomplete() error {
	m := e.missing()
	if !m.Damage() {
		return nil
	}
	return fmt.Errorf("%s\nhint: \"assay verify\" says more", lacks(m, e.narrowed() || e.scope != nil))
}

// lacks says what an export lacks for damage. Under a filter nobody knows whether it
// would have chosen an attempt that cannot be read.
func lacks(m export.Missing, filtered bool) string {
	var all []string
	if m.Attempts > 0 {
		which := ", which the export lacks"
		if filtered {
			which = ", which the export perhaps lacks"
		}
		all = append(all, unread(m.Attempts)+which)
	}
	if m.Transcripts > 0 {
		all = append(all, counted(m.Transcripts, "transcript")+" cannot be read, which the export lacks")
	}
	return strings.Join(all, "; ")
}

// narrowed says that a plan does not tell which trials are exported.
func (e *exporter) narrowed() bool {
	return len(e.flags.where) > 0 || e.filter.Run != "" || e.flags.since != ""
}

func (e *exporter) manifest() export.Manifest {
	f := &e.flags
	return export.Manifest{
		FormatVersion: export.Version, Program: version(), CreatedAt: time.Now().UTC(), Snapshot: e.snapshot, Store: filepath.Base(f.store),
		Filter: export.Filter{Experiment: f.experiment, Run: e.filter.Run, Since: f.since, Where: f.where},
		Files:  []export.File{}, Columns: []export.Column{},
	}
}

// A content is what becomes a file: write returns how many records of the table it
// has.
type content struct {
	name  string
	table export.Table
	write func(io.Writer) (int, error)
}

// files writes contents in the export's format, and a manifest beside the first that
// is a file.
func (e *exporter) files(m *export.Manifest, contents ...content) (err error) {
	d := &delivery{process: e.process}
	defer func() { err = errors.Join(err, d.drop()) }()
	parts := make([]*part, len(contents))
	for i, c := range contents {
		if parts[i], err = d.open(c.name); err != nil {
			return err
		}
	}
	var manifest *part
	if i := slices.IndexFunc(parts, (*part).appears); i >= 0 {
		if manifest, err = d.open(contents[i].name + manifestSuffix); err != nil {
			return err
		}
	}
	for i, c := range contents {
		digest := export.NewDigest(parts[i])
		n, err := c.write(digest)
		if errors.Is(err, syscall.EPIPE) && manifest != nil { // what ended takes files with it
			return fmt.Errorf("nothing was written: the reader of %s went away", c.name)
		}
		if err != nil {
			return err
		}
		if parts[i].appears() {
			m.Files = append(m.Files, digest.File(manifest.name, c.name, e.format, c.table, n))
			m.Columns = append(m.Columns, export.Describe(c.table)...)
		}
	}
	if manifest != nil {
		m.Missing = e.missing()
		if err := m.Write(manifest); err != nil {
			return err
		}
	}
	return d.deliver()
}

const manifestSuffix = ".manifest.json"

// table writes attempts, and their calls, in one of our own formats.
func (e *exporter) table(ctx context.Context) error {
	m := e.manifest()
	from := export.Origin{Program: m.Program, Snapshot: m.Snapshot}
	contents := []content{{e.flags.output, export.AttemptTable, func(w io.Writer) (int, error) {
		return from.Write(w, e.format, m.Counts.Count(e.attempts(ctx)))
	}}}
	if e.flags.calls != "" {
		contents = append(contents, content{e.flags.calls, export.CallTable, func(w io.Writer) (int, error) {
			return from.WriteCalls(w, e.format, e.calls(ctx))
		}})
	}
	if err := e.files(&m, contents...); err != nil {
		return err
	}
	return e.tell(ctx, counted(m.Counts.Attempts, "attempt"), m.Counts)
}

// tell says what was exported and, of nothing, why.
func (e *exporter) tell(ctx context.Context, what string, chosen export.Counts) error {
	snapshot := "snapshot " + e.snapshot
	if e.snapshot == "" {
		snapshot = "the present state of the store, which has no name for damage"
	}
	fmt.Fprintf(e.process.err, "%s of %s\n", what, snapshot)
	if text := unkept(e.missing()); text != "" {
		fmt.Fprintf(e.process.err, "assay: %s\n", text)
	}
	if chosen.Attempts > 0 {
		return nil
	}
	why, err := e.where.Explain(e.scoped(ctx))
	if err != nil {
		return err
	}
	if why == "" {
		why = "the store has no attempt yet"
		if chosen := e.chosen(); chosen != "" {
			why = "there is no attempt with" + chosen
		}
	}
	for line := range strings.Lines(why) {
		fmt.Fprintln(e.process.err, harmless(strings.TrimSpace(line)))
	}
	return nil
}

// unkept says that transcripts are not there to be exported, which is no damage.
func unkept(m export.Missing) string {
	if m.NotKept == 0 {
		return ""
	}
	return counted(m.NotKept, "attempt") + " exported without calls and messages, for lack of transcripts in the store"
}

// chosen is the flags that choose attempts, but for --where.
func (e *exporter) chosen() string {
	var b strings.Builder
	f := &e.flags
	for _, flag := range [][2]string{{"experiment", f.experiment}, {"run", string(e.filter.Run)}, {"since", f.since}, {"snapshot", f.snapshot}} {
		if flag[1] != "" {
			fmt.Fprintf(&b, " --%s %s", flag[0], flag[1])
		}
	}
	return b.String()
}

func (e *exporter) calls(ctx context.Context) iter.Seq2[export.Call, error] {
	return func(yield func(export.Call, error) bool) {
		for s, err := range e.transcripts(ctx, e.filter, e.scope) {
			if err != nil {
				yield(export.Call{}, err)
				return
			}
			if s.Transcript == nil {
				continue
			}
			for _, c := range export.CallsOf(&s.Attempt, s.Transcript) {
				if !yield(c, nil) {
					return
				}
			}
		}
	}
}

// legacy writes what the original wrote.
func (e *exporter) legacy(ctx context.Context) error {
	m, n := e.manifest(), 0
	err := e.files(&m, content{e.flags.output, export.TrialTable, func(w io.Writer) (_ int, err error) {
		attempts := m.Counts.Count(e.attempts(ctx))
		if e.format == export.CSV50 {
			n, err = legacy.WriteCSV(w, attempts)
		} else {
			n, err = legacy.WriteV3(w, attempts)
		}
		return n, err
	}})
	var mixed *legacy.MixedError
	if errors.As(err, &mixed) {
		return fmt.Errorf("%w\nhint: choose, such as with%s", err, whereFlags(mixed.Where()))
	}
	if err != nil {
		return err
	}
	what := counted(n, "trial")
	if n == 0 && m.Counts.Attempts > 0 {
		what += ", for all attempts chosen are faults,"
	}
	return e.tell(ctx, what, m.Counts)
}

// whereFlags writes conditions as a POSIX shell reads them.
func whereFlags(conditions []string) string {
	var b strings.Builder
	for _, c := range conditions {
		b.WriteString(" --where '" + strings.ReplaceAll(c, "'", `'\''`) + "'")
	}
	return b.String()
}

// checkExport reads an export's manifest and files, and says whether these are what
// that says. Path is one of them, or the directory of logs.
func checkExport(ctx context.Context, p *process, path string) error {
	path, m, err := findManifest(path)
	if err != nil {
		return lines(fmt.Errorf("check %s: %w", path, err))
	}
	if err := m.Verify(ctx, filepath.Dir(path)); err != nil {
		return lines(err)
	}
	for _, f := range m.Files {
		fmt.Fprintf(p.out, "%s: whole, %s\n", harmless(f.Name), counted(f.Rows, strings.TrimSuffix(harmless(string(f.Table)), "s")))
	}
	fmt.Fprintf(p.out, "%s, snapshot %s of %s\n", counted(m.Counts.Attempts, "attempt"), harmless(m.Snapshot), harmless(m.Store))
	if text := unkept(m.Missing); text != "" {
		fmt.Fprintln(p.out, text)
	}
	if !m.Missing.Damage() {
		return nil
	}
	f := m.Filter
	return fmt.Errorf("the files are as they were written, and %s\nhint: export again from a store that is whole",
		lacks(m.Missing, f.Experiment != "" || f.Run != "" || f.Since != "" || len(f.Where) > 0))
}

// lines keeps the lines of an error, and nothing else that a terminal would obey.
func lines(err error) error {
	var all []string
	for line := range strings.Lines(err.Error()) {
		all = append(all, harmless(strings.TrimSuffix(line, "\n")))
	}
	return errors.New(strings.Join(all, "\n"))
}

// findManifest returns the manifest of an exported file, which is beside it or in its
// directory, or of a directory of logs. Path may also be the manifest's own.
func findManifest(path string) (string, export.Manifest, error) {
	fi, err := os.Stat(path)
	if err == nil && fi.IsDir() {
		path = filepath.Join(path, logsManifest)
	} else if named := manifestNaming(path, fi); named != "" {
		path = named
	}
	m, err := readManifest(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		err = fmt.Errorf("no manifest beside it names it, and it is none itself: %w", err)
	}
	if err != nil {
		err = fmt.Errorf("%w\nhint: name a file that a manifest tells of, FILE%s beside the first, or a directory of logs", err, manifestSuffix)
	}
	return path, m, err
}

// manifestNaming returns the path of the manifest that is named after a file or, of
// those in its directory that tell of it, the latest one's; or nothing.
func manifestNaming(path string, is os.FileInfo) (at string) {
	if _, err := os.Stat(path + manifestSuffix); err == nil {
		return path + manifestSuffix
	}
	dir := filepath.Dir(path)
	entries, err := os.ReadDir(dir)
	if err != nil || is == nil {
		return ""
	}
	var latest time.Time
	for _, e := range entries {
		if !e.Type().IsRegular() || e.Name() != logsManifest && !strings.HasSuffix(e.Name(), manifestSuffix) {
			continue
		}
		m, err := readManifest(filepath.Join(dir, e.Name()))
		if err != nil || m.CreatedAt.Before(latest) {
			continue
		}
		if slices.ContainsFunc(m.Files, func(f export.File) bool {
			fi, err := os.Stat(f.Path(dir))
			return err == nil && os.SameFile(fi, is)
		}) {
			at, latest = filepath.Join(dir, e.Name()), m.CreatedAt
		}
	}
	return at
}

func readManifest(path string) (m export.Manifest, err error) {
	file, err := os.Open(path)
	if err != nil {
		return m, err
	}
	m, err = export.ReadManifest(file)
	return m, errors.Join(err, file.Close())
}
