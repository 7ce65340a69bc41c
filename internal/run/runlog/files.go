package runlog

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
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

// A File is one log in a directory. Experiment and Run are taken from the file
// name, which replaces some characters and limits the length.
type File struct {
	Name       string      `json:"name"` // without the extension
	Experiment string      `json:"experiment"`
	Run        assay.RunID `json:"run"`
	Started    time.Time   `json:"started"`
	// Written is the time of the last write.
	Written time.Time `json:"written"`
	// Bytes is the size of all parts and captured episodes.
	Bytes int64 `json:"bytes"`
	// Parts are the names of the files, in order.
	Parts []string `json:"parts"`

	episodes []string // paths in the directory
}

const uuidText = `[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}`

var (
	runID = regexp.MustCompile(`^` + uuidText + `$`)
	// fileName is unambiguous about where the experiment ends and the run
	// starts: only run IDs that are UUIDs contain a dash, and no run ID
	// contains a dot.
	fileName = regexp.MustCompile(`^((\d{8}T\d{6}Z)-([A-Za-z0-9._-]{1,100}?)-(` + uuidText +
		`|[A-Za-z0-9_]{1,64}))(?:\.([1-9]\d{0,8}))?\.jsonl$`)
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

// Logs lists the logs of a directory in the order of their starts. It returns
// none if the directory does not exist.
func Logs(dir string) ([]File, error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list logs: %w", err)
	}
	files, err := list(root)
	if err = errors.Join(err, root.Close()); err != nil {
		return nil, fmt.Errorf("list logs: %w", err)
	}
	return files, nil
}

func list(root *os.Root) ([]File, error) {
	logs := make(map[string]*File)
	err := regular(root, ".", func(info fs.FileInfo) {
		m := fileName.FindStringSubmatch(info.Name())
		if m == nil {
			return
		}
		started, err := time.Parse(startLayout, m[2])
		if err != nil {
			return
		}
		f := logs[m[1]]
		if f == nil {
			f = &File{Name: m[1], Experiment: m[3], Run: assay.RunID(m[4]), Started: started}
			logs[m[1]] = f
		}
		f.add(info)
		f.Parts = append(f.Parts, info.Name())
	})
	files := make([]File, 0, len(logs))
	for _, f := range logs {
		slices.SortFunc(f.Parts, func(a, b string) int { // 10 after 2
			return cmp.Or(len(a)-len(b), strings.Compare(a, b))
		})
		dir := trialsDir(f.Name)
		err = errors.Join(err, regular(root, dir, func(info fs.FileInfo) {
			if episodeText.MatchString(info.Name()) {
				f.add(info)
				f.episodes = append(f.episodes, dir+"/"+info.Name())
			}
		}))
		files = append(files, *f)
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return files, err
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

func (f *File) add(info fs.FileInfo) {
	f.Bytes += info.Size()
	if info.ModTime().After(f.Written) {
		f.Written = info.ModTime().UTC()
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
		total += f.Bytes
	}
	slices.SortStableFunc(files, func(a, b File) int { return a.Written.Compare(b.Written) })
	for _, f := range files {
		idle := now.Sub(f.Written)
		surplus := keep.Age > 0 && idle > keep.Age || keep.Bytes > 0 && total > keep.Bytes
		if !surplus || f.Name == self || idle < spared {
			continue
		}
		mark, free := markInUse(root, f.Parts[0])
		if free {
			err = errors.Join(err, f.remove(root))
			total -= f.Bytes
		}
		mark.Close()
	}
	return err
}

// remove deletes the first part last, so that a log that is deleted only partly
// is found again later.
func (f *File) remove(root *os.Root) error {
	names := slices.Concat(f.Parts, f.episodes)
	for _, name := range slices.Backward(names) {
		if err := present(root.Remove(name)); err != nil {
			return err
		}
	}
	if len(f.episodes) > 0 {
		root.Remove(trialsDir(f.Name)) // fails if the directory has other files
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
