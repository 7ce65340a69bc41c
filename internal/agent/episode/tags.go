package episode

import "strings"

// tagActions returns the actions of a reply under the protocol tags:
//
//	<tool_search>QUERY</tool_search>
//	<tool_info>TOOL</tool_info>
//	<tool_call>TOOL {"argument": "value"}</tool_call>
//
// White space around the content is dropped, and the arguments can be left out. There is no
// guessing: a tag is written exactly like that, ends at the first closing tag of its name and
// contains no other tag. An opening tag that is not closed, a closing tag that was not opened and a
// tag within another tag are each one malformed action. All other text is ignored.
func tagActions(text string) []action {
	var actions []action
	for {
		start, kind, closing := nextTag(text)
		if start < 0 {
			return actions
		}
		if closing {
			actions = append(actions, wrong("", "stray tag", kind.String()))
			text = text[start+len(closeTag(kind)):]
			continue
		}
		text = text[start+len(openTag(kind)):]
		end, endKind, closed := nextTag(text)
		if end < 0 || !closed || endKind != kind {
			// The text after the opening tag is read on its own.
			actions = append(actions, wrong("", "open tag", kind.String()))
			continue
		}
		actions = append(actions, tagAction(kind, text[:end]))
		text = text[end+len(closeTag(kind)):]
	}
}

func openTag(a act) string  { return "<" + a.String() + ">" }
func closeTag(a act) string { return "</" + a.String() + ">" }

// nextTag finds the first tag of a text. start is -1 without a tag.
func nextTag(text string) (start int, kind act, closing bool) {
	start = -1
	for _, a := range []act{search, info, call} {
		for _, end := range []bool{false, true} {
			tag := openTag(a)
			if end {
				tag = closeTag(a)
			}
			if i := strings.Index(text, tag); i >= 0 && (start < 0 || i < start) {
				start, kind, closing = i, a, end
			}
		}
	}
	return start, kind, closing
}

func tagAction(kind act, content string) action {
	a := action{act: kind, text: strings.TrimSpace(content)}
	if kind == call {
		if i := strings.IndexAny(a.text, " \t\r\n{"); i >= 0 {
			a.text, a.arguments = a.text[:i], strings.TrimSpace(a.text[i:])
		}
	}
	return wellFormed(a)
}
