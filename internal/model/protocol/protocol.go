// Package protocol lists the wire protocols that a providers file can name.
//
// Each protocol is a folder below this one, with its client and the server's side of it. Package
// plan checks files against the list, and package job opens a client for each lane with it. The
// simulated server and the bridge to foreign agents serve the protocols. The tests here run every
// protocol through the same stories against package simserver.
package protocol

import (
	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/gateway"
	"github.com/assay-eval/assay/internal/model/protocol/anthropic"
	"github.com/assay-eval/assay/internal/model/protocol/gemini"
	"github.com/assay-eval/assay/internal/model/protocol/openai"
	"github.com/assay-eval/assay/internal/model/protocol/responses"
	"github.com/assay-eval/assay/internal/model/wire"
)

// The names of protocols that other packages need.
const (
	OpenAI    = "openai"
	Azure     = "azure"
	Responses = "responses"
	Anthropic = "anthropic"
	Gemini    = "gemini"
)

// A Client sends requests to one deployment with one key.
type Client interface {
	assay.Provider
	// Origin names the endpoint in the states of its replies; see [assay.State].
	Origin() string
	// Omits returns the names of the settings in req that the endpoint does not accept, so that
	// they are not sent.
	Omits(req assay.Request) []string
}

// A Protocol is one way to talk to an endpoint.
type Protocol struct {
	// Name is its name in a providers file.
	Name string
	// New returns a client. It does no I/O.
	New func(wire.Config) (Client, error)
	// CachedFree is true if endpoints do not count input that is read from a cache against limits
	// of tokens.
	CachedFree bool
	// Address is the base_url of the protocol's own provider, as an example.
	Address string
	// Versioned is true if a provider has to name the version of the API.
	Versioned bool
}

// All lists the protocols, the default first.
var All = []Protocol{
	{Name: OpenAI, New: client(openai.New), Address: "https://api.openai.com/v1"},
	{
		Name: Azure, New: client(openai.NewAzure), Versioned: true,
		Address: "https://my-resource.openai.azure.com",
	},
	{Name: Responses, New: client(responses.New), Address: "https://api.openai.com/v1"},
	{
		Name: Anthropic, New: client(anthropic.New), CachedFree: true,
		Address: "https://api.anthropic.com",
	},
	{
		Name: Gemini, New: client(gemini.New),
		Address: "https://generativelanguage.googleapis.com/v1beta",
	},
}

// client adapts the constructor of a package.
func client[C Client](open func(wire.Config) (C, error)) func(wire.Config) (Client, error) {
	return func(cfg wire.Config) (Client, error) { return open(cfg) }
}

// Names returns the names of the protocols, the default first.
func Names() []string {
	names := make([]string, len(All))
	for i, p := range All {
		names[i] = p.Name
	}
	return names
}

// Find returns the protocol with that name.
func Find(name string) (Protocol, bool) {
	for _, p := range All {
		if p.Name == name {
			return p, true
		}
	}
	return Protocol{}, false
}

// Dialects returns the server's side of each protocol. The style says where chat completions carry
// thoughts; see [gateway.ThinkingStyles].
func Dialects(thinking string) []gateway.Dialect {
	chat := openai.Dialect{Thinking: thinking}
	return []gateway.Dialect{
		chat,
		openai.AzureDialect{Dialect: chat},
		responses.Dialect{},
		anthropic.Dialect{},
		gemini.Dialect{},
	}
}

// ReportsCacheWrites reports whether replies say how much input was written to a cache.
func ReportsCacheWrites(d gateway.Dialect) bool {
	switch d.(type) {
	case anthropic.Dialect, responses.Dialect:
		return true
	}
	return false
}
