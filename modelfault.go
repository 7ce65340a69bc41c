package assay

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A ModelFault is a failure of the model behind a foreign agent that a trial plants. It is part of the
// trial, and never a [Fault]: no endpoint has failed.
type ModelFault string

// The kinds of faults of models.
const (
	ModelRateLimit    ModelFault = "rate_limit"
	ModelRateWait     ModelFault = "rate_limit_wait"
	ModelOverload     ModelFault = "overload"
	ModelOverloadWait ModelFault = "overload_wait"
	ModelCut          ModelFault = "cut"
	ModelEmpty        ModelFault = "empty"
	ModelBadArguments ModelFault = "bad_arguments"
	ModelHang         ModelFault = "hang"
)

// A ModelFaultRule says what an agent gets instead of a reply.
type ModelFaultRule struct {
	Kind ModelFault
	// Says is what happens, for schemas and the docs.
	Says string
	// Status is the HTTP status of a refusal, or 0, and Waits is true if it asks for a wait.
	Status int
	Waits  bool
	// Spoils is true if the model is asked, and its reply is delivered in another form. Otherwise, nobody
	// is asked, and nothing is paid.
	Spoils bool
}

// ModelFaultRules lists the kinds, in the order of tables.
var ModelFaultRules = []ModelFaultRule{
	{Kind: ModelRateLimit, Says: "status 429", Status: 429},
	{Kind: ModelRateWait, Says: "status 429, and a wait of a second", Status: 429, Waits: true},
	{Kind: ModelOverload, Says: "status 503", Status: 503},
	{Kind: ModelOverloadWait, Says: "status 503, and a wait of a second", Status: 503, Waits: true},
	{Kind: ModelCut, Says: "half a reply or half a stream, and a broken connection"},
	{Kind: ModelEmpty, Says: "a reply without a word or a call"},
	{Kind: ModelBadArguments, Says: "the model's reply, in which the arguments of the first call are no JSON", Spoils: true},
	{Kind: ModelHang, Says: "nothing for 30 seconds, and a broken connection"},
}

// ModelFaults lists the kinds, in the order of tables.
var ModelFaults = func() (kinds []ModelFault) {
	for _, r := range ModelFaultRules {
		kinds = append(kinds, r.Kind)
	}
	return kinds
}()

// Rule returns the rule of a kind. An unknown kind has the zero rule.
func (f ModelFault) Rule() ModelFaultRule {
	for _, r := range ModelFaultRules {
		if r.Kind == f {
			return r
		}
	}
	return ModelFaultRule{}
}

// FillModelFaults puts the kinds into the text of a schema: their names in place of "$MODEL_KIND", with
// what they do in place of $MODEL_KINDS.
func FillModelFaults(schema string) string {
	var quoted, says []string
	for _, r := range ModelFaultRules {
		quoted = append(quoted, strconv.Quote(string(r.Kind)))
		says = append(says, string(r.Kind)+": "+r.Says)
	}
	return strings.NewReplacer(`"$MODEL_KIND"`, strings.Join(quoted, ", "),
		"$MODEL_KINDS", strings.Join(says, "; ")).Replace(schema)
}

// ModelFaultRates holds the probability of each kind that a request of an agent meets it.
type ModelFaultRates map[ModelFault]float64

// String spells the rates as a [Setting] holds them, such as "cut=0.05,hang=0.01".
func (m ModelFaultRates) String() string {
	var words []string
	for _, kind := range slices.Sorted(maps.Keys(m)) {
		if m[kind] > 0 {
			words = append(words, string(kind)+"="+strconv.FormatFloat(m[kind], 'f', -1, 64))
		}
	}
	return strings.Join(words, ",")
}

// Total returns the probability of any fault.
func (m ModelFaultRates) Total() float64 {
	sum := 0.0
	for _, kind := range slices.Sorted(maps.Keys(m)) {
		sum += m[kind]
	}
	return sum
}

// MostModelFaults is the highest [ModelFaultRates.Total], so that an agent that asks again is answered.
const MostModelFaults = 0.9

// Check returns an error if a kind is unknown, a rate is outside [0,1], or they add up to more than
// [MostModelFaults].
func (m ModelFaultRates) Check() error {
	for _, kind := range slices.Sorted(maps.Keys(m)) {
		if kind.Rule().Kind == "" {
			return fmt.Errorf("unknown fault of models %q", kind)
		}
		if rate := m[kind]; !(rate >= 0 && rate <= 1) { // also true for NaN
			return fmt.Errorf("the rate of %s is %v, outside [0,1]", kind, rate)
		}
	}
	if total := m.Total(); total > MostModelFaults+1e-9 {
		return fmt.Errorf("the rates add up to %g, above %g", total, MostModelFaults)
	}
	return nil
}

// ParseModelFaults reads the spelling of [ModelFaultRates.String].
func ParseModelFaults(text string) (ModelFaultRates, error) {
	if text == "" {
		return nil, nil
	}
	m := make(ModelFaultRates)
	for word := range strings.SplitSeq(text, ",") {
		kind, number, _ := strings.Cut(word, "=")
		rate, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return nil, fmt.Errorf("rate %q of faults of models: %w", word, err)
		}
		m[ModelFault(kind)] = rate
	}
	return m, m.Check()
}

// At returns the fault that the luck of a trial with that seed plants in the n-th request of its agent,
// counted from 0, or "". A request that meets one also meets one at higher rates. docs/agents.md has the
// rule.
func (m ModelFaultRates) At(seed uint64, n int) ModelFault {
	total := m.Total()
	sum := sha256.Sum256(fmt.Appendf(nil, "assay model luck 1\x00%d\x00%d", seed, n))
	share := func(word int) float64 {
		return float64(binary.BigEndian.Uint64(sum[8*word:])>>11) / (1 << 53)
	}
	if share(0) >= total {
		return ""
	}
	last, place := ModelFault(""), share(1)*total
	for _, kind := range slices.Sorted(maps.Keys(m)) {
		if m[kind] == 0 {
			continue
		}
		last = kind
		if place -= m[kind]; place < 0 {
			break
		}
	}
	return last
}

// A ModelFaultRecord is a planted fault of a model, and what became of it.
type ModelFaultRecord struct {
	Kind ModelFault `json:"kind"`
	// Request is the number of the agent's request, from 1, and Turn the number of replies that it had by
	// then.
	Request int `json:"request"`
	Turn    int `json:"turn"`
	// Delivered means that the fault was sent while the agent was still listening. Otherwise it proves
	// nothing.
	Delivered bool `json:"delivered"`
	// Recovered means that a later request of the agent was answered.
	Recovered bool `json:"recovered"`
}

// Text words what became of the fault.
func (r *ModelFaultRecord) Text() string {
	switch {
	case !r.Delivered:
		return "not delivered"
	case r.Recovered:
		return "delivered, recovered"
	}
	return "delivered"
}

// ModelFaults returns the planted faults of the agent's model.
func (t *Transcript) ModelFaults() []ModelFaultRecord {
	if t.Agent == nil {
		return nil
	}
	return t.Agent.ModelFaults
}
