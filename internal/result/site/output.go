package site

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/assay-eval/assay/internal/result/atomicfile"
)

// manifestName is the file that makes a directory a site. A new site begins with an empty one, and the
// whole one is written last.
const manifestName = "site.json"

// domainName is the file that gives a site its domain where GitHub serves it.
const domainName = "CNAME"

// reserved are the names beside the folders of experiments.
var reserved = []string{manifestName, "assets", "index.html", "leaderboard.json", "method.html", "trends.html"}

// A manifest lists what a site was made from, and its files with their SHA-256 digests.
type manifest struct {
	Program string            `json:"program"`
	Sources []source          `json:"sources"`
	Files   map[string]string `json:"files"`
}

// A source is an experiment in a state of a store.
type source struct {
	Experiment string `json:"experiment"`
	Store      string `json:"store"`
	Snapshot   string `json:"snapshot"`
}

// An output is the directory of a site. It writes files whose content has changed.
type output struct {
	dir string
	old map[string]string // the files of the site that is being replaced, with their digests
	new map[string]string
	// written and removed count files that changed.
	written, removed int
}

// openOutput accepts a directory: an empty one, or one that has a site. It changes nothing.
func openOutput(dir string) (*output, error) {
	o := &output{dir: dir, new: make(map[string]string)}
	if err := atomicfile.RefuseStore(dir, filepath.Clean(dir)); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(dir, manifestName))
	if errors.Is(err, syscall.ENOTDIR) {
		err = fs.ErrNotExist
	}
	if err == nil {
		var m manifest
		if err := json.Unmarshal(text, &m); err != nil || m.Files == nil {
			return nil, fmt.Errorf("publish to %s: its %s is not that of a site\nhint: name a new directory", dir, manifestName)
		}
		o.old = m.Files
		return o, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("publish to %s: %w", dir, err)
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("publish to %s: it is a file\nhint: name a directory", dir)
	}
	files, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("publish to %s: %w", dir, err)
	}
	i := slices.IndexFunc(files, func(f fs.DirEntry) bool {
		return !strings.HasPrefix(f.Name(), ".") && f.Name() != domainName
	})
	if i >= 0 {
		return nil, fmt.Errorf("publish to %s: it holds %s and is no site\n"+
			"hint: name a new directory; only a site, which has a file %s, is changed", dir, files[i].Name(), manifestName)
	}
	return o, nil
}

// begin makes the directory a site. A publication that is stopped leaves one that the next completes.
func (o *output) begin() error {
	if o.old != nil {
		return nil
	}
	if err := os.MkdirAll(o.dir, 0o777); err != nil {
		return fmt.Errorf("publish to %s: %w", o.dir, err)
	}
	return o.sign(manifest{Files: map[string]string{}})
}

// put writes a file if its content differs from what is there. The name is relative, with slashes.
func (o *output) put(name string, write func(io.Writer) error) error {
	if _, ok := o.new[name]; ok {
		return fmt.Errorf("publish: two files are named %s", name)
	}
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	sum := sha256.Sum256(b.Bytes())
	o.new[name] = hex.EncodeToString(sum[:])
	place := filepath.Join(o.dir, filepath.FromSlash(name))
	if there, err := os.ReadFile(place); err == nil && bytes.Equal(there, b.Bytes()) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(place), 0o777); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	o.written++
	return atomicfile.Write(nil, place, func(w io.Writer) error {
		_, err := b.WriteTo(w)
		return err
	})
}

// finish writes the manifest, and removes the files that the earlier site had and this one lacks. A
// publication that was killed before leaves a site of old and new pages, which the next one completes.
func (o *output) finish(m manifest) error {
	for name := range o.old {
		if _, kept := o.new[name]; kept || !fs.ValidPath(name) {
			continue
		}
		place := filepath.Join(o.dir, filepath.FromSlash(name))
		if err := os.Remove(place); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("publish: %w", err)
		}
		o.removed++
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if os.Remove(filepath.Join(o.dir, filepath.FromSlash(dir))) != nil {
				break // others are in it
			}
		}
	}
	m.Files = o.new
	return o.sign(m)
}

// sign writes the manifest if it has changed.
func (o *output) sign(m manifest) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	place := filepath.Join(o.dir, manifestName)
	if there, err := os.ReadFile(place); err == nil && bytes.Equal(there, append(text, '\n')) {
		return nil
	}
	return atomicfile.Write(nil, place, func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	})
}

// slug returns a name as a part of a path and of an address. A name that is not safe there gets a
// digest, so that different names have different slugs, and a name keeps its slug forever.
func slug(name string) string {
	safe := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r)
	}
	clean := strings.Map(func(r rune) rune {
		if safe(r) {
			return r
		}
		return '-'
	}, strings.ToLower(name)) // some disks do not tell cases apart
	const longest = 60
	if clean == name && len(name) <= longest && strings.Trim(name, ".") != "" && name != "index" &&
		!slices.Contains(reserved, name) {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return strings.TrimLeft(clean[:min(len(clean), longest)], ".-") + "-" + hex.EncodeToString(sum[:3])
}
