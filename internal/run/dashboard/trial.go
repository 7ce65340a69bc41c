package dashboard

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/assay-eval/assay/internal/result/query"
	"github.com/assay-eval/assay/internal/store"
	"github.com/assay-eval/assay/internal/task/score"
)

// A trialBody is the content of the page of a trial.
type trialBody struct {
	Trial   *explainedTrial
	Against *explainedTrial // the trial beside it, or nil
	// Others are trials that can be shown beside it.
	Others []attemptRow
	// Rows pairs the turns of both.
	Rows []turnPair
}

// An explainedTrial is a trial with all its explanations.
type explainedTrial struct {
	*query.Trial
	Turns []query.Turn
	// Explanation is nil for a fault, and Unexplained is the reason if there should be one.
	Explanation *score.Explanation
	Unexplained string
	Opinions    []store.Classification
}

// A turnPair has the turns of the same number. Either may be nil.
type turnPair struct{ A, B *query.Turn }

// trial shows an attempt at a trial, perhaps with another trial beside it.
func (s *Server) trial(w http.ResponseWriter, r *http.Request) {
	number, _ := strconv.Atoi(r.URL.Query().Get("attempt")) // else the one that counts
	t, err := s.explain(r, r.PathValue("id"), number)
	if err != nil {
		s.fail(w, r, statusOf(err), err)
		return
	}
	body := trialBody{Trial: t, Others: s.index.beside(t.ID)}
	if id := r.URL.Query().Get("beside"); id != "" {
		if body.Against, err = s.explain(r, id, 0); err != nil {
			s.fail(w, r, statusOf(err), err)
			return
		}
	}
	body.Rows = pairTurns(t, body.Against)
	s.show(w, r, http.StatusOK, "trial.html", s.frame("", "Trial "+string(t.ID[:8]), body))
}

// statusOf returns the HTTP status for an error of a lookup.
func statusOf(err error) int {
	var several *store.AmbiguousError
	unknown := errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrPrefix)
	if unknown || errors.As(err, &several) {
		return http.StatusNotFound
	}
	return http.StatusInternalServerError
}

func (s *Server) explain(r *http.Request, id string, number int) (*explainedTrial, error) {
	t, err := query.FindTrial(r.Context(), s.db, id, number, s.options.Reveal)
	if err != nil {
		return nil, err
	}
	out := &explainedTrial{Trial: t, Turns: t.Turns()}
	if out.Opinions, err = t.Opinions(r.Context(), s.db); err != nil {
		return nil, err
	}
	if out.Explanation, err = t.Explain(r.Context(), s.db); err != nil {
		out.Unexplained = err.Error() // the library may be gone
	}
	return out, nil
}

// pairTurns aligns two conversations by turn.
func pairTurns(a, b *explainedTrial) (pairs []turnPair) {
	turn := func(t *explainedTrial, i int) *query.Turn {
		if t == nil || i >= len(t.Turns) {
			return nil
		}
		return &t.Turns[i]
	}
	for i := 0; ; i++ {
		p := turnPair{turn(a, i), turn(b, i)}
		if p.A == nil && p.B == nil {
			return pairs
		}
		pairs = append(pairs, p)
	}
}
