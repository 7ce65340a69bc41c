package plan

import "github.com/assay-eval/assay/internal/task/yamldoc"

// Hedges reports whether a late request may be sent to the lane a second time. If the file does not
// say so, it may if that costs neither money nor a part of a daily allowance. A lane with a key and
// without a price may cost money.
func (l Lane) Hedges() bool {
	if l.Serve.Hedge != nil {
		return *l.Serve.Hedge
	}
	free := l.Serve.Free || l.KeyName == NoKey && l.Serve.Price.IsZero()
	return free && l.Serve.Limits.RPD == 0
}

// statesNoCost reports whether the price at a place in a file is stated as zero.
func (s Serve) statesNoCost(doc *yamldoc.Document, place string) bool {
	stated := doc.Node(place+".price.input") != nil && doc.Node(place+".price.output") != nil
	return stated && s.Price.Free()
}
