package lane

import (
	"math"
	"time"

	"github.com/assay-eval/assay"
)

// Work describes conversations that lanes have to carry out.
type Work struct {
	Conversations int
	// Turns is the mean number of replies in a conversation.
	Turns float64
	// Prompt and Reply are the mean numbers of tokens in a prompt and in a reply. Cached and
	// CacheWrite are the shares of prompts that are read from a cache and written to it.
	Prompt, Reply, Cached, CacheWrite float64
	// Latency is the mean time to a reply.
	Latency time.Duration
}

// A Forecast is what some work takes.
type Forecast struct {
	Wall                                time.Duration
	Requests, InputTokens, OutputTokens int
	Cost                                float64 // in dollars
	// Bottleneck is the limit that decides about the time, and Lane the lane that has it, or "" if all
	// lanes have it. Bottleneck is "" if there are too few conversations to reach a limit.
	Bottleneck assay.Bucket
	Lane       string
}

// Foresee returns what work takes if the endpoints have exactly the stated limits and never fail:
// each lane has the lowest of the rates that its limits permit, and lanes share the requests by their
// rates. A conversation takes at least as long as its replies.
func Foresee(lanes []Config, work Work) Forecast {
	turns := max(1, work.Turns)
	requests := math.Round(float64(work.Conversations) * turns)
	f := Forecast{Requests: int(requests)}
	if len(lanes) == 0 || work.Conversations == 0 {
		return f
	}
	one := work.usage()
	f.InputTokens, f.OutputTokens = f.Requests*one.InputTokens, f.Requests*one.OutputTokens
	paces := make([]lanePace, len(lanes))
	var all lanePace
	for i := range lanes {
		paces[i] = paceOf(&lanes[i], work.Latency, one)
		all.rate += paces[i].rate
		all.atOnce += paces[i].atOnce
		all.width += paces[i].width
	}
	alone := turns * work.Latency.Seconds() // of a conversation
	limited, wide := (requests-all.atOnce)/all.rate, requests/all.width
	seconds := max(limited, wide)
	if seconds > alone {
		f.Bottleneck, f.Lane = narrowest(lanes, paces, limited < wide)
	}
	f.Wall = time.Duration(max(seconds, alone) * float64(time.Second))
	for i := range lanes {
		mine := requests * paces[i].rate / all.rate
		f.Cost += lanes[i].Price.Of(one) * mine
		q := newQueue(time.Now(), "", lanes[i:i+1])
		if daily := q.dailyWait(int(math.Ceil(mine))); daily > f.Wall {
			f.Wall, f.Bottleneck, f.Lane = daily, assay.RequestsPerDay, lanes[i].Name
		}
	}
	f.Cost = assay.RoundUSD(f.Cost)
	return f
}

// usage returns the usage of a request.
func (w Work) usage() assay.Usage {
	return assay.Usage{
		InputTokens: int(w.Prompt), OutputTokens: int(w.Reply),
		CachedTokens: int(w.Prompt * w.Cached), CacheWriteTokens: int(w.Prompt * w.CacheWrite),
	}
}

// A lanePace is how many requests a lane may send.
type lanePace struct {
	rate   float64 // a second, by its lowest limit
	atOnce float64 // at the beginning, if that limit spares bursts
	width  float64 // a second, if only the requests in flight are limited
	by     int     // the index of the lowest limit
}

// paceOf leaves out the limit per day, which lets all requests of a day through at once.
func paceOf(c *Config, latency time.Duration, one assay.Usage) lanePace {
	counted := c.counted(one)
	each := cost{1, counted.InputTokens, counted.OutputTokens}
	p := lanePace{width: float64(c.Limits.Widest()) / max(latency, time.Microsecond).Seconds()}
	p.rate = p.width
	for b := requestsPerSecond; b < requestsPerDay; b++ {
		limit, weight := *c.Limits.Of(Buckets[b]), each.in(b)
		if limit <= 0 || weight <= 0 {
			continue
		}
		most := float64(limit) / float64(weight) // requests in a span
		if rate := most / newWindow(b).span.Seconds(); rate < p.rate {
			p.rate, p.atOnce, p.by = rate, max(1, min(float64(c.Limits.Burst), most)), b
		}
	}
	return p
}

// narrowest returns the limit of the lane that is slowest because of it. It is the concurrency if no
// other limit decides, or if byWidth says so.
func narrowest(
	lanes []Config, paces []lanePace, byWidth bool,
) (by assay.Bucket, of string) {
	slowest := -1
	for i, p := range paces {
		if p.by != concurrency && (slowest < 0 || p.rate < paces[slowest].rate) {
			slowest = i
		}
	}
	switch {
	case slowest >= 0 && !byWidth:
		return Buckets[paces[slowest].by], lanes[slowest].Name
	case len(lanes) == 1:
		return assay.Concurrency, lanes[0].Name
	}
	return assay.Concurrency, ""
}
