package job

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/plan"
)

// A level sends the requests of one model of the experiment on one lane.
type level struct {
	model string // without the level's label
	assay.Provider
}

// levels is the provider of a lane, by the names of the models that share it: the levels of a model
// and its aliases. Each has a separate client, because headers differ, and an endpoint can refuse a
// setting for one level and accept it for another.
type levels map[string]level

// Chat implements [assay.Provider].
func (l levels) Chat(ctx context.Context, req *assay.Request) (*assay.Response, error) {
	to := l[req.Model]
	if to.model != req.Model {
		req = renamed(req, to.model)
	}
	return to.Provider.Chat(ctx, req)
}

// renamed returns a copy of a request for another model.
func renamed(req *assay.Request, model string) *assay.Request {
	own := *req
	own.Model = model
	return &own
}

// header returns the headers of a model's requests on a lane.
func header(l plan.Lane, s assay.Sampling, env Env) (http.Header, error) {
	header, err := l.Header(env)
	if err != nil || s.Headers == "" {
		return header, err
	}
	var own map[string]string
	if err := json.Unmarshal([]byte(s.Headers), &own); err != nil {
		return nil, err
	}
	for name, value := range own {
		header.Set(name, value)
	}
	return header, nil
}

// withLevels adds the levels of the known models if a name looks like one, so that the nearest
// name is found.
func withLevels(known []string, name string) []string {
	if !strings.Contains(name, "@") {
		return known
	}
	all := slices.Clone(known)
	for _, model := range known {
		for _, effort := range assay.Efforts {
			all = append(all, model+"@"+effort)
		}
	}
	return all
}
