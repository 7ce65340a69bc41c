package stat

// What intervals and tests count as independent.
const (
	Auto       = "auto" // BySequence if there are fewer than a tenth as many sequences as tasks
	ByTask     = "task"
	BySequence = "sequence"
)

// Clusters lists what can be counted as independent, the default first.
var Clusters = []string{Auto, ByTask, BySequence}

// Cluster returns what Auto stands for.
func Cluster(tasks, sequences int) string {
	if 10*sequences < tasks {
		return BySequence
	}
	return ByTask
}
