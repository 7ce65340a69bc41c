package store

import "context"

// A Profile sums up the requests, tokens, time and costs of attempts at one variant by one model.
type Profile struct {
	Model, Variant string
	// Attempts counts the attempts that settled. The sums from Turns to CostUSD cover only
	// these.
	Attempts                  int
	Turns, Requests           int
	InputTokens, OutputTokens int
	// CachedTokens and CacheWriteTokens are parts of InputTokens.
	CachedTokens, CacheWriteTokens int
	WorkingMS                      int64
	CostUSD                        float64
	// Faulted counts the attempts that ended in a fault, and FaultedRequests their requests.
	Faulted, FaultedRequests int
}

// profiled is how many attempts a profile covers. That is enough for means, and can be read
// quickly from a store of any size.
const profiled = 20_000

// Profile sums up the latest 20,000 attempts of all experiments by model and variant.
func (db *DB) Profile(ctx context.Context) ([]Profile, error) { return db.profile(ctx, profiled) }

func (db *DB) profile(ctx context.Context, latest int) ([]Profile, error) {
	all, err := collect(ctx, db.reader, `SELECT model, variant,
			count(*) FILTER (WHERE settled), ifnull(sum(turns) FILTER (WHERE settled), 0),
			ifnull(sum(requests) FILTER (WHERE settled), 0),
			ifnull(sum(input_tokens) FILTER (WHERE settled), 0),
			ifnull(sum(output_tokens) FILTER (WHERE settled), 0),
			ifnull(sum(cached_tokens) FILTER (WHERE settled), 0),
			ifnull(sum(cache_write_tokens) FILTER (WHERE settled), 0),
			ifnull(sum(working_ms) FILTER (WHERE settled), 0),
			total(cost_usd) FILTER (WHERE settled),
			count(*) FILTER (WHERE NOT settled), ifnull(sum(requests) FILTER (WHERE NOT settled), 0)
		FROM (SELECT *, level <> '' AS settled FROM attempts ORDER BY id DESC LIMIT ?) a
			JOIN trials t ON t.id = a.trial
		GROUP BY model, variant ORDER BY model, variant`, []any{latest}, func(p *Profile) []any {
		return []any{
			&p.Model, &p.Variant, &p.Attempts, &p.Turns, &p.Requests, &p.InputTokens,
			&p.OutputTokens, &p.CachedTokens, &p.CacheWriteTokens, &p.WorkingMS, &p.CostUSD, &p.Faulted, &p.FaultedRequests,
		}
	})
	return all, db.wrap(err)
}
