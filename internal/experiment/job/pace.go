package job

import (
	"math"
	"slices"
	"time"

	"github.com/assay-eval/assay/internal/model/lane"
)

// A Pace estimates from the progress of a run how long the rest takes. It counts the replies of
// models that share lanes, because replies arrive long before the first trials end. It is not safe
// for concurrent use. All times are measured from the start of the run and never decrease.
//
// The rest is a time in which trials still start, and the time that the last of them take:
//
//	left = (trials to start) × (replies a trial) / (replies a second) + (time of a trial)
//
// The error of the rate comes from the differences between blocks of time (batch means: Law,
// Simulation Modeling and Analysis, 5th edition, 2015, section 9.5.3), the error of the replies a
// trial from the differences between trials.
type Pace struct {
	// Turns is the plan's number of replies in a trial. It counts like a few trials.
	Turns float64

	since   time.Duration // when the first block begins
	blocks  []int         // replies in each blockTime since then
	replies int           // in all blocks
	ended   moments       // replies of the trials that have ended
	took    moments       // seconds that they took
	longest time.Duration // of them
}

// The assumptions of a Pace.
const (
	blockTime   = 2 * time.Second
	mostBlocks  = 300 // the latest ten minutes
	leastBlocks = 5
	leastReply  = 20
	priorTrials = 4
	normal90    = 1.645 // the quantile of a two-sided 90 % interval
	// modelError is the relative error that remains if everything is measured exactly, because
	// endpoints change.
	modelError = 0.06
	// longestSilence bounds the blocks in which no reply will come.
	longestSilence = 25 * time.Hour
)

// moments are the sums that a mean and a variance need.
type moments struct{ n, sum, squares float64 }

func (m *moments) add(x float64) { m.n, m.sum, m.squares = m.n+1, m.sum+x, m.squares+x*x }

func (m *moments) mean() float64 { return m.sum / max(1, m.n) }

func (m *moments) deviation() float64 {
	return math.Sqrt(max(0, m.squares-m.sum*m.sum/max(1, m.n)) / max(1, m.n-1))
}

// Replied counts a reply.
func (p *Pace) Replied(at time.Duration) {
	p.advance(at)
	p.blocks[len(p.blocks)-1]++
	p.replies++
}

// Ended counts a trial that has ended with an outcome after some replies.
func (p *Pace) Ended(replies int, took time.Duration) {
	p.ended.add(float64(replies))
	p.took.add(took.Seconds())
	p.longest = max(p.longest, took)
}

// Forget forgets how fast replies came, because from now on they may come at another rate.
func (p *Pace) Forget(now time.Duration) { p.since, p.blocks = now, nil }

func (p *Pace) advance(to time.Duration) {
	for n := int((to - p.since) / blockTime); len(p.blocks) <= n; {
		p.blocks = append(p.blocks, 0)
	}
}

// A Left is the expected time until some trials are done, and its 90 % interval.
type Left struct{ Expected, Low, High time.Duration }

// Left returns how long pending trials take, some of which are in flight, if no request can start
// during the next silence. It returns false if there is not enough evidence yet.
func (p *Pace) Left(
	now, silence time.Duration, pending, inFlight int,
) (left Left, ok bool) {
	p.advance(now)
	rate, rateError, ok := p.rate(p.whole(now + min(silence, longestSilence)))
	if !ok || pending <= 0 {
		return Left{}, false
	}
	turns, turnsError := p.turns(inFlight)
	toStart := float64(max(0, pending-inFlight))
	bulk := toStart * turns / rate
	spread := math.Exp(normal90 * math.Hypot(math.Hypot(rateError, turnsError), modelError))
	trial := p.took.mean()
	if p.took.n == 0 {
		trial = max(now.Seconds(), turns/rate)
	}
	// By Little's law, trials take this long together. On average, half of it is over.
	trial = max(trial, float64(inFlight)*turns/rate/2)
	tail := max(trial, p.longest.Seconds())
	seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	return Left{
		Expected: max(silence, seconds(bulk)) + seconds(trial),
		Low:      max(silence, seconds(bulk/spread)),
		High:     max(silence, seconds(bulk*spread)) + seconds(2*tail),
	}, true
}

// whole returns the blocks that are over at some time. Blocks without replies count 0.
func (p *Pace) whole(at time.Duration) []int {
	n := int((at - p.since) / blockTime)
	return append(slices.Clone(p.blocks), make([]int, max(0, n-len(p.blocks)))...)[:n]
}

// recent returns the latest third of the blocks, or more if these have too few replies.
func recent(blocks []int) []int {
	n := min(len(blocks), mostBlocks, max(leastBlocks, len(blocks)/3))
	replies := 0
	for i, at := 0, len(blocks); i < n || at > 0 && replies < leastReply; i++ {
		at--
		replies += blocks[at]
		n = max(n, i+1)
	}
	latest := blocks[len(blocks)-n:]
	for len(latest) > leastBlocks && latest[0] == 0 {
		latest = latest[1:] // a part of a silence would count like a whole one
	}
	return latest
}

// rate returns the replies in a second, and its relative error.
func (p *Pace) rate(blocks []int) (rate, relative float64, ok bool) {
	latest := recent(blocks)
	var all, batches moments
	for _, replies := range latest {
		all.add(float64(replies))
	}
	if all.n < leastBlocks || all.sum < leastReply {
		return 0, 0, false
	}
	size := max(1, len(latest)/8)
	for batch := range slices.Chunk(latest[len(latest)%size:], size) {
		sum := 0
		for _, replies := range batch {
			sum += replies
		}
		batches.add(float64(sum))
	}
	// The replies vary at least as in a Poisson process. Student's quantile for 8 batches is wider
	// than the normal one by studentT.
	const studentT = 1.15
	expected := all.mean() * float64(size)
	deviation := max(batches.deviation(), math.Sqrt(expected))
	return all.mean() / blockTime.Seconds(),
		studentT * deviation / math.Sqrt(batches.n) / expected, true
}

// Silence returns how long no lane can start a request. It returns false if no lane ever can, because
// the user has paused all that are open.
func Silence(lanes []lane.Status) (next time.Duration, ok bool) {
	for _, l := range lanes {
		if l.Closed != nil || l.Held {
			continue
		}
		if wait := max(0, time.Until(l.Until)); !ok || wait < next {
			next, ok = wait, true
		}
	}
	return next, ok
}

// Requests returns how many replies pending trials still need, some of which are in flight.
func (p *Pace) Requests(pending, inFlight int) int {
	turns, _ := p.turns(inFlight)
	return int(math.Ceil(turns * (float64(max(0, pending-inFlight)) + float64(inFlight)/2)))
}

// turns returns the replies in a trial, and its relative error. Short trials end first, so the
// trials in flight count, too: as a half if all trials are equally long, and as zero if a long
// trial is as likely to end soon as a short one (the estimate from censored exponential times:
// Lawless, Statistical Models and Methods for Lifetime Data, 2nd edition, 2003, section 4.1). It
// takes the middle, and half of the difference is an error.
func (p *Pace) turns(inFlight int) (turns, relative float64) {
	open := float64(inFlight) / 4
	n := p.ended.n + open + priorTrials
	turns = (float64(p.replies) + priorTrials*max(1, p.Turns)) / n
	deviation := max(p.ended.deviation(), turns/2*priorTrials/n) / turns
	return turns, math.Hypot(deviation/math.Sqrt(n), open/n/math.Sqrt(3))
}
