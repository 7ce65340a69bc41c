package bridge

import (
	"cmp"
	"context"
	"io"
	"net"
	"net/http"

	"github.com/assay-eval/assay/internal/task/child"
)

// A Place is where agents run, and how they and a bridge reach each other. The zero Place is this
// machine with its network.
type Place struct {
	// Listen, if set, opens an address of [Agent.Listen], which is empty for loopback.
	Listen func(address string) (net.Listener, error)
	// Program, if set, carries out programs.
	Program Program
	// Called, if set, is told of each call that the tools have answered.
	Called func(tool, arguments, answer string)
	// Services, if set, carries the requests to services.
	Services http.RoundTripper
}

// A Program is run to its end with an input, or until ctx ends. Its output is read meanwhile.
type Program func(ctx context.Context, c child.Command, input string, read func(io.Reader)) (Exit, error)

// An Exit is how a program ended.
type Exit struct {
	Code int
	// State describes that, and Errors is the end of the standard error.
	State, Errors string
	// Stopped is true if the program ended because ctx did.
	Stopped bool
}

func (p Place) completed() Place {
	if p.Listen == nil {
		p.Listen = func(address string) (net.Listener, error) {
			return net.Listen("tcp", cmp.Or(address, "127.0.0.1:0"))
		}
	}
	if p.Program == nil {
		p.Program = runProgram
	}
	if p.Services == nil {
		p.Services = &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}
	}
	return p
}

// runProgram runs a program on this machine.
func runProgram(ctx context.Context, c child.Command, input string, read func(io.Reader)) (e Exit, err error) {
	p, err := child.Start(c)
	if err != nil {
		return e, err
	}
	go func() {
		_, _ = io.WriteString(p.Stdin, input) // an agent need not read it
		_ = p.Stdin.Close()
	}()
	e.Stopped = p.Finish(ctx, read)
	_ = p.Close() // nothing is left to remove
	e.Code, e.State, e.Errors = p.ExitCode(), p.State(), p.Stderr()
	return e, nil
}
