package document_test

import (
	"image/color"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// palettes returns the values of the page's colour variables, for light and dark.
func palettes(t *testing.T) map[string]map[string][]color.RGBA {
	t.Helper()
	css, err := os.ReadFile("page/style.css")
	if err != nil {
		t.Fatal(err)
	}
	light, rest, ok := strings.Cut(string(css), "@media screen and (prefers-color-scheme: dark)")
	if !ok {
		t.Fatal("the style has no dark scheme")
	}
	dark, _, _ := strings.Cut(rest, "*, *::before")
	out := make(map[string]map[string][]color.RGBA)
	for name, text := range map[string]string{"light": light, "dark": dark} {
		out[name] = make(map[string][]color.RGBA)
		for _, m := range regexp.MustCompile(`--([a-z-]+): ([#0-9a-f ]+);`).FindAllStringSubmatch(text, -1) {
			for _, c := range strings.Fields(m[2]) {
				if len(c) == 4 {
					c = string([]byte{'#', c[1], c[1], c[2], c[2], c[3], c[3]})
				}
				n, err := strconv.ParseUint(c[1:], 16, 32)
				if err != nil {
					t.Fatal(err)
				}
				out[name][m[1]] = append(
					out[name][m[1]],
					color.RGBA{uint8(n >> 16), uint8(n >> 8), uint8(n), 255},
				)
			}
		}
	}
	return out
}

func linear(c color.RGBA) [3]float64 {
	var out [3]float64
	for i, v := range []uint8{c.R, c.G, c.B} {
		x := float64(v) / 255
		if out[i] = math.Pow((x+.055)/1.055, 2.4); x <= .04045 {
			out[i] = x / 12.92
		}
	}
	return out
}

// contrast follows the Web Content Accessibility Guidelines.
func contrast(a, b color.RGBA) float64 {
	luminance := func(c color.RGBA) float64 {
		l := linear(c)
		return .2126*l[0] + .7152*l[1] + .0722*l[2]
	}
	x, y := luminance(a), luminance(b)
	return (max(x, y) + .05) / (min(x, y) + .05)
}

// eyes simulates typical vision, and vision without red or green cones, after Machado, Oliveira and
// Fernandes.
var eyes = map[string][3][3]float64{
	"common": {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
	"protanopia": {
		{.152286, 1.052583, -.204868},
		{.114503, .786281, .099216},
		{-.003882, -.048116, 1.051998},
	},
	"deuteranopia": {
		{.367322, .860646, -.227968},
		{.280085, .672501, .047413},
		{-.011820, .042940, .968881},
	},
}

// lab converts a colour to CIELAB as the eye sees it.
func lab(c color.RGBA, eye [3][3]float64) [3]float64 {
	in := linear(c)
	var v [3]float64
	for i, row := range eye {
		v[i] = min(1, max(0, row[0]*in[0]+row[1]*in[1]+row[2]*in[2]))
	}
	f := func(t float64) float64 {
		if t > .008856 {
			return math.Cbrt(t)
		}
		return 7.787*t + 16./116
	}
	x := f((.4124*v[0] + .3576*v[1] + .1805*v[2]) / .95047)
	y := f(.2126*v[0] + .7152*v[1] + .0722*v[2])
	z := f((.0193*v[0] + .1192*v[1] + .9505*v[2]) / 1.08883)
	return [3]float64{116*y - 16, 500 * (x - y), 200 * (y - z)}
}

// All eyes can tell any two of the 14 series colours apart, and each of them from the background.
func TestSeriesColoursDiffer(t *testing.T) {
	t.Parallel()
	const apart = 12 // in CIELAB, where 2.3 is just noticeable
	for scheme, p := range palettes(t) {
		series := p["series"]
		if len(series) != 14 {
			t.Errorf("%s: %d colours", scheme, len(series))
		}
		for i, a := range series {
			if got := contrast(a, p["surface"][0]); got < 2.1 {
				t.Errorf("%s: colour %d has a contrast of %.1f", scheme, i, got)
			}
			for k, b := range series[:i] {
				for name, eye := range eyes {
					x, y := lab(a, eye), lab(b, eye)
					if d := math.Hypot(math.Hypot(x[0]-y[0], x[1]-y[1]), x[2]-y[2]); d < apart {
						t.Errorf(
							"%s: colours %d and %d are %.1f apart for %s", scheme, k, i, d, name,
						)
					}
				}
			}
		}
	}
}

func TestTextHasEnoughContrast(t *testing.T) {
	t.Parallel()
	for scheme, p := range palettes(t) {
		for _, ink := range []string{"ink", "muted", "accent", "good", "bad", "alarm"} {
			for _, ground := range []string{"surface", "raised"} {
				if got := contrast(p[ink][0], p[ground][0]); got < 4.5 {
					t.Errorf("%s: %s on %s has a contrast of %.1f", scheme, ink, ground, got)
				}
			}
		}
		for _, ink := range []string{"ink", "alarm"} {
			if got := contrast(p[ink][0], p["alarm-tint"][0]); got < 4.5 {
				t.Errorf("%s: %s in the box of alarms has a contrast of %.1f", scheme, ink, got)
			}
		}
		if got := min(contrast(p["ink"][0], p["mark"][0]), contrast(p["surface"][0], p["mark"][0])); got < 3 {
			t.Errorf(
				"%s: a bar has a contrast of %.1f to its error bar or to the page", scheme, got,
			)
		}
		for _, scale := range []string{"ramp", "diverging"} {
			for i, c := range p[scale] {
				if got := contrast(p["ink"][0], c); got < 4 {
					t.Errorf("%s: text on %s %d has a contrast of %.1f", scheme, scale, i, got)
				}
			}
		}
	}
}
