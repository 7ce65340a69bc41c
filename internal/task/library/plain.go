package library

import "strings"

// wordings returns the wording of each step at one of the difficulties that state them in order.
func (d *draft) wordings(difficulty string, pick int) []string {
	all := make([]string, len(d.verbs))
	for i, v := range d.verbs {
		switch difficulty {
		case "very_easy":
			all[i] = d.choose(veryEasyWords().Steps[v], difficulty, v)
		case "easy":
			wordings := easyWords().Steps[v]
			all[i] = wordings[roll(len(wordings), d.Slug, d.period, pick, steps()[v].Tool)]
		default:
			all[i] = d.choose(mediumWords().Steps[v], difficulty, v)
		}
	}
	return all
}

// describeVeryEasy gives each step its own sentence.
func (d *draft) describeVeryEasy() string {
	sentences := make([]string, len(d.verbs))
	for i, w := range d.wordings("very_easy", 0) {
		sentences[i] = capital(d.fill(w)) + "."
	}
	return strings.Join(sentences, " ")
}

// describeEasy lists the steps in order, in at most three sentences. The wording varies with
// pick.
func (d *draft) describeEasy(pick int) string {
	words := easyWords()
	clauses := make([]string, len(d.verbs))
	for i, w := range d.wordings("easy", pick) {
		clauses[i] = d.fill(w)
	}
	if d.opensEasy(pick) {
		clauses[0] = d.fill(words.Opening) + clauses[0]
	}
	semicolons := roll(2, d.Slug, d.period, pick, "joints") == 0
	return words.join(clauses, semicolons)
}

// opensEasy reports whether the wording easy names the team.
func (d *draft) opensEasy(pick int) bool {
	return roll(3, d.Slug, d.period, pick, "opening") == 0
}

// join makes sentences out of clauses. It separates them only by ". ", "; " and ", then ", so
// that a reader can split them again.
func (w easyWording) join(clauses []string, semicolons bool) string {
	joint := w.Joints[0]
	if semicolons {
		joint = w.Joints[1]
	}
	starts := map[int]string{}
	switch n := len(clauses); {
	case n == 3 && semicolons:
		starts[2] = w.Last
	case n == 4:
		starts[2] = w.Halfway
	case n > 4:
		starts[(n+1)/3] = w.Next
		starts[n-1-n/7] = w.Last
	}

	var b strings.Builder
	b.WriteString(capital(clauses[0]))
	for i, c := range clauses[1:] {
		if start, ok := starts[i+1]; ok {
			b.WriteString(". " + start + c)
		} else {
			b.WriteString(joint + c)
		}
	}
	return b.String() + "."
}

// describeMedium lists the steps in order, two in a sentence.
func (d *draft) describeMedium() string {
	words := mediumWords()
	clauses := make([]string, len(d.verbs))
	for i, w := range d.wordings("medium", 0) {
		clauses[i] = d.fill(w)
	}
	opening := d.fill(d.choose(words.Openings, "medium", "opening"))
	if opening == "" || strings.HasSuffix(opening, ". ") {
		clauses[0] = capital(clauses[0])
	}

	joint := d.draw(len(words.Joints), "medium", "joint")
	single := d.draw(2, "medium", "single") // decides which step of an odd number stands alone
	var b strings.Builder
	b.WriteString(capital(opening) + clauses[0])
	for i := 1; i < len(clauses); i++ {
		switch {
		case i%2 != single:
			b.WriteString(words.Joints[(joint+i/2)%len(words.Joints)])
		case i == len(clauses)-1:
			b.WriteString(". " + d.choose(words.Last, "medium"))
		default:
			b.WriteString(". " + words.Next[(joint+(i+1)/2)%len(words.Next)])
		}
		b.WriteString(clauses[i])
	}
	return b.String() + "." + d.fill(d.choose(words.Closings, "medium", "closing"))
}
