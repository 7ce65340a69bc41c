package runlog

import (
	"encoding/json"
	"regexp"

	"github.com/assay-eval/assay/internal/model/wire"
)

func newRedactor(secrets []string) *wire.Redactor {
	all := make([]wire.Secret, len(secrets))
	for i, s := range secrets {
		all[i] = wire.NewSecret(s)
	}
	return wire.NewRedactor(all)
}

// scalar matches the strings, numbers and literals of a JSON document.
var scalar = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|[^"\s{}\[\]:,]+`)

// redact removes secrets from the decoded strings and the numbers of a valid document. It leaves
// everything else as it is.
func redact(secrets *wire.Redactor, doc []byte) []byte {
	return scalar.ReplaceAllFunc(doc, func(token []byte) []byte {
		text := string(token)
		if token[0] == '"' {
			if err := json.Unmarshal(token, &text); err != nil {
				panic("runlog: decode a string: " + err.Error())
			}
		}
		clean := secrets.Text(text)
		if clean == text {
			return token
		}
		quoted, err := wire.Marshal(clean)
		if err != nil {
			panic("runlog: encode a string: " + err.Error())
		}
		return quoted
	})
}
