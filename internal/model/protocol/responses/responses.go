// Package responses is both sides of OpenAI's Responses API, which OpenAI, Azure and some gateways
// speak: a client and a [Dialect].
//
// It owns the format of requests and responses, and adapts requests to the refusals of an endpoint.
// Package wire carries them. No data is stored at the endpoint: every request holds the whole
// conversation, with the encrypted reasoning of earlier replies as it came.
//
// It does not use the official SDK, which costs several times as much CPU. The tests use the SDK as
// an oracle.
package responses

import (
	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/wire"
)

// path is the path after a base URL.
const path = "/responses"

// Protocol is the client's side. The endpoint encrypts reasoning for the organization of a key.
var Protocol = &wire.Protocol{
	Name: "responses", BaseURL: "https://api.openai.com/v1", Paths: []string{path},
	URL:       func(c *wire.Config) string { return c.BaseURL + path },
	KeyHeader: "Authorization", KeyPrefix: "Bearer ", OwnKey: true,
	Encode: encode, Tools: encodeTools, Params: params, Omitted: omitted,
	Assemble: assemble,
	NewReply: func() wire.Document { return new(reply) },
}

// include asks for encrypted reasoning. Models that do not reason refuse it.
const include = wire.OwnParam

// params lists the parameters in the order in which messages are searched for them.
var params = []wire.Param{
	{Set: wire.Temperature, Name: "temperature"},
	{Set: wire.TopP, Name: "top_p"},
	{Set: include, Name: "include"},
}

// omitted lists settings that the protocol does not have.
func omitted(s assay.Sampling, _ wire.ParamSet) []wire.Setting {
	return []wire.Setting{
		{Name: "seed", Unset: s.Seed != nil}, {Name: "thinking", Unset: s.Thinking != nil},
	}
}
