package floor

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/sim"
)

// A pathfinder takes the path of a [Reading] for its plan, which a simulated model carries out as
// well as possible.
type pathfinder struct {
	models *sim.Models
	Reading
	description string
	dice        *rand.Rand
	path        []string // nil before the first request
}

func newPathfinder(models *sim.Models, r Reading, task *assay.Task, game uint64) *pathfinder {
	h := fnv.New64a()
	h.Write([]byte(task.Description))
	return &pathfinder{models, r, task.Description, rand.New(rand.NewPCG(h.Sum64(), game)), nil}
}

// shownPlan is the plan in a prompt, which a pathfinder does not read.
var shownPlan = regexp.MustCompile(`(?s)\n\n## Plan\n.*?(\n\nA call whose needs are met)`)

// Chat implements [assay.Provider].
func (p *pathfinder) Chat(ctx context.Context, req *assay.Request) (*assay.Response, error) {
	if p.path == nil {
		p.path = append([]string{}, p.Tools(NewMap(req.Functions), p.description, p.dice)...)
	}
	var plan strings.Builder
	plan.WriteString("\n\n## Plan\n")
	for i, tool := range p.path {
		fmt.Fprintf(&plan, "\n%d. %s", i+1, tool)
	}
	own := *req
	own.Model, own.Messages = sim.Optimal, slices.Clone(req.Messages)
	for i, m := range own.Messages {
		if m.Role == assay.User {
			own.Messages[i].Content = shownPlan.ReplaceAllString(m.Content, "$1") + plan.String()
			break
		}
	}
	reply, err := p.models.Chat(ctx, &own)
	reply.ServedModel = req.Model
	return reply, err
}
