package validate

import (
	"encoding/json"
	"os"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/floor"
	"github.com/assay-eval/assay/internal/task/library"
)

// A validationRecord keeps what [Library] found out about an environment, because plans and runs
// cannot wait for it. It is a file in the user's cache directory, named by the digest of the
// library. If it cannot be written or read, the tasks count as never validated.
type validationRecord struct {
	Tasks    int       `json:"tasks"`
	Findings []Finding `json:"findings"`
}

func recordPath(lib *library.Library) string {
	return floor.CachePath("validated", lib.Meta().Digest+".json")
}

// remember keeps a proof of a library.
func remember(lib *library.Library, p *Proof) {
	if b, err := json.Marshal(validationRecord{p.Tasks, p.Findings}); err == nil {
		floor.WriteCache(recordPath(lib), b)
	}
}

// recall returns the grave findings of the latest proof of a library about the wanted tasks.
func recall(lib *library.Library, wanted func(assay.TaskID) bool) (u Unsound) {
	b, err := os.ReadFile(recordPath(lib))
	var r validationRecord
	if err != nil || json.Unmarshal(b, &r) != nil || r.Tasks == 0 {
		return Unsound{Unvalidated: true}
	}
	u.Played, u.Of = r.Tasks, r.Tasks
	for _, f := range r.Findings {
		if f.Grave() && wanted(assay.TaskID(f.Task)) {
			u.Findings = append(u.Findings, f)
		}
	}
	return u
}
