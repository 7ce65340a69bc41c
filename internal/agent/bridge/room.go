package bridge

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/child"
)

// A Sandbox says whether the program of an agent is kept from the rest of the machine.
type Sandbox string

// The sandboxes.
const (
	// AutoSandbox is a room where the machine has them, unless the program makes a container of its own.
	AutoSandbox Sandbox = "auto"
	Bubblewrap  Sandbox = "bubblewrap"
	// OwnUser makes the program of each attempt a user of its own, which only root can.
	OwnUser   Sandbox = "user"
	NoSandbox Sandbox = "none"
)

// Sandboxes lists them, the default first.
var Sandboxes = []Sandbox{AutoSandbox, Bubblewrap, OwnUser, NoSandbox}

// containers are programs that make containers, which would not work in a room.
var containers = []string{"docker", "podman", "nerdctl", "apptainer", "singularity", "bwrap", "firejail"}

// Contains reports whether the agent's program makes a container of its own.
func (a Agent) Contains() bool {
	return len(a.Command) > 0 && slices.Contains(containers, filepath.Base(a.Command[0]))
}

// Roomless returns why the agent's program has no room on this machine. It is "" if it has one, and
// for a service.
func (a Agent) Roomless() string {
	switch {
	case a.URL != "":
		return ""
	case a.Sandbox == NoSandbox, a.Sandbox == OwnUser:
		return "its sandbox is " + string(a.Sandbox)
	case a.Contains() && a.Sandbox != Bubblewrap:
		return "it makes a container of its own"
	}
	if err := child.Rooms(); err != nil {
		return err.Error()
	}
	return ""
}

// ExposedNote says that the agent's program runs with the rights of the user on this machine although
// nobody has asked for that. Otherwise it returns "".
func (a Agent) ExposedNote() string {
	why := a.Roomless()
	if why == "" || a.Sandbox == NoSandbox || a.Sandbox == OwnUser || a.Contains() {
		return ""
	}
	advice := "docs/agents.md says how to keep it in a room"
	if child.Users() == nil {
		advice = "`sandbox: user` gives each attempt a user of its own, and " + advice
	}
	return fmt.Sprintf("agent %s runs with your rights to files, processes and the network, because %s; %s",
		a.Name, why, advice)
}

// shares reports whether the agent shares the network of the machine. An address in [Agent.Listen]
// would not be there otherwise.
func (a Agent) shares() bool { return a.OpenNetwork || a.Listen != "" }

// sandboxed returns the kind of sandbox of the agent's attempts.
func (r *Runner) sandboxed() assay.Sandboxed {
	switch {
	case r.agent.URL != "":
		return ""
	case r.agent.Sandbox == OwnUser:
		return assay.AsOwnUser
	case r.room == nil:
		return assay.Unsandboxed
	case r.room.Open:
		return assay.InRoomOnline
	}
	return assay.InRoom
}

// newRoom returns the room of the agent's program on this machine, or nil. Each attempt has one like it.
func (b *Bridge) newRoom(a Agent) *child.Room {
	if a.URL != "" || b.elsewhere || a.Roomless() != "" {
		return nil
	}
	hidden := append(a.Hidden[:len(a.Hidden):len(a.Hidden)], a.Home)
	hidden = slices.DeleteFunc(hidden, func(dir string) bool { return dir == "" })
	address := strings.TrimPrefix(b.bases[a.Listen], "http://")
	return &child.Room{
		Read:   slices.Concat(a.Read, child.Finds(a.Command, hidden), child.Finds(a.Next, hidden)),
		Hidden: hidden, Address: address, Open: a.shares(),
		Limits: child.Limits{
			Memory:    cmp.Or(a.Limits.Memory, child.DefaultLimits.Memory),
			Disk:      cmp.Or(a.Limits.Disk, child.DefaultLimits.Disk),
			Processes: cmp.Or(a.Limits.Processes, child.DefaultLimits.Processes),
		},
	}
}

// roomOf returns the room of an attempt, or nil. What it can reach of the bridge is the attempt's own.
func (r *Runner) roomOf(a *attempt) *child.Room {
	if r.room == nil {
		return nil
	}
	room := *r.room
	room.Serve = func(l net.Listener) { _ = r.bridge.server.Serve(door{l, a.id}) } // until it is closed
	return &room
}

// A door is the listener of a room.
type door struct {
	net.Listener
	attempt string // its ID
}

// doorKey is the key of a door's attempt in the context of a request that came through it.
type doorKey struct{}

// base returns the context of requests that a listener accepts.
func base(l net.Listener) context.Context {
	if d, ok := l.(door); ok {
		return context.WithValue(context.Background(), doorKey{}, d.attempt)
	}
	return context.Background()
}

// behindDoor reports whether a request came from the room of another attempt than that with an ID.
func behindDoor(r *http.Request, id string) bool {
	from, ok := r.Context().Value(doorKey{}).(string)
	return ok && from != id
}

// A Reach is what the program of an agent can reach besides its tools and its model.
type Reach struct {
	Sandbox assay.Sandboxed
	// Sees lists the files and folders in its room besides the system's, and Bares the folders among them
	// that have files of the experiment.
	Sees, Bares []string
}

// Reach returns what the agent's programs can reach. It is empty for a service.
func (r *Runner) Reach() Reach {
	reach := Reach{Sandbox: r.sandboxed(), Sees: []string{}}
	if r.room == nil {
		return reach
	}
	reach.Sees = slices.Compact(slices.Sorted(slices.Values(r.room.Read)))
	for _, path := range r.agent.Read { // what is found never bares a hidden folder
		if child.Bares(path, r.room.Hidden) {
			reach.Bares = append(reach.Bares, path)
		}
	}
	return reach
}

// shown says what files an agent sees in its room, for an agent that may lack one.
func (r *Runner) shown() string {
	switch sees := r.Reach().Sees; {
	case r.agent.Sandbox == OwnUser:
		return "it ran as a user of its own, so its program and its files have to be where everybody can read them"
	case r.room == nil:
		return ""
	case len(sees) == 0:
		return "its room has only the programs of the system and of PATH; `read` in the providers file adds files"
	default:
		return fmt.Sprintf("its room has only the programs of the system and of PATH, and %s; `read` in the "+
			"providers file adds files", strings.Join(sees, ", "))
	}
}
