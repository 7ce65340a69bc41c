package pilot

import "strings"

// phrases are the texts that the original took for a claim to be done.
var phrases = []string{
	"task_completed", "task completed", "task is complete", "finished executing",
	"all steps completed", "workflow complete", "done with the task",
	"successfully completed the task", "task has been completed",
}

// Finished reports whether a reply claims that the task is done.
func Finished(reply string) bool {
	reply = strings.ToLower(reply)
	for _, p := range phrases {
		if strings.Contains(reply, p) {
			return true
		}
	}
	return false
}
