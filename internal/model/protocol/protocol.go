// Package protocol lists the wire protocols that a providers file can name.
//
// Each protocol is a folder below this one, with its client and the server's side of it. Package
// plan checks files against the list, and package job opens a client for each lane with it. The
// simulated server and the bridge to foreign agents serve the protocols. The tests here run every
// protocol through the same stories against package simserver.
package protocol

import (
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

// All lists the protocols, the default first.
var All = []*wire.Protocol{
	openai.Protocol, openai.Azure, responses.Protocol, anthropic.Protocol, gemini.Protocol,
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
func Find(name string) (*wire.Protocol, bool) {
	for _, p := range All {
		if p.Name == name {
			return p, true
		}
	}
	return nil, false
}

// Dialects returns the server's side of each protocol. The style determines where chat completions
// carry thoughts; see [gateway.ThinkingStyles].
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

// ReportsCacheWrites reports whether replies show how much input was written to a cache.
func ReportsCacheWrites(d gateway.Dialect) bool {
	switch d.(type) {
	case anthropic.Dialect, responses.Dialect:
		return true
	}
	return false
}
