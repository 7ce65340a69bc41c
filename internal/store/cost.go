package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/assay-eval/assay"
)

// A Cost is what a stored attempt costs by other prices than those of its run.
type Cost struct {
	Key
	At time.Time
	// Program is the one that computed it.
	Program string
	// File and SHA256 name the price list, and Prices has what it says of the attempt's lanes and of its
	// user's model, by their names.
	File, SHA256 string
	Prices       json.RawMessage
	Dollars
}

// Dollars are the fields of an attempt that depend on prices.
type Dollars struct {
	USD           float64
	Unpriced      int
	UserUSD       float64
	UserUnpriced  int
	ConfidenceUSD float64
}

// DollarsOf returns those of an attempt.
func DollarsOf(a *assay.Attempt) Dollars {
	return Dollars{a.CostUSD, a.UnpricedTokens, a.UserCostUSD, a.UserUnpricedTokens, a.ConfidenceCostUSD}
}

const (
	// costColumns are the columns that an attempt has, too, in the order of [Dollars].
	costColumns = `cost_usd, unpriced_tokens, user_cost_usd, user_unpriced_tokens, confidence_cost_usd`
	costReads   = "priced_at, file, sha256, " + costColumns
)

// Price stores new costs of attempts, all of them or none. From then on readers return the latest
// instead of the earlier ones, which stay in the store: see [Filter.AsSaved] and [DB.Snapshot]. It returns
// the errors of [DB.Save], and [ErrNotFound] for an unknown attempt. Like [DB.Rescore], a call is one
// transaction.
func (db *DB) Price(ctx context.Context, costs []Cost) error {
	if len(costs) == 0 {
		return nil
	}
	costs = slices.Clone(costs)
	return db.do(ctx, 300*len(costs), func(w *writer) error {
		for _, c := range costs {
			id, err := w.findAttempt(c.Trial, c.Number)
			if err == nil {
				_, err = w.add("costs", id, c.At, c.Program, c.File, c.SHA256, string(c.Prices), c.USD, c.Unpriced,
					c.UserUSD, c.UserUnpriced, c.ConfidenceUSD)
			}
			if err != nil {
				return fmt.Errorf("price %s: %w", nameAttempt(c.Trial, c.Number), err)
			}
		}
		return nil
	})
}

var costFields = fieldsOf[assay.Attempt](costColumns)

// reprice sets the costs of an attempt to a row of costReads, and notes what they were.
func reprice(a *assay.Attempt, row []any, in *interned) error {
	a.SavedCostUSD, a.SavedUserCostUSD = new(a.CostUSD), new(a.UserCostUSD)
	a.PriceList = in.text(fmt.Sprintf("%.19vZ %v sha256:%.12v", row[0], row[1], row[2])) // without parts of seconds
	return loadRow(costFields, a, row[3:], in)
}

// A pricing says by which prices SQL adds costs up. The zero value stands for those of the runs.
type pricing bool

const latestPrices pricing = true

// priced returns the latest prices that the store has.
func (db *DB) priced(ctx context.Context) (pricing, error) {
	lacks, err := db.lacks(ctx, "costs")
	return pricing(!lacks), err
}

// join joins the costs of attempts a.
func (p pricing) join() string {
	if !p {
		return ""
	}
	return " LEFT JOIN costs k ON k.id = (SELECT max(id) FROM costs WHERE costs.attempt = a.id)"
}

// of returns a column of a.
func (p pricing) of(column string) string {
	name := "a." + field{name: column}.quoted()
	if bool(p) && slices.Contains(columnNames(costColumns), column) {
		return fmt.Sprintf("iif(k.id IS NULL, %s, k.%s)", name, column)
	}
	return name
}
