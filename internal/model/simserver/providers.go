package simserver

import (
	"fmt"
	"strings"

	"github.com/assay-eval/assay/internal/model/protocol"
	"github.com/assay-eval/assay/internal/model/sim"
)

// A spokenProtocol is one of the server's, with the part of its base URL after the address and
// further settings.
type spokenProtocol struct{ name, path, more string }

// spoken lists the protocols of the server. The first one is the default.
var spoken = []spokenProtocol{
	{protocol.OpenAI, "/v1", ""},
	{protocol.Azure, "", "    api_version: 2024-10-21\n"},
	{protocol.Responses, "/v1", ""},
	{protocol.Anthropic, "", ""},
	{protocol.Gemini, "/v1beta", ""},
}

// ProvidersFile returns a providers file for a server at an address. It has every protocol, all but
// the first in comments.
func ProvidersFile(addr, tariff string) string {
	var b strings.Builder
	price := ""
	if tariff != "" {
		price = "price: {" + strings.NewReplacer(" ", "", "=", ": ", ",", ", ").Replace(tariff) + "}"
	}
	fmt.Fprintf(&b, "providers:\n  rehearsal:\n%s",
		spoken[0].settings(addr, sim.Reference, func(string) string { return price }))
	b.WriteString("  # Other protocols have the same models. Their deployments have limits of " +
		"their own.\n")
	for i, r := range spoken[1:] {
		text := fmt.Sprintf("  rehearsal-%s:\n", r.name) +
			r.settings(addr, sim.Reference[:2], func(model string) string {
				own := fmt.Sprintf("deployments: [%s-%d], serves: [%s]",
					strings.ReplaceAll(model, "/", "-"), i+2, model)
				return strings.TrimSuffix(own+", "+price, ", ")
			})
		for line := range strings.Lines(text) {
			b.WriteString("  # " + strings.TrimPrefix(line, "  "))
		}
	}
	return b.String()
}

// settings returns a provider's settings with some models, and model returns a model's settings.
func (r spokenProtocol) settings(
	addr string, models []string, model func(name string) string,
) string {
	var b strings.Builder
	fmt.Fprintf(&b, "    protocol: %s\n    base_url: http://%s%s\n%s    keys: [SIM_KEY]\n    models:\n",
		r.name, addr, r.path, r.more)
	for _, m := range models {
		fmt.Fprintf(&b, "      %s: {%s}\n", m, model(m))
	}
	return b.String()
}
