package lane_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/model/protocol/openai"
	"github.com/assay-eval/assay/internal/model/wire"
)

// TestLimitersOverTCP checks three limiters over real connections. It asserts only that the server
// refuses few requests: a share, because requests cross announced waits on the way, and two for
// each caller, because a machine under load delivers requests together and accepts few of them.
func TestLimitersOverTCP(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		server *stranger
		limits lane.Limits
		most   float64 // of the requests are refused
	}{
		{
			"token bucket", &stranger{limiter: &bucket{n: 40, size: 10, span: second}},
			lane.Limits{RPS: 40},
			0.10,
		},
		{
			"fixed window",
			&stranger{limiter: &fixed{n: 20, span: second}, headers: plainHeaders, wait: waitInMs},
			lane.Limits{RPS: 20},
			0.10,
		},
		{"width", &stranger{width: 4, wait: waitInMs}, lane.Limits{}, 0.15},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			row.server.took = 50 * time.Millisecond
			server := httptest.NewServer(http.HandlerFunc(row.server.serve))
			defer server.Close()
			p, err := openai.Protocol.New(wire.Config{BaseURL: server.URL, Deployment: "m"})
			if err != nil {
				t.Fatal(err)
			}
			c := lane.Config{Name: "l", Provider: p, Orders: "m", Limits: row.limits}
			const callers = 12
			saturate(lane.NewPool("m", []lane.Config{c}, lane.Options{}), callers, 4*second)
			server.Close() // waits for requests that are under way
			ok, not := len(row.server.accepted), len(row.server.refused)
			if most := max(2*callers, row.most*float64(ok+not)); ok == 0 || float64(not) > most {
				t.Errorf("%d accepted and %d refused, want %.0f at most", ok, not, most)
			}
		})
	}
}

// serve answers a request that came over a network.
func (s *stranger) serve(w http.ResponseWriter, r *http.Request) {
	resp, err := s.RoundTrip(r)
	if err != nil {
		return
	}
	for name, values := range resp.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(resp.StatusCode)
	_, _ = io.Copy(w, resp.Body)
}
