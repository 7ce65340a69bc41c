// Package evallog writes results as logs of Inspect, the evaluation framework
// of the UK AI Security Institute, for Inspect's viewer and readers.
//
// It defines how our records map to Inspect's. It does not select attempts,
// open files or know the store. A log (.eval) is a zip of JSON files:
//
//   - header.json: the evaluation of one model, with its status and metrics
//   - samples/ID_epoch_N.json: a trial with its conversation
//   - summaries.json and reductions.json: a row per trial, and a value per
//     sample
//   - _journal/start.json: the first half of the header, which Inspect needs to
//     write to a log
//
// Inspect calls an instance of a task a sample and a repetition of it an epoch.
// Here a sample is a task in a cell, and an epoch is a repeat. Full success,
// partial success and failure become the scores C, P and I, which Inspect's
// accuracy counts as 1, 0.5 and 0. The metric full_success is the share of C. A
// fault becomes a sample with an error and without a score. The standard error
// is clustered by task. A sample's input is the prompt, with the plan that the
// model was shown.
//
// Inspect expects every sample in every epoch. If trials have different numbers
// of repeats, read_eval_log_samples needs all_samples_required=False.
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

// A Meta describes a log. A log has one model.
type Meta struct {
	Experiment string
	Model      string
	// Snapshot identifies the state of the store that the samples come from.
	// Filter, if not nil, is the condition that selected them; it is copied to
	// the metadata.
	Snapshot string
	Filter   any
	Program  string
	// Created is also the time of all files in the zip.
	Created time.Time
	// Planned is the number of trials in the complete log, or 0 if it is
	// unknown. The status of a log with fewer trials marks it as incomplete.
	Planned int
}

// A Sample is an attempt with its transcript and task.
type Sample struct {
	Attempt assay.Attempt
	// Transcript is nil if it was not kept.
	Transcript *assay.Transcript
	// Task is nil if it is unknown.
	Task *assay.Task
}

// Name returns the file name that Inspect would give the log, except that long
// parts are cut. File systems allow 255 bytes, and the writer of the file may
// append some. The identity at the end distinguishes names that are equal after
// cutting. Behind it, in the place of Inspect's suffix, is an identity of the
// filter and the state of the store.
func Name(meta Meta) string {
	const most = 80
	clean := func(s string) string {
		s = strings.ReplaceAll(safe(s), "_", "-")
		return s[:min(len(s), most)]
	}
	return strings.Join([]string{
		clean(stamp(meta.Created.Truncate(time.Second))), clean(meta.Experiment),
		clean(meta.Model), meta.taskID() + "-" + meta.evalID()[:12],
	}, "_") + ".eval"
}

// Write writes a log to w and returns the number of trials in it. The samples
// must be in the order in which they were saved; attempts at the same trial may
// be far apart. The same input gives the same bytes.
//
// The attempt that settles a trial becomes its sample, and earlier faults
// become its retries. If a trial has only faults, the latest becomes its
// sample, after all others.
//
// Write stops at the first error of samples or of w, and leaves an invalid log.
// It does not close w. It keeps transcripts in memory only for trials that have had only faults so
// far; these are compressed.
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

// openLog is a log in progress.
type openLog struct {
	meta      Meta
	zip       *zip.Writer
	text      bytes.Buffer // the text being encoded
	summaries *packed
	trials    map[assay.TrialID]*trial
	// waiting lists the trials that have had a fault, in the order of their
	// first.
	waiting []*trial
	sampleTally
}

// trial is the state of a trial.
type trial struct {
	item    *sampleItem
	epoch   int
	faults  []evalError
	settled bool
	// latest is the sample of the latest fault, compressed, and summary its
	// summary. Both are nil once the trial is settled.
	latest, summary []byte
}

func newLog(w io.Writer, meta Meta) *openLog {
	return &openLog{
		meta: meta, zip: zip.NewWriter(w), summaries: newPacked(),
		trials: make(map[assay.TrialID]*trial), sampleTally: newTally(),
	}
}

// add writes an attempt as a sample if it settles its trial, and holds it
// otherwise.
func (l *openLog) add(s *Sample) error {
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
	t.faults = append(t.faults, *record.fault)
	return l.hold(t, record)
}

// trial returns the trial of an attempt. It returns an error if the trial
// cannot have another attempt.
func (l *openLog) trial(a *assay.Attempt) (*trial, error) {
	if err := a.Check(); err != nil {
		return nil, err
	}
	if a.Model != l.meta.Model {
		return nil, fmt.Errorf("its model is %s, but the log is of %s", a.Model, l.meta.Model)
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
		return nil, errors.New("an earlier attempt has settled the trial")
	}
	return t, nil
}

// hold keeps a record for the case that no later attempt settles its trial.
func (l *openLog) hold(t *trial, record *evalSample) error {
	text, err := l.encode(record.sample)
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
	t.summary, err = l.encode(record.summary)
	t.summary = bytes.Clone(t.summary)
	return err
}

func (l *openLog) writeSample(t *trial, record *evalSample) error {
	text, err := l.encode(record.sample)
	if err != nil {
		return err
	}
	if err := l.file(t.name(), bytes.NewReader(text)); err != nil {
		return err
	}
	if text, err = l.encode(record.summary); err != nil {
		return err
	}
	return l.summarise(text)
}

func (t *trial) name() string {
	return fmt.Sprintf("samples/%s_epoch_%d.json", t.item.id, t.epoch)
}

func (l *openLog) summarise(row []byte) error {
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

// finish writes the unsettled trials and the files about the whole log.
func (l *openLog) finish() error {
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
	for _, f := range []struct {
		name    string
		content any
	}{
		{"reductions.json", l.reductions()},
		{"_journal/start.json", l.start()},
		{"header.json", l.header()},
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

func (l *openLog) writeSummaries() error {
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
func (l *openLog) file(name string, content io.Reader) error {
	header := zip.FileHeader{Name: name, Method: zip.Deflate, Modified: l.meta.Created.UTC()}
	f, err := l.zip.CreateHeader(&header)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return err
}

// encode returns v as JSON, which is valid until the next call.
func (l *openLog) encode(v any) ([]byte, error) {
	l.text.Reset()
	e := json.NewEncoder(&l.text)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSpace(l.text.Bytes()), err
}

// packed is compressed text, because there is much of it and it is repetitive.
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
