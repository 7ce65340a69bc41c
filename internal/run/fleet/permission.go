package fleet

import (
	"crypto/subtle"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	// workerName begins the name of a worker's connection, and inboxes the subjects of the answers
	// to it. Both end in the same random text, so that no worker can hear the answers to another.
	workerName = "assay worker "
	inboxes    = "_INBOX."
)

// tokens has the token of the run, which may do everything, and the token of its workers, which may
// only make calls, take assignments and hear their own answers.
type tokens struct{ run, worker string }

// Check implements [server.Authentication].
func (t tokens) Check(c server.ClientAuthentication) bool {
	o := c.GetOpts()
	is := func(token string) bool {
		return subtle.ConstantTimeCompare([]byte(o.Token), []byte(token)) == 1
	}
	if is(t.run) {
		return true
	}
	if !is(t.worker) {
		return false
	}
	c.RegisterUser(&server.User{Permissions: permissions(strings.TrimPrefix(o.Name, workerName))})
	return true
}

// permissions returns the permissions of the worker with an ID.
func permissions(id string) *server.Permissions {
	p := &server.Permissions{
		Publish:   &server.SubjectPermission{},
		Subscribe: &server.SubjectPermission{Deny: []string{">"}},
	}
	names := connection{prefix: "assay"}
	for _, call := range calls {
		p.Publish.Allow = append(p.Publish.Allow, names.subject("call", call))
	}
	consumer := names.stream() + "." + consumerName
	p.Publish.Allow = append(p.Publish.Allow, "$JS.API.CONSUMER.INFO."+consumer,
		"$JS.API.CONSUMER.MSG.NEXT."+consumer, "$JS.ACK."+consumer+".>")
	if len(id) >= shortestID && !strings.ContainsAny(id, ".*> ") {
		p.Subscribe = &server.SubjectPermission{Allow: []string{inboxes + id + ".>"}}
	}
	return p
}

// shortestID is the length of the shortest ID that others cannot guess.
const shortestID = 20
