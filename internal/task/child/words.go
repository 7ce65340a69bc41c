package child

import (
	"regexp"
	"strings"
)

// longestWord bounds a line that is shown, in bytes.
const longestWord = 400

var (
	colour = regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]`)
	// pythonFrame is a place in a traceback, and pythonGroup a line in the margin of an exception
	// group, or the line between two of its exceptions.
	pythonFrame = regexp.MustCompile(`^\s*File ".*", line \d+`)
	pythonGroup = regexp.MustCompile(`^( *)(\||\+)(.*)$`)
	pythonError = regexp.MustCompile(`^[A-Za-z_][\w.]*(:( .*)?)?$`)
	// nodeFrame is a place in a stack of Node, and nodeError the line above the first one.
	nodeFrame = regexp.MustCompile(`^    at .+`)
	nodeError = regexp.MustCompile(`^(Uncaught )?(\w+\.)*[A-Za-z_$]*(Error|Exception)\b.*$`)
)

// LastWord returns the line that explains best why a program failed, if text is the end of its
// output: the error of a Python traceback, the innermost error of a Python exception group, the
// error above a stack of Node, or else the last line. Of several errors, the latest counts.
func LastWord(text string) string {
	lines := strings.Split(strings.TrimSpace(colour.ReplaceAllString(text, "")), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " \t\r")
	}
	latest, word := -1, lines[len(lines)-1]
	for _, find := range []func([]string) (int, string){traceback, exceptionGroup, nodeStack} {
		if end, line := find(lines); end > latest {
			latest, word = end, line
		}
	}
	return clip(strings.TrimSpace(word))
}

// traceback finds the line with the error of the last Python traceback, and where it is.
func traceback(lines []string) (at int, word string) {
	for i := len(lines) - 1; i >= 0; i-- {
		if !pythonFrame.MatchString(lines[i]) {
			continue
		}
		for j := i + 1; j < len(lines); j++ {
			if pythonError.MatchString(lines[j]) {
				return j, lines[j]
			}
		}
		return -1, ""
	}
	return -1, ""
}

// exceptionGroup finds the innermost error of the last Python exception group, and where the group
// ends. If several are equally deep, it is the first of them.
func exceptionGroup(lines []string) (end int, word string) {
	end = -1
	deepest, block, at := -1, 0, -1
	for i, line := range lines {
		m := pythonGroup.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if m[2] == "+" {
			if strings.HasPrefix(m[3], " Exception Group Traceback") {
				deepest, word = -1, "" // another group
			}
			block++
			continue
		}
		depth, text := len(m[1]), strings.TrimPrefix(m[3], " ")
		if !pythonError.MatchString(text) {
			continue
		}
		if depth > deepest || depth == deepest && block == at {
			deepest, at, word = depth, block, text
		}
		end = i
	}
	if word == "" {
		return -1, ""
	}
	return end, word
}

// nodeStack finds the line with the last error of Node that has a stack, and where its stack is.
func nodeStack(lines []string) (at int, word string) {
	at = -1
	candidate := ""
	for i, line := range lines {
		switch {
		case nodeError.MatchString(line):
			candidate = line
		case nodeFrame.MatchString(line) && candidate != "":
			at, word, candidate = i, candidate, ""
		}
	}
	return at, word
}

// LastLines returns the last n lines of a text that are not blank, without colours.
func LastLines(text string, n int) string {
	var last []string
	for line := range strings.Lines(colour.ReplaceAllString(text, "")) {
		if line = strings.TrimRight(line, " \t\r\n"); line != "" {
			last = append(last, clip(line))
		}
	}
	return strings.Join(last[max(0, len(last)-n):], "\n")
}

// clip bounds the length of a line.
func clip(line string) string {
	if len(line) <= longestWord {
		return line
	}
	return strings.ToValidUTF8(line[:longestWord], "") + "…"
}
