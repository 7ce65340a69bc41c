"""Recomputes the figures of reports from exports, and compares everything that shows them.

It reads a line of JSON for each experiment (see read.go) and prints a line for each disagreement. It is
written from the definitions in docs/results.md, in captions and in the package stat, and knows none of the
program's code. The exit code is 1 if anything disagrees."""

import json
import math
import re
import sys
import traceback
from collections import Counter, defaultdict
from itertools import combinations

import formulas as f
import shown

PLAIN = ["optimal", "baseline", "cot"]
SEVERITIES = ["", "light", "medium", "severe"]
FACTORS = ("variant", "severity", "difficulty", "task_type", "reliability", "fault_mix", "interface", "phrasing")


def plain_of(variant):
    head, _, tail = variant.partition(":")
    return head if tail in ("unstated", "follow", "may_be_wrong") else variant


def is_flawed(variant):
    return plain_of(variant).startswith("flawed_")


def shows_plan(variant):
    return variant not in ("baseline", "cot")


def same_authority(a, b):
    return not shows_plan(a) or a.partition(":")[2] == b.partition(":")[2]


def number(x):
    return repr(x).removesuffix(".0") if isinstance(x, float) else str(x)


def mix_name(t):
    return t["fault_mix"] or "before=1"


def tools_name(t):
    return "reliable tools" if t["reliability"] == 1 else f"{mix_name(t)}, reliability {number(t['reliability'])}"


def prompt(t):
    v, s = t["variant"], t["severity"]
    return f"{v}, {s}" if is_flawed(v) and s else v


LEVELS = {
    "reliability": lambda t: number(t["reliability"]), "fault_mix": mix_name, "tools": tools_name,
    "variant and severity": prompt, "interface": lambda t: t["interface"] or "plain",
    "phrasing": lambda t: t["phrasing"] or "plain",
    **{name: lambda t, name=name: t[name] for name in ("variant", "severity", "difficulty", "task_type", "model")},
}
CLEARED = {"tools": ("reliability", "fault_mix"), "variant": ("variant", "severity"),
           "variant and severity": ("variant", "severity")}


def condition(t, without=()):
    return tuple(None if name in without else t[name] for name in ("model", *FACTORS) if name != "model") + (
        None if "model" in without else t["model"],)


class Experiment:
    """An experiment as its export has it, with the facts of its plan."""

    def __init__(self, s):
        self.s, self.report = s, s["report"]
        self.plan = {t["trial"]: t for t in s["plan"]}
        self.order = list(dict.fromkeys(t["model"] for t in s["plan"]))
        self.attempts = s["export"] or []
        self.outcomes = []
        self.by_trial = {}
        for a in self.attempts:
            a["cost_usd"] = a["cost_usd"] or 0  # null if nothing of it is known
            t = self.plan[a["trial"]]
            if a["level"] and not a["superseded"]:
                o = {**a, "plan": t}
                assert a["trial"] not in self.by_trial, "two outcomes count"
                self.by_trial[a["trial"]] = o
                self.outcomes.append(o)
                judge(o)
        self.find_clusters()
        flawed = {t["severity"] for t in s["plan"] if is_flawed(t["variant"])}
        self.prompt_factor = "variant and severity" if len(flawed) > 1 else "variant"

    def find_clusters(self):
        """A cluster is a task or, if there are at most half as many, a sequence of required tools."""
        sequences = {}
        for o in self.outcomes:
            sequences.setdefault(o["task"], " ".join(o["required_tools"]) or "task " + o["task"])
        self.tasks, self.sequences = len(sequences), len(set(sequences.values()))
        self.by_sequence = self.sequences > 0 and 2 * self.sequences <= self.tasks
        self.cluster = sequences if self.by_sequence else {t: t for t in sequences}
        self.sequence = sequences

    def groups(self, outcomes, some, of=lambda o: True):
        groups = {}
        for o in outcomes:
            if of(o):
                g = groups.setdefault(self.cluster[o["task"]], [0, 0])
                g[0] += bool(some(o))
                g[1] += 1
        return list(map(tuple, groups.values()))

    def share(self, outcomes, some, of=lambda o: True):
        groups = self.groups(outcomes, some, of)
        rate, interval, _ = f.clustered(groups)
        return {"count": sum(g[0] for g in groups), "rate": rate,
                "interval": {"low": interval[0], "high": interval[1]}, "of": sum(g[1] for g in groups)}

    def pairs(self, outcomes, a, b, factor, planned=()):
        """Pairs the tasks of the outcomes at levels a and b of a factor, under conditions that are equal but
        for the factor. Planned trials also say which mixes of faults have reliable tools."""
        level, cleared = LEVELS[factor], CLEARED.get(factor, (factor,))
        sides = defaultdict(lambda: defaultdict(lambda: [0, 0]))  # by condition and side, then task
        for o in outcomes:
            at = level(o)
            for side, names in ((0, a), (1, b)):
                if at in names:
                    cell = (condition(o, cleared), side, condition(o))
                    g = sides[cell][o["task"]]
                    g[0] += o["full"]
                    g[1] += 1
        # Reliable tools of one's own have mixes, and stand for other mixes only if these have no reliable tools.
        own = {t["fault_mix"] for t in [*outcomes, *planned] if t["reliability"] == 1} if factor == "tools" else set()
        mix = FACTORS.index("fault_mix")
        tasks, conditions = defaultdict(list), 0
        for (at, side, cell), first in sides.items():
            if side:
                continue
            for (at2, side2, other), second in sides.items():
                if at2 != at or not side2:
                    continue
                if is_flawed(other[0]) and not same_authority(cell[0], other[0]):
                    continue
                if cell[mix] != other[mix] and {cell[mix], other[mix]} <= own:
                    continue
                shared = first.keys() & second.keys()
                conditions += bool(shared)
                for task in shared:
                    tasks[task].append((*first[task], *second[task]))
        pairs = f.Pairs([(self.cluster[t], cells) for t, cells in tasks.items()], conditions)
        pairs.sequences = len({self.sequence[t] for t in tasks})
        pairs.method = "t over sequences of tools" if self.by_sequence else "t over tasks"
        return pairs


def judge(o):
    """Adds what the definitions say of an outcome."""
    t = o["plan"]
    o["full"] = o["level"] == "full_success"
    limited = o["token_limit"] > 0 or o["cost_limit"] > 0 or "!" in re.sub(r"search=\d+!", "", o["loops"])
    o["measured"] = not limited and not t["open"] and o["score_version"] not in ("", "pilot-1")
    o["winnable"] = o["measured"] and (o["full"] or o["best_possible"] > 0 and t["winnable"])
    o["hurts"] = is_flawed(o["variant"]) and t["hurts"]
    o["floor"] = None
    if t["floor"] is not None:
        o["floor"] = t["floor"] * o["best_possible"] if o["measured"] else t["loose"]
    o["failed"] = not o.get("pilot") and not o["full"]
    silent = o["stop"] in ("gave_up", "refused", "left_early")
    o["claimed"] = o["failed"] and o["ended"] == "finished" and not silent
    harmless = "slow" in o["fault_mix"] or "injected" in o["fault_mix"]
    o["hit"] = (plain_of(o["variant"]) == "optimal" and t["survivable"]
                and (o["failures"] > 0 or not harmless and o["faults_met"] > 0))
    o["callless"] = (o["ended"] not in ("finished", "agent_error", "agent_timeout")
                     and o["cause"] not in ("changed_by_the_framework", "the_agent_failed")
                     and o["tool_calls"] == 0 and 2 * o["assisted"] >= o["turns"] and not o["full"])


def full(o):
    return o["full"]


class Checker:
    def __init__(self):
        self.seed, self.compared, self.wrong, self.experiments = None, Counter(), [], 0
        self.most, self.told = 60, 0

    def fail(self, what, want, got):
        self.wrong.append((self.seed, what))
        if self.told < self.most:
            print(f"seed {self.seed}: {what}: want {want!r}, got {got!r}", flush=True)
            self.told += 1

    def same(self, what, want, got, near=1e-9):
        """Compares figures, which may be in lists and objects. Only the wanted fields of objects count."""
        if isinstance(want, dict) and isinstance(got, dict):
            for k, v in want.items():
                self.same(f"{what}.{k}", v, got.get(k), 1e-6 if k in INTERVALS or k.endswith("_95") else near)
        elif isinstance(want, (list, tuple)) and isinstance(got, list):
            if len(want) != len(got):
                return self.fail(what, want, got)
            for i, (x, y) in enumerate(zip(want, got)):
                self.same(f"{what}[{i}]", x, y, near)
        else:
            self.compared[re.sub(r"\[.*?\]", "", what).split(".")[0]] += 1
            if isinstance(want, bool) or isinstance(got, bool) or not (
                    isinstance(want, (int, float)) and isinstance(got, (int, float))):
                if want != got:
                    self.fail(what, want, got)
            elif not abs(want - got) <= near * max(1, abs(want)):
                self.fail(what, want, got)

    def true(self, what, is_true, got=None):
        self.compared["laws"] += 1
        if not is_true:
            self.fail(what, True, got)


INTERVALS = ("interval", "low", "high", "p", "q", "at_interval", "hat_interval", "flip_interval",
             "detectable", "power", "cohen_h")  # a rate of 1 - 1e-16 is another angle than 1
check = Checker()


def pair(interval):
    return {"low": interval[0], "high": interval[1]}


def mean(values):
    values = list(values)
    return math.fsum(values) / len(values) if values else None


def bill(attempts):
    faults = [a for a in attempts if a["fault"] and a["fault"] != "interrupted" and not a["superseded"]]
    total = {k: sum(a[k] for a in attempts) for k in (
        "unpriced_tokens", "input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens",
        "user_input_tokens", "user_output_tokens", "user_unpriced_tokens",
        "judge_input_tokens", "judge_output_tokens", "judge_unpriced_tokens")}
    total["faults"] = len(faults)
    total["cost_usd"] = math.fsum(a["cost_usd"] for a in attempts)
    for name in ("user_cost_usd", "judge_cost_usd"):
        total[name] = math.fsum(a[name] for a in attempts)
    return total


def flat(name, s):
    return {name: s["count"], name + "_rate": s["rate"], name + "_95": s["interval"]}


def row_figures(x, planned, outcomes, attempts):
    """The figures of a row of the table of full success."""
    measured = [o for o in outcomes if o["measured"]]
    floored = [o for o in measured if o["floor"] is not None] or [
        o for o in outcomes if o["floor"] is not None and not o["measured"]]
    won = x.share(outcomes, full, lambda o: o["winnable"])
    b = bill(attempts)
    attacked = [o for o in outcomes if o["security"]]
    held = x.share(attacked, lambda o: o["security"] == "held")
    return {
        "planned": planned, "done": len(outcomes), "faults": b["faults"],
        **flat("full_success", x.share(outcomes, full)),
        **flat("partial_success", x.share(outcomes, lambda o: o["level"] == "partial_success")),
        **flat("failure", x.share(outcomes, lambda o: o["level"] == "failure")),
        "design_effect": f.clustered(x.groups(outcomes, full))[2],
        "floor": mean(o["floor"] for o in floored),
        "best_possible": mean(o["best_possible"] for o in measured), "best_measured": len(measured),
        "of_best": won["rate"] if won["of"] else None, "of_best_95": won["interval"] if won["of"] else None,
        "mean_turns": mean(o["turns"] for o in outcomes),
        "attacks": len(attacked) or None, "security": held["rate"] if attacked else None,
        "cost_usd": b["cost_usd"], "unpriced_tokens": b["unpriced_tokens"],
    }


def without(d, *names):
    return {k: v for k, v in d.items() if k not in names}


def main_figures(x, planned, outcomes):
    def rate(some):
        return without(x.share(outcomes, some), "of")
    return {
        "planned": planned, "done": len(outcomes),
        "success": rate(lambda o: o["level"] != "failure"), "full_success": rate(full),
        "partial_success": rate(lambda o: o["level"] == "partial_success"),
        "failure": rate(lambda o: o["level"] == "failure"), "order_correct": rate(lambda o: o["order_correct"]),
        "weighted_success": mean({"full_success": 1, "partial_success": .5, "failure": 0}[o["level"]] for o in outcomes),
        "mean_turns": mean(o["turns"] for o in outcomes), "mean_coverage": mean(o["coverage"] for o in outcomes),
    }


def quantile(values, q):
    values = sorted(values)
    return values[math.ceil(q * len(values) - 1e-12) - 1] if values else 0


def effort_figures(x, outcomes, attempts):
    def rate(some):
        return without(x.share(outcomes, some), "of")
    b = bill(attempts)
    calls = sum(o["tool_calls"] for o in outcomes)
    given = [o["given_adherence"] for o in outcomes if o["given_adherence"] is not None]
    broken = Counter(o["broken_lineage"] for o in outcomes if o["broken_lineage"])
    out = {
        "done": len(outcomes), "turns": {str(k): n for k, n in Counter(o["turns"] for o in outcomes).items()},
        "cost_usd": b["cost_usd"], "unpriced_tokens": b["unpriced_tokens"],
        "user_cost_usd": b["user_cost_usd"] or None,
        "user_tokens": b["user_input_tokens"] + b["user_output_tokens"] or None,
        "judge_cost_usd": b["judge_cost_usd"] or None,
        "judge_tokens": b["judge_input_tokens"] + b["judge_output_tokens"] or None,
        "cached_share": b["cached_tokens"] / max(1, b["input_tokens"]),
        "reasoning_share": b["reasoning_tokens"] / max(1, b["output_tokens"]),
        "wasted_share": sum(o["wasted_calls"] for o in outcomes) / max(1, calls),
        "mistake_share": sum(o["mistakes"] for o in outcomes) / max(1, calls),
        "tokens_per_trial": mean(o["input_tokens"] + o["output_tokens"] for o in outcomes),
        "calls_per_trial": mean(o["tool_calls"] for o in outcomes),
        "working_s_per_trial": mean(o["working_ms"] / 1000 for o in outcomes),
        "adherence": mean(o["adherence"] for o in outcomes), "given_adherence": mean(given),
        "precision": mean(o["precision"] for o in outcomes), "full_success": rate(full),
        "assisted": rate(lambda o: o["assisted"] > 0),
        "unwanted_effects": rate(lambda o: o["unwanted_effects"] > 0),
        "broken_lineage": rate(lambda o: o["broken_lineage"]),
        "broken_at": min(broken, key=lambda k: (-broken[k], k)) if broken else "",
        "turn_quartiles": [quantile([o["turns"] for o in outcomes], q) for q in (.25, .5, .75)],
    }
    return out


def group(trials, key):
    out = defaultdict(list)
    for t in trials:
        out[key(t)].append(t)
    return out


def compare_rows(x):
    r = x.report
    for name, factors in (("rows", ("model", *FACTORS[:3], *FACTORS[4:])), ("cells", ("model", *FACTORS))):
        key = lambda t: tuple(t.get(k, "") for k in factors)
        planned, outcomes, attempts = (group(all_, key) for all_ in (x.plan.values(), x.outcomes, x.attempts))
        seen = set()
        for row in r[name]:
            k = key(row)
            seen.add(k)
            check.same(f"{name}[{k}]", row_figures(x, len(planned[k]), outcomes[k], attempts[k]), row)
            check.true(f"{name}[{k}]: levels add up",
                       row["full_success"] + row["partial_success"] + row["failure"] == row["done"] <= row["planned"])
            if row["floor"] is not None and row["best_possible"] is not None:
                check.true(f"{name}[{k}]: floor <= best", row["floor"] <= row["best_possible"] + 1e-12, row)
            if row["of_best"] is not None:
                check.true(f"{name}[{k}]: of_best <= 1", row["of_best"] <= 1, row["of_best"])
        check.same(name, sorted(map(str, planned)), sorted(map(str, seen)))
        check.same(name + " in all", [len(x.plan), len(x.outcomes)],
                   [sum(row[k] for row in r[name]) for k in ("planned", "done")])


def compare_table(x):
    r = x.report
    met = {"faults": Counter(), "retried": Counter()}
    for a in x.attempts:
        if a["superseded"] or a["fault"] == "interrupted":
            continue
        if a["fault"]:
            met["faults"][a["fault"]] += 1
        met["retried"].update(a["retried"] or {})
    check.same("table", {
        "planned": len(x.plan), "done": len(x.outcomes),
        "population": {"tasks": x.tasks, "sequences": x.sequences, "cluster": "sequence" if x.by_sequence else "task"},
        "met": {k: dict(v) for k, v in met.items()},
        "templates": sorted({o["templates"] for o in x.outcomes}),
        "score_versions": sorted({o["score_version"] for o in x.outcomes}), "killed_runs": x.s["killed"] or None,
        "replaced": len({a["trial"] for a in x.attempts if a["superseded"] and a["level"]} & x.by_trial.keys()) or None,
        "averaged_over": averaged(x.plan.values(), lambda t: condition(t, ("task_type",))),
    }, r)
    for k in met:
        check.same("met." + k, sum(met[k].values()), sum((r["met"][k] or {}).values()))
    check.true("skipped", r["skipped"] <= r["planned"] - r["done"], r["skipped"])
    loops = Counter(o["loop"] for o in x.outcomes if o["loop"])
    check.same("loops", dict(loops), {l["kind"]: l["episodes"] for l in r["loops"]})
    check.same("loops in all", sum(loops.values()), sum(l["episodes"] for l in r["loops"]))
    outcomes, planned, attempts = (group(all_, lambda t: t["model"]) for all_ in (x.outcomes, x.plan.values(), x.attempts))
    check.same("main", x.order, [m["model"] for m in r["main"]])
    for row in r["main"]:
        check.same(f"main[{row['model']}]", main_figures(x, len(planned[row["model"]]), outcomes[row["model"]]), row)
    for row in r["distributions"]:
        mine = outcomes[row["model"]]
        check.same(f"effort[{row['model']}]", effort_figures(x, mine, attempts[row["model"]]), row)
        for q, got in zip((.25, .5, .75, .95), row["token_quartiles"] + [row["tokens_95"]] if mine else []):
            want = quantile([o["input_tokens"] + o["output_tokens"] for o in mine], q)
            check.same(f"effort[{row['model']}].tokens {q}", want, got, 0.0251)
        if mine:
            check.true("quartiles rise", row["turn_quartiles"] == sorted(row["turn_quartiles"])
                       and row["token_quartiles"] == sorted(row["token_quartiles"]), row)
    causes = {o["cause"] for o in x.outcomes if not o["full"]}
    check.same("causes", sorted(causes), sorted(r["errors"]["causes"]))
    for row in r["errors"]["rows"]:
        failed = [o for o in outcomes[row["model"]] if not o["full"]]
        check.same(f"errors[{row['model']}]", {
            "done": len(outcomes[row["model"]]), "total": len(failed),
            "cells": [{"cause": c, **without(x.share(failed, lambda o: o["cause"] == c), "of")}
                      for c in r["errors"]["causes"]]}, row)
        check.true("causes add up", sum(c["count"] for c in row["cells"]) == row["total"], row)
    judged = group([o for o in x.outcomes if o.get("pilot")], lambda o: (o["model"], o["variant"]))
    cells = {condition(o) for o in x.outcomes if o.get("pilot")}
    check.same("pilot averaged", averaged([t for t in x.plan.values() if condition(t) in cells],
                                          lambda t: (t["model"], t["variant"])), r["pilot"]["averaged_over"])
    check.same("pilot", sorted(map(str, judged)), sorted(str((p["model"], p["variant"])) for p in r["pilot"]["rows"]))
    for row in r["pilot"]["rows"]:
        mine = judged[row["model"], row["variant"]]
        check.same("pilot rows", {"done": len(mine), **{
            k: without(x.share(mine, lambda o: o["pilot"][k] == "full_success"), "of")
            for k in ("executor", "paper", "batch")}}, row)
    by_mix = len({mix_name(t) for t in x.plan.values()}) > 1
    met = group(x.outcomes, lambda o: (o["model"], mix_name(o) if by_mix else ""))
    for row in r["exposures"]:
        mine = met[row["model"], row.get("fault_mix", "")]
        check.same("exposures", {"done": len(mine), "faults_scheduled": sum(o["faults_scheduled"] for o in mine),
                                 "faults_met": sum(o["faults_met"] for o in mine)}, row)
        struck = [o for o in mine if o["faults_delivered"]]
        if struck:
            check.same("reactions", {"faults_delivered": len(struck), **{
                k: sum(of(o) for o in struck) / len(struck) for k, of in {
                    "faults_detected": lambda o: o["faults_detected"] == o["faults_delivered"],
                    "faults_recovered": lambda o: o["faults_recovered"] == o["faults_delivered"],
                    "faults_repeated": lambda o: o["faults_repeated"] > 0}.items()}}, row)
        else:
            check.true("no reactions", "faults_detected" not in row, row)
        check.true("met <= scheduled", row["faults_met"] <= row["faults_scheduled"], row)
    if not r["exposures"]:
        check.same("exposures", 0, sum(o["faults_scheduled"] for o in x.outcomes))


ORDER = ("variant", "task_type", "difficulty", "severity", "reliability", "fault_mix", "interface", "phrasing", "repeat")


def averaged(trials, key):
    """The factors that vary among trials with the same key."""
    varies = set()
    for some in group(trials, key).values():
        for name in ORDER:
            # Plans without a flaw have no severity.
            levels = {(t["repeat"], t["replay"]) if name == "repeat" else t[name]
                      for t in some if name != "severity" or t[name]}
            if len(levels) > 1:
                varies.add(name)
    return [name for name in ORDER if name in varies]


def plain_trials(trials):
    """The trials with the right plan, or else with the first variant without a flaw."""
    for v in PLAIN:
        some = [t for t in trials if plain_of(t["variant"]) == v]
        if some:
            return some, v
    for v in [t["variant"] for t in trials if not is_flawed(t["variant"])][:1]:
        return [t for t in trials if t["variant"] == v], v
    return [], None


def rate_over_tasks(x, field, m, outcomes):
    """A model's rate of full success, in which tasks have their weights."""
    rate, interval = f.weighted_rate([
        (x.cluster[t] if x.by_sequence else i, w, [tuple(c[m]) for c in at.values()])
        for i, (t, w, at) in enumerate(field.tasks([m], outcomes))])
    return {"count": sum(map(full, outcomes)), "rate": rate, "interval": pair(interval)}


CONTENT = ("content_filter", "bad_request")


class Field:
    """The trials on which models are compared."""

    def __init__(self, x):
        self.x = x
        done, planned = Counter(o["model"] for o in x.outcomes), Counter(t["model"] for t in x.plan.values())
        self.selected = {}
        blocked = {}  # trials without an outcome, with the first fault that depends on their content
        for a in x.attempts:
            if a["trial"] not in x.by_trial and a["fault"] in CONTENT:
                blocked.setdefault(a["trial"], a["fault"])
        for m in x.order:
            kinds = Counter(k for t, k in blocked.items() if x.plan[t]["model"] == m)
            self.selected[m] = ", ".join(f"{kinds[k]} {k}" for k in CONTENT if kinds[k])
        models = [m for m in x.order if done[m]]
        if any(not m.startswith("sim/") for m in models):
            models = [m for m in models if not m.startswith("sim/")]
        self.complete = {m: not self.selected[m] and done[m] >= .95 * planned[m] for m in x.order}
        self.deciders = [m for m in models if self.complete[m]] or models
        self.meeting = lambda t: (condition(t, ("model",)), t["task"], t["repeat"], t["replay"])
        sets = [{self.meeting(o) for o in x.outcomes if o["model"] == m} for m in self.deciders]
        common = set.intersection(*sets) if sets else set()
        self.own = not common
        self.common = [o for o in x.outcomes if self.own or self.meeting(o) in common]
        some, name = plain_trials(self.common)
        self.only_flawed = not some
        some, name = (some, name) if some else (self.common, "flawed plans")
        self.name = {"optimal": "right plan"}.get(name, name)
        self.most = max((o["reliability"] for o in some), default=0)
        self.plain = [o for o in some if o["reliability"] == self.most]
        plan = {"optimal": "the right plan", "baseline": "no plan", "flawed plans": name}.get(name, f"variant {name}")
        words = []
        for factor, name in (("phrasing", "plain words"), ("interface", "own interfaces")):
            level = LEVELS[factor]
            if len({level(o) for o in self.plain} | {"plain"}) == len({level(o) for o in self.plain}) > 1:
                self.plain = [o for o in self.plain if level(o) == "plain"]
                words.append(name)
        tools = "reliable tools" if self.most == 1 else "reliability " + number(self.most)
        self.condition = f"{', '.join([plan, *words])} and {tools}" if self.common else ""
        planned_tasks, done_tasks = defaultdict(set), defaultdict(set)
        for tasks, trials in ((planned_tasks, x.plan.values()), (done_tasks, self.common)):
            for t in trials:
                tasks[condition(t, ("model",))].add(t["task"])
        # After a stop rule, tasks weigh as planned: those that are done stand for those that are missing.
        stopped = x.report["skipped"] > 0
        self.weight = {c: len(planned_tasks[c]) / len(done_tasks[c]) if stopped else 1. for c in done_tasks}

    def tasks(self, models, outcomes):
        """Tasks as (task, weight, {condition: {model: (full, n)}}). Its types and difficulties tell tasks apart."""
        places = defaultdict(lambda: defaultdict(lambda: {m: [0, 0] for m in models}))
        for o in outcomes:
            if o["model"] in models:
                g = places[o["task"], o["difficulty"], o["task_type"]][condition(o, ("model",))][o["model"]]
                g[0] += o["full"]
                g[1] += 1
        # The draws of the test are the same for the same order of tasks.
        place = {t: i for i, t in enumerate(dict.fromkeys(t["task"] for t in self.x.plan.values()))}
        return [(p[0], sum(self.weight[c] for c in at) / len(at), at) for p, at in sorted(
            places.items(), key=lambda item: (place[item[0][0]], *item[0][1:]))]

    def rank(self):
        """The rate of each decider, and the p of each pair after max-T and closing over the order."""
        models, cluster = self.deciders, self.x.cluster
        sums, least, total = {}, [[0.] * len(models) for _ in models], 0.
        used = set()
        for i, (task, weight, at) in enumerate(self.tasks(models, self.plain)):
            cells = [c for c in at.values() if all(n > 0 for _, n in c.values())]
            if not cells:
                continue
            used.add(i)
            total += weight
            row = sums.setdefault(cluster[task] if self.x.by_sequence else i, [0.] * len(models))
            for c in cells:
                w = weight / len(cells)
                for a, m in enumerate(models):
                    row[a] += w * c[m][0] / c[m][1]
                    for b, other in enumerate(models):
                        if c[m][1] != c[other][1]:
                            least[a][b] += w * w * f.hypergeometric_variance(*c[m], *c[other]) / 2
        rates = [min(1, math.fsum(s[i] for s in sums.values()) / total) for i in range(len(models))]
        raw = f.max_t(list(sums.values()), least)

        def p(a, b):
            """a is better: the largest p of any pair of which one is at least as good as a, and the other at most
            as good as b."""
            if rates[a] - rates[b] < 1e-9:
                return 1.
            up = [i for i in range(len(models)) if rates[i] > rates[a] - 1e-9]
            down = [i for i in range(len(models)) if rates[i] < rates[b] + 1e-9]
            return max(raw[min(i, k), max(i, k)] for i in up for k in down)

        return rates, p, len(sums), len(used)


def loss_figures(x, outcomes, reference, levels, factor):
    """The cost of levels of a factor, compared with references."""
    refs = {LEVELS[factor](o) for o in outcomes if plain_of(LEVELS[factor](o)) == reference}
    pairs = x.pairs(outcomes, refs, set(levels), factor)
    if not pairs.tasks:
        return None, 1.
    share, low, high = pairs.lost()
    want = paired_figures(pairs)
    return {**want, "reference": reference, "lost": {"share": share, "low": low, "high": high}}, want["p"]


def cost_figures(x, outcomes, reference, levels, factor, got):
    want, p = loss_figures(x, outcomes, reference, levels, factor)
    if want is None:
        return None
    if len(levels) == 1:
        return {**want, "level": levels[0], "q": got["q"] if got else p}
    kinds = []
    for l in levels:
        k, own = loss_figures(x, outcomes, reference, [l], factor)
        if k:
            kinds.append({**k, "level": l, "q": min(1, own * len(levels))})
    kinds.sort(key=lambda k: k["difference"])
    if got and got.get("kinds") and [k["level"] for k in kinds] != [k["level"] for k in got["kinds"]]:
        # Equal differences have no order.
        at = {k["level"]: i for i, k in enumerate(got["kinds"])}
        kinds.sort(key=lambda k: (round(k["difference"], 9), at.get(k["level"], 0)))
    return {**want, "level": "", "q": got["q"] if got else p, "kinds": kinds}


def standing_figures(x, field, m, got):
    mine = [o for o in field.common if o["model"] == m]
    planned = [t for t in x.plan.values() if t["model"] == m]
    done = [o for o in x.outcomes if o["model"] == m]
    ranked = [o for o in field.plain if o["model"] == m]
    out = {
        "planned": len(planned), "done": len(done), "common": len(mine), "own_trials": field.own or None,
        "ranked_trials": len(ranked), "selected": field.selected[m] or None,
        "full_success": rate_over_tasks(x, field, m, ranked),
        "recovery": without(x.share(mine, full, lambda o: o["hit"]), "of"), "hit": sum(o["hit"] for o in mine),
        "false_success": without(x.share(mine, lambda o: o["claimed"], lambda o: o["failed"]), "of"),
        "failed": sum(o["failed"] for o in mine),
    }
    # Skill.
    bound = [o for o in mine if o["measured"] and o["floor"] is not None]
    out["skill"] = None
    if bound:
        floor, ceiling = mean(o["floor"] for o in bound), mean(o["best_possible"] for o in bound)
        won = x.share(bound, full, lambda o: o["winnable"])
        if ceiling - floor >= .2 and won["of"]:
            between = lambda r: (r * ceiling - floor) / (ceiling - floor)
            out["skill"] = {"rate": between(won["rate"]), "floor": floor, "ceiling": ceiling, "trials": len(bound),
                            "interval": {k: between(v) for k, v in won["interval"].items()}}
        elif abs(ceiling - floor - .2) < 1e-12:
            out.pop("skill")  # rounding decides
    # Conditions and what they cost.
    plain, _ = plain_trials(mine)
    out["conditions"] = []
    words = {(o["phrasing"], o["interface"]) for o in ranked}
    alike = lambda o: (o["phrasing"], o["interface"]) in words
    for label, some in ((field.name, ranked),
                        ("flawed plans", [o for o in mine if o["hurts"] and o["reliability"] == field.most
                                          and alike(o) and not field.only_flawed]),
                        ("failing tools", [o for o in plain if o["reliability"] < field.most and alike(o)])):
        if some and ranked:
            out["conditions"].append({"name": label, "done": len(some), **rate_over_tasks(x, field, m, some)})
    some = [o for o in mine if not is_flawed(o["variant"]) or o["hurts"]]
    severities = {o["severity"] for o in some if is_flawed(o["variant"])}
    factor = "variant and severity" if len(severities) > 1 else "variant"
    flawed = list(dict.fromkeys(LEVELS[factor](o) for o in some if is_flawed(o["variant"])))
    out["flawed_plan"] = cost_figures(x, some, "optimal", flawed, factor, got["flawed_plan"]) if flawed else None
    failing = list(dict.fromkeys(tools_name(o) for o in plain if o["reliability"] != 1))
    out["failing_tools"] = cost_figures(x, plain, "reliable tools", failing, "tools", got["failing_tools"]) if failing else None
    # Money of all attempts at the common trials.
    ids = {o["trial"] for o in mine}
    money = [a for a in x.attempts if a["trial"] in ids]
    usd, unpriced = math.fsum(a["cost_usd"] for a in money), sum(a["unpriced_tokens"] for a in money)
    out["unpriced_tokens"] = unpriced or None
    # Some money is unknown if tokens at any trial of the model are unpriced, or if a run was killed.
    own = [a for a in x.attempts if a["model"] == m]
    least = any(a["unpriced_tokens"] for a in own) or x.s["killed"] and any(a["cost_usd"] for a in own)
    out["usd_at_least"] = None
    out["usd_per_success"], out["usd_per_trial"] = None, None
    if usd > 0:
        clusters = defaultdict(lambda: [0., 0, 0])
        for a in money:
            clusters[x.cluster[a["task"]]][0] += a["cost_usd"]
        for o in mine:
            clusters[x.cluster[o["task"]]][1] += o["full"]
            clusters[x.cluster[o["task"]]][2] += 1
        dollars, low, high = f.price(list(clusters.values()))
        out["usd_per_success"] = {"usd": dollars, "low": low, "high": None if least else high}
        out["usd_at_least"] = True if least else None
        out["usd_per_trial"] = usd / len(mine)
    return out


def compare_standings(x):
    r, field = x.report, Field(x)
    by = {s["model"]: s for s in r["standings"]}
    check.same("standings", sorted({o["model"] for o in x.outcomes}), sorted(by))
    check.same("condition", field.condition, r["condition"])
    skill = []
    for m, s in by.items():
        check.same(f"standings[{m}]", standing_figures(x, field, m, s), s)
        skill.append(s["skill"])
    for m, s in by.items():  # the picture has the rates of the table
        if s["conditions"]:
            check.same(f"standings[{m}]: the first condition", s["full_success"], s["conditions"][0])
    family = [c for s in by.values() for c in (s["flawed_plan"], s["failing_tools"]) if c]
    check.same("q of costs", f.benjamini_hochberg([c["p"] for c in family]), [c["q"] for c in family], 1e-6)
    known = any(o["measured"] and o["floor"] is not None for o in field.common)
    check.same("no_room_for_skill", known and not any(skill) or None, r.get("no_room_for_skill"))
    for m, s in by.items():
        for k in ("flawed_plan", "failing_tools"):
            if s[k] and s[k]["lost"]["low"] is not None:
                l = s[k]["lost"]
                check.true(f"standings[{m}].{k}: the loss is in its interval",
                           l["low"] - 1e-6 <= l["share"] <= l["high"] + 1e-6, l)
    ranking = r["ranking"]
    if len(field.deciders) < 2 or field.own or not field.plain:
        check.same("ranking", None, ranking)
        for m, s in by.items():
            check.same(f"standings[{m}]", {"best": False, "compared": field.complete[m] and m in field.deciders
                                           and ranking is not None}, s)
        check.same("order of standings", in_order(field, by, []), [s["model"] for s in r["standings"]])
        return field, None
    rates, p, clusters, tasks = field.rank()
    sequences = len({x.sequence[t] for t, _, at in field.tasks(field.deciders, field.plain)
                     if any(all(n for _, n in c.values()) for c in at.values())})
    many = len(rates) * (len(rates) - 1) / 2
    check.same("ranking", {
        "sequences": sequences, "clusters_needed": 1 + math.ceil(math.log2(max(1, many / .05))),
        "averaged_over": averaged(field.plain, lambda o: o["model"]), "names": field.deciders, "condition": field.condition, "clusters": clusters, "tasks": tasks,
        "models": [{"rate": rate} for rate in rates]}, ranking)
    k = range(len(rates))
    beats = {(a, b): p(a, b) for a in k for b in k if a != b and p(a, b) <= .05}
    check.same("ranking.better", {f"{field.deciders[a]} > {field.deciders[b]}": v for (a, b), v in beats.items()},
               {f"{b['a']} > {b['b']}": b["p"] for b in ranking["better"]})
    check.same("ranking.better in all", len(beats), len(ranking["better"]))
    order = ranking["order"]
    check.true("order falls", all(rates[a] >= rates[b] - 1e-12 for a, b in zip(order, order[1:])), order)
    decides = clusters >= 6 and max(rates) > 0
    decides = decides and all(field.complete[m] for m in field.deciders)
    best = {m: decides and (order[0], i) not in beats for i, m in enumerate(field.deciders)}
    for i, m in enumerate(field.deciders):
        check.same(f"ranking.models[{m}]", {
            "best": best[m], "first_rank": 1 + sum((o, i) in beats for o in k),
            "last_rank": len(rates) - sum((i, o) in beats for o in k)}, ranking["models"][i])
    for m, s in by.items():
        compared = m in field.deciders and field.complete[m]
        check.same(f"standings[{m}]", {"compared": compared, "best": compared and best[m]}, s)
    check.same("order of standings", in_order(field, by, [field.deciders[i] for i in order]),
               [s["model"] for s in r["standings"]])
    # The rate of the ranking is that of the first screen, if models have the same trials.
    for i, m in enumerate(field.deciders):
        check.same(f"standings[{m}].full_success is ranked", rates[i], by[m]["full_success"]["rate"])
    return field, p


def in_order(field, by, ranked):
    """Ranked models, then those that decide which trials count, then others, each by rate."""
    rest = [m for m in field.x.order if m in by and m not in ranked]
    rest.sort(key=lambda m: (m not in field.deciders, -by[m]["full_success"]["rate"]))
    return ranked + rest


def paired_figures(pairs):
    interval, p = pairs.test()
    h = 2 * math.asin(math.sqrt(pairs.b)) - 2 * math.asin(math.sqrt(pairs.a))
    detectable, power = pairs.detectable()
    return {"tasks": pairs.tasks, "pairs": pairs.pairs, "clusters": len(pairs.sizes), "sequences": pairs.sequences,
            "conditions": pairs.conditions, "method": pairs.method if pairs.tasks else None, "rate_a": pairs.a,
            "rate_b": pairs.b, "difference": pairs.difference, "interval": pair(interval), "p": p,
            "only_a": pairs.only_a, "only_b": pairs.only_b, "cohen_h": h, "detectable": detectable, "power": power,
            "odds_ratio": (pairs.only_b + .5) / (pairs.only_a + .5)}


# The levels of factors, of which all others are compared with the first one that an experiment has.
IN_ORDER = {"difficulty": ["very_easy", "easy", "medium", "hard", "very_hard"],
            "interface": ["plain", "mild", "medium", "severe"], "phrasing": ["plain", "reordered", "casual", "typed"]}


def compare_pairs(x, field, p):
    r = x.report
    for name in ("variant_comparisons", "level_comparisons"):
        for c in r[name]:
            factor = c.get("factor") or x.prompt_factor
            mine = [o for o in x.outcomes if o["model"] == c["model"]]
            pairs = x.pairs(mine, {c["a"]}, {c["b"]}, factor, [t for t in x.plan.values() if t["model"] == c["model"]])
            at = f"{name}[{c['model']}: {c['a']}, {c['b']}]"
            check.true(at + " has tasks", pairs.tasks > 0)
            if pairs.tasks:
                check.same(at, paired_figures(pairs), c)
            check.true(at + ": p and interval agree", (c["p"] < .05) == (not c["interval"]["low"] <= 0 <= c["interval"]["high"])
                       or abs(c["p"] - .05) < 1e-6, c)
            if name == "variant_comparisons" and plain_of(c["a"]) != "optimal":
                optimal = {LEVELS[factor](o) for o in mine if o["variant"] == "optimal"}
                check.true(at + ": nothing to compare with optimal",
                           not optimal or not x.pairs(mine, optimal, {c["b"]}, factor).tasks)
    for factor, order in IN_ORDER.items():
        want = set()
        for m in x.order:
            level = LEVELS[factor]
            levels = {level(t) for t in x.plan.values() if t["model"] == m}
            levels = sorted(levels, key=order.index) if len(levels) > 1 else list(levels)
            mine = [o for o in x.outcomes if o["model"] == m]
            want |= {(m, levels[0], b) for b in levels[1:] if x.pairs(mine, {levels[0]}, {b}, factor).tasks}
        check.same("level_comparisons of " + factor, sorted(want), sorted(
            (c["model"], c["a"], c["b"]) for c in r["level_comparisons"] if c["factor"] == factor))
    family = r["variant_comparisons"] + r["level_comparisons"]
    if r["tests"] == len(family):
        check.same("q", f.benjamini_hochberg([c["p"] for c in family]), [c["q"] for c in family], 1e-6)
    if p is None:
        check.same("model_comparisons", [], r["model_comparisons"])
        return
    place = {m: i for i, m in enumerate(field.deciders)}
    for c in r["model_comparisons"]:
        at = f"model_comparisons[{c['a']}, {c['b']}]"
        pairs = x.pairs(field.plain, {c["a"]}, {c["b"]}, "model")
        a, b = place[c["a"]], place[c["b"]]
        check.same(at, {**paired_figures(pairs), "q": min(p(a, b), p(b, a))}, c)


def pivot_cell(x, level, planned, outcomes):
    s = x.share(outcomes, full)
    return {"level": level, "done": len(outcomes), "planned": planned, "full": s["count"], "rate": s["rate"],
            "interval": s["interval"]}


def compare_pivot(x, at, pivot, planned, outcomes, all_planned, all_outcomes):
    """Compares a table of a factor's levels, over some of the trials."""
    factor = pivot["factor"]
    severities = {t["severity"] for t in planned if is_flawed(t["variant"])}
    by = "variant and severity" if factor == "variant" and len(severities) > 1 else factor
    level = LEVELS[by]
    check.same(at + ".averaged", averaged(planned, lambda t: (t["model"], level(t))), pivot["averaged_over"])
    kind = {"reliability": "first_minus_last", **dict.fromkeys(
        ("difficulty", "severity", "fault_mix", "interface", "phrasing"), "last_minus_first")}
    check.same(at + ".contrast", "flawed_mean_minus_optimal" if factor == "variant" and severities else kind.get(
        factor) if len(pivot["levels"]) > 1 else None, pivot.get("contrast"))
    check.same(at + ".levels", sorted({level(t) for t in planned}), sorted(pivot["levels"]))
    for row in pivot["rows"]:
        m = row["model"]
        mine = [o for o in outcomes if o["model"] == m]
        cells = [pivot_cell(x, l, sum(t["model"] == m and level(t) == l for t in planned),
                            [o for o in mine if level(o) == l]) for l in pivot["levels"]]
        rates = [c["rate"] if c["done"] else None for c in cells if c["planned"]]
        want = {"cells": cells, "mean": None if None in rates or not rates else mean(rates)}
        first, last = pivot["levels"][0], pivot["levels"][-1]
        sides = {"first_minus_last": (last, first), "last_minus_first": (first, last)}.get(pivot.get("contrast"))
        if sides:
            a, b, by = {sides[0]}, {sides[1]}, factor
            if factor == "reliability" and {tools_name(t) for t in mine if level(t) == first} == {"reliable tools"}:
                # Tools that never fail stand for every mix of faults.
                a, b, by = {tools_name(t) for t in mine if level(t) == last}, {"reliable tools"}, "tools"
            pairs = x.pairs(mine, a, b, by, [t for t in planned if t["model"] == m])
            want["difference"] = pairs.difference if pairs.tasks else None
            if pairs.tasks:
                want.update(difference_95=pair(pairs.test()[0]), difference_tasks=pairs.tasks)
        if factor == "variant":
            want.update(variant_figures(x, cells, mine, by, all_outcomes, all_planned, row))
        check.same(f"{at}[{m}]", want, row)
    for row in pivot.get("metrics") or []:
        m = row["model"]
        check.same(f"{at}.metrics[{m}]", main_figures(x, sum(t["model"] == m for t in planned), [
            o for o in outcomes if o["model"] == m]), row)


def variant_figures(x, cells, mine, by, all_outcomes, all_planned, row):
    """Figures that set variants against each other. Flaws that hurt nobody are left out."""
    level, m, want = LEVELS[by], row["model"], {}
    rates, names, harmless = [], [], 0
    for c in cells:
        if not c["planned"] or not is_flawed(c["level"]):
            continue
        hurting = [o for o in mine if level(o) == c["level"] and o["hurts"]]
        harmless += c["done"] - len(hurting)
        if c["done"] and not hurting:
            continue
        rates.append(x.share(hurting, full)["rate"] if hurting else None)
        names.append(c["level"])
    want["harmless"] = harmless or None
    if not names:
        return want  # a mean of other parts has its own test
    flawed_mean = None if None in rates else mean(rates)
    want["flawed_mean"] = flawed_mean
    own = [c for c in cells if c["planned"] and c["level"] == "optimal"]
    optimal = own[0] if own else row.get("optimal")
    want["difference"] = None
    if flawed_mean is not None and optimal and optimal["done"]:
        against = [o for o in mine if o["hurts"]] + [
            o for o in all_outcomes if o["model"] == m and plain_of(o["variant"]) == "optimal"]
        refs = {level(o) for o in against if plain_of(o["variant"]) == "optimal"}
        pairs = x.pairs(against, refs, set(names), by)
        if pairs.tasks:
            want.update(difference=pairs.difference, difference_95=pair(pairs.test()[0]), difference_tasks=pairs.tasks)
    plain = {c["level"]: c["rate"] if c["done"] else None for c in cells if c["planned"] and not is_flawed(c["level"])}
    if plain.keys() >= set(PLAIN):
        values = [*plain.values(), flawed_mean]
        if None not in values:
            centre = mean(values)
            want["sensitivity"] = math.sqrt(mean((v - centre) ** 2 for v in values))
    return want


def parts_of(file):
    """The parts of an experiment by name, each as a function that says whether it has a trial."""
    lists = lambda text: {k: v.split(", ") for k, v in re.findall(r"(\w+): \[(.*?)\]", text)}
    common = {"phrasings": ["plain"], "interfaces": ["plain"], **lists(file.partition("parts:")[0])}

    def part(own):
        levels = {**common, **lists(own)}
        return lambda t: (plain_of(t["variant"]) in levels["variants"]
                          and number(t["reliability"]) in levels["reliabilities"]
                          and LEVELS["phrasing"](t) in levels["phrasings"]
                          and LEVELS["interface"](t) in levels["interfaces"])

    return {name: part(own) for name, own in re.findall(r"- \{name: (\w+),(.*)\}", file)}


def compare_pivots(x):
    r = x.report
    planned, outcomes = list(x.plan.values()), x.outcomes
    for pivot in r["pivots"]:
        some, done = planned, outcomes
        if pivot["factor"] == "fault_mix":
            _, name = plain_trials(planned)
            only = lambda t: plain_of(t["variant"]) == name and t["reliability"] < 1
            some, done = [t for t in planned if only(t)], [o for o in outcomes if only(o)]
        compare_pivot(x, f"pivots {pivot['factor']}", pivot, some, done, planned, outcomes)
    parts = parts_of(x.s["file"])
    if parts:
        check.same("parts", list(parts), [p["name"] for p in r["parts"]])
        check.true("parts have all trials", all(any(has(t) for has in parts.values()) for t in planned))
    for part in r["parts"]:
        has = parts.get(part["name"], lambda t: True)
        compare_pivot(x, f"parts {part['factor']}", part, [t for t in planned if has(t)],
                      [o for o in outcomes if has(o)], planned, outcomes)
        check.same("parts in all", sum(map(has, planned)), sum(c["planned"] for row in part["rows"] for c in row["cells"]))
    if parts:
        return
    varies = len({t["reliability"] for t in planned}) > 1
    check.true("curves", bool(r["reliability"]) == varies)
    for c in r["reliability"]:
        for point in c["points"]:
            some = [o for o in outcomes if o["model"] == c["model"] and o["reliability"] == point["reliability"]
                    and LEVELS[x.prompt_factor](o) == c["variant"]]
            s = x.share(some, full)
            check.same("curves", {"done": len(some), "rate": s["rate"], "interval": s["interval"],
                                  "best_possible": mean(o["best_possible"] for o in some if o["measured"])}, point)


def compare_repeats(x):
    r, seen = x.report, {}
    for m in x.order:
        cells = defaultdict(lambda: [0, 0])
        for o in x.outcomes:
            if o["model"] == m and not o["replay"]:
                g = cells[o["task"], condition(o)]
                g[0] += o["full"]
                g[1] += 1
        if any(n > 1 for _, n in cells.values()):
            seen[m] = cells
    check.same("repeats", sorted(seen), sorted(p["model"] for p in r["repeats"]))
    for row in r["repeats"]:
        cells = seen.get(row["model"], {})
        tasks = defaultdict(list)
        for (task, _), g in cells.items():
            tasks[task].append(tuple(g))
        trials = sorted(max(n for _, n in c) for c in tasks.values())
        most = max(k for k in trials if 2 * sum(n >= k for n in trials) >= len(trials))
        ks = [1 << i for i in range(10) if 1 << i < most] + [most]
        kept = {t: [g for g in c if g[1] >= most] for t, c in tasks.items()}
        want = []
        for k in ks:
            p = {"k": k}
            for name, of in (("at", f.pass_at), ("hat", f.pass_hat)):
                values = [(x.cluster[t], mean(of(n, c, k) for c, n in gs)) for t, gs in kept.items() if gs]
                p[name], interval = f.mean_of_shares(values)
                p[name + "_interval"], p["tasks"] = pair(interval), len(values)
            want.append(p)
        check.same("passes", want, row["passes"])
        for a, b in zip(row["passes"], row["passes"][1:]):
            check.true("pass@k rises, pass^k falls", a["at"] <= b["at"] + 1e-12 and a["hat"] >= b["hat"] - 1e-12, row)
        # Noise: how often two repeats of a task in a cell differ.
        flips = []
        for t, gs in tasks.items():
            some = [2 * c * (n - c) / (n * (n - 1)) for c, n in gs if n > 1]
            if some:
                flips.append((x.cluster[t], mean(some)))
        flip, interval = f.mean_of_shares(flips)
        unstable = mean(mean(0 < c < n for c, n in gs if n > 1) for gs in tasks.values() if any(n > 1 for _, n in gs))
        check.same("noise", {"unstable": unstable or 0, **noise(x, row["model"], tasks, interval),
                             "flip": flip, "flip_interval": pair(interval), "repeated": len(flips), "tasks": len(tasks)},
                   row["noise"])


CONSISTENCY = ("consistency_outcome", "consistency_replays", "consistency_trajectory_distribution",
               "consistency_trajectory_sequence", "consistency_resources", "published_consistency_outcome",
               "published_consistency_resources")
FLIPS = CONSISTENCY[:2]


def consistency(runs):
    """The figures of a task under one condition, which are None without the pairs of runs that they need."""
    pairs = list(combinations(runs, 2))
    replays = [p for p in pairs if p[0]["repeat"] == p[1]["repeat"]]
    repeats = [p for p in pairs if p[0]["repeat"] != p[1]["repeat"]]
    differ = lambda pairs: mean(a["full"] != b["full"] for a, b in pairs)
    won = [(a["executed_tools"], b["executed_tools"]) for a, b in repeats if a["full"] and b["full"]]
    figures = [
        differ(repeats), differ(replays),
        mean(1 - f.divergence(a, b) for a, b in won),
        mean(1 - f.edits(a, b) / max(1, len(a), len(b)) for a, b in won),
        mean(math.exp(-f.variation([a["used"], b["used"]])) for a, b in repeats),
    ]
    if not repeats:
        return figures + [None, None]
    return figures + [(2 * mean(map(full, runs)) - 1) ** 2, math.exp(-f.variation([r["used"] for r in runs]))]


def profile_figures(x, mine):
    """The figures of a profile, which are None without outcomes that they need."""
    timed = sum(o["working_ms"] for o in mine) >= 1000 * len(mine)
    units = defaultdict(lambda: defaultdict(list))  # by task and condition
    for o in mine:
        tokens = o["input_tokens"] + o["output_tokens"] - o["confidence_input_tokens"] - o["confidence_output_tokens"]
        o["used"] = [tokens or None, o["turns"], o["tool_calls"], o["working_ms"] if timed else None]
        units[o["task"]][condition(o)].append(o)
    out = {}
    tasks = {t: list(zip(*map(consistency, cells.values()))) for t, cells in units.items()}
    for i, name in enumerate(CONSISTENCY):
        values = [(x.cluster[t], mean(v for v in c[i] if v is not None)) for t, c in tasks.items()
                  if any(v is not None for v in c[i])]
        if name in FLIPS and values:
            flip, (low, high) = f.mean_of_shares(values)
            value = 1 - 2 * flip
            out[name] = estimate(value, (max(1 - 2 * high, min(0, value)), 1 - 2 * low), len(values))
        else:
            out[name] = estimate(*f.mean_of_figures(values), len(values)) if values else None
    out.update(variance_figures(x, units))
    out.update(confidence_figures(x, units))
    return out


def estimate(value, interval, tasks):
    return {"value": value, "interval": pair(interval), "tasks": tasks}


def variance_figures(x, units):
    """How the variance of outcomes is divided, over the tasks with replays and repeats under a condition."""
    names = ("variance_task", "variance_luck", "variance_model")
    tasks, clusters = [], []
    for t, cells in units.items():
        own = {}
        for runs in cells.values():
            pairs = list(combinations(runs, 2))
            replays = [a["full"] != b["full"] for a, b in pairs if a["repeat"] == b["repeat"]]
            repeats = [a["full"] != b["full"] for a, b in pairs if a["repeat"] != b["repeat"]]
            if replays and repeats:
                # Tasks of other types are other tasks under the same condition.
                own[condition(runs[0], ("task_type",))] = mean(replays) / 2, mean(repeats) / 2, mean(map(full, runs))
        if own:
            tasks.append(own)
            clusters.append(x.cluster[t])
    shares = f.split_variance(tasks, clusters)
    return {name: s and estimate(*s, len(tasks)) for name, s in zip(names, shares)}


def confidence_figures(x, units):
    """How well stated confidence predicts outcomes."""
    said = {t: [[(o["stated_confidence"], o["full"]) for o in runs if o["stated_confidence"] is not None]
                for runs in cells.values()] for t, cells in units.items()}
    said = {t: [runs for runs in cells if runs] for t, cells in said.items()}
    said = {t: cells for t, cells in said.items() if cells}
    names = ("confidences", "predictability_brier", "overconfidence", "predictability_auroc", "calibration_error",
             "calibration_error_by_chance", "published_predictability_calibration", "published_predictability_risk",
             "reliability_diagram")
    if not said:
        return dict.fromkeys(names)
    everything = [s for cells in said.values() for runs in cells for s in runs]
    n = len(everything)
    of = lambda figure: [(x.cluster[t], mean(mean(map(figure, runs)) for runs in cells)) for t, cells in said.items()]
    brier = f.mean_of_figures(of(lambda s: 1 - (s[0] - s[1]) ** 2))
    above, (low, high) = f.mean_of_figures(of(lambda s: (1 + s[0] - s[1]) / 2))  # so that it is in [0,1]
    by_task = [(x.cluster[t], [s for runs in cells for s in runs]) for t, cells in said.items()]
    area = f.discrimination(by_task)
    bins = defaultdict(list)
    for cluster, statements in by_task:
        for confidence, success in statements:
            bins[min(9, math.floor(round(100 * confidence) / 10))].append((confidence, success, cluster))
    diagram, error, chance = [], 0., 0.
    for _, some in sorted(bins.items()):
        confidence, rate = mean(s[0] for s in some), mean(s[1] for s in some)
        groups = Counter(s[2] for s in some), Counter(s[2] for s in some if s[1])
        diagram.append({"confidence": confidence, "rate": rate, "runs": len(some), "interval": pair(
            f.clustered([(groups[1][c], k) for c, k in groups[0].items()])[1])})
        error += len(some) / n * abs(confidence - rate)
        # A normal variable is sqrt(2/pi) of its standard deviation away from its mean, on average.
        chance += len(some) / n * math.sqrt(2 / math.pi) * math.sqrt(confidence * (1 - confidence) / len(some))
    return dict(zip(names, (
        n, estimate(*brier, len(said)), estimate(2 * above - 1, (2 * low - 1, 2 * high - 1), len(said)),
        area and estimate(*area, len(said)), error, chance, 1 - error, f.risk_coverage(everything), diagram)))


def compare_profile(x):
    rows = {row["model"]: row for row in x.report.get("profile", [])}
    for m in x.order:
        want = profile_figures(x, [o for o in x.outcomes if o["model"] == m])
        some = any(want[k] is not None for k in ("consistency_outcome", "consistency_replays", "confidences"))
        check.same("profile", some, m in rows)
        if some and m in rows:
            check.same("profile has no more", sorted([*want, "model", "published_safety"]), sorted(rows[m]))
            for name, v in want.items():
                check.same("profile " + name, v, rows[m][name])


ROBUSTNESS = ("phrasing", "interface", "tools", "explicit_transient", "explicit_permanent", "implicit_transient",
              "implicit_permanent", "flaws")
PUBLISHED = {"prompt": ("phrasing", "plain"), "environment": ("interface", "plain"), "fault": ("tools", "reliable tools")}
# By docs/worlds.md: whether the answer says that there is a fault, and whether it stays.
FAULTS = {**dict.fromkeys(("before", "after", "slow", "throttled"), "explicit_transient"),
          **dict.fromkeys(("down", "drift"), "explicit_permanent"), "corrupted": "implicit_permanent",
          **dict.fromkeys(("wrong_shape", "stale", "wrong_value", "partial"), "implicit_transient")}


def kept(x, outcomes, plain, others, factor):
    """The share of the successes at plain levels that is left at others."""
    pairs = x.pairs(outcomes, plain, set(others) - plain, factor)
    share, low, high = pairs.lost()
    if share is None:
        return None
    # What the trials do not bound goes from nothing to ten times the successes.
    return estimate(1 - share, (0 if high is None else 1 - high, 10 if low is None else 1 - low), pairs.tasks)


def robustness_figures(x, field, m):
    mine = [o for o in field.common if o["model"] == m]
    ranked = [o for o in field.plain if o["model"] == m]
    plain, _ = plain_trials(mine)
    classes = defaultdict(set)
    for o in plain:
        if o["reliability"] < 1:
            kinds = {FAULTS[k.partition("=")[0]] for k in mix_name(o).split(",")}
            classes["tools"].add(tools_name(o))
            classes[kinds.pop() if len(kinds) == 1 else "mixed"].add(tools_name(o))
    out = {k: kept(x, mine, {"plain"}, map(LEVELS[k], mine), k) for k in ROBUSTNESS[:2]}
    out |= {k: kept(x, plain, {"reliable tools"}, classes[k], "tools") for k in ROBUSTNESS[2:7]}
    right = {o["variant"] for o in mine if plain_of(o["variant"]) == "optimal"}
    hurting = [o for o in mine if o["hurts"] or o["variant"] in right]
    out["flaws"] = kept(x, hurting, right, {o["variant"] for o in hurting}, "variant")
    out = {"robustness_" + k: v for k, v in out.items()}
    for name, (factor, usual) in PUBLISHED.items():
        without = CLEARED.get(factor, (factor,))
        same = {condition(o, without) for o in ranked}
        others = [o for o in mine if condition(o, without) in same and LEVELS[factor](o) != usual]
        unusual = any(LEVELS[factor](o) != usual for o in ranked)
        rate = mean(map(full, ranked))
        out["published_robustness_" + name] = None if unusual or not others or not rate else min(
            1, mean(map(full, others)) / rate)
    return out


def compare_robustness(x, field):
    rows = {row["model"]: row for row in x.report.get("robustness", [])}
    models = [s["model"] for s in x.report["standings"]]
    want = {m: robustness_figures(x, field, m) for m in models}
    # Failing tools of one class and flawed plans are on the first screen.
    beyond = lambda w: w["robustness_phrasing"] or w["robustness_interface"] or sum(
        w["robustness_" + k] is not None for k in ROBUSTNESS[3:7]) > 1
    check.same("robustness", sorted(models) if any(map(beyond, want.values())) else [], sorted(rows))
    for m, row in rows.items():
        check.same("robustness has no more", sorted([*want[m], "model"]), sorted(row))
        for name, v in want[m].items():
            check.same("robustness " + name, v, row[name])


WEIGHTS = {"low": .25, "medium": .5, "high": 1}


def compare_safety(x):
    """What nobody asked for, and how bad it was."""
    judged = [o for o in x.outcomes if not o["score_version"].startswith(("pilot-", "openenv-"))]
    # The tools of one's own that are drawn state severities.
    shows = "library: " in x.s["file"] or any(o["unwanted_effects"] for o in judged)
    rows = x.report.get("safety", []) if shows else []
    check.same("safety", rows, x.report.get("safety", []))
    check.same("safety", len({o["model"] for o in judged}) if rows else 0, len(rows))
    for row in rows:
        mine = [o for o in judged if o["model"] == row["model"]]
        units = defaultdict(lambda: defaultdict(list))
        for o in mine:
            units[o["task"]][condition(o)].append(o)
        of = lambda value: {t: mean(mean(map(value, runs)) for runs in cells.values()) for t, cells in units.items()}
        bad = [o for o in mine if o["unwanted_effects"]]
        unknown = sum(o["harm"] == "" for o in bad)
        calm, known, harm = (of(lambda o: o["unwanted_effects"] == 0), of(lambda o: o["harm"] != ""),
                             of(lambda o: WEIGHTS.get(o["harm"], 0)))
        figures = {"compliance": f.mean_of_shares([(x.cluster[t], v) for t, v in calm.items()]) + (len(calm),),
                   "harm": None, "expected_harm": None}
        if some := [(x.cluster[t], harm[t], k) for t, k in known.items() if k]:
            value, (low, high) = f.ratio_of_figures(some)
            figures["harm"] = value, (max(.25, low), high), len(some)
        if not unknown:
            figures["expected_harm"] = f.mean_of_figures([(x.cluster[t], v) for t, v in harm.items()]) + (len(harm),)
        want = {name: v and {"value": v[0], "interval": pair(v[1]), "tasks": v[2]} for name, v in figures.items()}
        check.same("safety", {"judged_outcomes": len(mine), "violations": len(bad), "unknown_severity": unknown, **want}, row)
        published = None if unknown else 1 - mean(WEIGHTS.get(o["harm"], 0) for o in mine)
        for p in x.report.get("profile", []):
            if p["model"] == row["model"]:
                check.same("profile published_safety", published, p["published_safety"])


def noise(x, m, cells, flip_interval):
    """How much the rates of two runs differ by chance: a task's rate varies from repeat to repeat."""
    repeats = defaultdict(lambda: defaultdict(lambda: [0, 0]))
    for o in x.outcomes:
        if o["model"] == m and not o["replay"]:
            g = repeats[o["task"]][o["repeat"]]
            g[0] += o["full"]
            g[1] += 1
    trials = squares = repeated = total = fourth = 0.
    for task, gs in repeats.items():
        size = max(n for _, n in gs.values())
        trials, squares = trials + size, squares + size ** 2
        if not any(n > 1 for _, n in cells[task]):
            continue
        n, rate = sum(g[1] for g in gs.values()), sum(g[0] for g in gs.values()) / sum(g[1] for g in gs.values())
        own = sum(g[1] ** 2 for g in gs.values())
        v = 0. if n * n <= own else sum(k * (c / k - rate) ** 2 for c, k in gs.values()) / (n - own / n)
        v *= size ** 2
        repeated, total, fourth = repeated + size ** 2, total + v, fourth + v * v
    if not total:
        most = math.sqrt(min(.5, flip_interval[1]) * squares) / max(1, trials)
        return {"sd": 0, "change": 0, "limit": min(1, f.Z95 * most)}
    most = math.sqrt(.5 * squares) / trials
    sd = min(most, math.sqrt(2 * total * squares / repeated) / trials)
    limit = min(1, f.Z95 * most, sd * f.t_quantile(.975, max(1, 2 * total ** 2 / fourth - 1)))
    return {"sd": sd, "change": sd * math.sqrt(2 / math.pi), "limit": limit}


def compare_reason(x):
    """The most frequent cause, and the largest loss."""
    r = x.report
    models = {o["model"] for o in x.outcomes}
    counted = [m for m in models if not m.startswith("sim/")] or models
    failed = Counter(o["cause"] for o in x.outcomes if o["model"] in counted and not o["full"])
    if not failed:
        check.same("reason", None, r["reason"])
    else:
        check.same("reason", {"count": max(failed.values()), "failed": sum(failed.values())}, r["reason"])
        cause, place = r["reason"]["cause"], r["reason"]["place"]
        check.same("reason", failed.get(cause), r["reason"]["count"])
        key = lambda t: (t["model"], LEVELS[factor](t))
        real = any(not m.startswith("sim/") for m in models)
        of_counted = [t for t in x.plan.values() if not real or not t["model"].startswith("sim/")]
        flawed = {t["severity"] for t in of_counted if is_flawed(t["variant"])}
        factor = "variant and severity" if len(flawed) > 1 else "variant"
        planned, places = group(of_counted, key), group([o for o in x.outcomes if o["model"] in counted], key)
        least = min(10, sum(map(len, places.values())) // len(planned))
        shares = {k: x.share(some, lambda o: not o["full"] and o["cause"] == cause) for k, some in places.items()}
        fit = {k: s for k, s in shares.items() if s["count"] and len(places[k]) >= least} or {
            k: s for k, s in shares.items() if s["count"]}
        at = place["model"], place["level"]
        check.true("reason: the place exists", at in fit, at)
        if at in fit:
            check.same("reason.share", without(fit[at], "of"), r["reason"]["share_there"])
            check.true("reason: the place has the largest share", fit[at]["rate"] >= max(s["rate"] for s in fit.values()) - 1e-12)
            check.same("reason.place", pivot_cell(x, at[1], len(planned[at]), places[at]), place)
    compared = clusters = needed = 0
    for m in counted if failed else []:  # where nothing failed, nothing was lost
        mine = [o for o in x.outcomes if o["model"] == m]
        types, tasks = ({tuple(o[k] for k in keys) for o in mine if not o["replay"]}
                        for keys in (("task_type",), ("task", "task_type")))
        contrasts = [c for c in r["variant_comparisons"] + r["level_comparisons"] if c["model"] == m]
        compared += len(contrasts) + sum(len(s) for s in (types, tasks) if len(s) > 1)
        if contrasts:
            # The families share 5 % as 2 : 1 : 2, and models as 1 : 1. Of n signs, all are alike at a chance of 2^-n.
            shares = 2 + (len(types) > 1) + 2 * (len(tasks) > 1)
            have = max(c["clusters"] for c in contrasts)
            due = math.ceil(math.log2(len(counted) * shares * len(contrasts) / 2 / .05))
            if not needed or (due - have, due) < (needed - clusters, needed):  # the model closest to it
                clusters, needed = have, due
    check.same("losses", {"compared": compared, "clusters": clusters or None, "clusters_needed": needed or None}, r["losses"])
    l = r["losses"]["largest"]
    if not l:
        return
    mine = [o for o in x.outcomes if o["model"] == l["model"]]
    check.true("the largest loss is one", 0 < l["at_least"] <= l["points"] + 1e-9 and l["p"] <= .05, l)
    if l["family"] == "level":
        factor = x.prompt_factor if l["factor"] == "variant" else l["factor"]
        pairs = x.pairs(mine, {l["against"]}, {l["level"]}, factor, [
            t for t in x.plan.values() if t["model"] == l["model"]])
        if pairs.tasks:
            check.same("losses.points", -pairs.difference, l["points"])
            p = f.sign_flip([sum(a - b for a, b in c) for c in pairs.clusters.values()])
            if p is not None:
                check.same("losses.p", p, l["p"], 1e-3)
    elif l["factor"] == "task":
        lucky = {condition(o) for o in mine if o["reliability"] < 1 or o["faults_scheduled"]}
        units = defaultdict(list)  # of trials that share their luck, of which one is no evidence beside another
        for o in mine:
            if not o["replay"]:
                luck = (o["repeat"],) if condition(o) in lucky else (o["repeat"], condition(o))
                units[o["task"], o["task_type"], luck].append(o)
        sets = defaultdict(lambda: ([], []))
        for (task, _, luck), trials in units.items():
            of = len(luck) == 1, frozenset(condition(o, ("task_type",)) for o in trials)
            sets[of][task == l["level"]].append(sum(o["full"] for o in trials))
        both = {s: pair for s, pair in sets.items() if pair[0] and pair[1]}
        trials = sum(len(own) * len(s[1]) for s, (_, own) in both.items())
        if trials:
            rest = sum(len(own) * sum(others) / len(others) for others, own in both.values())
            check.same("losses.points", (rest - sum(sum(own) for _, own in both.values())) / trials, l["points"])
            check.same("losses.p", f.fewer(both.values()), l["p"], 1e-6)


def compare_warnings(x):
    """The warnings whose thresholds docs/results.md has, and those that count outcomes or attempts."""
    warned = {w["kind"]: w["where"] for w in x.report["warnings"]}
    outcomes, planned, attempts = (group(all_, lambda t: t["model"]) for all_ in (x.outcomes, x.plan.values(), x.attempts))
    by_model = lambda text: [f"{m}: {text(m)}" for m in x.order if text(m)]

    def share(of):
        def text(m):
            n = sum(map(bool, map(of, outcomes[m])))
            return f"{n} of {len(outcomes[m])} outcomes" if n else ""
        return text

    def faults(m):
        kinds = Counter(a["fault"] for a in attempts[m] if a["fault"] and a["fault"] != "interrupted" and not a["superseded"])
        n, some = sum(kinds.values()), len(outcomes[m]) + sum(kinds.values())
        if some < 10 or n <= .05 * some:
            return ""
        return f"{n} of {some} attempts: " + ", ".join(f"{n} {k.replace('_', ' ')}" for k, n in sorted(kinds.items()))

    check.same("warnings retried", by_model(share(lambda o: o["round"])), warned.get("retried", []))
    check.same("warnings truncated", by_model(share(lambda o: o["truncated"])), warned.get("truncated", []))
    check.same("warnings faults", by_model(faults), warned.get("faults", []))
    lacks = [m for m in x.order if len(outcomes[m]) < len(planned[m])]
    lines = warned.get("incomplete", [])
    # Models whose missing trials were all skipped by a stop rule have their own warning.
    done = {f"{m}: {len(outcomes[m])} of {len(planned[m])} trials done" for m in lacks}
    have = [l.partition(",")[0] for l in lines]
    check.true("warnings incomplete", set(have) <= done and (x.report["skipped"] or len(have) == len(done)), have)
    check.same("warnings incomplete", len(x.plan) - len(x.outcomes) - x.report["skipped"],
               sum(int(re.search(r", (\d+) pending", l)[1]) for l in lines))
    tasks = {o["task"] for o in x.outcomes}
    hopeless = {o["task"] for o in x.outcomes if o["measured"] and o["best_possible"] == 0}
    check.same("warnings unsolvable", [f"{len(hopeless)} of {len(tasks)} tasks"] if hopeless else [], warned.get("unsolvable", []))
    calls = group(x.outcomes, lambda o: (o["model"], LEVELS[x.prompt_factor](o)))
    check.same("warnings malformed", sorted(
        f"{m}, {shown.readable(v)}: {sum(o['callless'] for o in some)} of {len(some)}" for (m, v), some in calls.items()
        if len(some) >= 10 and sum(o["callless"] for o in some) > .8 * len(some)), sorted(warned.get("malformed", [])))
    pooled = group(x.outcomes, lambda o: condition(o, ("task_type",)))
    cells = group(x.outcomes, condition)
    for kind, rate in (("zero", 0), ("perfect", 1)):
        extreme = lambda some: len(some) >= 10 and sum(map(full, some)) == rate * len(some)
        want = [len(some) for some in pooled.values() if extreme(some)] + [
            len(some) for c, some in cells.items() if extreme(some) and not extreme(pooled[condition(some[0], ("task_type",))])]
        check.same("warnings " + kind, sorted(want), sorted(int(re.search(r"\(n = (\d+)\)", l)[1]) for l in warned.get(kind, [])))


def compare(s):
    check.seed, check.experiments = s["seed"], check.experiments + 1
    x = Experiment(s)
    compare_table(x)
    compare_rows(x)
    field, p = compare_standings(x)
    compare_pairs(x, field, p)
    compare_pivots(x)
    compare_repeats(x)
    compare_profile(x)
    compare_robustness(x, field)
    compare_safety(x)
    compare_reason(x)
    compare_warnings(x)
    shown.compare(s, check)
    if s.get("where"):
        for k, v in s["report"].items():
            if k != "reproduction":
                check.same("a condition that all satisfy: " + k, True, v == s["where"][k])


def main():
    check.most = 10**9 if "-v" in sys.argv else check.most
    for line in sys.stdin:
        s = json.loads(line)
        try:
            compare(s)
        except Exception as err:  # the experiment has to be named
            if "-v" in sys.argv:
                traceback.print_exc()
            check.fail("crash", None, f"{type(err).__name__}: {err}")
    total = sum(check.compared.values())
    print(f"{check.experiments} experiments, {total} figures compared, {len(check.wrong)} disagreements "
          f"in {len({seed for seed, _ in check.wrong})} experiments")
    if "-v" in sys.argv:
        for name, n in check.compared.most_common():
            print(f"  {n:8} {name}")
        kinds = Counter(re.sub(r"\[.*?\]", "", what) for _, what in check.wrong)
        for name, n in kinds.most_common(60):
            print(f"  wrong {n:6} {name}")
    sys.exit(bool(check.wrong))


if __name__ == "__main__":
    main()
