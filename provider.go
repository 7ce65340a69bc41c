package assay

import (
	"context"
	"encoding/json"
	"iter"
	"strconv"
	"strings"
	"time"
)

// A Provider answers conversations. Implementations are safe for concurrent use.
type Provider interface {
	// Chat returns the model's next message, in one of two forms:
	//
	//  1. a Response with a message from the assistant, and a nil error;
	//  2. an error that is a *Fault (see [AsFault]), and a Response in which only
	//     ServedModel, ID, Usage, Lost, Waits and Quotas may be set.
	//
	// When ctx ends, Chat returns soon, with a Fault that gives the reason. Chat neither keeps nor
	// changes the request. The Response is never nil and belongs to the caller.
	Chat(ctx context.Context, req *Request) (*Response, error)
}

// A Request asks for one turn.
type Request struct {
	// Model is the name that results are filed under. The adapter of a protocol translates it
	// to the endpoint's own name.
	Model     string
	Messages  []Message
	Functions []Function
	Sampling  Sampling
	// Form is the form that a foreign agent wants for the reply.
	Form Form
	// User is true if the model is asked what the simulated user of a trial says, and not what the
	// agent does.
	User bool
	// Judge is true if the model is asked what it thinks of an episode that has ended.
	Judge bool
	// Lane served the conversation's last turn. It is empty at the start. The same lane may
	// have the prompt cached.
	Lane string
	// Budget is the working time that all requests for the turn may take together, without
	// the time in queues. Zero means no limit.
	Budget time.Duration
	// Seed is [Trial.ModelSeed], from which simulated models draw their own randomness. It is never
	// sent, because it decides the luck of the tools.
	Seed uint64
}

// Aside reports whether the request is not the agent's, so that it is counted and paid apart.
func (r *Request) Aside() bool { return r.User || r.Judge }

// Sampling holds an experiment's settings for generating text. If a field is nil, it is not
// sent, and the endpoint's own default applies.
//
// The fields up to MaxTokens came first. Their JSON is part of the IDs of trials, and so is that
// of the others if they are set.
type Sampling struct {
	Temperature *float64 `json:"temperature,omitempty" yaml:"temperature"`
	TopP        *float64 `json:"top_p,omitempty" yaml:"top_p"`
	MaxTokens   *int     `json:"max_tokens,omitempty" yaml:"max_tokens"`
	Seed        *int64   `json:"seed,omitempty" yaml:"seed"`
	// Effort is how hard a thinking model tries, in the endpoint's own words: low, medium, high.
	Effort string `json:"effort,omitempty" yaml:"effort"`
	// Thinking is the number of tokens that the model may think in one reply. 0 turns thinking
	// off.
	Thinking *int `json:"thinking,omitempty" yaml:"thinking"`
	// ToolChoice defines whether the model has to call a tool: auto, required or none.
	ToolChoice string `json:"tool_choice,omitempty" yaml:"tool_choice"`
	// Extra is a JSON object whose fields are added to the request as they stand. It is text, so
	// that settings can be compared.
	Extra string `json:"extra,omitempty" yaml:"-"`
	// Headers is a JSON object of further headers of the request. It never holds a secret.
	Headers string `json:"headers,omitempty" yaml:"-"`
	// Revision is the user's name for a version of the model or its prompts, such as a commit. It
	// is part of the identity and never sent.
	Revision string `json:"revision,omitempty" yaml:"-"`
}

// Fields yields the settings that are set, by their names in files.
func (s Sampling) Fields() iter.Seq2[string, string] {
	integer := func(n *int) string { return optional(n, strconv.Itoa) }
	float := func(x *float64) string {
		return optional(x, func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) })
	}
	seed := optional(s.Seed, func(n int64) string { return strconv.FormatInt(n, 10) })
	return func(yield func(name, value string) bool) {
		for _, f := range [][2]string{
			{"effort", s.Effort},
			{"thinking", integer(s.Thinking)},
			{"temperature", float(s.Temperature)},
			{"top_p", float(s.TopP)},
			{"max_tokens", integer(s.MaxTokens)},
			{"seed", seed},
			{"tool_choice", s.ToolChoice},
			{"extra", s.Extra},
			{"headers", s.Headers},
			{"revision", s.Revision},
		} {
			if f[1] != "" && !yield(f[0], f[1]) {
				return
			}
		}
	}
}

// optional spells a value, or returns "" if it is nil.
func optional[T any](v *T, spell func(T) string) string {
	if v == nil {
		return ""
	}
	return spell(*v)
}

// A Form is the form of a reply: text if Type is empty, any JSON object, or what a JSON schema describes.
type Form struct {
	Type string
	// Name, Description and Strict go with a schema in some protocols.
	Name, Description string
	Strict            *bool
	Schema            json.RawMessage
}

// The types of forms, as OpenAI names them.
const (
	AnyObject = "json_object"
	BySchema  = "json_schema"
)

// A Response is one turn of a model.
type Response struct {
	Message Message
	// ServedModel is the name of the model that answered, according to the endpoint, and ID the
	// endpoint's name of the reply.
	ServedModel, ID string
	// Identity lists the parts that the lane ignored to recognize ServedModel; see [SameModel].
	Identity string
	// Lane names the lane that served the turn: provider/key/deployment.
	Lane  string
	Usage Usage
	// Earlier is what the reply used in another attempt, if it is given again at no cost. It counts
	// towards the limit of tokens.
	Earlier Usage
	// Finish is the endpoint's own word for the reason why the reply ended, such as "stop".
	Finish string
	// Deviations name the ways in which the request differed from the experiment's settings,
	// because the endpoint does not accept them, such as "no temperature".
	Deviations []string
	// Reported holds the settings that the endpoint reports, by name, such as its effort.
	Reported map[string]string
	// Cost is in dollars, at the prices in the providers file. Usage.UnpricedTokens is not 0 if
	// it is unknown.
	Cost float64
	// Estimate is in dollars, too. It stands for the cost of a reply whose usage is not reported;
	// see [Response.Spent].
	Estimate float64
	// Lost stands for the requests that the endpoint may have billed without saying what they used.
	Lost  Lost
	Waits Waits
	// Quotas holds the state of the endpoint's limits, if it reports them.
	Quotas []QuotaState
}

// Billed returns what the endpoint reports that the reply used, and what that cost.
func (r *Response) Billed() Spend { return NewSpend(r.Usage, r.Cost) }

// Spent returns the usage of a reply to req. If the endpoint does not report it, Spent estimates a
// token for every four bytes, so that limits on tokens and dollars hold all the same.
func (r *Response) Spent(req *Request) (u Usage, estimated bool) {
	switch {
	case r.Usage.Total() > 0 || r.Message.Role == "":
		return r.Usage, false
	case r.Earlier.Total() > 0:
		return r.Earlier, false
	}
	const bytesPerToken = 4
	for i := range req.Messages {
		u.InputTokens += req.Messages[i].size()
	}
	for i := range req.Functions {
		u.InputTokens += len(req.Functions[i].Description) + len(req.Functions[i].Parameters)
	}
	u.InputTokens = u.InputTokens/bytesPerToken + 1
	u.OutputTokens = r.Message.size()/bytesPerToken + 1
	return u, true
}

// Lost sums up requests that were sent and whose usage is unknown: the reply broke off, came too
// late, or was not waited for. The endpoint may have billed them. Tokens and USD are their dearest
// reading. Budgets count it. No cost includes it, so that a cost is the least that was billed.
type Lost struct {
	Requests, Tokens int
	USD              float64
}

// Add returns the sum of both.
func (l Lost) Add(m Lost) Lost {
	return Lost{l.Requests + m.Requests, l.Tokens + m.Tokens, RoundUSD(l.USD + m.USD)}
}

// Truncated reports whether a reply that ended for this reason was cut off for length, in the
// words of any protocol.
func Truncated(finish string) bool {
	switch strings.ToLower(finish) {
	case "length", "max_tokens", "max_output_tokens", "max_completion_tokens", "model_length",
		"model_context_window_exceeded":
		return true
	}
	return false
}

// Bucket names the unit that a limit of an endpoint counts.
type Bucket string

// The buckets of a lane. Limits on requests and tokens apply to every minute, except for
// RequestsPerSecond and RequestsPerDay. Burst is not a limit of an endpoint; it defines how
// unevenly the limits may be spent.
const (
	Concurrency       Bucket = "concurrency" // requests in flight
	RequestsPerSecond Bucket = "rps"
	RequestsPerDay    Bucket = "rpd"
	Requests          Bucket = "rpm"
	Tokens            Bucket = "tpm"   // prompts and replies together
	InputTokens       Bucket = "itpm"  // prompts
	OutputTokens      Bucket = "otpm"  // replies
	Burst             Bucket = "burst" // requests that may start at once
)

// A QuotaState is the state of one of the endpoint's limits, as reported with a response.
type QuotaState struct {
	Bucket Bucket
	// Limit is the size of the limit, and Remaining the part that was left when the endpoint
	// answered. Either is -1 if the endpoint does not report it.
	Limit, Remaining int
	// Reset is the time until the whole limit is available again, or 0 if unknown.
	Reset time.Duration
}

// Waits accounts for the time and the requests of a turn.
type Waits struct {
	// Queued is the time without a slot: waiting for a lane or backing off.
	Queued time.Duration
	// Working is the time inside requests, including failed ones.
	Working time.Duration
	// Requests counts HTTP exchanges. Retried counts the repeated ones, by the kind of fault.
	Requests int
	Retried  map[FaultKind]int
}

// Add returns the sum of both.
func (w Waits) Add(v Waits) Waits {
	sum := Waits{
		Queued:   w.Queued + v.Queued,
		Working:  w.Working + v.Working,
		Requests: w.Requests + v.Requests,
	}
	for _, m := range []map[FaultKind]int{w.Retried, v.Retried} {
		for k, n := range m {
			if sum.Retried == nil {
				sum.Retried = make(map[FaultKind]int)
			}
			sum.Retried[k] += n
		}
	}
	return sum
}
