package main

// smallAims has the targets of --quick, by measurement and figure. They are far below the figures
// of a quiet machine, so that a busy one reaches them, too.
var smallAims = map[string]func(row) row{
	"2a ideal ÷ wall time":                    func(r row) row { return r.atLeast(0.5) },
	"2d used ÷ permitted traffic":             func(r row) row { return r.atLeast(0.95) },
	"2d requests answered 429":                func(r row) row { return r.below(0.02) },
	"2e used ÷ permitted traffic":             func(r row) row { return r.atLeast(0.9) },
	"2e requests answered 429":                func(r row) row { return r.below(0.15) },
	"2e used ÷ permitted traffic, no headers": func(r row) row { return r.atLeast(0.9) },
	"2e requests answered 429, no headers":    func(r row) row { return r.below(0.15) },
	"2f ideal ÷ wall time":                    func(r row) row { return r.atLeast(0.5) },
}

// small replaces the target of a row by the target of its small version, if it has one.
func small(r row) row {
	r.Aim = nil
	if aim, ok := smallAims[r.Number+" "+r.What]; ok {
		return aim(r)
	}
	return r
}

// repeated calls measure. If quick, it does so up to three times until no target is missed, because
// other work on the machine can spoil a measurement of a second.
func (b *bench) repeated(measure func() ([]row, error)) (rows []row, err error) {
	for range b.size(1, 3) {
		if rows, err = measure(); err != nil || (report{Rows: rows}).missed() == nil {
			break
		}
	}
	return rows, err
}
