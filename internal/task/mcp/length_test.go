//go:build !race

// The tests of this file send megabytes over a connection, which the race detector makes slow.

package mcp_test

import (
	"testing"

	"github.com/assay-eval/assay"
)

// TestLengthOfResults checks that a result of 4 MB is the longest, on both transports.
func TestLengthOfResults(t *testing.T) {
	for want, c := range map[string]*assay.MCPServer{
		"it sent a message of more than 4 MB": config(""),
		"SSE event exceeded 4000000 bytes":    overHTTP(t),
	} {
		t.Run(want, func(t *testing.T) {
			s := open(t, c)
			if out, err := call(t, s, "repeat", "3900000"); err != nil || len(out) != 3900002 {
				t.Errorf("3.9 MB: %d bytes, %v", len(out), err)
			}
			_, err := call(t, s, "repeat", "4100000")
			checkFault(t, err, want)
		})
	}
}

// TestFlood checks that a server cannot fill the memory.
func TestFlood(t *testing.T) {
	t.Parallel()
	_, err := call(t, open(t, config("")), "flood", "")
	checkFault(t, err, "call flood: it sent more than 32 MB")
}
