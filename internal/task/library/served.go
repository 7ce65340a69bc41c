package library

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/mcp"
	"github.com/assay-eval/assay/internal/task/yamldoc"
)

// describeServer starts the server of a file of tools once and returns its tools. If the file lists
// no tools, it gets all of them.
func describeServer(
	ctx context.Context, doc *yamldoc.Document, file *toolDocument,
) (*assay.Catalog, error) {
	dir, err := filepath.Abs(doc.Dir)
	if err != nil {
		return nil, err
	}
	file.MCP.Dir = dir
	if err := mcp.Check(file.MCP); err != nil {
		return nil, doc.At("$.mcp", err.Error(), "")
	}
	served, err := mcp.Describe(ctx, file.MCP)
	if fault := (*assay.Fault)(nil); errors.As(err, &fault) && fault.Kind == assay.ToolServer {
		return nil, doc.At("$.mcp", fault.Detail, "try the command in a shell; it starts in an empty "+
			"folder, and {dir} stands for the one of this file")
	}
	if err != nil {
		return nil, err
	}
	if len(file.Tools) == 0 {
		for _, t := range served {
			file.Tools = append(file.Tools, toolEntry{Name: t.Name})
		}
	}
	return assay.NewCatalog(served), nil
}

// servedTool returns a tool of a server with the fields that the file adds to it.
func servedTool(
	doc *yamldoc.Document, i int, e *toolEntry, served *assay.Catalog,
) (assay.Tool, error) {
	at := func(field, message, hint string) error {
		return doc.At(fmt.Sprintf("$.tools[%d]%s", i, field), message, hint)
	}
	t, ok := served.Tool(e.Name)
	if !ok {
		return t, at(".name", fmt.Sprintf("the server has no tool %q", e.Name),
			assay.NameHint(e.Name, served.Names()))
	}
	if e.Parameters != nil {
		return t, at(".parameters", "the server describes the parameters", "remove this field")
	}
	t.Description = cmp.Or(strings.TrimSpace(e.Description), t.Description, t.Name)
	t.Effect = e.Effect
	var err error
	if t.Parameters, err = parametersOf(t.Schema); err != nil {
		return t, at(".name", err.Error(), "")
	}
	if err := chances(at, e, &t); err != nil {
		return t, err
	}
	return t, harms(at, e, &t)
}

// identityOf returns the fields that identify a server. They exclude the place of its file and its
// time limit.
func identityOf(s *assay.MCPServer) string {
	b, err := json.Marshal(assay.MCPServer{
		Command: s.Command, URL: s.URL, Set: s.Set, OpenEnv: s.OpenEnv, Answer: s.Answer,
	})
	if err != nil {
		panic("library: server: " + err.Error())
	}
	return string(b)
}
