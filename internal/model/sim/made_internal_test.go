package sim

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestParametersAreDocumented checks that docs/files.md has the table of the parameters, with their
// values in each preset, and the README and docs/files.md a sentence for each preset.
func TestParametersAreDocumented(t *testing.T) {
	t.Parallel()
	read := func(path string) string {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	page, readme := read("../../../docs/files.md"), read("../../../README.md")
	for _, p := range Parameters {
		row := fmt.Sprintf("| `%s` | %s |", p.Name, p.Does)
		for _, preset := range Presets {
			value := strconv.FormatFloat(*p.of(&preset.is), 'g', -1, 64)
			row += " " + strings.Replace(value, "0.", ".", 1) + " |"
		}
		if !strings.Contains(page, row+"\n") {
			t.Errorf("docs/files.md lacks the row\n%s", row)
		}
	}
	for _, preset := range Presets[:3] {
		sentence := fmt.Sprintf("- `%s` %s.\n", preset.Name, preset.Does)
		if !strings.Contains(page, sentence) || !strings.Contains(readme, sentence) {
			t.Errorf("a page lacks %s", sentence)
		}
	}
}
