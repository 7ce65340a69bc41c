package job

import (
	"slices"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
)

// Bottleneck names the limit that decided how long a model's lanes worked, and returns how long
// requests waited for it. The wait is 0 if the lanes were merely busy most of the time, and the
// name is "" if no limit was reached.
func Bottleneck(ledgers []lane.Ledger, wall time.Duration) (name string, waited time.Duration) {
	var used, available time.Duration
	for _, l := range ledgers {
		used += l.Used
		available += l.Available
		for reason, d := range l.Waited {
			if d > waited {
				name, waited = WaitName(reason, l.Name), d
			}
		}
	}
	switch {
	case waited > wall/10:
		return name, waited
	case available == 0 || float64(used) < 0.75*float64(available):
		return "", 0
	case len(ledgers) == 1:
		return limitName(assay.Concurrency, ledgers[0].Name), 0
	}
	return limitName(assay.Concurrency, ""), 0
}

// limitName names a limit of a lane, or of all lanes.
func limitName(limit assay.Bucket, laneName string) string {
	switch {
	case limit == "":
		return ""
	case laneName == "":
		return string(limit) + " limits of all lanes"
	}
	return WaitName(string(limit), laneName)
}

// WaitName names the reason for which requests wait on a lane, such as "rpm limit of gw/KEY/m".
func WaitName(reason, laneName string) string {
	if slices.Contains(lane.Buckets[:], assay.Bucket(reason)) {
		reason += " limit"
	}
	return reason + " of " + laneName
}
