package stat_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay/internal/result/stat"
)

// TestBenjaminiHochbergReference uses the 15 p-values of the example in
// Benjamini and Hochberg (1995), section 4. At 5 % the first four are rejected.
// The adjusted values are from statsmodels 0.15.0.
func TestBenjaminiHochbergReference(t *testing.T) {
	t.Parallel()
	p := []float64{
		.0001, .0004, .0019, .0095, .0201, .0278, .0298, .0344, .0459,
		.3240, .4262, .5719, .6528, .7590, 1,
	}
	want := []float64{
		.0015, .003, .0095, .035625, .0603, .063857, .063857, .0645, .0765,
		.486, .581182, .714875, .753231, .813214, 1,
	}
	for i, q := range stat.BenjaminiHochberg(p) {
		if math.Abs(q-want[i]) > 5e-7 {
			t.Errorf("q[%d] = %v, want %v", i, q, want[i])
		}
		if (q <= .05) != (i < 4) {
			t.Errorf("q[%d] = %v, want only the first four at or below 0.05", i, q)
		}
	}
}

// TestBenjaminiHochbergRounding checks that q is not below p, although 3p/3 may
// round below p.
func TestBenjaminiHochbergRounding(t *testing.T) {
	t.Parallel()
	p := []float64{.5, .5, 0.7500000000000007}
	if q := stat.BenjaminiHochberg(p); q[2] < p[2] {
		t.Errorf("q = %v of %v", q[2], p[2])
	}
}

func TestBenjaminiHochbergLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SliceOf(rapid.OneOf(rapid.Float64Range(0, 1), rapid.Just(math.NaN()))).Draw(t,
			"p")
		q := stat.BenjaminiHochberg(p)
		var tests []float64
		for _, v := range p {
			if !math.IsNaN(v) {
				tests = append(tests, v)
			}
		}
		alone := stat.BenjaminiHochberg(tests)
		j := 0
		for i := range p {
			if math.IsNaN(p[i]) != math.IsNaN(q[i]) {
				t.Fatalf("%v became %v", p[i], q[i])
			}
			if math.IsNaN(p[i]) {
				continue
			}
			if q[i] < p[i] || q[i] > 1 || q[i] != alone[j] {
				t.Fatalf("p %v, q %v, alone %v", p[i], q[i], alone[j])
			}
			j++
			for k := range p {
				if p[i] < p[k] && q[i] > q[k] {
					t.Fatalf("q is not in the order of p: %v, %v", p, q)
				}
			}
		}
	})
}
