package session

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"time"
)

// The memory that the programs of attempts have to leave free, and the assumed need of a program
// that has just begun and cannot be measured yet.
const (
	reservedShare = 10 // a tenth
	assumedSize   = 256 << 20
	settling      = 5 * time.Second
)

// A memory decides whether this machine has room for another program. Only the engine's goroutine
// accesses it.
type memory struct {
	read  func() (free, total int) // in bytes, or 0 if they are unknown
	note  func(text string)        // for the user, once
	young []time.Time              // when the latest programs began
}

func (m *memory) begin() { m.young = append(m.young, time.Now()) }

// isShort reports whether another program would leave too little.
func (m *memory) isShort() bool {
	m.young = slices.DeleteFunc(m.young, func(begun time.Time) bool {
		return time.Since(begun) >= settling
	})
	free, total := m.read()
	if total == 0 || free-assumedSize*(len(m.young)+1) >= total/reservedShare {
		return false
	}
	if m.note != nil {
		m.note(fmt.Sprintf("fewer attempts run at once than concurrency allows, because only "+
			"%d MB of memory are free", free>>20))
		m.note = nil
	}
	return true
}

// freeMemory reads how much memory this machine has. It only works on Linux.
func freeMemory() (free, total int) {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, 0
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var name string
		var kilobytes int
		if n, _ := fmt.Sscan(lines.Text(), &name, &kilobytes); n < 2 {
			continue
		}
		switch name {
		case "MemTotal:":
			total = kilobytes << 10
		case "MemAvailable:":
			return kilobytes << 10, total
		}
	}
	return 0, 0
}
