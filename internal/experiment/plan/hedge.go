package plan

// Hedges reports whether a late request may be sent to the lane a second time. If the file is
// silent about it, it may if that costs neither money nor a part of a daily allowance. A lane with
// a key and without a price may cost money.
func (l Lane) Hedges() bool {
	if l.Serve.Hedge != nil {
		return *l.Serve.Hedge
	}
	price := l.Serve.Price
	free := price.Free() || l.KeyName == NoKey && price.Unknown()
	return free && l.Serve.Limits.RPD == 0
}
