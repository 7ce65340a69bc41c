"""Reads a log with Inspect's own readers and prints what they make of it.

Whatever they disagree about ends in an assertion.
"""

import json
import math
import sys
import tempfile
from pathlib import Path

import inspect_ai
from inspect_ai import log as inspect_log
from inspect_ai.event import ModelEvent

path = sys.argv[1]
full = inspect_log.read_eval_log(path)
header = inspect_log.read_eval_log(path, header_only=True)
summaries = inspect_log.read_eval_log_sample_summaries(path)

assert header.samples is None
for name in ("status", "eval", "plan", "results", "stats", "error"):
    assert getattr(full, name) == getattr(header, name), name
assert full.reductions is not None

# One at a time, every epoch of every sample: all of them are there, unless the
# log says that it is not complete.
complete = header.status == "success"
samples = list(inspect_log.read_eval_log_samples(path, all_samples_required=False))
if complete:
    grid = len(header.eval.dataset.sample_ids) * header.eval.config.epochs
    if grid == len(samples):
        assert len(list(inspect_log.read_eval_log_samples(path))) == grid


def key(s):
    return (str(s.id), s.epoch)


assert sorted(map(key, samples)) == sorted(map(key, full.samples)) == sorted(map(key, summaries))

# A summary is what Inspect would have made of the sample, but for what we leave out.
rows = {key(s): s for s in summaries}
for s in full.samples:
    ours, theirs = rows[key(s)].model_dump(), s.summary().model_dump()
    for summary in (ours, theirs):
        for score in (summary["scores"] or {}).values():
            score["metadata"] = None
        for name in ("calls", "plan", "loop_records"):
            summary["metadata"].pop(name, None)
    for name in theirs:
        assert ours[name] == theirs[name], (name, ours[name], theirs[name])

# The turns have each the messages before it, up to the last reply.
for s in full.samples:
    turns = [e for e in s.events if e.event == "model"]
    replies = [i for i, m in enumerate(s.messages) if m.role == "assistant"]
    assert [s.messages[i] for i in replies] == [e.output.message for e in turns], s.id
    if "input_refs" in ModelEvent.model_fields:  # which older versions do not resolve
        for i, e in zip(replies, turns):
            assert e.input == s.messages[:i], (s.id, i)

# A sample's input is the prompt, and lists without elements are lists.
for s in full.samples:
    prompts = [m.text for m in s.messages if m.role == "user"]
    assert not prompts or s.input == prompts[0], s.id
    if not s.error:
        for name in ("required_tools", "executed_tools"):
            assert isinstance(s.metadata[name], list), (s.id, name)
            assert isinstance(s.scores["assay"].metadata[name], list), (s.id, name)
    for name in ("calls", "loop_records") if s.messages else ():
        assert isinstance(s.metadata[name], list), (s.id, name)

# A failed call has the same error in its event and its message.
for s in full.samples:
    answers = {m.id: m.error for m in s.messages if m.role == "tool"}
    for e in s.events:
        if e.event == "tool":
            assert e.error == answers[e.message_id], (s.id, e.error)

# The metrics are what Inspect computes from the samples.
metrics = {}
if full.results.scores:
    metrics = {n: m.value for n, m in full.results.scores[0].metrics.items()}
    reductions = {r.sample_id: r.value for r in full.reductions[0].samples}
    try:
        inspect_log.recompute_metrics(full)
    except LookupError:  # older versions compute only with scorers that they know
        pass
    assert header.results.scores[0].metrics["stderr"].params == {"cluster": "task"}
    again = full.results.scores[0]
    assert again.scored_samples == header.results.scores[0].scored_samples
    for name, metric in again.metrics.items():
        assert math.isclose(metric.value, metrics[name], abs_tol=1e-12), (name, metric.value, metrics[name])
    assert full.results.completed_samples == header.results.completed_samples
    for r in full.reductions[0].samples:
        assert math.isclose(r.value, reductions[r.sample_id], abs_tol=1e-12), r

# Inspect can write what it has read.
with tempfile.TemporaryDirectory() as d:
    copy = str(Path(d) / "copy.eval")
    inspect_log.write_eval_log(full, copy)
    assert len(inspect_log.read_eval_log(copy).samples) == len(samples)

print(
    json.dumps(
        {
            "version": inspect_ai.__version__,
            "status": header.status,
            "total": header.results.total_samples,
            "completed": header.results.completed_samples,
            "metrics": metrics,
            "sampling": [
                c.model_dump(exclude_none=True, include={"temperature", "top_p", "max_tokens"})
                for c in (header.eval.model_generate_config, header.plan.config)
                + tuple(e.config for s in full.samples for e in s.events if e.event == "model")
            ],
            "filter": (header.eval.metadata or {}).get("filter"),
            "tokens": {m: u.total_tokens for m, u in header.stats.model_usage.items()},
            "samples": [
                {
                    "id": s.id,
                    "epoch": s.epoch,
                    "trial": s.metadata["trial"],
                    "score": s.scores["assay"].value if s.scores else "",
                    "error": s.error.message if s.error else "",
                    "retries": [e.message for e in s.error_retries or []],
                    "roles": [m.role for m in s.messages],
                    "texts": [m.text for m in s.messages],
                    "errors": [m.error.message if m.error else "" for m in s.messages if m.role == "tool"],
                    "calls": [
                        [c.function, json.dumps(c.arguments), bool(c.parse_error)]
                        for m in s.messages
                        if m.role == "assistant"
                        for c in m.tool_calls or []
                    ],
                }
                for s in full.samples
            ],
        }
    )
)
