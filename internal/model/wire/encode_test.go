package wire_test

import (
	"testing"

	"github.com/assay-eval/assay/internal/model/wire"
)

func TestExtend(t *testing.T) {
	t.Parallel()
	const object = `{"b":{"x":1.50,"y":{"z":"<"}},"a":[1]}`
	for extra, want := range map[string]string{
		``:                         object,
		` {} `:                     object,
		` { "c": null } `:          `{"b":{"x":1.50,"y":{"z":"<"}},"a":[1], "c": null }`,
		`{"a":[2]}`:                `{"a":[2],"b":{"x":1.50,"y":{"z":"<"}}}`,
		`{"b":{"y":{"v":2}}}`:      `{"a":[1],"b":{"x":1.50,"y":{"z":"<","v":2}}}`,
		`{"b":{"x":{}},"a":{}}`:    `{"a":{},"b":{"x":{},"y":{"z":"<"}}}`,
		`{"b":7}`:                  `{"a":[1],"b":7}`,
		`{"d":{"x":{"y":[null]}}}`: `{"b":{"x":1.50,"y":{"z":"<"}},"a":[1],"d":{"x":{"y":[null]}}}`,
	} {
		if got := wire.Extend([]byte(object), extra); string(got) != want {
			t.Errorf("Extend(%s) = %s, want %s", extra, got, want)
		}
	}
}
