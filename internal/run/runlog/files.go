package runlog

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assay-eval/assay"
)

// Keep limits how many older logs a directory keeps when a new one is opened.
// The zero value keeps all. Three kinds of files are never deleted: logs that a
// run is still writing, logs written within the last hour, and files whose
// names are not names of logs.
type Keep struct {
	// Age deletes a log when its last record is older; 0 means never.
	Age time.Duration
	// Bytes limits the size of all logs together; 0 means no limit. The least
	// recently written logs are deleted first.
	Bytes int64
}

// spared is how long after its last record a log is never deleted. It protects
// running logs on file systems without locks.
const spared = time.Hour

const startLayout = "20060102T150405Z"

// A pastLog has the files of one log in a directory.
type pastLog struct {
	stem    string
	written time.Time // the last write
	bytes   int64     // of all parts and captured episodes
	// rest has all files but the first part.
	rest     []string
	episodes bool
}

var (
	runID = regexp.MustCompile(`^[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`)
	// fileName matches the names of parts. No run ID contains a dot.
	fileName    = regexp.MustCompile(`^(\d{8}T\d{6}Z-.+-\w+?)(\.[1-9]\d{0,8})?\.jsonl$`)
	episodeText = regexp.MustCompile(`^[A-Za-z0-9_]{1,64}-\d+\.json(\.tmp)?$`)
)

// stem returns the name of a log without its extension.
func stem(started time.Time, experiment string, run assay.RunID) string {
	id := string(run)
	if !runID.MatchString(id) {
		id = safe(id, "", 64)
	}
	return started.UTC().Format(startLayout) + "-" + safe(experiment, ".-", 100) + "-" + id
}

// safe replaces every character by an underscore unless it is a letter, a digit
// or in extra.
func safe(name, extra string, longest int) string {
	s := strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' ||
			strings.ContainsRune(extra, r) {
			return r
		}
		return '_'
	}, name)
	if s == "" {
		return "_"
	}
	return s[:min(len(s), longest)]
}

func partName(stem string, number int) string {
	if number == 1 {
		return stem + ".jsonl"
	}
	return stem + "." + strconv.Itoa(number) + ".jsonl"
}

func trialsDir(stem string) string { return stem + "-trials" }

func episodeName(trial assay.TrialID, number int) string {
	return safe(string(trial), "", 64) + "-" + strconv.Itoa(number) + ".json"
}

// list returns the logs of a directory, the least recently written first.
func list(root *os.Root) ([]*pastLog, error) {
	logs := make(map[string]*pastLog)
	err := regular(root, ".", func(info fs.FileInfo) {
		m := fileName.FindStringSubmatch(info.Name())
		if m == nil {
			return
		}
		f := cmp.Or(logs[m[1]], &pastLog{stem: m[1]})
		logs[f.stem] = f
		f.add(info)
		if m[2] != "" {
			f.rest = append(f.rest, info.Name())
		}
	})
	for _, f := range logs {
		dir := trialsDir(f.stem)
		err = errors.Join(err, regular(root, dir, func(info fs.FileInfo) {
			if episodeText.MatchString(info.Name()) {
				f.add(info)
				f.rest, f.episodes = append(f.rest, dir+"/"+info.Name()), true
			}
		}))
	}
	return slices.SortedFunc(maps.Values(logs), func(a, b *pastLog) int {
		return cmp.Or(a.written.Compare(b.written), cmp.Compare(a.stem, b.stem))
	}), err
}

// regular calls found for each regular file of a directory in root. It does not
// follow symbolic links, not even if dir is one, and ignores files that
// disappear.
func regular(root *os.Root, dir string, found func(fs.FileInfo)) error {
	info, err := root.Lstat(dir)
	if err == nil && !info.IsDir() {
		return nil
	}
	var entries []fs.DirEntry
	if err == nil {
		entries, err = fs.ReadDir(root.FS(), dir)
	}
	for _, entry := range entries {
		info, e := entry.Info()
		if e == nil && info.Mode().IsRegular() {
			found(info)
		}
		err = errors.Join(err, present(e))
	}
	return present(err)
}

// present returns err unless it means that a file does not exist.
func present(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (f *pastLog) add(info fs.FileInfo) {
	f.bytes += info.Size()
	if info.ModTime().After(f.written) {
		f.written = info.ModTime()
	}
}

// prune deletes logs beyond the limits of keep, least recently written first.
// It does not delete logs in use or the log named self.
func prune(root *os.Root, self string, keep Keep, now time.Time) error {
	if keep == (Keep{}) {
		return nil
	}
	files, err := list(root)
	if err != nil {
		return err
	}
	var total int64
	for _, f := range files {
		total += f.bytes
	}
	for _, f := range files {
		idle := now.Sub(f.written)
		surplus := keep.Age > 0 && idle > keep.Age || keep.Bytes > 0 && total > keep.Bytes
		if !surplus || f.stem == self || idle < spared {
			continue
		}
		mark, free := markInUse(root, partName(f.stem, 1))
		if free {
			err = errors.Join(err, f.remove(root))
			total -= f.bytes
		}
		mark.Close()
	}
	return err
}

// remove deletes the first part last, so that a log that is deleted only partly
// is found again later.
func (f *pastLog) remove(root *os.Root) error {
	for _, name := range append(f.rest, partName(f.stem, 1)) {
		if err := present(root.Remove(name)); err != nil {
			return err
		}
	}
	if f.episodes {
		root.Remove(trialsDir(f.stem)) // fails if the directory has other files
	}
	return nil
}

// markInUse marks a log as in use by locking its first part, and returns false
// if another process has done so. The mark ends when the returned file is
// closed or the process ends. On systems without locks, it always returns true.
func markInUse(root *os.Root, name string) (*os.File, bool) {
	f, err := root.Open(name)
	return f, err != nil || lock(f)
}
