package floor

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
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

// cacheOf returns the cache of a sample, or one without a path if there is no cache directory.
func cacheOf(lib *library.Library, s trialSample) cache {
	h := sha256.New()
	write := json.NewEncoder(h)
	_ = write.Encode([]string{Version, episode.TemplatesHash, lib.Meta().Digest}) // strings
	for _, e := range entriesOf(s, func(list []assay.Trial) []assay.Trial { return list }) {
		_ = write.Encode(world.Of(e.Value[0].World).ScoreVersion)
		_ = write.Encode(e) // no value of a planned trial is an infinity
	}
	name := hex.EncodeToString(h.Sum(nil)[:16]) + ".json"
	return cache{CachePath("floors", name)}
}

// A conditionValue is a value of a condition.
type conditionValue[V any] struct {
	Condition assay.Cell `json:"condition"`
	Value     V          `json:"value"`
}

// entriesOf returns the entries of a map in a fixed order.
func entriesOf[M ~map[assay.Cell]V, V, W any](of M, convert func(V) W) (all []conditionValue[W]) {
	key := func(e conditionValue[W]) string { b, _ := json.Marshal(e.Condition); return string(b) }
	for at, v := range of {
		all = append(all, conditionValue[W]{at, convert(v)})
	}
	slices.SortFunc(all, func(a, b conditionValue[W]) int { return cmp.Compare(key(a), key(b)) })
	return all
}

// read returns the floors in the file. It returns false if there is no file or if it is damaged.
func (c cache) read() (Floors, bool) {
	b, err := os.ReadFile(c.path)
	if err != nil {
		return nil, false
	}
	var all []conditionValue[Floor]
	if json.Unmarshal(b, &all) != nil || len(all) == 0 {
		return nil, false
	}
	floors := make(Floors)
	for _, e := range all {
		if f := e.Value; f.Played <= 0 || f.Full > f.Best || f.Best > float64(f.Played)+.5 {
			return nil, false
		}
		floors[e.Condition] = e.Value
	}
	return floors, true
}

// write stores floors.
func (c cache) write(floors Floors) {
	b, err := json.Marshal(entriesOf(floors, func(f Floor) Floor { return f }))
	if err == nil {
		WriteCache(c.path, b)
	}
}
