package library

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// builtinDigest is the digest of the built-in library at [GeneratorVersion].
const builtinDigest = "e25033a88655ef0a5fbb67167a383b93"

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
	path := filepath.Join(dir, "library-builtin-"+GeneratorVersion+".db")
	if l, err := openBuiltin(ctx, path); err == nil {
		return l, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if err := createBuiltin(ctx, path); err != nil {
		// Where an open file cannot be replaced, another process may just
		// have made the same one.
		if l, openErr := openBuiltin(ctx, path); openErr == nil {
			return l, nil
		}
		return nil, err
	}
	return openBuiltin(ctx, path)
}

func privateBuiltin(ctx context.Context) (*Library, error) {
	dir, err := os.MkdirTemp("", "assay-library-*")
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "builtin.db")
	if err = createBuiltin(ctx, path); err == nil {
		var l *Library
		if l, err = openBuiltin(ctx, path); err == nil {
			l.private = true
			return l, nil
		}
	}
	return nil, errors.Join(err, os.RemoveAll(dir))
}

func createBuiltin(ctx context.Context, path string) error {
	return Create(ctx, path, Meta{Name: "builtin", Source: "generator " + GeneratorVersion}, Tools(), Generate())
}

// openBuiltin opens path if it holds the built-in library, all of it.
func openBuiltin(ctx context.Context, path string) (*Library, error) {
	l, err := Open(ctx, path)
	if err != nil {
		return nil, err
	}
	if l.meta.Digest != builtinDigest {
		err = fmt.Errorf("library %s is not the built-in one of generator %s", path, GeneratorVersion)
	} else {
		err = l.Verify(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}
