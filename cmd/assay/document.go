package main

import (
	"encoding/json"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay/internal/result/atomicfile"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/export"
	"github.com/assay-eval/assay/internal/result/stat"
)

var documentFormats = []string{"text", "md", "html", "json"}

// documentFlags are the flags of commands that write a document.
type documentFlags struct {
	store, format, output string
	cluster               string
	transcripts           int
	reveal                bool
	conditions            []string
	where                 export.Where // parsed conditions
	asJSON                bool
	details               bool // all sections of a text
}

// flags adds the flags to a command. Transcripts completes the help of --transcripts, which the
// command does not have if it is empty.
func (f *documentFlags) flags(cmd *cobra.Command, transcripts string) {
	storeFlag(cmd, &f.store)
	formatFlag(cmd, &f.format, documentFormats, "text")
	cmd.Flags().StringVarP(&f.output, "output", "o", "-",
		"the `file` to write; - is standard output")
	if transcripts != "" {
		cmd.Flags().IntVar(&f.transcripts, "transcripts", 0, "with --format html: "+transcripts)
		revealFlag(cmd, &f.reveal)
	}
	cmd.Flags().StringVar(&f.cluster, "cluster", stat.Auto,
		"what counts as independent: task, or the sequence of tools that tasks share; auto takes "+
			"the sequence if there are at most half as many")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "the same as --format json")
	whereFlag(cmd, &f.conditions)
	choice(cmd, "cluster", stat.Clusters...)
}

// formatFlag adds --format to a command.
func formatFlag(cmd *cobra.Command, format *string, known []string, usual string) {
	cmd.Flags().StringVar(format, "format", "", strings.Join(known, ", ")+
		"; by default what the name of the output ends with, or else "+usual)
	choice(cmd, "format", known...)
}

// formatOf returns the chosen format, or the known one that the output's name ends with, or the usual
// one if the name has no ending. It refuses an unknown ending.
func formatOf(chosen, output string, known []string, usual string) (string, error) {
	ending := strings.TrimPrefix(filepath.Ext(output), ".")
	switch {
	case chosen != "":
		return chosen, nil
	case ending == "":
		return usual, nil
	case slices.Contains(known, ending):
		return ending, nil
	case ending == "txt" && usual == "text":
		return usual, nil
	}
	endings := "." + strings.Join(known, ", .")
	if usual == string(export.JSONL) {
		endings += ", and .gz or .zst behind .jsonl and .csv"
	}
	return "", usageError("--output %s: no format is known by the ending .%s\nhint: the endings are %s; "+
		"--format chooses a format for any name", output, ending, strings.Replace(endings, ".text", ".txt", 1))
}

// check returns a usage error if a flag has an unknown value or would fill a terminal with the source
// of a page, and parses the conditions.
func (f *documentFlags) check(p *process) error {
	if f.asJSON {
		f.format = "json"
	}
	var err error
	if f.format, err = formatOf(f.format, f.output, documentFormats, "text"); err != nil {
		return err
	}
	if !slices.Contains(documentFormats, f.format) {
		return usageError("--format %q: the formats are %s",
			f.format, strings.Join(documentFormats, ", "))
	}
	if !slices.Contains(stat.Clusters, f.cluster) {
		return usageError("--cluster %q: it is one of %s", f.cluster,
			strings.Join(stat.Clusters, ", "))
	}
	if f.format == "html" && f.output == "-" && p.terminal.Width > 0 {
		return usageError("a page in HTML does not belong on a terminal\n" +
			"hint: write it to a file, --output report.html, or pipe it; `assay view` serves pages")
	}
	if f.transcripts < 0 {
		return usageError("--transcripts %d: want 0 or more", f.transcripts)
	}
	if f.transcripts > 0 && f.format != "html" {
		return usageError("--transcripts needs a page, such as --output report.html; " +
			"`assay show` prints one transcript")
	}
	f.where, err = parseWhere(f.conditions)
	return err
}

// write writes figures as JSON, or the document made from them.
func (f *documentFlags) write(
	p *process, figures any, makeDocument func() (*document.Document, error),
) error {
	return atomicfile.Write(p.out, f.output, func(w io.Writer) error {
		if f.format == "json" {
			return json.NewEncoder(w).Encode(figures)
		}
		d, err := makeDocument()
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
