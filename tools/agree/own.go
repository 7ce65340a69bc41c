package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	ownTools = `file: %s.star
tools:
  - {name: room_of, description: Tell the room of a guest., parameters: {guest: {type: string}}}
  - name: deliver
    description: Bring the suitcase of a guest to a room.
    effect: moves a suitcase
    severity: medium
    parameters: {guest: {type: string}, room: {type: integer}}
`
	ownScript = `def room_of(state, guest):
    if guest not in state["rooms"]:
        fail("UNKNOWN_GUEST", "nobody is called " + guest)
    return {"guest": guest, "room": state["rooms"][guest]}

def deliver(state, guest, room):
    state["delivered"][guest] = room
    return {}
`
)

// ownTypes are the types of tasks of one's own, with one guest and more.
var ownTypes = []string{"guests_1", "guests_2", "guests_3"}

// writeOwn writes a library with tools of one's own beside the file of the experiment.
func (d *draw) writeOwn(dir string) error {
	var tasks strings.Builder
	fmt.Fprintf(&tasks, "name: hotel\ntools: %s.tools.yaml\ntasks:\n", d.name)
	for n := range 24 * len(ownTypes) {
		var names, rooms, calls, plan []string
		for k := range 1 + n%len(ownTypes) {
			guest, room := fmt.Sprintf("guest%d", n+7*k), 100+(37*n+11*k)%800
			deliver := fmt.Sprintf("{tool: deliver, arguments: {guest: %s, room: %d}}", guest, room)
			names, rooms = append(names, guest), append(rooms, fmt.Sprintf("%s: %d", guest, room))
			calls = append(calls, deliver)
			plan = append(plan, fmt.Sprintf("{tool: room_of, arguments: {guest: %s}}", guest), deliver)
		}
		fmt.Fprintf(&tasks, `  - id: t%02d
    type: %s
    prompt: Bring the suitcases of %s to their rooms.
    phrasings: {casual: "Could you take the bags of %[3]s up to where they stay?"}
    state: {rooms: {%s}, delivered: {}}
    judge: {calls: [%s], order: any}
    plan: [%s]
`, n, ownTypes[n%len(ownTypes)], list(names), list(rooms), list(calls), list(plan))
	}
	for name, text := range map[string]string{
		"tools.yaml": fmt.Sprintf(ownTools, d.name), "star": ownScript, "tasks.yaml": tasks.String(),
	} {
		if err := os.WriteFile(filepath.Join(dir, d.name+"."+name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
