// Package dashboard serves the pages of `assay view`: the state of a run and of its lanes, the
// rates so far, every trial with its conversation, faults, and the report.
//
// It reads the store and asks the run that works on it over the run's socket, so it can start and
// end at any time, in the process of the run or in a different one. Once a second it takes one look
// at both, and all live pages of all viewers show that moment. The figures come from package
// report. It changes a run only by the orders of package session, and only if it is allowed to.
package dashboard

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/store"
)

// Options configure a server.
type Options struct {
	// Store is the path of the store, from which the socket of its run is found.
	Store string
	// Token opens the pages. It must not be empty.
	Token string
	// Control allows viewers to change the run.
	Control bool
	// Reveal shows the texts of private libraries.
	Reveal bool
	// Program is the version of this program, and Words are those of its hints.
	Program string
	Words   assay.Words
}

// A Server serves the pages of an experiment.
type Server struct {
	options Options
	store   string
	db      *store.DB
	stored  store.Experiment
	job     *job.Job
	name    string
	index   *index
	latest  atomic.Pointer[livePages]
	grid    atomic.Pointer[grid] // nil before the rates were read

	mu      sync.Mutex
	changed chan struct{} // closed at the next moment; guarded by mu
	viewers atomic.Int32
}

// Open plans a stored experiment again, to serve its pages. Close the server at the end.
func Open(ctx context.Context, db *store.DB, e store.Experiment, o Options) (*Server, error) {
	if o.Token == "" {
		return nil, errors.New("the pages need a token")
	}
	j, err := job.Reopen(ctx, db, e)
	if err != nil {
		return nil, fmt.Errorf("cannot plan experiment %s again: %w", e.Name, err)
	}
	s := &Server{
		options: o, store: o.Store, db: db, stored: e, job: j, name: e.Name,
		changed: make(chan struct{}),
	}
	s.index = newIndex(j.NewRecount(j.Rules(), nil))
	return s, nil
}

// Close releases the resources of Open. Call it after Serve has returned.
func (s *Server) Close() error { return s.job.Close() }

// Serve serves the pages until ctx ends.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	server := &http.Server{
		Handler: s.guard(l.Addr().String(), s.routes()), ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	var helpers sync.WaitGroup
	helpers.Go(func() { s.load(ctx) })
	helpers.Go(func() { s.watch(ctx) })
	helpers.Go(func() { s.keepGrid(ctx) })
	helpers.Go(func() {
		<-ctx.Done()
		_ = server.Close()
	})
	err := server.Serve(l)
	cancel()
	helpers.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Standing returns how the experiment stands, as pages show it at this moment. It reads all attempts, so it
// is for a server that does not serve.
func (s *Server) Standing(ctx context.Context) (job.Standing, error) {
	if err := s.index.follow(ctx, s.db); err != nil {
		return job.Standing{}, err
	}
	m := s.look(ctx)
	if m.Trouble != "" {
		return job.Standing{}, errors.New(m.Trouble)
	}
	return m.Standing, nil
}

// load reads the attempts for the first time.
func (s *Server) load(ctx context.Context) {
	for {
		err := s.index.follow(ctx, s.db)
		if err == nil || ctx.Err() != nil {
			return
		}
		s.index.locked(func() { s.index.trouble = s.options.Words.Of(err) })
		if !sleep(ctx, 5*time.Second) {
			return
		}
	}
}

// watch takes a look once a second and informs the viewers.
func (s *Server) watch(ctx context.Context) {
	for {
		m := s.look(ctx)
		s.latest.Store(&livePages{moment: m, server: s})
		s.mu.Lock()
		close(s.changed)
		s.changed = make(chan struct{})
		s.mu.Unlock()
		if !sleep(ctx, time.Second) {
			return
		}
	}
}

// next returns a channel that is closed at the next moment.
func (s *Server) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// now returns the latest moment. It waits for the first one.
func (s *Server) now(ctx context.Context) (*livePages, error) {
	for {
		next := s.next()
		if p := s.latest.Load(); p != nil {
			return p, nil
		}
		if !wait(ctx, next) {
			return nil, ctx.Err()
		}
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func keyOf(id assay.TrialID) (k rowTrial) {
	_, _ = hex.Decode(k[:], []byte(id)) // trial IDs are hex
	return k
}

func (k rowTrial) id() assay.TrialID { return assay.TrialID(hex.EncodeToString(k[:])) }
