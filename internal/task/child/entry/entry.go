// Package entry is how a program enters its room: this same binary, started inside, opens the port
// that leads to Assay, hands it out, and becomes the program.
//
// It does that while it is initialized, and imports hardly anything, so that it is done before the
// rest of the binary begins: an attempt of an agent waits for it.
package entry

// Word is the first argument of a binary that is started as an entry. The descriptor of a socket
// follows, the port to listen on at 127.0.0.1 or 0, how many processes the user may have or 0, how many bytes
// a file may have or 0, the path of the program, and its arguments from the 0th on.
//
// The entry sends one byte through the socket, with the listener if there is one, and closes it when
// the program runs. If it cannot become the program, it sends why, and exits with [Failed].
const Word = "assay-room-entry"

// Failed is the exit code of an entry that could not become the program.
const Failed = 127
