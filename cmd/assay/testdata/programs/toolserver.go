package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

type (
	addition struct {
		N int `json:"n"`
	}
	multiple struct {
		N     int `json:"n"`
		Times int `json:"times"`
	}
	sum struct {
		Sum int `json:"sum"`
	}
)

// toolServer is the program `toolserver MODE`, an MCP server that adds up numbers. Its mode is the
// way in which it misbehaves when it adds. It notes each start in the file $STARTS. In the mode web,
// it serves over HTTP.
func toolServer() {
	mode := os.Args[1]
	if mode == "web" {
		webServer(os.Args[2])
	}
	if path := os.Getenv("STARTS"); path != "" {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			fmt.Fprintln(f, "start")
			f.Close()
		}
	}
	if mode == "crash" {
		fmt.Fprintln(os.Stderr, "cannot open the books")
		os.Exit(3)
	}
	s := newServer(mode)
	if err := s.Run(context.Background(), &sdk.StdioTransport{}); err != nil {
		os.Exit(1)
	}
}

// newServer returns a server of a mode.
func newServer(mode string) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "sums"}, nil)
	total := 0
	add := func(n int) (*sdk.CallToolResult, sum, error) {
		misbehave(mode)
		if n < 0 {
			return nil, sum{}, errors.New("a number is negative")
		}
		total += n
		return nil, sum{total}, nil
	}
	tool := &sdk.Tool{Name: "add", Description: "Adds a number."}
	if mode == "abroad" {
		tool.Name = "zuzählen"
	}
	switch mode {
	case "lie":
		tool.InputSchema = map[string]any{"type": "object"}
		tool.OutputSchema = json.RawMessage(
			`{"type": "object", "properties": {"sum": {"type": "integer"}}}`)
		s.AddTool(tool, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{StructuredContent: map[string]any{"sum": "a lot"}}, nil
		})
	case "changed":
		sdk.AddTool(s, tool, func(
			_ context.Context, _ *sdk.CallToolRequest, in multiple,
		) (*sdk.CallToolResult, sum, error) {
			return add(in.N * in.Times)
		})
	default:
		sdk.AddTool(s, tool, func(
			_ context.Context, _ *sdk.CallToolRequest, in addition,
		) (*sdk.CallToolResult, sum, error) {
			return add(in.N)
		})
	}
	sdk.AddTool(s, &sdk.Tool{Name: "total", Description: "Returns the sum so far."}, func(
		context.Context, *sdk.CallToolRequest, struct{},
	) (*sdk.CallToolResult, sum, error) {
		return nil, sum{total}, nil
	})
	if mode == "files" {
		addFiles(s)
	}
	return s
}

// addFiles adds tools that want absolute paths.
func addFiles(s *sdk.Server) {
	type file struct {
		Path string `json:"path"`
		Text string `json:"text,omitempty"`
	}
	sdk.AddTool(s, &sdk.Tool{Name: "write", Description: "Writes a new file."}, func(
		_ context.Context, _ *sdk.CallToolRequest, in file,
	) (*sdk.CallToolResult, file, error) {
		if _, err := os.Stat(in.Path); !filepath.IsAbs(in.Path) || err == nil {
			return nil, file{}, fmt.Errorf("%s is not a new absolute path", in.Path)
		}
		return nil, in, os.WriteFile(in.Path, []byte(in.Text), 0o600)
	})
	sdk.AddTool(s, &sdk.Tool{Name: "find", Description: "Finds a file."}, func(
		context.Context, *sdk.CallToolRequest, struct{},
	) (*sdk.CallToolResult, file, error) {
		dir, err := os.Getwd()
		path := filepath.Join(dir, "tea.txt")
		b, _ := os.ReadFile(path)
		return nil, file{path, string(b)}, err
	})
}

func misbehave(mode string) {
	switch mode {
	case "die":
		fmt.Fprintln(os.Stderr, "the books are on fire")
		os.Exit(2)
	case "hang":
		time.Sleep(time.Hour)
	case "flood":
		for range 64 {
			fmt.Printf(`{"jsonrpc":"2.0","method":"notifications/message","params":`+
				`{"level":"info","data":"%s"}}`+"\n", strings.Repeat("x", 1<<20))
		}
	case "babble":
		fmt.Println("DEBUG: added")
	}
}
