package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// An item is something that happens in a world. A world goes on without any of them, so a failing
// history is made shorter by leaving out items.
type item struct {
	At    time.Duration `json:"at"`
	For   time.Duration `json:"for,omitempty"`
	Kind  string        `json:"kind"`
	On    string        `json:"on,omitempty"` // an endpoint, a key, a model, or what a kill waits for
	Style string        `json:"style,omitempty"`
	N     int           `json:"n,omitempty"`
	Share float64       `json:"share,omitempty"`
	By    time.Duration `json:"by,omitempty"` // by how much a clock is set
}

func (i item) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v %s", i.At, i.Kind)
	for _, s := range []string{i.On, i.Style} {
		if s != "" {
			b.WriteString(" " + s)
		}
	}
	if i.N > 0 {
		fmt.Fprintf(&b, " %d", i.N)
	}
	if i.Share > 0 {
		fmt.Fprintf(&b, " %.3f", i.Share)
	}
	if i.By != 0 {
		fmt.Fprintf(&b, " by %v", i.By)
	}
	if i.For > 0 {
		fmt.Fprintf(&b, " for %v", i.For)
	}
	return b.String()
}

// ever is longer than every world.
const ever = 1000 * time.Hour

// during reports whether an item that lasts is on at some time after the beginning.
func (i *item) during(now time.Duration) bool { return now >= i.At && now < i.At+i.For }

// A dice draws for one purpose, so that one draw more does not change the others.
type dice struct{ *rand.Rand }

func newDice(seed, purpose uint64) dice { return dice{rand.New(rand.NewPCG(seed, purpose))} }

// shaken leaves out the first draw, which is much the same for seeds that are neighbours.
func (d dice) shaken() dice {
	d.Uint64()
	return d
}

// between draws a time whose logarithm is uniform.
func (d dice) between(low, high time.Duration) time.Duration {
	x := float64(low) * math.Pow(float64(high)/float64(low), d.Float64())
	return time.Duration(x).Round(time.Millisecond)
}

func (d dice) of(all ...string) string { return all[d.IntN(len(all))] }

func (d dice) often(percent int) bool { return d.IntN(100) < percent }

// A shape is what the user writes into files.
type shape struct {
	plan     int // one of [plans]
	more     int // one of [extras]
	lanes    []laneShape
	request  time.Duration // the limit of a request
	workers  int
	budget   float64 // in dollars, or 0
	save     string
	agent    string            // "program", "service" or ""
	protocol map[string]string // by endpoint
}

// A laneShape is the limits of an endpoint's lanes, stated or not. 0 means no limit.
type laneShape struct {
	endpoint, hidden           string
	concurrency, rps, rpm, rpd int
	tpm                        int
}

var (
	endpoints = []string{"a", "b"}
	keys      = map[string][]string{"a": {"KEY_1", "KEY_2"}, "b": {"KEY_3"}}
)

func drawShape(seed uint64) (s shape) {
	d := newDice(seed, 1)
	s.plan = d.IntN(judged)
	s.request = time.Duration(30+d.IntN(271)) * time.Second
	if d.often(20) {
		s.workers = 1 + d.IntN(4)
	}
	if m := newDice(seed, 3); m.often(35) { // between three trials and most of them
		s.budget = float64(m.between(50*time.Millisecond, 2*time.Second)) / 1e9
	}
	if s.save = "turns"; newDice(seed, 4).often(25) {
		s.save = "attempts"
	}
	s.protocol = make(map[string]string)
	for _, e := range endpoints {
		s.protocol[e] = d.of("openai", "responses", "anthropic", "gemini")
		l := laneShape{endpoint: e}
		if d.often(70) {
			l.concurrency = 1 + d.IntN(4)
		}
		switch d.IntN(6) {
		case 0, 4:
			l.rpm = 2 + d.IntN(10)
		case 1:
			l.rps = 1 + d.IntN(4)
		case 2:
			if s.workers == 0 { // their beats make idle days dear
				l.rpd = 200 + d.IntN(800)
			}
		case 3:
			if l.hidden = d.of("sliding", "clocked", "spaced", "crowded", "daily"); s.workers > 0 && l.hidden == "daily" {
				l.hidden = ""
			}
		}
		s.lanes = append(s.lanes, l)
	}
	if m := newDice(seed, 6).shaken(); m.often(20) {
		s.lanes[m.IntN(len(s.lanes))].tpm = 20_000 + m.IntN(80_000)
	}
	if wide := newDice(seed, 5).shaken(); wide.often(25) { // a budget that is small beside what is in flight
		if s.budget = .25 + .25*wide.Float64(); s.plan == 0 { // whose trials are dear
			s.budget *= 4
		}
		for n := range s.lanes {
			l := &s.lanes[n]
			l.hidden, l.rps, l.rpm, l.rpd, l.tpm, l.concurrency = "", 0, 0, 0, 0, 20+wide.IntN(20)
		}
	}
	if a := newDice(seed, 7).shaken(); a.often(18) {
		s.agent = a.of("program", "service")
	}
	if m := newDice(seed, 8).shaken(); m.often(30) && s.agent == "" {
		s.more = 1 + m.IntN(len(extras)-1)
	}
	if m := newDice(seed, 9).shaken(); m.often(12) && s.agent == "" && s.more <= lastForNotes {
		s.plan = judged
	}
	if m := newDice(seed, 11).shaken(); m.often(60) && s.agent != "" && s.budget > 0 { // requests of agents wait for lanes
		for n := range s.lanes {
			s.lanes[n].concurrency = 1
		}
	}
	return s
}

// hiddenLimiter returns what makes limiters of a kind that are not stated.
func hiddenLimiter(kind string, d dice) func() limiter {
	n := 3 + d.IntN(25)
	switch kind {
	case "sliding":
		return func() limiter { return &sliding{most: n, span: time.Minute} }
	case "clocked":
		return func() limiter { return &clocked{most: n, span: time.Minute} }
	case "spaced":
		return func() limiter { return &spaced{every: time.Minute / time.Duration(n), burst: 1 + n/5} }
	case "crowded":
		return func() limiter { return crowded{1 + n/8} }
	case "daily":
		return func() limiter { return &clocked{most: 10 * n, span: 24 * time.Hour} }
	}
	return nil
}

// soon draws when something happens: most things within the busy first hours.
func (d dice) soon() time.Duration { return d.between(10*time.Second, 2*time.Hour) }

// earlyDraws is how many draws of [drawItems] the worlds had in which the first defects were found. The dice of later
// ones are shaken.
const earlyDraws = 22

// drawItems draws what happens, with each item from dice of its own. If early is true, it leaves out the later draws.
func drawItems(seed uint64, early bool) (items []item) {
	longOutage := 48 * time.Hour
	if drawShape(seed).workers > 0 {
		longOutage = 6 * time.Hour
	}
	var long *item // a pause that nothing ends before its time
	add := func(i ...item) { items = append(items, i...) }
	longPause := func(d dice) { // of hours, and then few requests at a time to endpoints that are not well
		i := item{At: d.between(10*time.Second, 3*time.Minute), For: d.between(65*time.Minute, 4*time.Hour), Kind: "pause"}
		add(i)
		until := i.At + i.For
		long = &i
		for _, e := range endpoints {
			add(item{At: until - 10*time.Second, Kind: "set", On: e, Style: "concurrency", N: 1},
				item{At: until, For: 20 * time.Minute, Kind: "fault", On: e, Style: "500", Share: .6})
		}
	}
	fullPause := func(d dice) { // in which the disk gets full, so that nobody can resume
		i := item{At: d.between(10*time.Second, 5*time.Minute), For: d.between(5*time.Minute, time.Hour), Kind: "pause"}
		add(i, item{At: i.At + i.For*3/4, For: i.For, Kind: "disk", Style: "full"})
	}
	for n, draw := range []struct {
		percent int
		draw    func(d dice)
	}{
		{70, func(d dice) { add(drawFault(d)) }},
		{60, func(d dice) { add(drawFault(d)) }},
		{40, func(d dice) { add(drawFault(d)) }},
		{20, func(d dice) { // a bad hour
			add(item{
				At: d.soon(), For: d.between(time.Minute, 2*time.Hour), Kind: "fault",
				On: d.of(endpoints...), Style: d.of("500", "503", "429"), Share: .2 + .5*d.Float64(),
			})
		}},
		{30, func(d dice) { // minutes in which nearly everything is refused
			i := item{At: d.between(10*time.Second, 5*time.Minute), For: d.between(time.Minute, 6*time.Minute), Kind: "fault"}
			for _, i.On = range endpoints {
				i.Style, i.Share = "429", .91
				add(i)
				i.Style, i.Share = "500", .07
				add(i)
			}
		}},
		{15, longPause},
		{45, func(d dice) { add(drawOutage(d, 3*time.Hour)...) }},
		{20, func(d dice) { add(drawOutage(d, longOutage)...) }},
		{12, func(d dice) {
			e := d.of(endpoints...)
			add(item{At: d.soon(), For: d.between(time.Minute, 6*time.Hour), Kind: "revoke", On: d.of(keys[e]...)})
		}},
		{10, func(d dice) {
			add(item{At: d.soon(), For: d.between(time.Minute, 2*time.Hour), Kind: "rename", On: d.of(endpoints...)})
		}},
		{40, func(d dice) {
			i := item{At: d.soon(), For: d.between(time.Second, 5*time.Hour), Kind: "pause"}
			if d.often(30) {
				i.On = d.of(endpoints...)
			}
			add(i)
		}},
		{25, func(d dice) {
			add(item{At: d.soon(), Kind: "set", On: d.of(endpoints...), Style: d.of("rpm", "concurrency", "rps"), N: 1 + d.IntN(30)})
		}},
		{45, func(d dice) {
			add(item{At: d.between(10*time.Second, 20*time.Minute), For: d.between(time.Second, 10*time.Minute), Kind: "cancel", N: d.IntN(2)})
		}},
		{20, func(d dice) { add(item{At: d.soon(), Kind: "interrupt", N: 1}) }},
		{20, func(d dice) {
			add(item{At: d.soon(), For: d.between(time.Millisecond, time.Minute), Kind: "interrupt", N: 2})
		}},
		{45, func(d dice) { add(drawKills(d)...) }},
		{15, func(d dice) { add(item{At: d.soon(), Kind: "second run"}) }},
		{60, func(d dice) { // only if there are workers
			add(item{At: d.soon(), For: d.between(time.Second, 2*time.Hour), Kind: "stall", On: d.of("w0", "w1")})
		}},
		{20, func(d dice) { add(drawJumps(d)...) }},
		{12, func(d dice) {
			add(item{
				At: d.between(10*time.Second, 20*time.Minute), For: d.between(time.Second, 2*time.Hour), Kind: "disk",
				Style: d.of("full", "fails"),
			})
		}},
		{15, func(d dice) { // a computer that somebody shuts
			add(item{At: d.between(time.Minute, 2*time.Hour), For: d.between(time.Second, 12*time.Hour), Kind: "suspend"})
		}},
		{5, fullPause},
		{35, func(d dice) { // some requests are refused again and again, and then fail
			i := item{At: d.between(time.Second, time.Minute), For: d.between(5*time.Minute, 3*time.Hour), Kind: "row", Share: .01 + .02*d.Float64()}
			for _, i.On = range endpoints {
				i.N = 36 + d.IntN(30)
				add(i)
			}
		}},
		{18, longPause},
		{8, fullPause},
		{35, func(d dice) { add(drawKills(d)...) }},
	} {
		d := newDice(seed, uint64(100+n))
		if n >= earlyDraws {
			if early {
				break
			}
			d = d.shaken()
		}
		if d.often(draw.percent) {
			draw.draw(d)
		}
	}
	items = slices.DeleteFunc(items, func(i item) bool {
		return long != nil && slices.Contains([]string{"interrupt", "pause"}, i.Kind) && i != *long && i.At < long.At+long.For+time.Hour
	})
	for n := range items {
		if i := &items[n]; long != nil && i.Kind == "kill" && i.At < long.At+long.For+time.Hour {
			i.At += long.For + 20*time.Minute
		}
	}
	if d := newDice(seed, 99).shaken(); drawShape(seed).agent != "" && d.often(40) { // a version that does not start
		add(item{At: d.soon(), For: d.between(time.Minute, 2*time.Hour), Kind: "agent"})
	}
	slices.SortStableFunc(items, func(a, b item) int { return int(a.At - b.At) })
	return items
}

func drawFault(d dice) item {
	return item{
		For: ever, Kind: "fault", On: d.of(endpoints...), Share: .002 + .03*d.Float64(),
		Style: d.of("408", "429", "429", "500", "502", "503", "529", "hang", "reset",
			"truncate", "hang-body", "bad-json", "empty"),
	}
}

// drawOutage draws an outage of one endpoint, or of all.
func drawOutage(d dice, longest time.Duration) (all []item) {
	i := item{
		At: d.soon(), For: d.between(longest/1000, longest), Kind: "outage",
		Style: d.of("unreachable", "down", "quota", "busy"),
	}
	for _, e := range endpoints {
		if i.On = e; len(all) == 0 || d.often(60) {
			all = append(all, i)
		}
	}
	return all
}

// drawKills draws up to four kills, most of them at an edge: when a run has just sent a request, was
// answered, has counted a reply or has saved an attempt.
func drawKills(d dice) (all []item) {
	for range 1 + d.IntN(4) {
		i := item{At: d.soon(), Kind: "kill"}
		if d.often(70) {
			i.On, i.N = d.of("sent", "answered", "counted", "saved"), 1+d.IntN(200)
		}
		all = append(all, i)
	}
	return all
}

// drawJumps draws a change of the wall clock: a correction, or a wrong time of the year. Some are taken
// back.
func drawJumps(d dice) (all []item) {
	i := item{At: d.soon(), Kind: "clock", By: d.between(10*time.Second, 5*time.Hour)}
	if d.often(30) {
		i.By = time.Hour
	}
	if d.often(60) {
		i.By = -i.By
	}
	all = append(all, i)
	if d.often(40) {
		i.At, i.By = i.At+d.between(time.Second, time.Hour), -i.By
		all = append(all, i)
	}
	return all
}
