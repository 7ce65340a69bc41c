package store

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/assay-eval/assay"
)

// A Profile sums up the requests, tokens, time and costs of attempts at one variant by one model.
type Profile struct {
	Model, Variant string
	// Attempts counts the attempts that settled. The sums from Turns to Spend cover only
	// these.
	Attempts        int
	Turns, Requests int
	WorkingMS       int64
	assay.Spend
	// Faulted counts the attempts that ended in a fault, and FaultedRequests their requests.
	Faulted, FaultedRequests int
	// Besides is what else the trials that settled have cost: attempts that were interrupted, and their
	// simulated users and judges.
	Besides assay.Bill
}

// profiled is how many attempts a profile covers. That is enough for means, and can be read
// quickly from a store of any size.
const profiled = 20_000

// Profile sums up the latest 20,000 attempts of all experiments by model and variant.
func (db *DB) Profile(ctx context.Context) ([]Profile, error) { return db.profile(ctx, profiled) }

func (db *DB) profile(ctx context.Context, latest int) ([]Profile, error) {
	by, err := db.priced(ctx)
	if err != nil {
		return nil, err
	}
	sums, spend := db.sumSpend(by, "settled")
	all, err := collect(ctx, db.reader, `SELECT model, variant,
			count(*) FILTER (WHERE settled), ifnull(sum(turns) FILTER (WHERE settled), 0),
			ifnull(sum(requests) FILTER (WHERE settled), 0),
			ifnull(sum(working_ms) FILTER (WHERE settled), 0), `+sums+db.sumBesides(by)+`
			count(*) FILTER (WHERE faulted), ifnull(sum(requests) FILTER (WHERE faulted), 0)
		FROM (SELECT *, level <> '' AS settled, fault = 'interrupted' AS cut,
				fault NOT IN ('', 'interrupted') AS faulted FROM attempts ORDER BY id DESC LIMIT ?) a
			JOIN trials t ON t.id = a.trial`+by.join()+`
		GROUP BY model, variant ORDER BY model, variant`, []any{latest}, func(p *Profile) []any {
		row := []any{&p.Model, &p.Variant, &p.Attempts, &p.Turns, &p.Requests, &p.WorkingMS}
		for _, f := range spend {
			row = append(row, reflect.ValueOf(&p.Spend).Elem().FieldByIndex(f.index).Addr().Interface())
		}
		return append(row, &p.Besides.Tokens, &p.Besides.USD, &p.Faulted, &p.FaultedRequests)
	})
	return all, db.wrap(err)
}

// sumBesides returns SQL for the tokens and dollars of [Profile.Besides], each with a comma after it.
func (db *DB) sumBesides(by pricing) string {
	sum := func(names ...string) string {
		text := "0"
		for _, name := range names {
			condition := "cut"
			if strings.HasPrefix(name, "user_") || strings.HasPrefix(name, "judge_") {
				condition = "settled OR cut"
			}
			if db.layout.attempts.index(name) >= 0 {
				text += fmt.Sprintf(" + total(%s) FILTER (WHERE %s)", by.of(name), condition)
			}
		}
		return text
	}
	return "CAST(" + sum("input_tokens", "output_tokens", "user_input_tokens", "user_output_tokens",
		"judge_input_tokens", "judge_output_tokens") + " AS INTEGER), " +
		sum("cost_usd", "user_cost_usd", "judge_cost_usd") + ", "
}

// sumSpend returns the fields of a spend that the store has, and SQL for their sums over the attempts
// that satisfy a condition, each with a comma after it.
func (db *DB) sumSpend(by pricing, condition string) (sums string, fields []field) {
	var b strings.Builder
	for _, c := range db.layout.attempts.fields {
		if f, ok := namedFields(reflect.TypeFor[assay.Spend]())[c.name]; ok {
			fields = append(fields, f)
			sum := "ifnull(sum(%s) FILTER (WHERE %s), 0), "
			if _, real := f.zero.(float64); real {
				sum = "total(%s) FILTER (WHERE %s), "
			}
			fmt.Fprintf(&b, sum, by.of(f.name), condition)
		}
	}
	return b.String(), fields
}

// An AsideUse sums up what a model did for an experiment's attempts besides acting in them: as their
// simulated user, or as their judge.
type AsideUse struct {
	Model    string  `json:"model"`
	Requests int     `json:"requests"`
	Tokens   int     `json:"tokens"`
	Unpriced int     `json:"unpriced_tokens"` // tokens with an unknown cost
	CostUSD  float64 `json:"cost_usd"`
	// Settled counts the attempts that settled. The sums cover the others, too.
	Settled int `json:"settled_attempts"`
}

// Users sums up the simulated users of an experiment, with all attempts.
func (db *DB) Users(ctx context.Context, experiment string) ([]AsideUse, error) {
	return db.aside(ctx, experiment, "user_model", "user")
}

// Judges sums up the models that judged attempts of an experiment, with all attempts.
func (db *DB) Judges(ctx context.Context, experiment string) ([]AsideUse, error) {
	if db.layout.attempts.index("judged_by") < 0 { // no attempt was ever judged
		return nil, nil
	}
	return db.aside(ctx, experiment, "judged_by", "judge")
}

// aside sums up what the models in a column have used, in the columns with a prefix.
func (db *DB) aside(ctx context.Context, experiment, model, prefix string) ([]AsideUse, error) {
	by, err := db.priced(ctx)
	if err != nil {
		return nil, err
	}
	of := func(column string) string { // price lists say nothing of judges
		if prefix == "user" {
			return by.of(column)
		}
		return column
	}
	query := strings.NewReplacer("MODEL", model, "OF", prefix, "UNPRICED", of(prefix+"_unpriced_tokens"),
		"COST", of(prefix+"_cost_usd"), "PRICED", by.join()).Replace(`SELECT MODEL, sum(OF_requests),
			sum(OF_input_tokens + OF_output_tokens), sum(UNPRICED), total(COST),
			sum(level <> '')
		FROM attempts aPRICED JOIN trials t ON t.id = a.trial JOIN runs r ON r.seq = a.run
		WHERE r.experiment = ? AND MODEL <> ''
		GROUP BY MODEL ORDER BY MODEL`)
	all, err := collect(ctx, db.reader, query, []any{experiment}, func(u *AsideUse) []any {
		return []any{&u.Model, &u.Requests, &u.Tokens, &u.Unpriced, &u.CostUSD, &u.Settled}
	})
	return all, db.wrap(db.forgive("the use of models beside the agents", err))
}
