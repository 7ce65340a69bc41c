package library

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// builtinDigest is the digest of the built-in library at [GeneratorVersion].
const builtinDigest = "27898d6a05cb938bd6a00ee0041eb126"

// What the name of a built-in library's file begins and ends with. Between
// them is the digest of the file's bytes, under which it was verified: so
// whether it is still whole can be told without reading it as a database.
const (
	builtinPrefix = "library-builtin-" + GeneratorVersion + "-"
	builtinSuffix = ".db"
)

// Builtin opens the built-in library. On first use it is generated into the
// user's cache directory; a file there that is damaged or not today's is made
// anew. Where the cache cannot be written, the library is a temporary file
// that goes away with Close. Any number of processes may call it at once.
func Builtin(ctx context.Context) (*Library, error) {
	dir, cacheErr := os.UserCacheDir()
	if cacheErr == nil {
		var l *Library
		if l, cacheErr = cachedBuiltin(ctx, filepath.Join(dir, "assay")); cacheErr == nil {
			return l, nil
		}
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("open the built-in library: %w", context.Cause(ctx))
	}
	l, err := privateBuiltin(ctx)
	if err != nil {
		return nil, fmt.Errorf("open the built-in library: %w\nhint: make the user's cache directory or %s writable", errors.Join(cacheErr, err), os.TempDir())
	}
	return l, nil
}

func cachedBuiltin(ctx context.Context, dir string) (*Library, error) {
	if l, err := findBuiltin(ctx, dir); err == nil {
		return l, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	path, err := createBuiltin(ctx, dir)
	if err != nil {
		// Where an open file cannot be replaced, another process may just
		// have made the same one.
		if l, findErr := findBuiltin(ctx, dir); findErr == nil {
			return l, nil
		}
		return nil, err
	}
	return Open(ctx, path)
}

func privateBuiltin(ctx context.Context) (*Library, error) {
	dir, err := os.MkdirTemp("", "assay-library-*")
	if err != nil {
		return nil, err
	}
	path, err := createBuiltin(ctx, dir)
	if err == nil {
		var l *Library
		if l, err = Open(ctx, path); err == nil {
			l.private = true
			return l, nil
		}
	}
	return nil, errors.Join(err, os.RemoveAll(dir))
}

// findBuiltin opens a built-in library in dir that has the bytes that it had
// when it was made.
func findBuiltin(ctx context.Context, dir string) (*Library, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name, ours := strings.CutPrefix(e.Name(), builtinPrefix)
		sum, whole := strings.CutSuffix(name, builtinSuffix)
		if !ours || !whole || !e.Type().IsRegular() { // to open a pipe might wait for ever
			continue
		}
		path := filepath.Join(dir, e.Name())
		if got, err := digestOfFile(path); err != nil || got != sum {
			continue
		}
		if l, err := openBuiltin(ctx, path); err == nil {
			return l, nil
		}
	}
	return nil, fmt.Errorf("%s: %w", dir, os.ErrNotExist)
}

// createBuiltin makes the built-in library in dir, verifies it and returns its
// path. No power cut can do harm: a file that is not whole has not the digest
// in its name.
func createBuiltin(ctx context.Context, dir string) (string, error) {
	tmp, err := temporary(filepath.Join(dir, builtinPrefix))
	if err != nil {
		return "", err
	}
	defer os.Remove(tmp) // in vain once it is renamed
	meta := Meta{Name: "builtin", Source: "generator " + GeneratorVersion}
	if _, err := fill(ctx, tmp, meta, Tools(), withoutErrors(Generate())); err != nil {
		return "", err
	}
	l, err := openBuiltin(ctx, tmp)
	if err != nil {
		return "", err
	}
	if err := errors.Join(l.Verify(ctx), l.Close()); err != nil {
		return "", err
	}
	sum, err := digestOfFile(tmp)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, builtinPrefix+sum+builtinSuffix)
	return path, os.Rename(tmp, path)
}

// openBuiltin opens path if it says that it holds the built-in library.
func openBuiltin(ctx context.Context, path string) (*Library, error) {
	l, err := Open(ctx, path)
	if err != nil {
		return nil, err
	}
	if l.meta.Digest != builtinDigest {
		err := fmt.Errorf("library %s is not the built-in one of generator %s", path, GeneratorVersion)
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// digestOfFile returns 128 bits of SHA-256 over a file, in hex.
func digestOfFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}
