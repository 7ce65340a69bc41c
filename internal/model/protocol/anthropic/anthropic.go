// Package anthropic is both sides of Anthropic's Messages API, which Anthropic and some gateways
// speak: a client and a [Dialect].
//
// It owns the format of requests and replies, asks for prompt caching, and adapts requests to the
// refusals of a model. Package wire carries them. A reply with thinking goes back as it came,
// because its signatures cover all of it.
//
// It does not use the official SDK, which costs several times as much CPU. The tests use the SDK as
// an oracle.
package anthropic

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/assay-eval/assay/internal/model/wire"
)

// defaultVersion is the version of the API.
const defaultVersion = "2023-06-01"

// Protocol is the client's side.
var Protocol = &wire.Protocol{
	Name: "anthropic", BaseURL: "https://api.anthropic.com", Paths: []string{"/messages"},
	CachedFree: true,
	// The base URL may end in /v1 or not.
	URL: func(c *wire.Config) string {
		return strings.TrimSuffix(c.BaseURL, "/v1") + "/v1/messages"
	},
	KeyHeader: "X-Api-Key",
	Header: func(c *wire.Config) http.Header {
		return http.Header{"Anthropic-Version": {cmp.Or(c.APIVersion, defaultVersion)}}
	},
	Encode: encode, Tools: encodeTools, Params: params, Refused: refused, Omitted: omitted,
	Assemble: assemble,
	NewReply: func() wire.Document { return new(reply) },
}
