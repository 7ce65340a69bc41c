package simserver_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/assay-eval/assay/internal/model/simserver"
)

// A server with a limit of one request per minute refuses the second request.
func Example() {
	server, err := simserver.New(simserver.Config{
		Provider: echo{}, // any assay.Provider
		Models:   []string{"sim/listed"},
		Limits:   []simserver.Limit{{RPM: 1}},
	})
	if err != nil {
		panic(err)
	}
	for range 2 {
		body := `{"model":"sim/listed","messages":[{"role":"user","content":"hello"}]}`
		r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer key")
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		fmt.Println(w.Code)
	}
	fmt.Println(server.Stats().OverLimit, "request over the limit")
	// Output:
	// 200
	// 429
	// 1 request over the limit
}
