package yamldoc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// Insert returns the source of the document with the text under a name in a field of the mapping at path. It
// makes the field if there is none, and leaves every other byte as it is. The field must not have the name.
func (d *Document) Insert(path, name, in, text string) ([]byte, error) {
	of := d.Node(path)
	if of == nil || of.Kind != yaml.MappingNode || len(of.Content) == 0 {
		return nil, fmt.Errorf("%s is no mapping with fields", path)
	}
	entry := func(flow bool) string { return key(in, flow) + ": " + inQuotes(text) }
	_, value := field(of, name)
	switch {
	case value != nil && value.Kind != yaml.MappingNode:
		return nil, d.At(path+"."+name, name+" is no mapping", "write `"+name+": {}`")
	case value != nil && (value.Style&yaml.FlowStyle != 0 || len(value.Content) == 0):
		return d.intoBraces(value, entry(true))
	case value != nil:
		return d.before(value.Content[0], entry(false)), nil
	case of.Style&yaml.FlowStyle != 0:
		return d.intoBraces(of, key(name, true)+": {"+entry(true)+"}")
	}
	made := key(name, false) + ": {" + entry(false) + "}"
	for i := 2; i < len(of.Content); i += 2 { // after the prompt, if something follows it
		if of.Content[i-2].Value == "prompt" {
			return d.before(of.Content[i], made), nil
		}
	}
	if len(of.Content) > 2 {
		return d.before(of.Content[2], made), nil
	}
	return nil, d.At(path, "a mapping with one field has no room for another", "write `"+made+"`")
}

// intoBraces adds an entry after the brace that begins a mapping.
func (d *Document) intoBraces(n *yaml.Node, entry string) ([]byte, error) {
	at := d.offset(n.Line, n.Column)
	if at >= len(d.source) || d.source[at] != '{' {
		return nil, d.Here(n.Line, n.Column, "a mapping begins here, but not with a brace", "write it with braces")
	}
	if len(n.Content) > 0 {
		entry += ", "
	}
	return spliced(d.source, at+1, entry), nil
}

// before adds a line before the one on which a field of a block begins, and before the comments above it.
func (d *Document) before(key *yaml.Node, entry string) []byte {
	line, indent := key.Line, strings.Repeat(" ", key.Column-1)
	lines := bytes.SplitAfter(d.source, []byte("\n"))
	for line > 1 && bytes.HasPrefix(lines[line-2], []byte(indent+"#")) {
		line--
	}
	end := "\n"
	if bytes.HasSuffix(lines[0], []byte("\r\n")) {
		end = "\r\n"
	}
	return spliced(d.source, d.offset(line, 1), indent+entry+end)
}

// offset returns the position of a place in the source, whose lines and columns of runes begin at 1.
func (d *Document) offset(line, column int) int {
	at := 0
	for ; line > 1; line-- {
		at += bytes.IndexByte(d.source[at:], '\n') + 1
	}
	for ; column > 1 && at < len(d.source); column-- {
		_, size := utf8.DecodeRune(d.source[at:])
		at += size
	}
	return at
}

func spliced(source []byte, at int, text string) []byte {
	return bytes.Join([][]byte{source[:at], source[at:]}, []byte(text))
}

// key writes the name of a field. Within braces it has quotes, because the file may be JSON.
func key(name string, flow bool) string {
	if flow || !plainName.MatchString(name) || slices.Contains(notNames, strings.ToLower(name)) {
		return inQuotes(name)
	}
	return name
}

// plainName matches names that need no quotes, unless they are notNames, which mean something else.
var plainName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)

var notNames = []string{"null", "true", "false", "yes", "no", "on", "off", "y", "n"}

// inQuotes writes a text as JSON, which is YAML, too.
func inQuotes(text string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a string is always JSON
	return strings.TrimSuffix(b.String(), "\n")
}
