package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay/internal/result/legacy"
	"github.com/assay-eval/assay/internal/store"
)

// legacyKind names the original's database among imports.
const legacyKind = "pilot master_database V3"

func newImports(p *process) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "import",
		Short:   "Take in what other systems found",
		Example: "  assay import legacy master_database.json",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(interruptible(p, newImportLegacy(p)))
	// It has no flags: that a command does not exist is told before its flags are.
	cmd.SetFlagErrorFunc(func(at *cobra.Command, err error) error {
		if args := at.Flags().Args(); at == cmd && len(args) > 0 {
			return unknownCommand(cmd, args[0])
		}
		return at.Root().FlagErrorFunc()(at, err)
	})
	return cmd
}

type importFlags struct {
	store       string
	dry, asJSON bool
}

func newImportLegacy(p *process) *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use:   "legacy [FILE]",
		Short: "Take in a master_database.json of the 2025 original, as aggregates",
		Long: `Legacy reads a database of the 2025 original, finds every contradiction in it, corrects
what its own fields tell the right value of, and stores both as aggregates of another
system. They are no trials: no rate, no coverage and no export of ours counts them, and
reports show them apart, labelled. Nothing is ever moved between models or cells.

Without FILE it lists what the store holds of such databases.`,
		Example: `  assay import legacy master_database.json
  assay import legacy master_database.json --dry-run
  assay import legacy master_database.json --json | jq '.findings | length'
  assay import legacy`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return listLegacy(cmd.Context(), p, f)
			}
			return importLegacy(cmd.Context(), p, args[0], f)
		},
	}
	storeFlag(cmd, &f.store)
	cmd.Flags().BoolVar(&f.dry, "dry-run", false, "say what is in the file, and store nothing")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print what was read as one JSON object, or the list as an array")
	return cmd
}

// importLegacy stores what a file holds and reports it, also where it was stored before.
func importLegacy(ctx context.Context, p *process, file string, f importFlags) error {
	d, err := readLegacy(ctx, file)
	if err != nil {
		return err
	}
	var stored error
	if !f.dry {
		if stored = storeLegacy(ctx, f.store, file, d); stored != nil && !errors.Is(stored, store.ErrImported) {
			return stored
		}
	}
	if f.asJSON {
		err = json.NewEncoder(p.out).Encode(d)
	} else {
		err = writeLegacy(p.out, d, f)
	}
	return errors.Join(err, stored)
}

func readLegacy(ctx context.Context, path string) (*legacy.Database, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("import: %w", err)
	}
	// What reads from it then ends, also where it waits for another program.
	stop := context.AfterFunc(ctx, func() { _ = f.Close() })
	d, err := legacy.Read(f)
	if !stop() {
		return nil, context.Cause(ctx)
	}
	var place *legacy.SyntaxError
	switch err = errors.Join(err, f.Close()); {
	case errors.As(err, &place):
		return nil, fmt.Errorf("%s:%w", path, err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return d, nil
}

func storeLegacy(ctx context.Context, path, file string, d *legacy.Database) (err error) {
	body, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	db, err := store.Open(ctx, path, store.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return db.Import(ctx, store.Import{
		Kind: legacyKind, Name: filepath.Base(file), SHA256: d.Source, At: time.Now().UTC(), Program: version(), Body: body,
	})
}

func writeLegacy(w io.Writer, d *legacy.Database, f importFlags) error {
	var b strings.Builder
	usable, corrected := 0, 0
	for i := range d.Aggregates {
		if d.Aggregates[i].Usable {
			usable++
			if d.Aggregates[i].Corrected != nil {
				corrected++
			}
		}
	}
	fmt.Fprintf(&b, "%s, %d usable, %d of these corrected; last updated %s\n", counted(len(d.Aggregates), "aggregate"), usable, corrected, harmless(d.LastUpdated))
	fmt.Fprintf(&b, "%s:\n\n", counted(len(d.Findings), "contradiction"))
	for _, k := range d.Summary(2) {
		fmt.Fprintf(&b, "%5d  %s: %s\n", k.Count, k.Kind, k.Meaning)
		for _, f := range k.Examples {
			at := ""
			if f.Path != "" {
				at = f.Path + ": "
			}
			fmt.Fprintf(&b, "         %s\n", harmless(at+f.Message+"; "+f.Done))
		}
	}
	if f.dry {
		b.WriteString("\nNothing was stored.\n")
	} else {
		fmt.Fprintf(&b, "\n%s holds them apart from trials; `assay report` shows them, labelled.\n", f.store)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// An imported is a line of the list of imports.
type imported struct {
	Name       string    `json:"name"`
	SHA256     string    `json:"sha256"`
	At         time.Time `json:"imported_at"`
	Aggregates int       `json:"aggregates"`
	Findings   int       `json:"findings"`
}

// listLegacy lists the databases of the original that a store holds.
func listLegacy(ctx context.Context, p *process, f importFlags) (err error) {
	if f.dry {
		return usageError("--dry-run says what is in a file, and none is named")
	}
	db, err := p.openToRead(ctx, f.store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	imports, err := db.Imports(ctx)
	if err != nil {
		return err
	}
	all := []imported{}
	for _, i := range imports {
		if i.Kind != legacyKind {
			continue
		}
		var d legacy.Database
		if err := json.Unmarshal(i.Body, &d); err != nil {
			return fmt.Errorf("import %s: %w", i.Name, err)
		}
		all = append(all, imported{i.Name, i.SHA256, i.At, len(d.Aggregates), len(d.Findings)})
	}
	if f.asJSON {
		return json.NewEncoder(p.out).Encode(all)
	}
	for _, i := range all {
		fmt.Fprintf(p.out, "%s  %s: %s, %s\n", i.At.Format(time.RFC3339), harmless(i.Name), counted(i.Aggregates, "aggregate"), counted(i.Findings, "contradiction"))
	}
	if len(all) == 0 {
		fmt.Fprintf(p.out, "%s holds no database of the original; `assay import legacy FILE` takes one in.\n", f.store)
	}
	return nil
}
