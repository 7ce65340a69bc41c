//go:build !race

package lane_test

import (
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/assay-eval/assay/internal/model/lane"
)

// eachRandomServer plays servers of the class of the package comment: any kind and announced
// wait, 1 to 32 requests a second, with random starts and replies. check returns which share of
// the limit is used. At most one server in 500 may use less than nine tenths, and none less than
// 0.85.
//
// ASSAY_LANE_SEED and ASSAY_LANE_SERVERS draw other servers, and more of them.
func eachRandomServer(
	t *testing.T,
	check func(s *server, of func(int) limiter, r int, random *rand.Rand) float64,
) {
	t.Parallel()
	seed, servers := fromEnv("ASSAY_LANE_SEED", 9), fromEnv("ASSAY_LANE_SERVERS", 64)
	random := rand.New(rand.NewPCG(uint64(seed), 3))
	allKinds, allWaits := slices.Sorted(maps.Keys(kinds)), slices.Sorted(maps.Keys(waits))
	short, lowest := 0, math.Inf(1)
	for range servers {
		kind, wait := allKinds[random.IntN(len(allKinds))], allWaits[random.IntN(len(allWaits))]
		r := int(math.Round(math.Exp2(5 * random.Float64())))
		s := &server{wait: waits[wait], rand: rand.New(rand.NewPCG(random.Uint64(), 2))}
		used := check(s, kinds[kind], r, random)
		if lowest = min(lowest, used); used < 0.9 {
			short++
			t.Logf("%s, %d a second, wait %s: used %.3f", kind, r, wait, used)
		}
	}
	t.Logf("%d of %d servers below 0.9, lowest %.3f", short, servers, lowest)
	if lowest < 0.85 || short > servers/500 {
		t.Errorf("%d of %d servers below 0.9, lowest %.3f", short, servers, lowest)
	}
}

func fromEnv(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

// sometime returns a random time in the first minute and a half.
func sometime(random *rand.Rand) time.Duration {
	return time.Duration(random.Float64() * 1.5 * float64(minute))
}

// TestLimitersThatAreRaisedAtRandom checks the second law with random starts and times. Of
// the servers of its seed, three were used too little before a search followed such a wall, and two
// while rates were taken for widths.
func TestLimitersThatAreRaisedAtRandom(t *testing.T) {
	eachRandomServer(t, playRaised)
}

// playRaised returns which share of a limit that rises fourfold at a random time is used in the
// best minute that begins within two.
func playRaised(s *server, of func(int) limiter, r int, random *rand.Rand) float64 {
	after := start.Add(6*minute + sometime(random))
	s.limiter = &changing{of(r), of(4 * r), after}
	lane.Play(lane.Config{Name: "l"}, start.Add(sometime(random)), 11*minute, s.answer)
	most := 0
	for from := after; from.Before(after.Add(2 * minute)); from = from.Add(second) {
		most = max(most, between(s.accepted, from, from.Add(minute)))
	}
	return float64(most) / float64(60*4*r)
}

// TestLimitersOfASecondThatAreRaised checks the second law for a few requests a second, which are
// refused like too many requests in flight.
func TestLimitersOfASecondThatAreRaised(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 4))
	for _, kind := range []string{"fixed second", "sliding second"} {
		for _, wait := range slices.Sorted(maps.Keys(waits)) {
			for r := 2; r <= 7; r++ {
				for range 3 {
					s := &server{wait: waits[wait], rand: rand.New(rand.NewPCG(random.Uint64(), 2))}
					if used := playRaised(s, kinds[kind], r, random); used < 0.9 {
						t.Errorf("%s, %d a second, wait %s: used %.3f", kind, r, wait, used)
					}
				}
			}
		}
	}
}

// TestLimitersThatAreMetAtRandom checks the third law with random starts.
func TestLimitersThatAreMetAtRandom(t *testing.T) {
	eachRandomServer(t, func(s *server, of func(int) limiter, r int, x *rand.Rand) float64 {
		s.limiter = of(r)
		lane.Play(lane.Config{Name: "l"}, start.Add(sometime(x)), 16*minute, s.answer)
		used, refused := s.share(float64(r), 5*minute+30*second, 15*minute+30*second)
		if most := 1.5 * max(0.02, 10/(75*float64(r))); refused > most {
			t.Errorf("%.2f %% refused at %d a second", 100*refused, r)
		}
		return used
	})
}
