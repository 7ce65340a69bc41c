package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// ownExperiment is the suite profile for tools of one's own, with the class of faults that assay-1 lacks.
const ownExperiment = `name: own
seed: 1
library: %s
variants: [optimal]
severities: [severe]
reliabilities: [1]
failures:
  kinds: [{before: 1}, {down: 1}, {wrong_value: 1}, {corrupted: 1}]
tasks_per_type: 20
confidence: ask
parts:
  - {name: consistency, repeats: 5}
  - {name: phrasings, phrasings: [plain, casual]}
  - {name: interfaces, interfaces: [plain, mild, medium, severe]}
  - {name: tools, reliabilities: [1, 0.8]}
  - {name: flaws, variants: [optimal, flawed]}
`

const (
	ownTools = `file: tools.star
tools:
  - {name: room_of, description: Tell the room of a guest., parameters: {guest: {type: string}}}
  - {name: register, description: Look a guest up in the register., parameters: {guest: {type: string}}}
  - name: deliver
    description: Bring the suitcase of a guest to a room.
    effect: moves a suitcase
    severity: medium
    parameters: {guest: {type: string}, room: {type: integer}}
`
	ownScript = `def found(state, guest):
    if guest not in state["rooms"]:
        fail("UNKNOWN_GUEST", "nobody is called " + guest)
    return state["rooms"][guest]

def room_of(state, guest):
    return {"guest": guest, "room": found(state, guest)}

def register(state, guest):
    return {"name": guest, "room": found(state, guest)}

def deliver(state, guest, room):
    found(state, guest)
    state["delivered"][guest] = room
    return {}
`
	// ownTypes are the numbers of guests in a task. A type has 126 tasks, as in the built-in library.
	ownTypes, ownTasks = 5, 126
)

// ownLibrary writes tools and 630 tasks to a directory, and returns an experiment with them.
func ownLibrary(dir string) (experiment string, err error) {
	var tasks strings.Builder
	tasks.WriteString("name: hotel\ntools: tools.yaml\ntasks:\n")
	for n := range ownTypes * ownTasks {
		var names, rooms, calls, plan []string
		for k := range 1 + n%ownTypes {
			guest, room := fmt.Sprintf("guest%d", n+7*k), 100+(37*n+11*k)%800
			names = append(names, guest)
			rooms = append(rooms, fmt.Sprintf("%s: %d", guest, room))
			deliver := fmt.Sprintf("{tool: deliver, arguments: {guest: %s, room: %d}}", guest, room)
			calls = append(calls, deliver)
			plan = append(plan, fmt.Sprintf("{tool: room_of, arguments: {guest: %s}}", guest), deliver)
		}
		list := strings.Join(names, ", ")
		fmt.Fprintf(&tasks, `  - id: t%03d
    type: guests_%d
    prompt: Bring the suitcases of %s to their rooms.
    phrasings: {casual: "Could you take the bags of %[3]s up to where they stay?"}
    state: {rooms: {%s}, delivered: {}}
    judge: {calls: [%s], order: any}
    plan: [%s]
`, n, 1+n%ownTypes, list, strings.Join(rooms, ", "), strings.Join(calls, ", "), strings.Join(plan, ", "))
	}
	for name, text := range map[string]string{
		"tools.yaml": ownTools, "tools.star": ownScript, "tasks.yaml": tasks.String(),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf(ownExperiment, filepath.Join(dir, "tasks.yaml")), nil
}
