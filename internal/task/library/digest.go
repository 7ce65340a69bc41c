package library

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/assay-eval/assay"
)

// Digest identifies a task of the library together with the library's tools, because different
// tools make it a different task. With the built-in tools it equals [assay.Task.Digest].
func (l *Library) Digest(t *assay.Task) string { return l.withTools(t.Digest()) }

// ToolsDigest identifies the library's tools with their script and server.
func (l *Library) ToolsDigest() string {
	digest, _ := builtinTools() // it cannot fail if the library could be opened
	return cmp.Or(l.tools, digest)
}

func (l *Library) withTools(digest string) string {
	if l.tools == "" {
		return digest
	}
	return digestOf([]byte("assay task and tools 1\x00" + digest + "\x00" + l.tools))
}

// builtinTools is the hash of the built-in tools.
var builtinTools = sync.OnceValues(func() (string, error) { return hashTools(Tools()) })

// toolsDigest returns a digest of tools, or "" for the built-in tools.
func toolsDigest(catalog *assay.Catalog) (string, error) {
	digest, err := hashTools(catalog.All())
	builtin, builtinErr := builtinTools()
	if err = errors.Join(err, builtinErr); err != nil || digest == builtin {
		return "", err
	}
	if s := catalog.Script(); s.Source != "" {
		digest = digestOf([]byte("assay tools and script 1\x00" + digest + "\x00" + s.Source))
		if len(s.Base) > 0 {
			digest = digestOf([]byte("assay tools and base 1\x00" + digest + "\x00" + digestOf(s.Base)))
		}
	}
	if s := catalog.Server(); s != nil {
		digest = digestOf([]byte("assay tools and server 1\x00" + digest + "\x00" + identityOf(s)))
	}
	return digest, nil
}

func hashTools(tools []assay.Tool) (string, error) {
	b, err := json.Marshal(tools)
	return digestOf(b), err
}

// libraryDigest hashes the tools in order and the tasks by ID and difficulty.
func libraryDigest(ctx context.Context, q sqlQuerier) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, "assay library 1")
	write := func(format string) func(func(...any) error) error {
		return func(scan func(...any) error) error {
			var a, b, c, d string
			if err := scan(&a, &b, &c, &d); err != nil {
				return err
			}
			_, err := fmt.Fprintf(h, format, a, b, c, d)
			return err
		}
	}
	err := each(ctx, q, write("tool %s %s%s%s\n"),
		`SELECT ord, json, '', '' FROM tools ORDER BY ord`)
	if err != nil {
		return "", err
	}
	script, server, err := readCarriers(ctx, q)
	if err != nil {
		return "", err
	}
	if script.Source != "" {
		fmt.Fprintf(h, "script %q %q\n", script.Name, script.Source)
	}
	if len(script.Base) > 0 {
		fmt.Fprintf(h, "base %s\n", digestOf(script.Base))
	}
	if server != nil {
		fmt.Fprintf(h, "server %q\n", identityOf(server))
	}
	err = each(ctx, q, write("task %q %q %q %s\n"),
		`SELECT id, difficulty, type, digest FROM tasks ORDER BY id, difficulty`)
	if err != nil {
		return "", err
	}
	err = each(ctx, q, write("phrasings %q %q %s%s\n"),
		`SELECT id, difficulty, json_extract(body, '$.phrasings'), '' FROM tasks
		WHERE instr(body, '"phrasings":') > 0 AND json_extract(body, '$.phrasings') IS NOT NULL
		ORDER BY id, difficulty`)
	if err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}

// digestOf returns [assay.Task.Digest] for a task with the given JSON.
func digestOf(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:16])
}
