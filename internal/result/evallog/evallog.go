// Package evallog writes results as a log of Inspect, the evaluation framework
// of the UK AI Security Institute, so that its viewer and its readers open them.
//
// It owns what becomes what there. It does not choose attempts, opens no files
// and knows no store. A log (.eval) is a zip of JSON:
//
//   - header.json: the evaluation of one model, its status and its metrics
//   - samples/ID_epoch_N.json: a trial with its conversation
//   - summaries.json and reductions.json: a row a trial, and a value a sample
//   - _journal/start.json: the header's first half, which Inspect asks for when
//     it writes to a log
//
// Inspect calls a task's instance a sample, and a repetition of it an epoch. Here
// a sample is a task in a cell, and an epoch is a repeat. Full, partial success
// and failure are its scores C, P and I, which its accuracy counts as 1, 0.5
// and 0; the metric full_success is the share of C. A fault is a sample with an
// error and without a score.
//
// Inspect expects every sample in every epoch. Where trials have different
// numbers of repeats, read_eval_log_samples wants all_samples_required=False.
package evallog

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/assay-eval/assay"
)

// A Meta says what a log is of. A log has one model.
type Meta struct {
	Experiment string
	Model      string
	// Snapshot names the state of the store that the samples come from, and Filter
	// is what chose them there, as it is to stand in the metadata; nil for nothing.
	Snapshot string
	Filter   any
	Program  string
	// Created is also the time of all files in the zip.
	Created time.Time
	// Planned counts the trials that the log has when the experiment is done; 0 where
	// that is not known. A log with fewer says that it is not complete.
	Planned int
}

// A Sample is an attempt and what is known of it.
type Sample struct {
	Attempt assay.Attempt
	// Transcript is nil where none is kept.
	Transcript *assay.Transcript
	// Task is what the trial was about; nil where that is not known.
	Task *assay.Task
}

// Name is the file name that Inspect would give the log, but that long names are cut:
// file systems take 255 bytes, and who writes the file may put some to them. What is
// the same then is told apart by the identity at the end, and behind it what was chosen
// of which state, in the place that Inspect has for a suffix.
func Name(meta Meta) string {
	const most = 80
	clean := func(s string) string {
		s = strings.ReplaceAll(safe(s), "_", "-")
		return s[:min(len(s), most)]
	}
	return strings.Join([]string{
		clean(stamp(meta.Created.Truncate(time.Second))), clean(meta.Experiment), clean(meta.Model), meta.taskID() + "-" + meta.evalID()[:12],
	}, "_") + ".eval"
}

// Write writes a log to w and returns how many trials it holds. The samples
// come in the order in which they were saved; attempts at one trial may be far
// apart. The attempt that settles a trial becomes its sample, and the faults
// before it are told as its retries. A trial with faults only is told by the
// latest of them, behind the others. The same input gives the same bytes.
//
// Write stops at the first error, of samples or of w, and what was written is
// no log then. Closing w is the caller's. Transcripts are not kept, but for
// those of trials that have had nothing but faults so far: these wait, deflated.
func Write(w io.Writer, meta Meta, samples iter.Seq2[Sample, error]) (int, error) {
	l := newLog(w, meta)
	for s, err := range samples {
		if err == nil {
			err = l.add(&s)
		}
		if err != nil {
			return l.total, fmt.Errorf("inspect log: after %d trials: %w", l.total, err)
		}
	}
	if err := l.finish(); err != nil {
		return l.total, fmt.Errorf("inspect log: after %d trials: %w", l.total, err)
	}
	return l.total, nil
}

// log is a log that is being written.
type log struct {
	meta      Meta
	zip       *zip.Writer
	text      bytes.Buffer // what is being encoded
	summaries *packed
	trials    map[assay.TrialID]*trial
	// waiting are the trials that have had a fault, in the order of their first.
	waiting []*trial
	tally
}

// trial is what is known of a trial so far.
type trial struct {
	item    *item
	epoch   int
	faults  []evalError
	settled bool
	// latest is what its latest fault looks like as a sample, while nothing has
	// settled it.
	latest, summary []byte // deflated, and as it is
}

func newLog(w io.Writer, meta Meta) *log {
	return &log{
		meta: meta, zip: zip.NewWriter(w), summaries: newPacked(),
		trials: make(map[assay.TrialID]*trial), tally: newTally(),
	}
}

// add takes an attempt: as a sample if it settles its trial, else to wait.
func (l *log) add(s *Sample) error {
	a := &s.Attempt
	t, err := l.trial(a)
	if err != nil {
		return fmt.Errorf("attempt %d at trial %s: %w", a.Number, a.ID, err)
	}
	record, err := newEvalSample(s, t)
	if err != nil {
		return fmt.Errorf("attempt %d at trial %s: %w", a.Number, a.ID, err)
	}
	l.count(a)
	if a.Settles() {
		t.settled, t.latest, t.summary, t.faults = true, nil, nil, nil
		t.item.score(a.Level)
		l.scored++
		return l.writeSample(t, record)
	}
	if len(t.faults) == 0 {
		l.waiting = append(l.waiting, t)
	}
	t.faults = append(t.faults, *record.Error)
	return l.hold(t, record)
}

// trial returns the trial of an attempt that may still become its sample.
func (l *log) trial(a *assay.Attempt) (*trial, error) {
	if err := a.Check(); err != nil {
		return nil, err
	}
	if a.Model != l.meta.Model {
		return nil, fmt.Errorf("it is of model %s, and the log of %s", a.Model, l.meta.Model)
	}
	t := l.trials[a.ID]
	if t == nil {
		it, err := l.item(a)
		if err != nil {
			return nil, err
		}
		t = &trial{item: it, epoch: it.epoch(a.Repeat)}
		l.trials[a.ID] = t
	}
	if t.settled {
		return nil, errors.New("an attempt before it has settled the trial")
	}
	return t, nil
}

// hold keeps the record in case that nothing settles its trial.
func (l *log) hold(t *trial, record *evalSample) error {
	text, err := l.encode(record)
	if err != nil {
		return err
	}
	p := newPacked()
	if _, err := p.Write(text); err != nil {
		return err
	}
	if t.latest, err = p.close(); err != nil {
		return err
	}
	t.summary, err = l.encode(record.summary())
	t.summary = bytes.Clone(t.summary)
	return err
}

func (l *log) writeSample(t *trial, record *evalSample) error {
	text, err := l.encode(record)
	if err != nil {
		return err
	}
	if err := l.file(t.name(), bytes.NewReader(text)); err != nil {
		return err
	}
	if text, err = l.encode(record.summary()); err != nil {
		return err
	}
	return l.summarise(text)
}

func (t *trial) name() string { return fmt.Sprintf("samples/%s_epoch_%d.json", t.item.id, t.epoch) }

func (l *log) summarise(row []byte) error {
	l.total++
	before := ",\n"
	if l.total == 1 {
		before = "["
	}
	if _, err := l.summaries.Write([]byte(before)); err != nil {
		return err
	}
	_, err := l.summaries.Write(row)
	return err
}

// finish writes the trials that nothing has settled, and what is told of all.
func (l *log) finish() error {
	for _, t := range l.waiting {
		if t.settled {
			continue
		}
		if err := l.file(t.name(), flate.NewReader(bytes.NewReader(t.latest))); err != nil {
			return err
		}
		if err := l.summarise(t.summary); err != nil {
			return err
		}
	}
	if err := l.writeSummaries(); err != nil {
		return err
	}
	h := l.header()
	for _, f := range []struct {
		name    string
		content any
	}{
		{"reductions.json", l.reductions()},
		{"_journal/start.json", start{h.Version, h.Eval, h.Plan}},
		{"header.json", h},
	} {
		text, err := l.encode(f.content)
		if err != nil {
			return err
		}
		if err := l.file(f.name, bytes.NewReader(text)); err != nil {
			return err
		}
	}
	return l.zip.Close()
}

func (l *log) writeSummaries() error {
	end := "]"
	if l.total == 0 {
		end = "[]"
	}
	if _, err := l.summaries.Write([]byte(end)); err != nil {
		return err
	}
	deflated, err := l.summaries.close()
	if err != nil {
		return err
	}
	return l.file("summaries.json", flate.NewReader(bytes.NewReader(deflated)))
}

// file adds a file to the zip.
func (l *log) file(name string, content io.Reader) error {
	f, err := l.zip.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: l.meta.Created.UTC()})
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return err
}

// encode returns v as JSON, which is good until the next call.
func (l *log) encode(v any) ([]byte, error) {
	l.text.Reset()
	e := json.NewEncoder(&l.text)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSpace(l.text.Bytes()), err
}

// packed is text that is kept deflated, for there is much of it and it
// repeats itself.
type packed struct {
	*flate.Writer
	deflated *bytes.Buffer
}

func newPacked() *packed {
	b := new(bytes.Buffer)
	w, err := flate.NewWriter(b, flate.BestSpeed)
	if err != nil {
		panic("evallog: " + err.Error()) // the level is a constant
	}
	return &packed{w, b}
}

func (p *packed) close() ([]byte, error) {
	err := p.Close()
	return p.deflated.Bytes(), err
}
