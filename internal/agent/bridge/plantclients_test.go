//go:build strangers

package bridge_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/bridge"
)

// The official clients ask again by themselves after a refusal, with and without a wait, and report a
// reply that breaks off instead of taking its half for the whole.
func TestOfficialClientsMeetPlantedFaults(t *testing.T) {
	t.Parallel()
	s := open(t)
	for name, ask := range clients {
		for _, kind := range assay.ModelFaults {
			if kind == assay.ModelHang || kind == assay.ModelEmpty || kind == assay.ModelBadArguments {
				continue // what an agent makes of them is not its client's choice
			}
			t.Run(name+" "+string(kind), func(t *testing.T) {
				t.Parallel()
				service := serve(t, func(w http.ResponseWriter, r *http.Request) {
					body := bodyOf(r)
					got, err := ask(r.Context(), body["model_url"], body["token"])
					if err != nil { // the client does not ask again
						t.Logf("%v", err)
						got, err = ask(r.Context(), body["model_url"], body["token"])
					}
					if want := (said{"Let me look.", "find", `{"query":"ü"}`, 23}); err != nil || got != want {
						t.Errorf("%+v, %v; want %+v", got, err, want)
					}
					_, _ = w.Write([]byte(`{"text": "TASK_COMPLETED"}`))
				})
				trial, task := s.planted(kind, assay.Discover)
				models := new(speaker)
				a, script := s.Runner(s.episodes, bridge.Agent{
					Name: "agent", URL: service, Model: "m", Timeout: time.Minute,
				}).Run(t.Context(), models, trial, task)
				if f := script.ModelFaults(); models.n != 1 || a.FaultKind != "" || len(f) != 1 || !f[0].Recovered {
					t.Errorf("asked %d times, fault %q, %+v", models.n, a.FaultDetail, f)
				}
			})
		}
	}
}
