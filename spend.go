package assay

// Spend is what requests have used and cost. Its fields are stated here only: an [Attempt] embeds it,
// so that each of them is a column of stores and of exports, and all who add it up use [Spend.Add].
type Spend struct {
	Used
	// CostUSD is in dollars, at the prices in the providers file. See [Spend.AtLeast].
	CostUSD float64 `json:"cost_usd"`
}

// Used is [Usage], which explains the fields, in records that leave no count out.
type Used struct {
	InputTokens      int `json:"input_tokens"`
	OutputTokens     int `json:"output_tokens"`
	CachedTokens     int `json:"cached_tokens"`
	CacheWriteTokens int `json:"cache_write_tokens"`
	ReasoningTokens  int `json:"reasoning_tokens"`
	UncertainTokens  int `json:"uncertain_tokens"`
	UnpricedTokens   int `json:"unpriced_tokens"`
}

// NewSpend returns the spend of a usage that cost so many dollars.
func NewSpend(u Usage, usd float64) Spend { return Spend{Used: Used(u), CostUSD: usd} }

// Usage returns the tokens.
func (s Spend) Usage() Usage { return Usage(s.Used) }

// Total returns the tokens of input and output.
func (s Spend) Total() int { return s.Usage().Total() }

// Add returns the sum of both.
func (s Spend) Add(o Spend) Spend {
	return NewSpend(s.Usage().Add(o.Usage()), RoundUSD(s.CostUSD+o.CostUSD))
}

// AtLeast reports whether some of the cost is unknown, so that CostUSD is the least that was billed.
func (s Spend) AtLeast() bool { return s.UnpricedTokens > 0 }

// Priced reports whether anything of the cost is known.
func (s Spend) Priced() bool { return s.CostUSD != 0 || !s.AtLeast() }

// Paid reports whether money was spent, or may have been.
func (s Spend) Paid() bool { return s.CostUSD > 0 || s.AtLeast() }

// Bill returns the spend in short.
func (s Spend) Bill() Bill {
	return Bill{Tokens: s.Total(), USD: s.CostUSD, Unpriced: s.UnpricedTokens}
}

// A Bill is a [Spend] in the figures that say how an experiment stands.
type Bill struct {
	Tokens int     `json:"tokens"`
	USD    float64 `json:"cost_usd"`
	// Unpriced counts the tokens with an unknown cost, which USD leaves out.
	Unpriced int `json:"unpriced_tokens"`
	// Unmetered counts the attempts whose tokens and dollars nobody knows.
	Unmetered int `json:"unmetered,omitempty"`
}

// Add adds what others have used.
func (b *Bill) Add(o Bill) {
	b.Tokens += o.Tokens
	b.USD = RoundUSD(b.USD + o.USD)
	b.Unpriced += o.Unpriced
	b.Unmetered += o.Unmetered
}

// AtLeast is that of [Spend].
func (b Bill) AtLeast() bool { return b.Unpriced > 0 || b.Unmetered > 0 }

// UserSpend is what the model behind a simulated user has used and cost, apart from the agent.
type UserSpend struct {
	UserRequests       int     `json:"user_requests"`
	UserInputTokens    int     `json:"user_input_tokens"`
	UserOutputTokens   int     `json:"user_output_tokens"`
	UserUnpricedTokens int     `json:"user_unpriced_tokens"`
	UserCostUSD        float64 `json:"user_cost_usd"`
}

// AddUser records a response of the model behind a simulated user.
func (u *UserSpend) AddUser(r *Response) {
	sum := u.OfUser().Add(r.Billed())
	*u = UserSpend{
		u.UserRequests + r.Waits.Requests, sum.InputTokens, sum.OutputTokens, sum.UnpricedTokens, sum.CostUSD,
	}
}

// OfUser returns the fields that are known of a user, under their common names.
func (u UserSpend) OfUser() Spend {
	return NewSpend(Usage{
		InputTokens: u.UserInputTokens, OutputTokens: u.UserOutputTokens, UnpricedTokens: u.UserUnpricedTokens,
	}, u.UserCostUSD)
}

// Repriced says what an attempt had cost by the prices of its run, if its costs were computed again by
// others. It is not stored with the attempt.
type Repriced struct {
	// PriceList names the price list: when it was used, its file and the start of its SHA-256. It is empty
	// if the costs are those of the run.
	PriceList        string   `json:"price_list"`
	SavedCostUSD     *float64 `json:"saved_cost_usd"`
	SavedUserCostUSD *float64 `json:"saved_user_cost_usd"`
}

// JudgeSpend is what the model of a task's judge has used and cost, apart from the agent.
type JudgeSpend struct {
	JudgeRequests       int     `json:"judge_requests"`
	JudgeInputTokens    int     `json:"judge_input_tokens"`
	JudgeOutputTokens   int     `json:"judge_output_tokens"`
	JudgeUnpricedTokens int     `json:"judge_unpriced_tokens"`
	JudgeCostUSD        float64 `json:"judge_cost_usd"`
}

// AddJudge records a response of a judge's model.
func (j *JudgeSpend) AddJudge(r *Response) {
	sum := j.OfJudge().Add(r.Billed())
	*j = JudgeSpend{
		j.JudgeRequests + r.Waits.Requests, sum.InputTokens, sum.OutputTokens, sum.UnpricedTokens, sum.CostUSD,
	}
}

// OfJudge returns the fields that are known of a judge, under their common names.
func (j JudgeSpend) OfJudge() Spend {
	return NewSpend(Usage{
		InputTokens: j.JudgeInputTokens, OutputTokens: j.JudgeOutputTokens, UnpricedTokens: j.JudgeUnpricedTokens,
	}, j.JudgeCostUSD)
}
