// Package phrasing has what the grammars of all libraries share to put a task into other words: the
// dice, the small talk of casual texts and the typing errors of typed ones. The words of tasks
// themselves belong to the grammars.
package phrasing

import (
	"crypto/sha256"
	"math/rand/v2"
	"strings"
)

// Dice returns the random numbers for a purpose.
func Dice(purpose ...string) *rand.Rand {
	text := "assay phrasing 1\x00" + strings.Join(purpose, "\x00")
	return rand.New(rand.NewChaCha8(sha256.Sum256([]byte(text))))
}

// Pick returns one of a list.
func Pick[T any](dice *rand.Rand, list []T) T { return list[dice.IntN(len(list))] }

// SmallTalk says nothing about any task. None of its words is one that grammars use for tasks.
var SmallTalk = struct{ Openings, Asides, Closings []string }{
	Openings: []string{
		"Hey, hope you're doing OK.",
		"Hi there!",
		"Morning! It's me again.",
		"Hey, sorry to bug you again.",
		"Hi! Hope the week's treating you well.",
		"Hey, got a sec?",
	},
	Asides: []string{
		"(Sorry if I seem rushed, I'm on the train.)",
		"(My coffee's gone cold by now, but never mind.)",
		"(Yeah, it's been one of those weeks.)",
		"(I know, I know, it's always something.)",
		"(Don't laugh, I'm writing this on my phone.)",
	},
	Closings: []string{
		"Thanks a bunch!",
		"Cheers!",
		"Thanks, you're a star.",
		"Ta, talk soon.",
		"Thanks heaps, I owe you one.",
	},
}

// Chat puts sentences between small talk: an opening, a closing, and an aside that stands between two of
// them if there are three.
func Chat(dice *rand.Rand, sentences []string) string {
	text := []string{Pick(dice, SmallTalk.Openings)}
	aside := -1
	if len(sentences) > 2 {
		aside = 1 + dice.IntN(len(sentences)-1)
	}
	for i, s := range sentences {
		if i == aside {
			text = append(text, Pick(dice, SmallTalk.Asides))
		}
		text = append(text, s)
	}
	return strings.Join(append(text, Pick(dice, SmallTalk.Closings)), " ")
}

// weighty are words on which it depends what a text wants, and words that a typing error easily makes
// another word of.
var weighty = wordSet(`
	ahead alone also and another any anybody as at because been before begin below both but can cannot
	cheap choose chore could decide either else ends even ever every except exist few first for form former
	from goes had has how if in instead it its later leave least less line lines lone long lose many match
	may more most much must need needs neither never nobody none nor not nothing of off on once one only
	open opposed or other others otherwise our over plan point put quit quite quiet rather same say says
	second should shut so some somebody starts still stop storing than their theirs there these they third
	this those three through to trail trial tries turns two under unless until up upon want wants was were
	whether who whole whom whose without yet you your yours higher lower limit limits`)

func wordSet(words string) map[string]bool {
	set := make(map[string]bool)
	for w := range strings.FieldsSeq(words) {
		set[w] = true
	}
	return set
}

// One in typosOneIn of the words that may have a typing error gets one, but at least typosAtLeast do.
// Shorter words have none.
const (
	typosOneIn   = 5
	typosAtLeast = 2
	shortest     = 4
)

// Type returns a text with typing errors: two letters that change places, a letter that is missing, or
// one that occurs twice. They are in ordinary words only, of which each stays recognizable: no other
// known word is as close to it. Kept words, such as names, stay as they are.
func Type(dice *rand.Rand, text string, keep func(word string) bool, known map[string]bool) string {
	words := strings.Split(text, " ")
	var places []int
	for i, w := range words {
		if plain := plainWord(w); plain != "" && !weighty[plain] && !keep(plain) {
			places = append(places, i)
		}
	}
	dice.Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
	left := max(typosAtLeast, (len(places)+typosOneIn-1)/typosOneIn)
	for _, at := range places {
		if left == 0 {
			break
		}
		plain := plainWord(words[at])
		if typo := mistype(dice, plain, known); typo != "" { // the first letter stays, whatever its case
			words[at] = words[at][:1] + strings.Replace(words[at][1:], plain[1:], typo[1:], 1)
			left--
		}
	}
	return strings.Join(words, " ")
}

// plainWord returns a word without the signs after it and in small letters, or "" if it is too short or
// anything but a word, such as a path.
func plainWord(word string) string {
	word = strings.TrimRight(word, ".,;:")
	if len(word) < shortest {
		return ""
	}
	word = strings.ToLower(word[:1]) + word[1:]
	if strings.Trim(word, "abcdefghijklmnopqrstuvwxyz") != "" {
		return ""
	}
	return word
}

// mistype returns a word with a typing error, or "" if each would make it look like another word.
func mistype(dice *rand.Rand, word string, known map[string]bool) string {
	for range 8 {
		i := 1 + dice.IntN(len(word)-2) // people hardly ever mistype the first letter
		typo := ""
		switch dice.IntN(3) {
		case 0:
			typo = word[:i] + word[i+1:i+2] + word[i:i+1] + word[i+2:]
		case 1:
			if len(word) == shortest {
				continue // too often it would be another word
			}
			typo = word[:i] + word[i+1:]
		default:
			typo = word[:i] + word[i:i+1] + word[i:]
		}
		if typo != word && Read(typo, known) == word {
			return typo
		}
	}
	return ""
}

// Read returns the known word that a word with a typing error stands for. It returns the word itself if
// it is known, and "" if none or several could be meant.
func Read(word string, known map[string]bool) string {
	if known[word] {
		return word
	}
	found := ""
	for k := range known {
		if Near(word, k) {
			if found != "" {
				return ""
			}
			found = k
		}
	}
	return found
}

// Near reports whether one typing error makes one word of the other: two letters change places, or one
// has a letter more.
func Near(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	switch len(b) - len(a) {
	case 0:
		return i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
	case 1:
		return a[i:] == b[i+1:]
	}
	return false
}

// Words returns the words of texts that typing errors can be in or be mistaken for.
func Words(texts ...string) map[string]bool {
	all := make(map[string]bool)
	for _, text := range texts {
		for w := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return r < 'a' || r > 'z' }) {
			all[w] = true
		}
	}
	return all
}
