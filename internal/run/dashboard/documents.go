package dashboard

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/export"
	"github.com/assay-eval/assay/internal/result/query"
	"github.com/assay-eval/assay/internal/result/stat"
)

// A reportBody is the content of the page of the report.
type reportBody struct {
	// Document is the address of the report, or of a comparison of two models, as far as a further
	// parameter.
	Document, Title string
	Models          []string
}

// report shows the report or a comparison in a frame, so that its own policy applies.
func (s *Server) report(w http.ResponseWriter, r *http.Request) {
	body := reportBody{"/report/document?", "Report of " + s.name, s.index.levels()["model"]}
	v := r.URL.Query()
	if a, b := v.Get("a"), v.Get("b"); a != "" && b != "" {
		body.Document = address("/compare/document", []string{"a", a, "b", b}) + "&"
		body.Title = "Comparison of " + a + " and " + b
	}
	s.show(w, r, http.StatusOK, "report.html", s.frame("/report", "Report", body))
}

// reportDocument writes the report as it is now. It is the file of `assay report --format html`.
func (s *Server) reportDocument(w http.ResponseWriter, r *http.Request) {
	d, err := s.makeReport(r.Context())
	if err != nil {
		s.fail(w, r, http.StatusInternalServerError, err)
		return
	}
	s.sendDocument(w, r, d, s.name+"-report.html")
}

func (s *Server) makeReport(ctx context.Context) (*document.Document, error) {
	figures, err := s.figures(ctx)
	if err != nil {
		return nil, err
	}
	return figures.Document(ctx, reportTranscripts)
}

// figures returns the figures of the report, which every page shows.
func (s *Server) figures(ctx context.Context) (*query.Report, error) {
	x, err := query.Plan(ctx, s.db, s.job, s.stored, export.Where{})
	if err != nil {
		return nil, err
	}
	x.Program, x.Store, x.Reveal = s.options.Program, s.options.Store, s.options.Reveal
	x.Design.Cluster = stat.Auto
	return x.Analyze(ctx, s.db)
}

// reportTranscripts is the number of failed episodes of each model in the report.
const reportTranscripts = 3

func (s *Server) compareDocument(w http.ResponseWriter, r *http.Request) {
	v := r.URL.Query()
	c, err := query.Compare(r.Context(), s.db, v.Get("a"), v.Get("b"), export.Where{},
		stat.Auto)
	if err != nil {
		s.fail(w, r, http.StatusBadRequest, err)
		return
	}
	d, err := c.Document(r.Context(), reportTranscripts, s.options.Reveal)
	if err != nil {
		s.fail(w, r, http.StatusInternalServerError, err)
		return
	}
	s.sendDocument(w, r, d, "comparison.html")
}

// sendDocument writes a document that needs no network, to show or to save. It has a policy of its
// own, which allows its scripts by their hashes.
func (s *Server) sendDocument(
	w http.ResponseWriter, r *http.Request, d *document.Document, name string,
) {
	var b bytes.Buffer
	if err := d.WriteHTML(&b); err != nil {
		s.fail(w, r, http.StatusInternalServerError, err)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "frame-ancestors 'self'")
	if r.URL.Query().Has("save") {
		name = strings.Map(func(c rune) rune {
			if strings.ContainsRune(`"\/`, c) || c < ' ' {
				return '-'
			}
			return c
		}, name)
		h.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", name))
	}
	_, _ = b.WriteTo(w) // the viewer may be gone
}
