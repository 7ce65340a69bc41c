package report

// Hosts compares the hosts of one model with the first of them, the reference.
type Hosts struct {
	All []Side `json:"hosts"`
	// Against compares each other host, side B, with the reference, side A. Q is adjusted for their
	// number.
	Against    []Paired   `json:"against_reference"`
	Population Population `json:"population"`
	// Incomplete has the reasons why there is no verdict about a host.
	Incomplete []string `json:"incomplete"`
	// Unread counts attempts of the store that could not be read.
	Unread int `json:"unread"`
}

// HostsOf returns the hosts of comparisons that share their side A.
func HostsOf(comparisons []*Comparison) *Hosts {
	first := comparisons[0]
	h := &Hosts{All: []Side{first.A}, Population: first.Population, Incomplete: []string{}}
	for _, c := range comparisons {
		h.All = append(h.All, c.B)
		h.Against = append(h.Against, Paired{A: c.A.Name, B: c.B.Name, Comparison: c.Whole})
	}
	for _, s := range h.All {
		if why := s.Incomplete(); why != "" {
			h.Incomplete = append(h.Incomplete, why)
		}
	}
	adjust(references(h.Against))
	return h
}
