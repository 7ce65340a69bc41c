package floor

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/world"
)

// A cache is the file with the floors of a sample in the user's cache directory. Its name is a
// digest of everything that the floors depend on. If it cannot be read or written, floors are only
// computed again.
type cache struct{ path string }

// mostFiles limits the number of files in the cache. Each has a few kilobytes.
const mostFiles = 100

// cacheOf returns the cache of a sample, or one without a path if there is no cache directory.
func cacheOf(lib *library.Library, s sample) cache {
	dir, err := os.UserCacheDir()
	if err != nil {
		return cache{}
	}
	h := sha256.New()
	write := json.NewEncoder(h)
	_ = write.Encode([]string{Version, episode.TemplatesHash, lib.Meta().Digest}) // strings
	for _, e := range entriesOf(s, func(list []assay.Trial) []assay.Trial { return list }) {
		_ = write.Encode(world.Of(e.Value[0].World).ScoreVersion)
		_ = write.Encode(e) // no value of a planned trial is an infinity
	}
	name := hex.EncodeToString(h.Sum(nil)[:16]) + ".json"
	return cache{filepath.Join(dir, "assay", "floors", name)}
}

// An entry is a value of a condition.
type entry[V any] struct {
	Condition assay.Cell `json:"condition"`
	Value     V          `json:"value"`
}

// entriesOf returns the entries of a map in a fixed order.
func entriesOf[M ~map[assay.Cell]V, V, W any](of M, convert func(V) W) (all []entry[W]) {
	key := func(e entry[W]) string { b, _ := json.Marshal(e.Condition); return string(b) }
	for at, v := range of {
		all = append(all, entry[W]{at, convert(v)})
	}
	slices.SortFunc(all, func(a, b entry[W]) int { return cmp.Compare(key(a), key(b)) })
	return all
}

// read returns the floors in the file. It returns false if there is no file or if it is damaged.
func (c cache) read() (Floors, bool) {
	b, err := os.ReadFile(c.path)
	if err != nil {
		return nil, false
	}
	var all []entry[Floor]
	if json.Unmarshal(b, &all) != nil || len(all) == 0 {
		return nil, false
	}
	floors := make(Floors)
	for _, e := range all {
		if f := e.Value; f.Played <= 0 || f.Full < 0 || f.Full > f.Played {
			return nil, false
		}
		floors[e.Condition] = e.Value
	}
	return floors, true
}

// write stores floors, and removes the oldest files if there are many.
func (c cache) write(floors Floors) {
	if c.path == "" {
		return
	}
	b, err := json.Marshal(entriesOf(floors, func(f Floor) Floor { return f }))
	dir := filepath.Dir(c.path)
	if err != nil || os.MkdirAll(dir, 0o755) != nil {
		return
	}
	tmp, err := os.CreateTemp(dir, "*.tmp")
	if err != nil {
		return
	}
	_, err = tmp.Write(b)
	if err = cmp.Or(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), c.path)
	}
	if err != nil {
		_ = os.Remove(tmp.Name()) // it is only a cache
	}
	forget(dir)
}

// forget removes the oldest files of a directory beyond mostFiles.
func forget(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	var files []fs.FileInfo
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			files = append(files, info)
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	for _, f := range files[min(len(files), mostFiles):] {
		_ = os.Remove(filepath.Join(dir, f.Name())) // another process may have removed it
	}
}
