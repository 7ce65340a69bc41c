package fleet

import (
	"slices"
	"sync"
	"time"
)

// keepParts is how long parts of a message are kept if nobody fetches them.
const keepParts = 10 * time.Minute

// parts are the parts of messages that are too big for the server, in the memory of the run. Who
// does not know the random ID of a message cannot get it.
type parts struct {
	mu   sync.Mutex
	byID map[string][][]byte
}

// put adds the next part of a message.
func (p *parts) put(id string, part []byte) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byID == nil {
		p.byID = make(map[string][][]byte)
	}
	if p.byID[id] == nil {
		time.AfterFunc(keepParts, func() { p.take(id) })
	}
	p.byID[id] = append(p.byID[id], part)
	return nil
}

// get removes the next part of a message and returns it. It returns nil after the last one.
func (p *parts) get(id string, _ []byte) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.byID[id]
	if len(all) == 0 {
		delete(p.byID, id)
		return nil
	}
	p.byID[id] = all[1:]
	return all[0]
}

// take removes a message and returns it.
func (p *parts) take(id string) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.byID[id]
	delete(p.byID, id)
	return slices.Concat(all...)
}
