package library

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/assay-eval/assay"
)

// builtinDigest is the digest of the built-in library at [GeneratorVersion].
const builtinDigest = "de69af91d3b3bbc40b4cda5d20b30eb3"

var builtinMeta = Meta{Name: BuiltinName, Source: "generator " + GeneratorVersion}

// The name of a built-in library's file consists of this prefix, the sum of the file's bytes when it
// was made, and this suffix. The sum shows whether the file is still intact without opening it as a
// database.
const (
	builtinPrefix = "builtin-library-" + GeneratorVersion + "-"
	builtinSuffix = ".db"
)

// Builtin opens the built-in library. The first call generates it into the user's cache
// directory. If the cached file is damaged or out of date, Builtin generates it again. If the
// cache is not writable, the library is a temporary file that Close removes. Several processes
// may call Builtin at once.
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
	l, err := compiled(ctx, "", builtinMeta, assay.NewCatalog(Tools()), withoutErrors(Generate()))
	if err != nil {
		return nil, fmt.Errorf("open the built-in library: %w\n"+
			"hint: make the user's cache directory or %s writable",
			errors.Join(cacheErr, err), os.TempDir())
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
		// If the system can't replace an open file, another process may just have created it.
		if l, findErr := findBuiltin(ctx, dir); findErr == nil {
			return l, nil
		}
		return nil, err
	}
	return Open(ctx, path)
}

// findBuiltin opens an intact built-in library in dir.
func findBuiltin(ctx context.Context, dir string) (*Library, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name, hasPrefix := strings.CutPrefix(e.Name(), builtinPrefix)
		sum, hasSuffix := strings.CutSuffix(name, builtinSuffix)
		if !hasPrefix || !hasSuffix {
			continue
		}
		if !e.Type().IsRegular() { // opening a pipe could block forever
			continue
		}
		path := filepath.Join(dir, e.Name())
		if got, err := sumOfFile(path); err != nil || got != sum {
			continue
		}
		l, err := Open(ctx, path)
		switch {
		case err != nil:
		case l.meta.Digest == builtinDigest:
			return l, nil
		default:
			l.Close() // it was only read
		}
	}
	return nil, fmt.Errorf("%s: %w", dir, os.ErrNotExist)
}

// createBuiltin generates the built-in library in dir and returns its path. It need not sync the
// file: if a power cut leaves it incomplete, it doesn't match the sum in its name.
func createBuiltin(ctx context.Context, dir string) (string, error) {
	tmp, err := temporary(filepath.Join(dir, builtinPrefix))
	if err != nil {
		return "", err
	}
	defer os.Remove(tmp) // fails after the rename
	meta := builtinMeta
	catalog := assay.NewCatalog(Tools())
	if err := writeContent(ctx, tmp, &meta, catalog, withoutErrors(Generate())); err != nil {
		return "", err
	}
	sum, err := sumOfFile(tmp)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, builtinPrefix+sum+builtinSuffix)
	return path, os.Rename(tmp, path)
}

// sumOfFile returns a sum that any accident changes, and that takes a tenth of the time of SHA-256. Every
// command with built-in tasks waits for it.
func sumOfFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := xxhash.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return fmt.Sprintf("%016x", h.Sum64()), nil
}
