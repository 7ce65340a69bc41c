// Package openai is both sides of OpenAI's chat completions protocol, which OpenAI,
// compatible gateways and Azure deployments speak: a client and a [Dialect].
//
// It owns the format of requests and completions, and adapts requests to the refusals of an
// endpoint. Package wire carries them. It does not check which model answered. Package lane does
// that.
//
// It does not use the official SDK, which costs several times as much CPU and memory. A response is
// only passed on after its body has been read completely, within a size limit, and cleaned of
// secrets. The tests use the SDK as an oracle: this package sends the same requests as the SDK, and
// reads the same from a completion, even from an odd one.
package openai

import (
	"cmp"
	"net/url"

	"github.com/assay-eval/assay/internal/model/wire"
)

// defaultAPIVersion is Azure's.
const defaultAPIVersion = "2024-10-21"

// completions is the path after a base URL.
const completions = "/chat/completions"

// Protocol is the client's side.
var Protocol = &wire.Protocol{
	Name: "openai", BaseURL: "https://api.openai.com/v1", Paths: []string{completions},
	URL:       func(c *wire.Config) string { return c.BaseURL + completions },
	KeyHeader: "Authorization", KeyPrefix: "Bearer ",
	Encode: encode, Tools: encodeTools, Params: params, Refused: refused, Omitted: omitted, Adapted: adapted,
	Assemble: assemble,
	NewReply: func() wire.Document { return new(completion) },
}

// Azure is the client's side for deployments on Azure. Their keys are in a separate header.
var Azure = func() *wire.Protocol {
	p := *Protocol
	p.Name, p.BaseURL = "azure", "https://my-resource.openai.azure.com"
	p.Versioned, p.KeyHeader, p.KeyPrefix = true, "Api-Key", ""
	p.URL = func(c *wire.Config) string {
		return c.BaseURL + "/openai/deployments/" + url.PathEscape(c.Deployment) + completions +
			"?api-version=" + url.QueryEscape(cmp.Or(c.APIVersion, defaultAPIVersion))
	}
	return &p
}()
