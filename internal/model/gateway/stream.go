package gateway

import "slices"

// An Event is one event of a stream. Its name can be empty.
type Event struct {
	Name string
	Data []byte
}

// AppendEvents appends events as a text/event-stream has them.
func AppendEvents(b []byte, events []Event) []byte {
	for _, e := range events {
		if e.Name != "" {
			b = append(append(append(b, "event: "...), e.Name...), '\n')
		}
		b = append(append(append(b, "data: "...), e.Data...), "\n\n"...)
	}
	return b
}

// pieceLength is the length of a piece of arguments, in characters.
const pieceLength = 24

// Pieces cuts a text into the pieces that a stream sends.
func Pieces(text string) []string {
	var all []string
	for part := range slices.Chunk([]rune(text), pieceLength) {
		all = append(all, string(part))
	}
	return all
}
