package library

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// describe words the task at one of the five difficulties. Pick is the task's number in its type;
// the wording easy varies with it.
func (d *draft) describe(difficulty string, pick int) string {
	d.dated, d.located = false, false
	switch difficulty {
	case "very_easy":
		return d.describeVeryEasy()
	case "easy":
		return d.describeEasy(pick)
	case "medium":
		return d.describeMedium()
	case "hard":
		return d.describeHard()
	case "very_hard":
		return d.describeVeryHard()
	}
	panic("library: no wording for the difficulty " + difficulty)
}

// choose picks one of the wordings. The choice depends only on the task and the key.
func (d *draft) choose(wordings []string, key ...string) string {
	return wordings[d.draw(len(wordings), key...)]
}

// draw picks a number in [0,n) for a key. Unlike the numbers of [roll], the numbers of different
// keys are independent of each other.
func (d *draft) draw(n int, key ...string) int {
	sum := sha256.Sum256([]byte(d.Slug + " " + d.period + " " + strings.Join(key, " ")))
	return int(binary.BigEndian.Uint32(sum[:]) % uint32(n))
}

// fill replaces the marks of a wording; data/README.md lists them. {file}, {of} and {things} name
// the path or the month when they come first, and are short afterwards.
func (d *draft) fill(wording string) string {
	file, of, things := "the file", "", d.Things
	if !d.located {
		path, _ := d.names["path"].(string)
		file, of = "the file "+path, " of "+path
	}
	d.located = d.located || mentions(wording, "{file}", "{of}", "{url}")
	d.dated = d.dated || mentions(wording, "{month}")
	if !d.located && !d.dated {
		things += " of " + d.month
	}
	d.dated = d.dated || d.located || mentions(wording, "{things}")
	wording = strings.NewReplacer("{file}", file, "{of}", of, "{things}", things).Replace(wording)
	return d.marks.Replace(wording)
}

func mentions(wording string, marks ...string) bool {
	return slices.ContainsFunc(marks, func(m string) bool {
		return strings.Contains(wording, m)
	})
}

func capital(s string) string {
	r, size := utf8.DecodeRuneInString(s)
	if size == 0 {
		return s
	}
	return string(unicode.ToUpper(r)) + s[size:]
}
