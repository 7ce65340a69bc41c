package fleet

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/assay-eval/assay"
)

// answer answers a call. If it cannot, the answer has the reason.
func (d *Coordinator) answer(ctx context.Context, call string, body []byte) []byte {
	var reply any
	var err error
	switch call {
	case callHello:
		reply, err = answer(body, d.hello)
	case callBeat:
		reply, err = answer(body, d.beat)
	case callBye:
		reply, err = answer(body, d.bye)
	case callBegin:
		reply, err = answer(body, d.begin)
	case callChat:
		reply, err = answer(body, func(c *chat) chatReply { return d.chat(ctx, c) })
	case callResult:
		reply, err = answer(body, func(r *attemptResult) receipt { return d.result(ctx, r) })
	default:
		err = fmt.Errorf("unknown call %q", call)
	}
	var b []byte
	if err == nil {
		b, err = encode(reply)
	}
	if err != nil {
		d.options.Note(fmt.Sprintf("the call %q of a worker cannot be answered: %v", call, err))
		return refusal(err)
	}
	return b
}

func answer[In, Out any](body []byte, do func(*In) Out) (Out, error) {
	var in In
	if err := decode(body, &in); err != nil {
		var none Out
		return none, err
	}
	return do(&in), nil
}

func (d *Coordinator) hello(h *hello) welcome {
	if h.Program != d.options.Program {
		return welcome{Refused: fmt.Sprintf("this worker is assay %s, and the run is carried out by "+
			"assay %s\nhint: install the same version on both machines", h.Program, d.options.Program)}
	}
	if h.Slots < 1 || h.Worker == "" {
		return welcome{Refused: "a worker needs a name and at least one slot"}
	}
	d.mu.Lock()
	m, again := d.workers[h.Worker]
	if !again {
		m = &member{hello: *h, since: time.Now()}
		m.Name = d.nameFor(h.Name)
		d.workers[h.Worker] = m
	}
	m.seen = time.Now()
	w := welcome{Lease: d.options.Lease, Job: d.options.Job}
	d.mu.Unlock()
	if !again {
		d.options.Note(fmt.Sprintf("worker %s has come, for %d attempts at once", m.Name, m.Slots))
		d.options.Changed()
	}
	return w
}

// nameFor returns a name that no other worker has. A worker that was lost makes room: the new one
// is the same, started again. It needs the lock.
func (d *Coordinator) nameFor(name string) string {
	taken := func(name string) bool {
		for id, m := range d.workers {
			switch {
			case m.Name != name:
			case m.gone:
				delete(d.workers, id)
			default:
				return true
			}
		}
		return false
	}
	unique := name
	for n := 2; taken(unique); n++ {
		unique = name + "-" + strconv.Itoa(n)
	}
	return unique
}

func (d *Coordinator) beat(b *beat) beatReply {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := d.workers[b.Worker]
	if m == nil || b.Run != d.options.Job.Run {
		return beatReply{Unknown: true}
	}
	now := time.Now()
	if m.gone || b.Leaving && !m.leaving {
		if m.gone {
			go d.options.Note(fmt.Sprintf("worker %s is back", m.Name))
		}
		m.gone, m.leaving = false, b.Leaving
		go d.options.Changed()
	}
	m.seen, m.agents = now, b.Agents
	r := beatReply{Ended: d.ended, Drain: m.draining}
	for _, h := range b.Assignments {
		switch o := d.of(h); {
		case o == nil || o.fault != nil:
			r.Over = append(r.Over, h)
		case !o.over():
			o.seen = now
		}
	}
	if d.ended {
		m.told = true
		d.endIfAllKnow()
	}
	return r
}

// of returns an assignment if this is its latest token, and nil otherwise. It needs the lock.
func (d *Coordinator) of(h held) *assignment {
	if o := d.assignments[h.Assignment]; o != nil && o.begun > 0 && h.Token == o.token {
		return o
	}
	return nil
}

// bye lets a worker go. Its unfinished assignments are offered again soon.
func (d *Coordinator) bye(b *beat) beatReply {
	d.mu.Lock()
	m := d.workers[b.Worker]
	left := 0
	if m != nil {
		delete(d.workers, b.Worker)
		for _, o := range d.assignments {
			if o.worker == b.Worker && !o.over() {
				o.seen, o.offered, o.worker = time.Time{}, time.Time{}, ""
				left++
			}
		}
	}
	d.mu.Unlock()
	if m == nil {
		return beatReply{}
	}
	text := fmt.Sprintf("worker %s has gone", m.Name)
	if left > 0 {
		text += fmt.Sprintf("; its %d attempts go to others", left)
	}
	d.options.Note(text)
	d.options.Changed()
	return beatReply{}
}

func (d *Coordinator) begin(b *begin) beginning {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	o, m := d.assignments[b.Assignment], d.workers[b.Worker]
	if o == nil || m == nil || o.over() {
		return beginning{Over: true}
	}
	if o.try != b.Try {
		if o.inHand(now, d.silence) {
			return beginning{Over: true} // another worker holds it
		}
		if o.begun > 0 {
			if o.worker != "" {
				o.lose()
			}
			if o.lost >= maxLost {
				o.fail(&assay.Fault{Kind: assay.Harness, Hopeless: true, Detail: fmt.Sprintf(
					"%d workers were lost while they carried this attempt out", o.lost)})
				return beginning{Over: true}
			}
			d.begunAgain.Add(1)
		}
		o.hand(m, b.Try, now)
	}
	o.seen = now
	return beginning{Token: o.token, Trial: *o.trial, Task: *o.task}
}

func (d *Coordinator) chat(ctx context.Context, c *chat) chatReply {
	d.mu.Lock()
	o := d.of(c.held)
	if o == nil || o.over() {
		d.mu.Unlock()
		return chatReply{Over: true}
	}
	o.seen = time.Now()
	a := o.ask(c)
	d.mu.Unlock()
	if a == nil {
		return chatReply{Wait: !c.Again, Over: c.Again} // the worker has given the request up
	}
	select {
	case <-a.done:
		return chatReply{Response: *a.response, Fault: assay.AsFault(a.err)}
	case <-time.After(longPoll):
	case <-ctx.Done():
	}
	return chatReply{Wait: true}
}

func (d *Coordinator) result(ctx context.Context, r *attemptResult) receipt {
	d.mu.Lock()
	o := d.of(r.held)
	if o == nil || o.fault != nil {
		d.mu.Unlock()
		return receipt{Over: true}
	}
	if !o.over() {
		d.accept(o, r)
	}
	d.mu.Unlock()
	select {
	case <-o.concluded:
		return receipt{Over: true}
	case <-time.After(longPoll):
	case <-ctx.Done():
	}
	return receipt{Wait: true}
}

// accept ends an attempt with its result. It shifts the times to this machine's clock, because the
// worker's clock may be wrong.
func (d *Coordinator) accept(o *assignment, r *attemptResult) {
	a, now := &r.Attempt, time.Now().UTC()
	if err := a.Check(); err != nil {
		o.fail(&assay.Fault{Kind: assay.Harness, Detail: "a worker sent a record that cannot be: " +
			err.Error()})
		return
	}
	session := now.Sub(a.FinishedAt)
	a.StartedAt, a.FinishedAt = a.StartedAt.Add(session), now
	for i := range r.Spans {
		r.Spans[i].Began = r.Spans[i].Began.Add(session)
		r.Spans[i].Ended = r.Spans[i].Ended.Add(session)
	}
	r.Transcript.Spans = r.Spans
	a.Trial, a.Worker = *o.trial, o.name
	if m := d.workers[o.worker]; m != nil {
		m.done++
	}
	o.finish(r)
}
