package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// webServer serves the numbers over HTTP, and writes its URL to a file. The path /TOOL/WAY is a
// server that fails to answer the tool: WAY is a status, "lost" if the call is carried out before
// the connection ends, or "die" if the program ends.
func webServer(file string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil { // the file appears with its content
		url := "http://" + listener.Addr().String()
		if err = os.WriteFile(file+".new", []byte(url), 0o600); err == nil {
			err = os.Rename(file+".new", file)
		}
	}
	if err == nil {
		err = http.Serve(listener, http.HandlerFunc(serveWeb))
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

var sums = sdk.NewStreamableHTTPHandler(
	func(*http.Request) *sdk.Server { return newServer("ok") }, nil)

func serveWeb(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var m struct{ Params struct{ Name string } }
	_ = json.Unmarshal(body, &m) // the end of a session has no body
	tool, way, _ := strings.Cut(strings.Trim(r.URL.Path, "/"), "/")
	if tool == "" || tool != m.Params.Name {
		sums.ServeHTTP(w, r)
		return
	}
	status := http.StatusInternalServerError
	switch way {
	case "die":
		os.Exit(0)
	case "lost":
		sums.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	default:
		_, _ = fmt.Sscan(way, &status) // 500 unless it is a status
	}
	http.Error(w, "<html>the upstream is unavailable</html>", status)
}
