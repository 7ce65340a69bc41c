// Package gemini is both sides of Gemini's own API, generateContent: a client and a [Dialect].
//
// It owns the format of requests and replies. Package wire carries them. Signed thoughts go back in
// the parts in which they came.
//
// It does not use the official SDK, which costs several times as much CPU. The tests use the SDK as
// an oracle.
package gemini

import (
	"net/url"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/wire"
)

// models is the path between a base URL and a model.
const models = "/models"

// Protocol is the client's side.
var Protocol = &wire.Protocol{
	Name: "gemini", BaseURL: "https://generativelanguage.googleapis.com/v1beta",
	Paths: []string{models}, URL: endpoint, KeyHeader: "X-Goog-Api-Key",
	Encode: encode, Tools: encodeTools, Omitted: omitted,
	NewReply: func() wire.Document { return new(reply) },
}

// endpoint returns the address of a deployment, which is the name of a model or, as in models/x and
// tunedModels/x, of a resource.
func endpoint(c *wire.Config) string {
	path := models + "/" + url.PathEscape(c.Deployment)
	for _, kind := range []string{"models/", "tunedModels/"} {
		if strings.HasPrefix(c.Deployment, kind) {
			path = "/" + c.Deployment
		}
	}
	return c.BaseURL + path + ":generateContent"
}

// omitted lists settings that are not sent: a seed that the protocol has no room for.
func omitted(s assay.Sampling, _ wire.ParamSet) []wire.Setting {
	return []wire.Setting{{Name: "seed", Unset: s.Seed != nil && int64(int32(*s.Seed)) != *s.Seed}}
}
