package plan

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/task/yamldoc"
)

// Prices is a price list: the prices of models, by their names in providers files, or by the names
// of deployments or lanes.
type Prices struct {
	File, SHA256 string
	models       map[string]lane.Price
	doc          *yamldoc.Document
}

// LoadPrices reads a price list.
func LoadPrices(path string) (*Prices, error) {
	doc, err := readDocument(path)
	if err != nil {
		if e, ok := errors.AsType[*Error](err); ok && e.Line == 0 {
			e.Hint = "a price list is a YAML file such as\n" +
				"  gpt-5: {input: 1.25, cached: 0.125, output: 10}"
			return nil, e
		}
		return nil, err
	}
	p := &Prices{File: filepath.Base(path), SHA256: doc.SHA256(), doc: doc}
	if err := doc.Decode(&p.models); err != nil {
		return nil, err
	}
	for _, model := range slices.Sorted(maps.Keys(p.models)) {
		if !doc.Has("$." + strconv.Quote(model)) {
			delete(p.models, model)
			continue
		}
		price := p.models[model]
		if err := checkPrice(doc, "$", model, model, &price); err != nil {
			return nil, err
		}
		p.models[model] = price
	}
	return p, nil
}

// checkPrice checks the price of a model, which a file states under a key at a place.
func checkPrice(doc *yamldoc.Document, parent, key, model string, p *lane.Price) error {
	place := parent + "." + strconv.Quote(key)
	for _, field := range []string{"input", "output"} {
		if !doc.Has(place + "." + field) {
			return doc.AtKey(parent, key, fmt.Sprintf("the price of %s has no %s", model, field),
				"write "+field+": in dollars per million tokens, or remove the price if you do not know it; "+
					"only what costs nothing is 0")
		}
	}
	p.Stated = true
	for _, n := range []struct {
		field string
		value float64
	}{
		{"input", p.Input},
		{"output", p.Output},
		{"cached", *cmp.Or(p.Cached, new(float64))},
		{"cache_write", *cmp.Or(p.CacheWrite, new(float64))},
	} {
		if !(n.value >= 0 && n.value <= 1e6) {
			return doc.At(place+"."+n.field,
				fmt.Sprintf("price.%s is %v, want 0 to 1000000", n.field, n.value),
				"prices are in dollars per million tokens; remove it if you do not know it")
		}
	}
	return nil
}

// minPrice and maxPrice are dollars per million tokens. A price below the first is probably one
// per token, or per thousand tokens if a million would cost more than the second.
const (
	minPrice = 0.001
	maxPrice = 200
)

// PriceDoubts warns of prices of a lane that are probably not per million tokens, with the prices
// that are probably meant.
func (l Lane) PriceDoubts() []string { return priceDoubts(l.Model, &l.Serve.Price) }

// Doubts is [Lane.PriceDoubts] for all models of a list.
func (p *Prices) Doubts() (all []string) {
	for _, model := range slices.Sorted(maps.Keys(p.models)) {
		all = append(all, priceDoubts(model, new(p.models[model]))...)
	}
	return all
}

func priceDoubts(model string, p *lane.Price) (doubts []string) {
	for _, n := range []struct {
		field string
		value *float64
	}{{"input", &p.Input}, {"output", &p.Output}, {"cached", p.Cached}, {"cache_write", p.CacheWrite}} {
		if n.value == nil || *n.value <= 0 || *n.value >= minPrice {
			continue
		}
		per, meant := "one token", *n.value*1e6
		if meant > maxPrice {
			per, meant = "a thousand tokens", *n.value*1e3
		}
		doubts = append(doubts, fmt.Sprintf("the price of %s is %s: %s, in dollars per million tokens; if that is the "+
			"price of %s, write %s: %s", model, n.field, decimal(*n.value), per, n.field,
			strconv.FormatFloat(meant, 'g', 6, 64)))
	}
	return doubts
}

func decimal(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// At returns the price of a model at a lane, by the first of the lane, the model and the deployment that
// has one. The lane may be empty if it is unknown.
func (p *Prices) At(at, model string) (price lane.Price, ok bool) {
	names := []string{at, model}
	if parts := strings.SplitN(at, "/", 3); len(parts) == 3 { // provider/key/deployment
		names = append(names, parts[2])
	}
	for _, name := range names {
		if price, ok = p.models[name]; ok {
			break
		}
	}
	return price, ok
}

// CheckNames returns an error unless each name in the list is known.
func (p *Prices) CheckNames(known []string) error {
	for name := range p.doc.Fields("$") {
		if _, ok := p.models[name]; ok && !slices.Contains(known, name) {
			return p.doc.AtKey("$", name, "no stored attempt was made with a model, deployment or lane "+name,
				cmp.Or(assay.NameHint(name, known), "leave it out"))
		}
	}
	return nil
}

// Of returns the price of a lane's model.
func (p *Prices) Of(l Lane) (lane.Price, error) {
	if price, ok := p.At(l.Name(), l.Model); ok {
		return price, nil
	}
	hint := assay.NameHint(l.Model, slices.Collect(maps.Keys(p.models)))
	return lane.Price{}, p.doc.At("$", "there is no price for model "+l.Model,
		cmp.Or(hint, fmt.Sprintf("write %s: {input: …, output: …} in dollars per million tokens; "+
			"only what costs nothing is 0", l.Model)))
}
