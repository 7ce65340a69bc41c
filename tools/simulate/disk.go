package main

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/assay-eval/assay/internal/store"
	"github.com/assay-eval/assay/internal/store/storetest"
)

// makeDisk gives a process the directory of its store, which is on a disk that may fail if that
// happens in the world.
func (w *world) makeDisk(l *life) error {
	if err := os.MkdirAll(l.dir, 0o755); err != nil || !w.has("disk") {
		return err
	}
	disk, err := storetest.NewDisk(l.dir)
	if err != nil {
		return err
	}
	w.mu.Lock()
	l.disk, w.current = disk, l
	w.mu.Unlock()
	w.setDisk()
	return nil
}

func (w *world) has(kind string) bool {
	for n := range w.items {
		if w.items[n].Kind == kind {
			return true
		}
	}
	return false
}

// setDisk makes the disk of the process that runs fail as it does now.
func (w *world) setDisk() {
	full, failing := false, false
	for n := range w.items {
		if i := &w.items[n]; i.Kind == "disk" && i.during(time.Since(w.began)) {
			full, failing = full || i.Style == "full", failing || i.Style == "fails"
		}
	}
	w.mu.Lock()
	l := w.current
	w.mu.Unlock()
	if l == nil {
		return
	}
	l.disk.Set(func(f *storetest.Faults) { f.Full, f.FailedSyncs = full, failing })
	switch {
	case full || failing:
		l.sicken()
		w.tell("the disk fails")
	case l.isSick():
		w.tell("the disk works")
	}
}

// sicken notes that the disk of a process has failed. It may lose from then on what is in flight.
func (l *life) sicken() {
	l.mu.Lock()
	was := l.sick
	l.sick = true
	l.mu.Unlock()
	if was {
		return
	}
	for _, e := range l.world.ends {
		e.forget(l)
	}
}

func (l *life) isSick() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sick
}

// endsByDisk reports whether an error is that of the process's disk, and then waits until the user looks
// again, who has made room in most cases.
func (l *life) endsByDisk(err error) bool {
	known := errors.Is(err, store.ErrDiskFull) || errors.Is(err, store.ErrDisk) ||
		errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EIO)
	if !l.isSick() || !known {
		return false
	}
	if !strings.Contains(err.Error(), "\nhint: ") {
		l.violated("law 1: a disk ends a run, which does not say what to do: %v", err)
	}
	l.tell("the disk ends the process: %.200v", err)
	d := newDice(l.seed, uint64(1000+l.lives))
	for n := range l.items {
		if i := &l.items[n]; d.often(70) && i.Kind == "disk" && i.during(time.Since(l.began)) {
			l.later(i.At+i.For, func() {})
		}
	}
	time.Sleep(d.between(time.Second, 2*time.Hour))
	l.countLife()
	return true
}
