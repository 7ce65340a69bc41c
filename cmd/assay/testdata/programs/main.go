// Command programs is any of the programs that stories start, depending on the name that it is
// started by. It is separate from the test program because tests start it hundreds of times, and the
// test program needs 50 ms of CPU to start.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/assay-eval/assay/internal/agent/bridge/agenttest"
	"github.com/assay-eval/assay/internal/task/environment/environmenttest"
)

func main() {
	switch filepath.Base(os.Args[0]) {
	case "agent":
		agenttest.Act(os.Args[1])
	case "envserver":
		tillServer()
	case "toolserver":
		toolServer()
	default:
		fmt.Fprintln(os.Stderr, "start it as agent, envserver or toolserver")
		os.Exit(2)
	}
}

// tillServer serves the till and, if PID_FILE names a file, writes its process there.
func tillServer() {
	if name := os.Getenv("PID_FILE"); name != "" {
		pid := strconv.Itoa(os.Getpid())
		if err := os.WriteFile(name, []byte(pid), 0o600); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	environmenttest.Serve(os.Args[1], os.Args[2])
}
