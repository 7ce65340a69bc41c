package main

import (
	"bytes"
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestSignalEndsValidate(t *testing.T) {
	t.Parallel()
	signals := make(chan os.Signal, 1)
	signals <- syscall.SIGINT
	var out, errs bytes.Buffer
	code := run([]string{"library", "validate"}, &process{
		in: strings.NewReader(""), out: &out, err: &errs, name: "assay", signals: signals,
	})
	interrupted := strings.HasPrefix(errs.String(), "assay: interrupted\n")
	if code != exitInterrupted || !interrupted || out.Len() > 0 {
		t.Errorf("exit code %d\n%s%s", code, errs.String(), out.String())
	}
}
