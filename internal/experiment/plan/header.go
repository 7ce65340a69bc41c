package plan

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

var headerName = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)

// httpHeader matches headers that a request needs, and secretHeader headers that hold credentials.
var (
	httpHeader = regexp.MustCompile(`(?i)^(host|connection|content-.*|transfer-encoding|` +
		`accept.*|user-agent)$`)
	secretHeader = regexp.MustCompile(`(?i)authorization|key|token|secret|cookie`)
)

// headerMistake describes the mistake in a header of any file, or returns "".
func headerMistake(name, value string) string {
	switch {
	case !headerName.MatchString(name):
		return fmt.Sprintf("%q is not the name of a header", name)
	case httpHeader.MatchString(name):
		return fmt.Sprintf("the header %s cannot be set, because requests need it", name)
	case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r >= 0x7f }):
		return fmt.Sprintf("the header %s has a character that headers cannot have", name)
	}
	return ""
}

// checkHeaders checks headers that are part of a trial's identity, so they are stored.
func (e *Experiment) checkHeaders(at string, headers map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		message, hint := headerMistake(name, headers[name]), ""
		switch {
		case message != "":
		case secretHeader.MatchString(name):
			message = fmt.Sprintf("the header %s cannot be set here", name)
			hint = "headers in this file are stored with results; write headers with secrets " +
				"into the providers file"
		case strings.Contains(headers[name], "${"):
			message = fmt.Sprintf("the header %s refers to an environment variable", name)
			hint = "write headers with secrets into the providers file"
		default:
			continue
		}
		return e.source().AtKey("$."+at+".headers", name, message, hint)
	}
	return nil
}

// checkHeaders checks the headers at a place in the file.
func (p *Providers) checkHeaders(
	at string, headers map[string]string, getenv func(string) (string, bool),
) error {
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		value, err := expandEnv(headers[name], getenv)
		message, hint := headerMistake(name, value), ""
		switch {
		case err != nil:
			message, hint = err.Error(), "export it with the value of the header"
		case message != "":
		case secretHeader.MatchString(name) && value == headers[name]:
			message = fmt.Sprintf("the header %s has its value in the file", name)
			hint = "do not write keys into files: export it as a variable and write ${NAME}"
		default:
			continue
		}
		return p.doc.AtKey(at, name, message, hint)
	}
	return nil
}

// headers yields the lane's own headers: the provider's, then the model's.
func (l Lane) headers(yield func(name, value string) bool) {
	for _, all := range []map[string]string{l.Endpoint.Headers, l.Serve.Headers} {
		for name, value := range all {
			if !yield(name, value) {
				return
			}
		}
	}
}

// Header returns the lane's own headers, with the values of environment variables in them.
func (l Lane) Header(getenv func(string) (string, bool)) (http.Header, error) {
	header := make(http.Header)
	for name, text := range l.headers {
		value, err := expandEnv(text, getenv)
		if err != nil {
			return nil, err
		}
		header.Set(name, value)
	}
	return header, nil
}

// Variables returns the names of the environment variables in the lane's headers. Their values
// are secrets.
func (l Lane) Variables() (names []string) {
	for _, text := range l.headers {
		for _, ref := range envReference.FindAllStringSubmatch(text, -1) {
			names = append(names, ref[1])
		}
	}
	return names
}
