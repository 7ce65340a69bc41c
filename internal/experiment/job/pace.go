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
	blocks  []block       // those with replies, oldest first, and at most mostBlocks
	replies int           // in all blocks
	ended   moments       // replies of the trials that have ended
	took    moments       // seconds that they took
	longest time.Duration // of them
}

// A block has the replies of a blockTime. Its place counts the blocks before it.
type block struct{ place, replies int }

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
	p.replies++
	place := int((at - p.since) / blockTime)
	if n := len(p.blocks); n > 0 && p.blocks[n-1].place >= place {
		p.blocks[n-1].replies++
		return
	}
	if len(p.blocks) == mostBlocks {
		p.blocks = slices.Delete(p.blocks, 0, 1)
	}
	p.blocks = append(p.blocks, block{place, 1})
}

// Ended counts a trial that has ended with an outcome after some replies.
func (p *Pace) Ended(replies int, took time.Duration) {
	p.ended.add(float64(replies))
	p.took.add(took.Seconds())
	p.longest = max(p.longest, took)
}

// Forget forgets how fast replies came, because from now on they may come at another rate.
func (p *Pace) Forget(now time.Duration) { p.since, p.blocks = now, nil }

// A Left is the expected time until some trials are done, and its 90 % interval.
type Left struct{ Expected, Low, High time.Duration }

// Left returns how long pending trials take, some of which are in flight, if no request can start
// during the next silence. It returns false if there is not enough evidence yet.
func (p *Pace) Left(
	now, silence time.Duration, pending, inFlight int,
) (left Left, ok bool) {
	rate, rateError, ok := p.rate(int((now + min(silence, longestSilence) - p.since) / blockTime))
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

// recent returns the latest third of the blocks that are over, or more if these have too few replies:
// the place of the first one, and those with replies.
func (p *Pace) recent(over int) (first int, latest []block) {
	end := len(p.blocks)
	for end > 0 && p.blocks[end-1].place >= over {
		end--
	}
	first = over - min(over, mostBlocks, max(leastBlocks, over/3))
	begin, replies := end, 0
	for begin > 0 && (p.blocks[begin-1].place >= first || replies < leastReply) {
		begin--
		replies += p.blocks[begin].replies
	}
	if begin < end { // a part of a silence would count like a whole one
		first = max(0, min(p.blocks[begin].place, over-leastBlocks))
	}
	return first, p.blocks[begin:end]
}

// rate returns the replies in a second, and its relative error, when so many blocks are over.
func (p *Pace) rate(over int) (rate, relative float64, ok bool) {
	first, latest := p.recent(over)
	n, replies := over-first, 0
	for _, b := range latest {
		replies += b.replies
	}
	if n < leastBlocks || replies < leastReply {
		return 0, 0, false
	}
	size := max(1, n/8)
	sums := make([]int, n/size)
	for _, b := range latest {
		if at := b.place - first - n%size; at >= 0 {
			sums[at/size] += b.replies
		}
	}
	var batches moments
	for _, sum := range sums {
		batches.add(float64(sum))
	}
	// The replies vary at least as in a Poisson process. Student's quantile for 8 batches is wider
	// than the normal one by studentT.
	const studentT = 1.15
	each := float64(replies) / float64(n)
	expected := each * float64(size)
	deviation := max(batches.deviation(), math.Sqrt(expected))
	return each / blockTime.Seconds(),
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
