package stat

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func near(t testing.TB, what string, got, want, tolerance float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > tolerance {
		t.Errorf("%s = %.10g, want %.10g", what, got, want)
	}
}

// TestStudentTable compares with printed tables (such as the NIST/SEMATECH
// e-Handbook of Statistical Methods, 1.3.6.7.2, with three digits; 2.228139 in
// the style of Abramowitz and Stegun's tables). Values with more digits or
// fractional degrees of freedom are from scipy 1.17.1.
func TestStudentTable(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ p, df, want, tolerance float64 }{
		{.975, 1, 12.706, 5e-4},
		{.975, 2, 4.303, 5e-4},
		{.95, 5, 2.015, 5e-4},
		{.975, 10, 2.228139, 5e-7},
		{.99, 20, 2.528, 5e-4},
		{.995, 100, 2.626, 5e-4},

		{.975, 10, 2.228138851986274, 1e-11},
		{.975, 1, 12.706204736174694, 1e-10},
		{.995, 5, 4.032142983555228, 1e-11},
		{.975, 2.5, 3.5746548420036817, 1e-11},
		{.9, .7, 5.009947959646406, 1e-10},
		{.975, 150.3, 1.9758732589209351, 1e-11},
		{.9995, 3, 12.923978636687961, 1e-9},
		{.6, 30, .2556053649519128, 1e-11},
		{.025, 10, -2.228138851986274, 1e-11},
		{.975, 1e7, Z95, 2e-6},
	} {
		near(t, "t", studentQuantile(tc.p, tc.df), tc.want, tc.tolerance)
	}
}

func TestStudentInverse(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.Float64Range(.001, .999).Draw(t, "p")
		df := rapid.Float64Range(.5, 1e5).Draw(t, "df")
		if got := studentCDF(studentQuantile(p, df), df); math.Abs(got-p) > 1e-10 {
			t.Fatalf("CDF(quantile(%v, %v)) = %v", p, df, got)
		}
	})
}

// TestNormalTable compares with scipy 1.17.1, and the constants with the
// functions.
func TestNormalTable(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ p, want float64 }{
		{.8, .8416212335729143}, {.975, Z95}, {.995, Z99}, {.9995, Z999}, {
			.001,
			-3.0902323061678132,
		}, {.5, 0},
	} {
		near(t, "quantile", normalQuantile(tc.p), tc.want, 1e-12)
		near(t, "CDF", normalCDF(tc.want), tc.p, 1e-14)
	}
}

// Without degrees of freedom there is no quantile, and the distribution has its limits.
func TestStudentWithoutFreedom(t *testing.T) {
	t.Parallel()
	for _, df := range []float64{0, -1, math.NaN()} {
		if q := studentQuantile(.975, df); !math.IsNaN(q) {
			t.Errorf("quantile with %v degrees of freedom: %v", df, q)
		}
	}
	if low, high := studentCDF(-2, 0), studentCDF(2, 0); low != 0 || high != 1 {
		t.Errorf("distribution without degrees of freedom: %v at -2, %v at 2", low, high)
	}
	if p := betaRegularized(.5, 0, 2); p != 1 {
		t.Errorf("I(0, 2) is %v at .5, want 1", p)
	}
	if p := betaRegularized(.5, 2, 0); p != 0 {
		t.Errorf("I(2, 0) is %v at .5, want 0", p)
	}
}
