package job

import (
	"math"
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
// The rate is an exponentially weighted mean. It remembers a third of the run, because runs begin
// slowly, and at most maxMemory, but always a few of the silences of an endpoint that answers in
// bursts.
type Pace struct {
	// Turns is the plan's number of replies in a trial. It counts like a few trials.
	Turns float64

	since   time.Duration // when the rate began to count
	blocks  []int         // replies in each blockTime since then
	silence time.Duration // the longest since then
	counted int           // replies since then
	replies int           // in all
	ended   int           // trials
	took    time.Duration // by all of them
}

// The assumptions of a Pace.
const (
	blockTime   = 2 * time.Second
	maxMemory   = 3 * time.Minute
	minTime     = 10 * time.Second
	minReply    = 20
	priorTrials = 4
	// longestSilence bounds the blocks in which no reply will come.
	longestSilence = 25 * time.Hour
)

// Replied counts a reply.
func (p *Pace) Replied(at time.Duration) {
	p.advance(at)
	p.blocks[len(p.blocks)-1]++
	p.counted++
	p.replies++
}

func (p *Pace) advance(to time.Duration) {
	for n := int((to - p.since) / blockTime); len(p.blocks) <= n; {
		p.blocks = append(p.blocks, 0)
	}
}

// Ended counts a trial that has ended with an outcome.
func (p *Pace) Ended(took time.Duration) {
	p.ended++
	p.took += took
}

// Forget forgets how fast replies came, because from now on they may come at another rate.
func (p *Pace) Forget(now time.Duration) { p.since, p.blocks, p.silence, p.counted = now, nil, 0, 0 }

// Left returns how long pending trials are expected to take, some of which are in flight, if no
// request can start during the next silence. It returns false if there is not enough evidence yet.
func (p *Pace) Left(now, silence time.Duration, pending, inFlight int) (time.Duration, bool) {
	silence = min(silence, longestSilence)
	p.silence = max(p.silence, silence)
	until := now + silence
	if pending <= 0 || p.counted < minReply || until-p.since < minTime {
		return 0, false
	}
	rate := p.rate(until)
	if rate == 0 { // no reply came for a long time
		return 0, false
	}
	turns := p.turns(inFlight)
	toStart := float64(max(0, pending-inFlight)) * turns / rate
	trial := max(now.Seconds(), turns/rate)
	if p.ended > 0 {
		trial = p.took.Seconds() / float64(p.ended)
	}
	// By Little's law, trials take this long together. On average, half of it is over.
	trial = max(trial, float64(inFlight)*turns/rate/2)
	const endless = 1e9 // seconds
	seconds := func(s float64) time.Duration {
		return time.Duration(min(s, endless) * float64(time.Second))
	}
	return max(silence, seconds(toStart)) + seconds(trial), true
}

// rate returns the replies in a second up to some time. The present block counts once it is over.
func (p *Pace) rate(until time.Duration) float64 {
	memory := max(min(maxMemory, (until-p.since)/3), 3*p.silence)
	replies, seconds := 0.0, 0.0
	blocks := int((until - p.since) / blockTime)
	const forgotten = 8 // times the memory
	// A block weighs as much less than the next one as any other does, so one power is enough.
	older := math.Exp(-blockTime.Seconds() / memory.Seconds())
	age := until - p.since - time.Duration(blocks-1)*blockTime
	weight := math.Exp(-age.Seconds() / memory.Seconds())
	for i := blocks - 1; i >= max(0, blocks-int(forgotten*memory/blockTime)); i-- {
		seconds += weight * blockTime.Seconds()
		if i < len(p.blocks) {
			replies += weight * float64(p.blocks[i])
		}
		weight *= older
	}
	return replies / seconds
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
	trials := float64(max(0, pending-inFlight)) + float64(inFlight)/2
	return int(math.Ceil(p.turns(inFlight) * trials))
}

// turns returns the replies in a trial. Short trials end first, so those in flight count, too: as a
// quarter, which is the middle between a half, if all trials are equally long, and nothing, if a long
// trial is as likely to end soon as a short one.
func (p *Pace) turns(inFlight int) float64 {
	trials := float64(p.ended) + float64(inFlight)/4 + priorTrials
	return (float64(p.replies) + priorTrials*max(1, p.Turns)) / trials
}
