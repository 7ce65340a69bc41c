// Package yamldoc reads the YAML files that users write. It is strict: an unknown field, a wrong
// type or a duplicate key is an [Error] with its place, the line and the nearest known name.
//
// It does not know the meaning of the files.
package yamldoc

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/assay-eval/assay"
)

// A Document is a parsed YAML file with its source, which errors point into.
type Document struct {
	Name   string // as given by the user
	Dir    string // relative paths in the file start here
	Help   Help
	source []byte
	root   *yaml.Node // nil if the file has no value
}

// Help holds the hints of errors that concern a whole file.
type Help struct {
	Missing, Empty assay.Hint
	// Gone has hints for fields that earlier versions had, by name.
	Gone map[string]string
}

// Absent returns a document without content, for errors that have no place.
func Absent(name string) *Document { return &Document{Name: name} }

// Plain returns a document for errors that point into the text of a file that is not YAML.
func Plain(name string, source []byte) *Document { return &Document{Name: name, source: source} }

// maxFile is the size limit of files.
const maxFile = 16 << 20

// Read reads and parses a file.
func Read(path string, help Help) (*Document, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, assay.WithHint(&Error{File: path, Message: "file not found"}, help.Missing)
	case err != nil:
		return nil, &Error{File: path, Message: cause(err)}
	case info.IsDir():
		return nil, &Error{File: path, Message: "is a directory, not a YAML file"}
	case info.Size() > maxFile:
		return nil, &Error{
			File: path,
			Message: fmt.Sprintf("file has %d bytes, more than the limit of %d", info.Size(),
				maxFile),
			Hint: "check whether this is the right file",
		}
	}
	source, err := readAtMost(path, maxFile+1)
	switch {
	case err != nil:
		return nil, &Error{File: path, Message: cause(err)}
	case len(source) > maxFile: // a pipe has no size
		return nil, &Error{
			File: path, Message: fmt.Sprintf("file has more than %d bytes", maxFile),
			Hint: "check whether this is the right file",
		}
	}
	return Parse(path, source, help)
}

// cause returns the message of an error without the path.
func cause(err error) string {
	var e *fs.PathError
	if errors.As(err, &e) {
		err = e.Err
	}
	return err.Error()
}

// readAtMost returns the first n bytes of a file.
func readAtMost(path string, n int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, n))
}

// Parse parses the content of a file. The name is for errors.
func Parse(name string, source []byte, help Help) (*Document, error) {
	source = bytes.TrimPrefix(source, []byte("\ufeff"))
	d := &Document{Name: name, Dir: filepath.Dir(name), Help: help, source: source}
	if err := cmp.Or(d.unprintable(), d.crowded()); err != nil {
		return nil, err
	}
	loader, err := yaml.NewLoader(bytes.NewReader(source), yaml.WithPlugin(limits))
	if err != nil {
		return nil, err
	}
	var first, second yaml.Node
	switch err := loader.Load(&first); {
	case errors.Is(err, io.EOF):
		return d, nil
	case err != nil:
		return nil, d.malformed(err)
	}
	d.root = first.Content[0]
	if err := d.check(d.root, 1); err != nil {
		return nil, err
	}
	switch err := loader.Load(&second); {
	case errors.Is(err, io.EOF):
		return d, nil
	case err != nil:
		return nil, d.malformed(err)
	}
	return nil, d.Here(second.Line, second.Column, "the file has several YAML documents, want one",
		"remove the `---` lines and everything after the first document")
}

// wholeText matches whole numbers, of which the library rounds those above 64 bits.
var wholeText = regexp.MustCompile(`^[-+]?[0-9_]{2,}$`)

// check refuses what the YAML library permits: deep values, anchors, rounded and infinite numbers, and
// fields that a mapping has twice. It also makes names of fields and dates texts.
func (d *Document) check(n *yaml.Node, depth int) *Error {
	switch {
	case n.Kind != yaml.ScalarNode && depth > MaxDepth:
		return d.tooDeep(n.Line, n.Column)
	case n.Kind == yaml.AliasNode, n.Anchor != "":
		return d.noAnchors(n)
	case n.Style&yaml.TaggedStyle != 0 && n.Tag != "!!str":
		return d.Here(n.Line, n.Column, fmt.Sprintf("the tag %s is not supported", n.Tag),
			"remove it; quotes make a text of any value")
	case n.Kind == yaml.MappingNode:
		if err := d.checkNames(n); err != nil {
			return err
		}
	case n.Tag == "!!timestamp", n.Tag == "!!merge":
		n.Tag = "!!str"
	case n.Tag == "!!float" && !finite(n.Value):
		return d.Here(n.Line, n.Column, "the number is not finite",
			"write a number with digits, or put it in quotes if it is text")
	case n.Tag == "!!float" && wholeText.MatchString(n.Value) && !zeros.MatchString(n.Value):
		return d.Here(n.Line, n.Column, "the number has too many digits to stay exact",
			"put it in quotes if it is text")
	}
	for _, child := range n.Content {
		if err := d.check(child, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// finite reports whether a number has a value that JSON can have, unlike .inf and .nan.
func finite(text string) bool {
	_, err := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
	return err == nil
}

func (d *Document) noAnchors(n *yaml.Node) *Error {
	return d.Here(n.Line, n.Column, "anchors and aliases are not supported",
		"write the value in full")
}

// checkNames checks the names of the fields of a mapping.
func (d *Document) checkNames(n *yaml.Node) *Error {
	lines := make(map[string]int, len(n.Content)/2)
	for name := range fields(n) {
		switch before, ok := lines[name.Value]; {
		case name.Tag == "!!merge", name.Kind == yaml.AliasNode:
			return d.noAnchors(name)
		case name.Kind != yaml.ScalarNode:
			return d.Here(name.Line, name.Column, "the name of a field must be text",
				"brackets in a text need quotes")
		case ok:
			return d.Here(name.Line, name.Column, fmt.Sprintf("field %q is already set in line %d",
				name.Value, before), "remove one of them")
		}
		name.Tag = "!!str"
		lines[name.Value] = name.Line
	}
	return nil
}

// fields yields the names and values of a mapping, and no pairs for other nodes.
func fields(n *yaml.Node) iter.Seq2[*yaml.Node, *yaml.Node] {
	return func(yield func(key, value *yaml.Node) bool) {
		if n == nil || n.Kind != yaml.MappingNode {
			return
		}
		for i := 0; i < len(n.Content); i += 2 {
			if !yield(n.Content[i], n.Content[i+1]) {
				return
			}
		}
	}
}

// plainSyntax rewords the YAML library's errors about syntax.
var plainSyntax = strings.NewReplacer(
	"did not find expected key", "a field is expected here",
	"did not find expected '-' indicator", "a `-` is expected here",
	"did not find expected node content", "a value is expected here",
	"did not find expected ", "missing ",
	"while parsing a block mapping", ", in the mapping",
	"while parsing a flow mapping", ", in the mapping",
	"while parsing a block collection", ", in the list",
	"while parsing a flow sequence", ", in the list",
	"while scanning a", ", in the",
)

// Node returns the value at a path such as $.reliabilities[0] or $.models."a b", or nil if there is
// no such value.
func (d *Document) Node(path string) *yaml.Node {
	n := d.root
	path = strings.TrimPrefix(path, "$")
	for path != "" && n != nil {
		step := pathStep.FindStringSubmatch(path)
		if step == nil {
			return nil
		}
		path = path[len(step[0]):]
		switch {
		case step[3] != "":
			n = element(n, step[3])
		case step[2] != "":
			name, _ := strconv.Unquote(step[2])
			_, n = field(n, name)
		default:
			_, n = field(n, step[1])
		}
	}
	return n
}

// Has reports whether the file has a value at a path. A null is none.
func (d *Document) Has(path string) bool {
	n := d.Node(path)
	return n != nil && !isNull(n)
}

// SHA256 returns the digest of the file, in hex.
func (d *Document) SHA256() string { return fmt.Sprintf("%x", sha256.Sum256(d.source)) }

// Fields yields the names in the mapping at a path, in order.
func (d *Document) Fields(path string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for name := range fields(d.Node(path)) {
			if !yield(name.Value) {
				return
			}
		}
	}
}

// pathStep matches a field, a field in quotes, or an index.
var pathStep = regexp.MustCompile(`^(?:\.([^."\[]+)|\.("(?:[^"\\]|\\.)*")|\[(\d+)\])`)

func element(n *yaml.Node, index string) *yaml.Node {
	i, err := strconv.Atoi(index)
	if err != nil || n.Kind != yaml.SequenceNode || i >= len(n.Content) {
		return nil
	}
	return n.Content[i]
}

func field(n *yaml.Node, name string) (key, value *yaml.Node) {
	for key, value := range fields(n) {
		if key.Value == name {
			return key, value
		}
	}
	return nil, nil
}
