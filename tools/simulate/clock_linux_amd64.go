package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// In a bubble, times have no monotonic part, so that a wall clock which is set would change how long
// everything takes. The program therefore replaces [time.Now], for itself and the product alike, by a
// jump at its beginning. Each read of the wall clock in the product counts without a seam for it.

const clockCanJump = true

// A timeLayout is [time.Time] as the runtime of Go has it: with a monotonic part, wall has a flag,
// seconds since 1885 and 30 bits of nanoseconds, and ext is monotonic; without it, wall has nanoseconds,
// and ext seconds since the year 1.
type timeLayout struct {
	wall uint64
	ext  int64
	loc  *time.Location
}

const (
	hasMonotonic = 1 << 63
	nanoBits     = 30
)

func layoutOf(t *time.Time) *timeLayout { return (*timeLayout)(unsafe.Pointer(t)) }

// What was learned before [time.Now] was replaced.
var clock struct {
	// now returns what [time.Now] tells: in a bubble, monotonic is 0.
	now   func() (seconds int64, nanoseconds int32, monotonic int64)
	zero  time.Time // whose monotonic part is 0
	since int64     // seconds from the year 1 to 1885
}

// replaced is the new [time.Now].
func replaced() time.Time {
	seconds, nanoseconds, monotonic := clock.now()
	if wall := seconds*int64(time.Second) + int64(nanoseconds); monotonic == 0 {
		return timeOf(wall+ahead.Load(), wall)
	} else {
		return timeOf(wall, int64(time.Since(clock.zero))) // does not ask for the time
	}
}

func timeOf(wall, monotonic int64) time.Time {
	t := time.Unix(0, wall)
	l := layoutOf(&t)
	l.wall, l.ext = hasMonotonic|uint64(l.ext-clock.since)<<nanoBits|l.wall, monotonic
	return t
}

// replaceClock lets the wall clock jump in bubbles from now on.
var replaceClock = sync.OnceFunc(replace)

func replace() {
	if profiled() {
		panic("simulate: a profile of the CPU guided its build, which can inline time.Now: build it with -pgo=off")
	}
	now := time.Now()
	stripped := now.Round(0)
	clock.since = layoutOf(&stripped).ext - int64(layoutOf(&now).wall&^hasMonotonic>>nanoBits)
	clock.zero = now
	layoutOf(&clock.zero).ext = 0
	from, to := reflect.ValueOf(time.Now).Pointer(), reflect.ValueOf(replaced).Pointer()
	asks := called(from, "runtimeNow")
	entry := unsafe.Pointer(&asks) // a function value points to the address of its code
	clock.now = *(*func() (int64, int32, int64))(unsafe.Pointer(&entry))

	code := binary.LittleEndian.AppendUint32([]byte{jump32}, uint32(int64(to)-int64(from)-5))
	page := from &^ uintptr(os.Getpagesize()-1)
	around := codeAt(page, int(from-page)+len(code))
	if err := syscall.Mprotect(around, syscall.PROT_READ|syscall.PROT_WRITE|syscall.PROT_EXEC); err != nil {
		panic(fmt.Sprint("the system does not let the clock be replaced: ", err))
	}
	copy(around[from-page:], code)
	if err := syscall.Mprotect(around, syscall.PROT_READ|syscall.PROT_EXEC); err != nil {
		panic(fmt.Sprint("protect the program again: ", err))
	}
}

// profiled reports whether a profile guided the build of the program. Places into which [time.Now] is
// inlined would keep the clock of the system, and disagree with all others after a jump.
func profiled() bool {
	info, known := debug.ReadBuildInfo()
	return known && slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "-pgo" && s.Value != "off" })
}

// Instructions with a distance of 32 bits from their end.
const (
	call32 = 0xe8
	jump32 = 0xe9
)

func codeAt(address uintptr, n int) []byte {
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&address)), n)
}

// called returns the address of a function that another one calls.
func called(by uintptr, name string) uintptr {
	const far = 200 // bytes into the caller
	for n, code := 0, codeAt(by, far); n < far-5; n++ {
		to := by + uintptr(n+5) + uintptr(int32(binary.LittleEndian.Uint32(code[n+1:])))
		if f := runtime.FuncForPC(to); code[n] == call32 && f != nil && f.Entry() == to && strings.HasSuffix(f.Name(), name) {
			return to
		}
	}
	panic("simulate: this version of Go reads clocks in another way: no call of " + name)
}
