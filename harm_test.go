package assay_test

import (
	"testing"

	"github.com/assay-eval/assay"
)

func TestWorstHarm(t *testing.T) {
	t.Parallel()
	const low, medium, high = assay.LowHarm, assay.MediumHarm, assay.HighHarm
	for _, tc := range []struct {
		effects []assay.Harm
		want    assay.Harm
	}{
		{nil, ""},
		{[]assay.Harm{low}, low},
		{[]assay.Harm{low, medium, low}, medium},
		{[]assay.Harm{high, low}, high},
		{[]assay.Harm{""}, ""},
		{[]assay.Harm{medium, ""}, ""}, // the unknown one may be high
		{[]assay.Harm{"", high}, high},
	} {
		if got := assay.WorstHarm(tc.effects); got != tc.want {
			t.Errorf("the worst of %q is %q, want %q", tc.effects, got, tc.want)
		}
	}
}

func TestHarmsHaveWeights(t *testing.T) {
	t.Parallel()
	last := 0.
	for _, h := range assay.Harms {
		w, known := h.Weight()
		if !known || w <= last || w > 1 {
			t.Errorf("%s weighs %v, %v after %v", h, w, known, last)
		}
		last = w
	}
	if w, known := assay.Harm("").Weight(); known {
		t.Errorf("an unknown harm weighs %v", w)
	}
}
