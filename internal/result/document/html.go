package document

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

var (
	//go:embed page/page.html
	pageHTML string
	//go:embed page/style.css
	styleCSS string
	//go:embed page/script.js
	scriptJS string
	//go:embed page/charts.js
	chartsJS string
	//go:embed vega/vega.min.js
	vegaJS string
	//go:embed vega/vega-lite.min.js
	vegaLiteJS string
	//go:embed vega/vega-embed.min.js
	vegaEmbedJS string
	//go:embed vega/LICENSES.txt
	vegaLicences string
)

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"line": line, "pieces": pieces, "paragraphs": paragraphs, "excerpts": excerpts,
	"sign":         func(t Tone) string { return sign[t] },
	"meaning":      func(t Tone) string { return meaning[t] },
	"places":       func(w Warning) []string { first, _ := w.places(); return first },
	"more":         func(w Warning) []string { _, more := w.places(); return more },
	"warningsHead": warningsHead,
	"percent":      func(share float64) string { return fmt.Sprintf("%.4g", 100*min(1, max(0, share))) },
	"rounded":      func(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) },
}).Parse(pageHTML))

// A page is a document with the parts of its HTML.
type page struct {
	*Document
	FactsTitle string
	// Assets is the address of the folder of a site's styles and scripts. It is empty for a page that
	// has its own Style and Scripts.
	Assets  string
	Style   template.CSS
	Scripts []template.JS
	// Policy forbids everything that is not in the page.
	Policy template.HTMLAttr
	// Charts reports whether there are charts.
	Charts bool

	episodes map[string]bool
}

// A within is a section of a page.
type within struct {
	Section
	Page page
}

// Within returns a section for its template.
func (p page) Within(s any) within {
	if overview, ok := s.(*Section); ok {
		return within{*overview, p}
	}
	return within{s.(Section), p}
}

// Folded reports whether the section is closed at first: all are but the overview, if there is one.
func (w within) Folded() bool { return w.Page.Overview != nil && w.ID != w.Page.Overview.ID }

// Points returns the headline and the summary.
func (p page) Points() []Point { return slices.Concat(p.Headline, p.Summary) }

// WriteHTML writes the document as one file that needs no network. It contains the styles, the
// scripts and the data of the charts. Its content security policy only allows its own scripts,
// which cannot turn text into code.
//
// If the specification of a chart is not JSON, it fails before it writes anything.
func (d *Document) WriteHTML(w io.Writer) error {
	p, err := d.page()
	if err != nil {
		return err
	}
	p.Style, p.Scripts = template.CSS(styleCSS), []template.JS{template.JS(scriptJS)}
	if p.Charts {
		p.Scripts = append(p.Scripts, template.JS(licences()+vegaJS), template.JS(vegaLiteJS),
			template.JS(vegaEmbedJS), template.JS(chartsJS))
	}
	p.Policy = policy(p.Scripts)
	return p.write(w)
}

// WritePage writes the document as a page of a site. Assets is the address of the folder with
// the site's [Assets], relative to the page. Its policy allows nothing from another host.
func (d *Document) WritePage(w io.Writer, assets string) error {
	p, err := d.page()
	if err != nil {
		return err
	}
	p.Assets = assets
	p.Policy = `content="default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'` +
		`; img-src data: blob:; connect-src 'none'; base-uri 'none'; form-action 'none'"`
	return p.write(w)
}

// Assets returns the files that the pages of a site share, by name.
func Assets() map[string]string {
	return map[string]string{
		"style.css": styleCSS, "script.js": scriptJS, "charts.js": chartsJS,
		"vega.js": licences() + strings.Join([]string{vegaJS, vegaLiteJS, vegaEmbedJS}, "\n;"),
	}
}

func licences() string { return "/*\n" + vegaLicences + "\n*/\n" }

// page checks the charts of a document and prepares its page.
func (d *Document) page() (p page, err error) {
	p = page{Document: d, FactsTitle: factsTitle, episodes: make(map[string]bool)}
	sections := append([]Section{{ID: "main chart", Chart: d.Chart}}, d.Sections...)
	if d.Overview != nil {
		sections = append(sections, *d.Overview)
	}
	for _, s := range sections {
		if s.Chart == nil {
			continue
		}
		p.Charts = true
		if !json.Valid(s.Chart.Spec) {
			return p, fmt.Errorf("chart of section %q: the specification is not JSON", s.ID)
		}
	}
	for _, e := range d.Episodes {
		p.episodes[e.ID] = true
	}
	return p, nil
}

func (p page) write(w io.Writer) error {
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, p); err != nil {
		return fmt.Errorf("write HTML: %w", err)
	}
	_, err := b.WriteTo(w)
	return err
}

// policy allows scripts by their hashes.
func policy(scripts []template.JS) template.HTMLAttr {
	var hashes strings.Builder
	for _, s := range scripts {
		sum := sha256.Sum256([]byte(s))
		fmt.Fprintf(&hashes, " 'sha256-%s'", base64.StdEncoding.EncodeToString(sum[:]))
	}
	return template.HTMLAttr(`content="default-src 'none'; script-src` + hashes.String() +
		`; style-src 'unsafe-inline'; img-src data: blob:; connect-src 'none'` +
		`; base-uri 'none'; form-action 'none'"`)
}

// A placed cell has the properties of its place in the table.
type placed struct {
	Cell
	Names bool
	// Head is the head of the column, for narrow screens.
	Head string
	// Long names may take several lines.
	Long bool
	// RowHead reports whether this is the name of the row.
	RowHead bool
	// Key sorts the column; empty sorts it by text.
	Key string
}

// A laid table is ready for the template.
type laid struct {
	Columns []Column
	Rows    [][]placed
	// Shown is the number of rows that are shown at first; 0 for all.
	Shown int
}

// Lay places the cells of a table.
func (p page) Lay(t *Table) laid {
	out := laid{Columns: t.Columns}
	if first, folded := t.shown(); folded > 0 {
		out.Shown = len(first)
	}
	for _, row := range t.Rows {
		out.Rows = append(out.Rows, p.place(t, row))
	}
	return out
}

// Sheets splits a table that is too wide for paper.
func (p page) Sheets(t *Table) []laid {
	var out []laid
	for _, part := range t.sheets() {
		sheet := p.Lay(part)
		for _, row := range sheet.Rows {
			for i := range row {
				row[i].Head = ""
			}
		}
		out = append(out, sheet)
	}
	return out
}

// place returns a cell for each column of the table.
func (p page) place(t *Table, row []Cell) []placed {
	out := make([]placed, len(t.Columns))
	for i, c := range t.Columns {
		out[i].Cell = cellAt(row, i)
		out[i].Names, out[i].RowHead = c.Names, c.Names && i == 0
		out[i].Head = line(c.Head)
		out[i].Long = utf8.RuneCountInString(out[i].Text) > 20
		if v := out[i].Value; v != nil && !math.IsNaN(*v) {
			out[i].Key = strings.Replace(strconv.FormatFloat(*v, 'g', -1, 64), "Inf", "Infinity", 1)
		}
		if !p.episodes[out[i].Episode] {
			out[i].Episode = ""
		}
	}
	return out
}

// Legend explains the signs in a table.
func (p page) Legend(t *Table) string { return t.legend() }

// Version returns the version of Assay from the facts, or "".
func (p page) Version() string {
	for _, f := range p.Facts {
		switch strings.ToLower(f.Name) {
		case "assay", "version", "assay version":
			return f.Value
		}
	}
	return ""
}

// An excerpt is a piece of a step.
type excerpt struct {
	Code bool
	Text string
}

// excerpts splits a step's text at its fences. Messages of tools, and text that looks like JSON
// or a tag, are code.
func excerpts(s Step) []excerpt {
	text := strings.Trim(s.Text, "\n")
	if start := strings.TrimSpace(text); s.Who == "tool" ||
		start != "" && strings.ContainsRune("{[<", rune(start[0])) {
		return []excerpt{{true, text}}
	}
	out := []excerpt{{}}
	for l := range strings.Lines(text) {
		last := &out[len(out)-1]
		if strings.HasPrefix(strings.TrimSpace(l), "```") {
			out = append(out, excerpt{Code: !last.Code})
		} else {
			last.Text += l
		}
	}
	for i := range out {
		out[i].Text = strings.Trim(out[i].Text, "\n")
	}
	return slices.DeleteFunc(out, func(e excerpt) bool { return e.Text == "" })
}

// Alone reports whether the page is about one transcript, which is open.
func (p page) Alone() bool { return len(p.Episodes) == 1 && len(p.Trail) > 0 }
