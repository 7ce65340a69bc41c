package dashboard

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/run/session"
)

// A series shows how the latest run went, as points of a picture.
type series struct {
	// Begin and End are the ends of the time axis. Now is the present, which is End if the time of
	// the finish is unknown.
	Begin, Now, End time.Time
	// Done and Faulted have the numbers of outcomes and of attempts that ended in faults, up to the
	// ends of equal steps from Begin to Now. Before counts the outcomes of earlier runs.
	Done, Faulted []int
	Before        int
	Planned       int
	// Finish is the announced end of the run, and Early and Late its range, or zero.
	Early, Finish, Late time.Time
	// Forecast is how long the run was to take when it began, within its limits, or 0 if that was
	// unknown.
	Forecast time.Duration
}

// seriesSteps is the number of steps of a series.
const seriesSteps = 120

// series counts the attempts of the latest run over time.
func (x *index) series(m *moment) series {
	s := series{
		Begin: m.Last.StartedAt, Now: m.At, Planned: m.Planned,
		Done: make([]int, seriesSteps), Faulted: make([]int, seriesSteps),
	}
	if m.Run == nil { // then it has ended, or was killed after its last attempt
		s.Now = m.Last.FinishedAt
		if s.Now.IsZero() {
			s.Now = x.newest
		}
	}
	begin, span := s.Begin.UnixMilli(), max(1, s.Now.Sub(s.Begin).Milliseconds())
	for i := range x.rows {
		r := &x.rows[i]
		settled := r.Level != ""
		if r.Run != m.Last.ID {
			if settled {
				s.Before++
			}
			continue
		}
		step := min(max(0, int((r.Finished-begin)*seriesSteps/span)), seriesSteps-1)
		if settled {
			s.Done[step]++
		} else {
			s.Faulted[step]++
		}
	}
	sum := s.Before
	faults := 0
	for i := range s.Done {
		sum += s.Done[i]
		faults += s.Faulted[i]
		s.Done[i], s.Faulted[i] = sum, faults
	}
	s.End = s.Now
	switch {
	case m.Run != nil && m.Run.ForecastRange.Unknown == "":
		s.Forecast = time.Duration(m.Run.Forecast * float64(time.Second))
	case m.Run == nil && m.Ended.Settled > 0 && m.Ended.ForecastRange.Unknown == "":
		s.Forecast = time.Duration(m.Ended.ForecastWall * float64(time.Second))
	}
	if m.Run != nil && m.Run.Left != nil && m.Run.PausedSince.IsZero() {
		left := m.Run.Left
		s.Finish = m.in(left.Seconds)
		s.Early, s.Late = s.Finish, s.Finish
		if left.High > 0 {
			s.Early, s.Late = m.in(left.Low), m.in(left.High)
		}
		s.End = s.Late
	}
	return s
}

// Ahead reports whether an end of the run is announced.
func (s series) Ahead() bool { return s.Finish.After(s.Now) }

// PlanLine returns the line on which the run would be by the forecast before it, or "". It ends at
// the end of the time axis.
func (s series) PlanLine() string {
	span := s.End.Sub(s.Begin)
	if s.Forecast <= 0 || span <= 0 {
		return ""
	}
	share := min(1, float64(span)/float64(s.Forecast))
	top := s.Before + int(share*float64(s.Planned-s.Before))
	return fmt.Sprintf("0,%.1f %.1f,%.1f", s.y(s.Before),
		s.x(s.Begin.Add(time.Duration(share*float64(s.Forecast)))), s.y(top))
}

// FinishX returns the place of the announced end.
func (s series) FinishX() float64 { return s.x(s.Finish) }

// Fan returns the corners of the area from the present to the interval of the end, or "".
func (s series) Fan() string {
	if !s.Ahead() {
		return ""
	}
	return fmt.Sprintf("%.1f,%.1f %.1f,0 %.1f,0", s.NowX(), s.NowY(), s.x(s.Early), s.x(s.Late))
}

// The picture of a series.
const (
	pictureWidth  = 960
	pictureHeight = 220
)

// x returns the place of a time, y the place of a number of trials.
func (s series) x(t time.Time) float64 {
	span := s.End.Sub(s.Begin)
	if span <= 0 {
		return 0
	}
	return pictureWidth * min(1, max(0, float64(t.Sub(s.Begin))/float64(span)))
}

func (s series) y(n int) float64 {
	return pictureHeight * (1 - float64(n)/float64(max(1, s.Planned)))
}

func (s series) line(counts []int) string {
	var b strings.Builder
	step := s.Now.Sub(s.Begin) / seriesSteps
	for i, n := range counts {
		fmt.Fprintf(&b, "%.1f,%.1f ", s.x(s.Begin.Add(time.Duration(i+1)*step)), s.y(n))
	}
	return strings.TrimSpace(b.String())
}

// DoneLine and FaultLine return the points of the lines.
func (s series) DoneLine() string {
	return fmt.Sprintf("0.0,%.1f %s", s.y(s.Before), s.line(s.Done))
}

// FaultLine returns the points of the line of faults.
func (s series) FaultLine() string { return fmt.Sprintf("0.0,%.1f %s", s.y(0), s.line(s.Faulted)) }

// NowX returns the place of the present.
func (s series) NowX() float64 { return s.x(s.Now) }

// NowY returns the place of the number of trials that are done.
func (s series) NowY() float64 { return s.y(s.Done[len(s.Done)-1]) }

// Drawn reports whether there is something to draw.
func (s series) Drawn() bool { return s.Planned > 0 && s.Now.After(s.Begin) && !s.Begin.IsZero() }

// Text describes the picture.
func (s series) Text() string {
	return fmt.Sprintf("%d of %d trials done from %s to %s, %d attempts ended in faults",
		s.Done[len(s.Done)-1], s.Planned, s.Begin.Local().Format(time.DateTime),
		s.Now.Local().Format(time.DateTime), s.Faulted[len(s.Faulted)-1])
}

// A stretch is a part of a lane's strip in which its state was the same.
type stretch struct {
	State   string
	X, Wide float64
	Class   string
}

// Stretches joins equal steps of the strip.
func (l laneLine) Stretches() (all []stretch) {
	const width = 240.
	n := len(l.Strip.States)
	for i, state := range l.Strip.States {
		x := width * float64(i) / float64(n)
		if k := len(all); k > 0 && all[k-1].State == state {
			all[k-1].Wide = x + width/float64(n) - all[k-1].X
			continue
		}
		all = append(all, stretch{state, x, width / float64(n), stateClass(state)})
	}
	return all
}

// stateClass groups the states of a lane for their colours.
func stateClass(state string) string {
	switch state {
	case session.LaneFull, string(assay.Concurrency):
		return session.LaneFull
	case session.LaneBusy, session.LaneIdle, session.LanePaused, session.LaneClosed:
		return state
	case lane.LearnedLimit:
		return "limit"
	}
	if slices.Contains(lane.Buckets[:], assay.Bucket(state)) {
		return "limit"
	}
	return "backoff"
}

// StripText describes the strip.
func (l laneLine) StripText() string {
	seconds := make(map[string]int)
	var names []string
	for _, state := range l.Strip.States {
		if seconds[state] == 0 {
			names = append(names, state)
		}
		seconds[state] += l.Strip.Step
	}
	var parts []string
	for _, name := range names {
		parts = append(parts, fmt.Sprintf("%s %s", name, time.Duration(seconds[name])*time.Second))
	}
	return strings.Join(parts, ", ")
}
