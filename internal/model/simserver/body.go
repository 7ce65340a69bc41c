package simserver

import (
	"net/http"
	"strconv"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/gateway"
)

const contentJSON = "application/json"

// estimate estimates the number of tokens in a conversation.
func estimate(req assay.Request) int {
	n := 0
	for _, m := range req.Messages {
		n += 16 + len(m.Content)
		for _, c := range m.Calls {
			n += 16 + len(c.Name) + len(c.Arguments)
		}
	}
	for _, f := range req.Functions {
		n += len(f.Name) + len(f.Description) + len(f.Parameters)
	}
	return n/4 + 1
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	writeBody(w, status, gateway.Encode(v))
}

// writeBody ignores a failed write, which means that the client has left.
func writeBody(w http.ResponseWriter, status int, body []byte) {
	writeHead(w, status, contentJSON, len(body))
	_, _ = w.Write(body)
}

func writeHead(w http.ResponseWriter, status int, contentType string, length int) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(length))
	w.WriteHeader(status)
}

func writeError(w http.ResponseWriter, e gateway.Refusal) {
	writeJSON(w, e.Status, e.Body())
}
