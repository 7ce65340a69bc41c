package main

import (
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay/internal/result/document"
)

var documentFormats = []string{"text", "md", "html", "json"}

// documentFlags are those of commands that write a document for people.
type documentFlags struct {
	store, format, output string
	transcripts           int
	asJSON                bool
}

// flags adds them to a command; transcripts says which ones it shows.
func (f *documentFlags) flags(cmd *cobra.Command, transcripts string) {
	storeFlag(cmd, &f.store)
	cmd.Flags().StringVar(&f.format, "format", "text", strings.Join(documentFormats, ", "))
	cmd.Flags().StringVarP(&f.output, "output", "o", "-", "the `file` to write; - is standard output")
	cmd.Flags().IntVar(&f.transcripts, "transcripts", 0, "with --format html: "+transcripts)
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "the same as --format json")
	choice(cmd, "format", documentFormats...)
}

func (f *documentFlags) check() error {
	if f.asJSON {
		f.format = "json"
	}
	if !slices.Contains(documentFormats, f.format) {
		return usageError("--format %q: the formats are %s", f.format, strings.Join(documentFormats, ", "))
	}
	if f.transcripts < 0 {
		return usageError("--transcripts %d: a number from 0", f.transcripts)
	}
	if f.transcripts > 0 && f.format != "html" {
		return usageError("--transcripts is for --format html; `assay show` prints one")
	}
	return nil
}

// write writes figures as JSON, or the document that is made of them.
func (f *documentFlags) write(p *process, figures any, made func() (*document.Document, error)) error {
	return toFile(p, f.output, func(w io.Writer) error {
		if f.format == "json" {
			return json.NewEncoder(w).Encode(figures)
		}
		d, err := made()
		if err != nil {
			return err
		}
		switch f.format {
		case "html":
			return d.WriteHTML(w)
		case "md":
			return d.WriteMarkdown(w)
		}
		if f.output == "-" {
			return d.WriteText(w, p.terminal)
		}
		return d.WriteText(w, document.Terminal{})
	})
}
