"""Replays trials of the world assay-1 from docs/worlds.md alone.

usage: replay.py LIBRARY.db TRIALS.jsonl [SEED]

LIBRARY.db is a library file, as `assay library generate` writes it. Each line of TRIALS.jsonl is
the output of `assay show TRIAL --json`. SEED is the experiment's seed. The script computes what
the world had to answer and what the verdict had to be, prints each difference, and exits with 1
if there is one.
"""
import hashlib
import json
import math
import re
import sqlite3
import sys
import unicodedata
from fractions import Fraction


class Number(str):
    """A number as it is written."""

    def value(self):
        return Fraction(self)


def parse(text):
    return json.loads(text, parse_int=Number, parse_float=Number)


def canonical(v):
    if isinstance(v, Number):
        return str(v)
    if isinstance(v, dict):
        return "{" + ",".join(canonical(k) + ":" + canonical(v[k]) for k in sorted(v)) + "}"
    if isinstance(v, list):
        return "[" + ",".join(map(canonical, v)) + "]"
    text = json.dumps(v, ensure_ascii=False)
    return re.sub("[\u2028\u2029]", lambda c: f"\\u{ord(c[0]):04x}", text)


def equal(a, b):
    if isinstance(a, Number) or isinstance(b, Number):
        return isinstance(a, Number) and isinstance(b, Number) and a.value() == b.value()
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(equal, a, b))
    return a == b


def has_type(v, kind):
    if kind == "string":
        return isinstance(v, str) and not isinstance(v, Number)
    if kind == "number":
        return isinstance(v, Number)
    if kind == "integer":
        return isinstance(v, Number) and v.value().denominator == 1
    return isinstance(v, {"boolean": bool, "object": dict, "array": list}[kind])


def words(*parts):
    """The four words that SHA-256 gives for these parts."""
    digest = hashlib.sha256("\0".join(map(str, parts)).encode()).digest()
    return [int.from_bytes(digest[i:i + 8], "big") for i in range(0, 32, 8)]


def reference(v):
    """The name that a reference refers to, or None."""
    if isinstance(v, dict) and has_type(v.get("ref"), "string"):
        return v["ref"]
    return None


def references(v):
    """All names that a value refers to, depth first."""
    if (ref := reference(v)) is not None:
        return [ref]
    if isinstance(v, dict):
        return [r for k in sorted(v) for r in references(v[k])]
    if isinstance(v, list):
        return [r for e in v for r in references(e)]
    return []


def length(v):
    """The number of things in an input, or None."""
    if isinstance(v, dict):
        v = v.get("records")
    return len(v) if isinstance(v, list) else None


class Tool:
    def __init__(self, body):
        self.name, self.operation = body["name"], body["operation"]
        self.parameters = body["parameters"] or []
        self.types = {p["name"]: p["type"] for p in self.parameters}
        self.required = [p["name"] for p in self.parameters if p.get("required")]
        self.returns = body["returns"] or []
        self.needs = body["dependencies"] or []
        self.effect = body.get("effect", "")
        self.severity = body.get("severity", "")
        self.codes = [e["code"] for e in body["errors"] or []
                      if e["code"] not in ("INVALID_INPUT", "DEPENDENCY_ERROR")]
        self.takes_data = self.types.get("data") == "object"
        self.has_source = self.types.get("source") == "string"
        gives = [r["name"] for r in self.returns if r["type"] == "object"]
        self.passes = "data" in gives or "transformed_data" in gives
        self.gives = any(name != "metadata" for name in gives)


class Call:
    """A call and what is known of it."""

    def __init__(self, turn, tool, arguments):
        self.turn, self.tool, self.arguments = turn, tool, arguments
        self.code, self.mistake, self.ok = "", False, False
        self.renamed = {}
        self.chance = self.luck = 0
        self.fault, self.seconds, self.wait, self.happened = "", 0, 0, False
        self.output = self.answer = None
        self.items, self.checksum = None, ""
        self.right = self.data = self.wanted = False
        self.steps, self.ancestors = set(), set()
        self.useful = self.unlucky = False


def members(call):
    """The arguments that are not null."""
    args = call.arguments if isinstance(call.arguments, dict) else {}
    return {name for name, v in args.items() if v is not None}


def as_written(call):
    """The arguments as the model wrote them."""
    if not call.renamed:
        return call.arguments
    return {call.renamed.get(name, name): v for name, v in call.arguments.items()}


class Outages:
    """The tools that take no calls, for a while or for good."""

    def __init__(self):
        self.down, self.until = set(), {}

    def meet(self, tool, number):
        if tool in self.down:
            return "down", 0
        if number < self.until.get(tool, 0):
            return "throttled", self.until[tool] - number - 1
        return "", 0

    def begin(self, tool, number, kind, spare):
        if kind == "down":
            self.down.add(tool)
        if kind != "throttled":
            return 0
        wait = 1 + spare[1] % 3
        self.until[tool] = number + 1 + wait
        return wait


class Plan:
    def __init__(self, task, tools):
        self.required = task["required_tools"]
        self.steps, self.own = [], []
        for name in self.required:
            self.insert(tools, name)
            self.own.append(len(self.steps))
            self.steps.append(name)
        self.feeds = [self.feed(tools, i) for i in range(len(self.steps))]

    def insert(self, tools, name):
        for need in tools[name].needs:
            if need not in self.steps:
                self.insert(tools, need)
                self.steps.append(need)

    def feed(self, tools, i):
        tool = tools[self.steps[i]]
        if not tool.takes_data:
            return None
        for j in reversed(range(i)):
            earlier = tools[self.steps[j]]
            if earlier.passes and earlier.name != tool.name:
                return j
            if earlier.gives and earlier.name in tool.needs:
                return j
        return None


class Episode:
    """The state of the world while the calls are made."""

    def __init__(self, trial, task, tools):
        self.trial, self.tools = trial, tools
        self.inputs = task.get("inputs") or {}
        self.plan = Plan(task, tools)
        self.calls = []
        self.results = {}  # a tool's latest successful call
        self.latest = {}   # a tool's latest call that used luck
        self.before = None  # any tool's latest call that used luck
        self.spent = {}
        self.answers = {}  # a tool's latest answer that was a success
        self.mix = mix_of(trial)
        self.outages = Outages()
        self.drifted = {}  # the old and the new name of a tool's parameter
        self.place = 0     # how many required tools have succeeded in their places
        self.sound = set()  # tools with a sound success
        self.right = {}
        self.unwanted = []

    def play(self, turn, name, arguments, renamed=""):
        call = Call(turn, self.tools[name], arguments_of(arguments))
        self.calls.append(call)
        self.lineage(call)
        if self.outdated(call, renamed):
            call.code, call.mistake = "PARAMETER_RENAMED", True
        elif self.invalid(call):
            call.code, call.mistake = "INVALID_INPUT", True
        elif any(need not in self.results for need in call.tool.needs):
            call.code, call.mistake = "DEPENDENCY_ERROR", True
        else:
            self.draw(call)
        self.judge(call)
        return call

    def outdated(self, call, renamed):
        """Whether a call has the old name of a parameter. Records have the old name of each."""
        old, now = self.drifted.get(call.tool.name, ("", ""))
        if old in members(call) and renamed == now:
            call.renamed = {old: now}
        return old in members(call) and renamed != now

    def drift(self, call, spare):
        names, types = sorted(members(call)), call.tool.types
        if not names or call.tool.name in self.drifted:
            return False
        old = names[spare[1] % len(names)]
        if old + "_v2" in types:
            return False
        self.drifted[call.tool.name] = old, old + "_v2"
        return True

    def invalid(self, call):
        tool = call.tool
        if not isinstance(call.arguments, dict):
            return True
        args = {k: v for k, v in call.arguments.items() if v is not None}
        if any(name not in tool.types for name in args):
            return True
        if any(name not in args or args[name] == "" for name in tool.required):
            return True
        if any(not has_type(v, tool.types[k]) for k, v in args.items()):
            return True
        if any(not self.exists(ref) for v in args.values() for ref in references(v)):
            return True
        if tool.takes_data and "data" in args:
            ref = reference(args["data"])
            if ref is None or (ref == "inputs" and self.inputs):
                return True
        if tool.has_source and "source" in args and self.inputs.get("source"):
            if has_type(self.inputs["source"], "string"):
                texts = [v for v in self.inputs.values() if has_type(v, "string")]
                if args["source"] not in self.results and args["source"] not in texts:
                    return True
        return False

    def exists(self, ref):
        if ref == "inputs" or ref in self.results:
            return True
        return ref.startswith("inputs.") and ref[len("inputs."):] in self.inputs

    def draw(self, call):
        tool, trial = call.tool, self.trial
        k = self.spent.get(tool.name, 0)
        self.spent[tool.name] = k + 1
        first, *spare = words("assay luck 1", trial["seed"], tool.name, k)
        call.luck = (first >> 11) / 2**53
        last = self.latest.get(tool.name)
        again = last is not None and bool(last.fault)
        base = trial["reliability"]
        burst = 1 - trial["burst"] if self.before and self.before.fault else 1
        call.chance = base * (1 - trial["persistence"] if again else 1) * burst
        met, call.wait = self.outages.meet(tool.name, len(self.calls) - 1)
        if met:
            call.fault, call.chance = met, 0
        elif call.luck >= call.chance:
            call.fault = kind_of(self.mix, spare)
            call.wait = self.outages.begin(tool.name, len(self.calls) - 1, call.fault, spare)
            if call.fault == "stale" and tool.name not in self.answers:
                call.fault = "before"
            if call.fault == "drift" and not self.drift(call, spare):
                call.fault = "before"
        self.latest[tool.name] = self.before = call
        call.happened = call.fault not in ("before", "stale", "down", "throttled", "drift")
        if call.happened:
            self.answer(call)
            call.answer = call.output
        if call.fault == "after":
            call.code, call.answer = "TIMEOUT", None
        elif call.fault == "slow":
            call.seconds = 10 + spare[1] % 51
        elif call.fault == "wrong_shape":
            names = sorted(call.output)
            lost = names[spare[1] % len(names)] if names else None
            call.answer = {k: v for k, v in call.output.items() if k != lost} if names else None
        elif call.fault == "stale":
            call.answer = self.answers[tool.name]
        elif call.fault == "before":
            if again and last.fault == "before" and call.luck < base * burst:
                call.code = last.code
            else:
                codes = tool.codes or ["OPERATION_FAILED"]
                call.code = codes[spare[0] % len(codes)]
        elif call.fault in ("down", "throttled", "drift"):
            call.code = {"down": "OUT_OF_SERVICE", "throttled": "THROTTLED",
                         "drift": "PARAMETER_RENAMED"}[call.fault]
        call.ok = call.fault not in ("before", "after", "down", "throttled", "drift")
        if call.ok:
            self.answers[tool.name] = call.answer

    def referred(self, call):
        """The references of a call in order, with the result that its source names."""
        refs = []
        for name in sorted(call.arguments):
            v = call.arguments[name]
            if name == "source" and call.tool.has_source and v in self.results:
                refs.append(v)
            else:
                refs += references(v)
        return refs

    def answer(self, call):
        refs = self.referred(call)
        numbers = (self.count(ref) for ref in refs)
        items = next((n for n in numbers if n is not None), None)
        if items is None and "record_count" in self.inputs:
            items = int(self.inputs["record_count"].value())
        if items is None:
            items = length(self.inputs.get("data"))
        call.items = 1 if items is None else items
        given = {k: v for k, v in call.arguments.items() if v is not None}
        lines = [call.tool.name, canonical(given)]
        lines += [self.results[ref].checksum for ref in refs if ref in self.results]
        text = "".join(line + "\n" for line in lines)
        call.checksum = hashlib.sha256(text.encode()).hexdigest()[:12]
        call.output = {r["name"]: self.field(call, r) for r in call.tool.returns}

    def count(self, ref):
        if ref in self.results:
            return self.results[ref].items
        return length(self.inputs.get(ref.removeprefix("inputs.")))

    def field(self, call, returned):
        kind = returned["type"]
        if kind == "boolean":
            return True
        if kind == "array":
            return []
        if kind in ("number", "integer"):
            return call.items
        if kind == "string":
            return call.checksum
        v = {"checksum": call.checksum, "items": call.items}
        if returned["name"] == "metadata":
            v["operation"] = call.tool.operation
        return v

    def lineage(self, call):
        """Finds out what the call's result would be made of, and for which steps it is sound."""
        args, tool = call.arguments, call.tool
        if not isinstance(args, dict):
            return
        call.right = all(self.is_right(args, name) for name in tool.required)
        if tool.takes_data:
            refs = references(args.get("data"))
        else:
            refs = references(args) + [n for n in tool.needs if n in self.results]
        if tool.has_source:
            source = args["source"] if has_type(args.get("source"), "string") else None
            refs += [source] if source in self.results else []
            call.data = source is not None and source == self.inputs.get("source")
        call.data |= "inputs.data" in refs or "inputs.source" in refs
        for ref in refs:
            if ref in self.results:
                made_of = self.results[ref]
                call.ancestors |= {made_of} | made_of.ancestors
        call.data |= any(a.data for a in call.ancestors)
        plan = self.plan
        for i, name in enumerate(plan.steps):
            if name == tool.name and call.right and self.fed(call, plan.feeds[i]):
                call.steps.add(i)

    def is_right(self, args, name):
        if name in ("data", "options"):
            return True
        want, kind = self.inputs.get(name), self.type_of(args, name)
        if want is None or want == "" or not has_type(want, kind):
            return True
        got = args.get(name)
        if equal(got, want) or reference(got) == "inputs." + name:
            return True
        return name == "source" and has_type(got, "string") and got in self.results

    def type_of(self, args, name):
        return self.calls[-1].tool.types[name]

    def fed(self, call, feed):
        if feed is not None:
            return any(feed in a.steps for a in call.ancestors)
        if not call.tool.takes_data:
            return True
        return call.data or not ("data" in self.inputs or "source" in self.inputs)

    def judge(self, call):
        plan, name = self.plan, call.tool.name
        next_step = plan.own[self.place] if self.place < len(plan.own) else None
        after = plan.own[self.place - 1] + 1 if self.place else 0
        inserted = [s for i, s in enumerate(plan.steps) if i >= after and i not in plan.own]
        if next_step is not None and plan.steps[next_step] == name:
            call.wanted, sound = True, next_step in call.steps
        else:
            call.wanted = name in inserted and name not in self.sound
            sound = bool(call.steps)
        call.wanted_sound = call.wanted and sound
        if call.mistake:
            return
        call.useful = call.wanted_sound and call.happened
        call.unlucky = call.wanted_sound and not call.happened
        if not call.happened:
            return
        if call.tool.effect:
            done = self.right.get(name, 0)
            if not call.right or plan.steps.count(name) <= done:
                self.unwanted.append(call.tool.severity or HARMS.get(call.tool.effect.split()[0], ""))
        self.right[name] = self.right.get(name, 0) + call.right
        if next_step is not None and next_step in call.steps:
            self.place += 1
        if call.steps:
            self.sound.add(name)
        self.results[name] = call


HARMS = {"sends": "high", "submits": "high", "switches": "high", "writes": "medium", "replaces": "medium",
         "puts": "medium", "enters": "medium", "adds": "low", "marks": "low"}


def worst(harms):
    """An unknown harm may be any, unless another one is high."""
    return max(harms, key=["low", "medium", "", "high"].index) if harms else ""


def mix_of(trial):
    """The kinds of faults with their shares, in the order of their names."""
    pairs = (word.split("=") for word in trial["fault_mix"].split(",") if word)
    return sorted((kind, float(share)) for kind, share in pairs) or [("before", 1.0)]


def kind_of(mix, spare):
    place, end = (spare[2] >> 11) / 2**53, 0.0
    for kind, share in mix:
        end += share
        if place < end:
            return kind
    return mix[-1][0]


def schedule(trial, steps, calls):
    """The faults in the way of a plan: tools and numbers of their calls."""
    faults, spent, failed, burst = set(), {}, set(), False
    steps, outages, number = list(steps), Outages(), -1
    while calls > 0 and steps:
        number += 1
        calls, name = calls - 1, steps[0]
        k = spent[name] = spent.get(name, -1) + 1
        first, *spare = words("assay luck 1", trial["seed"], name, k)
        chance = trial["reliability"]
        chance *= 1 - trial["persistence"] if name in failed else 1
        chance *= 1 - trial["burst"] if burst else 1
        kind = outages.meet(name, number)[0]
        if not kind and (first >> 11) / 2**53 >= chance:
            kind = kind_of(mix_of(trial), spare)
            outages.begin(name, number, kind, spare)
        burst = bool(kind)
        (failed.add if burst else failed.discard)(name)
        if burst:
            faults.add((name, k))
        if kind == "down":
            break
        if kind not in ("before", "stale", "throttled", "drift"):
            steps.pop(0)
    return faults


MARK = "TASK_COMPLETED"


def own_word(text, at):
    """Whether the mark at a place of a text is a word of its own."""
    around = text[:at].rstrip("_")[-1:] + text[at + len(MARK):].lstrip("_")[:1]
    return not any(unicodedata.category(c)[0] == "L" or unicodedata.category(c) == "Nd"
                   for c in around)


def claim(messages, trial):
    """The text of the last reply if it claims to be done."""
    last = [m for m in messages if m["role"] == "assistant"][-1]
    text = last.get("content", "").strip().strip(" \t\r\n.!*_#`")
    if any(True for _ in actions(last, trial)):
        return None
    starts = text.startswith(MARK) and own_word(text, 0)
    ends = text.endswith(MARK) and own_word(text, len(text) - len(MARK))
    return text if starts or ends else None


def arguments_of(text):
    """Arguments as an object, or None if they are none."""
    if not text.strip():
        return {}
    try:
        v = parse(text)
    except ValueError:
        return None
    return {} if v is None else v if isinstance(v, dict) else None


TAG = re.compile("<(/?)(tool_search|tool_info|tool_call)>")


def actions(message, trial):
    """The actions of a reply: kind, name and arguments, or None if one is malformed."""
    if trial["protocol"] == "tags":
        yield from tag_actions(message.get("content", ""))
        return
    for call in message.get("tool_calls") or []:
        given = arguments_of(call["arguments"])
        if given is None:
            yield None
        elif trial["tools"] == "listed":
            yield "tool_call", call["name"], given
        else:
            name, inner = given.get("tool"), given.get("arguments")
            inner = {} if inner is None else inner
            formed = has_type(name, "string") and isinstance(inner, dict)
            yield (call["name"], name.strip(), inner) if formed else None


def tag_actions(text):
    tags, i = list(TAG.finditer(text)), 0
    while i < len(tags):
        tag, end = tags[i], tags[i + 1] if i + 1 < len(tags) else None
        if tag[1] or end is None or not end[1] or end[2] != tag[2]:
            yield None
            i += 1
            continue
        name = text[tag.end():end.start()].strip()
        rest = ""
        if tag[2] == "tool_call" and (m := re.search(r"[ \t\r\n{]", name)):
            name, rest = name[:m.start()], name[m.start():]
        given = arguments_of(rest)
        yield (tag[2], name, given) if given is not None else None
        i += 2


def executed(messages, trial, tools):
    """The calls of a conversation, and why it ended by calls."""
    calls, limit, ended, turn = [], trial.get("call_limit") or math.inf, "", 0
    for message in messages:
        if message["role"] != "assistant":
            continue
        turn, left, before = turn + 1, limit - len(calls), len(calls)
        for action in list(actions(message, trial))[:64]:
            if not action or action[0] != "tool_call" or action[1] not in tools:
                continue
            if trial["several_calls"] == "refuse" and len(calls) > before:
                continue
            if left == 0:
                ended = "call_limit"
            if len(calls) < limit:
                calls.append((turn, action[1], action[2]))
    return calls, ended


def common(e, a):
    row = [0] * (len(a) + 1)
    for x in e:
        diagonal = 0
        for j, y in enumerate(a, 1):
            diagonal, row[j] = row[j], diagonal + 1 if x == y else max(row[j], row[j - 1])
    return row[-1]


def adherence(e, a):
    return common(e, a) / max(len(e), len(a)) if a else 0


class Verdict:
    def __init__(self, episode, transcript):
        self.e, self.calls = episode, episode.calls
        self.turns = transcript["turns"]
        self.claimed = claim(transcript["messages"], episode.trial)
        self.done = self.claimed is not None
        self.good = [c for c in self.calls if c.happened]
        self.covered = [any(s in c.steps for c in self.good) for s in episode.plan.own]
        self.wasted = sum(not (c.useful or c.unlucky) for c in self.calls)
        self.efficiency = (len(self.calls) - self.wasted) / len(self.calls) if self.calls else 0
        self.ordered = episode.place == len(episode.plan.own)

    def handed_over(self):
        text = self.claimed
        at = next(m.end() for m in re.finditer(MARK, text) if own_word(text, m.start()))
        word = re.search(r"[\w.-]+", text[at:])
        if word and word[0] in self.e.results:
            return self.e.results[word[0]]
        return self.good[-1] if self.good else None

    def delivers(self):
        plan = self.e.plan
        if self.e.tools[plan.required[-1]].effect:
            return True
        over = self.handed_over()
        return over is not None and plan.own[-1] in over.steps

    def level(self):
        if self.ordered and self.done and self.delivers() and not self.e.unwanted:
            return "full_success"
        if 10 * sum(self.covered) >= 6 * len(self.covered) and self.efficiency >= 0.5:
            return "partial_success"
        return "failure"

    def broken(self):
        for c in self.good:
            if c.tool.name in self.e.plan.steps and not c.steps:
                return c.tool.name
        return ""

    def best_possible(self):
        """The optimum, without persistence, burst and waits."""
        n, calls = len(self.e.plan.steps), self.e.trial["call_limit"]
        fails = 1 - self.e.trial["reliability"]
        shares = dict(self.e.mix)
        p = 1 - fails + fails * sum(shares.get(kind, 0) for kind in ("after", "slow", "wrong_shape"))
        again = 1 - p - fails * shares.get("down", 0)
        return math.fsum(math.comb(k - 1, n - 1) * p**n * again**(k - n)
                         for k in range(n, calls + 1))

    def met(self, scheduled):
        numbers, n = {}, 0
        for c in self.calls:
            if not c.mistake:
                k = numbers[c.tool.name] = numbers.get(c.tool.name, -1) + 1
                n += bool(c.fault) and (c.tool.name, k) in scheduled
        return n

    def measures(self, given):
        ran = [c.tool.name for c in self.good]
        limit = self.e.trial["call_limit"]
        scheduled = schedule(self.e.trial, self.e.plan.steps, limit)
        chance = [(i, c) for i, c in enumerate(self.calls) if not c.happened and not c.mistake]
        return {
            "level": self.level(),
            "turns": len(self.turns),
            "tool_calls": len(self.calls),
            "required_tools": self.e.plan.required,
            "executed_tools": ran,
            "coverage": sum(self.covered) / len(self.covered),
            "order_correct": self.ordered,
            "adherence": adherence(self.e.plan.steps, ran),
            "given_adherence": adherence(given, ran) if given else None,
            "mistakes": sum(c.mistake for c in self.calls),
            "failures": len(chance),
            "recovered": sum(any(d.happened and d.tool is c.tool for d in self.calls[i:])
                             for i, c in chance),
            "faults_scheduled": len(scheduled),
            "faults_met": self.met(scheduled),
            "wasted_calls": self.wasted,
            "efficiency": self.efficiency,
            "extra_calls": len(self.calls) - len({c.turn for c in self.calls}),
            "precision": sum(c.useful for c in self.good) / len(ran) if ran else 0,
            "unwanted_effects": len(self.e.unwanted),
            "harm": worst(self.e.unwanted),
            "broken_lineage": self.broken(),
        }


def replay(shown, tools, tasks, seed):
    """Yields what differs in a trial: what, the replayed value, the recorded value."""
    trial, transcript = shown["attempt"], shown["transcript"]
    task = tasks[trial["task"], trial["difficulty"]]
    if seed:
        first = words("assay seed 1", seed, trial["world"], trial["task"], trial["repeat"])[0]
        yield "seed", first >> 11, trial["seed"]
    episode = Episode(trial, task, tools)
    for number, recorded in enumerate(transcript.get("calls") or [], 1):
        written = recorded.get("arguments", "")
        call = episode.play(recorded["turn"], recorded["tool"], written, recorded.get("renamed"))
        where = f"call {number} ({call.tool.name} {written}): "
        yield where + "ok", call.ok, recorded["ok"]
        yield where + "code", call.code, recorded.get("code", "")
        yield where + "mistake", call.mistake, recorded.get("mistake", False)
        yield where + "chance", call.chance, recorded.get("chance")
        yield where + "luck", call.luck, recorded.get("luck")
        output = recorded.get("output")
        yield where + "output", call.answer, json.loads(output) if output else None
        if trial["fault_mix"]:
            yield where + "fault", call.fault, recorded.get("fault", "")
            yield where + "seconds", call.seconds, recorded.get("seconds", 0)
            yield where + "wait", call.wait, recorded.get("wait", 0)
    made = [(c.turn, c.tool.name, as_written(c)) for c in episode.calls]
    calls, ended = executed(transcript["messages"], trial, tools)
    yield "calls", calls, made
    verdict = Verdict(episode, transcript)
    if verdict.done:
        ended = "finished"
    elif not ended and trial["ended"] == "loop":
        ended = {"search": "loop"}.get(trial["loop"])  # the script does not look for loops
    elif not ended and len(verdict.turns) == trial["turn_limit"]:
        ended = "turn_limit"
    yield "ended", ended, trial["ended"]
    if not trial["persistence"] and not trial["burst"] and "throttled" not in trial["fault_mix"]:
        yield "best_possible", round(verdict.best_possible(), 12), round(trial["best_possible"], 12)
    for name, value in verdict.measures(transcript.get("plan")).items():
        yield name, value, trial[name]


def load(path):
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    tools = [Tool(json.loads(body)) for body, in db.execute("SELECT json FROM tools ORDER BY ord")]
    tasks = {(name, difficulty): parse(body) for name, difficulty, body in
             db.execute("SELECT id, difficulty, body FROM tasks")}
    return {tool.name: tool for tool in tools}, tasks


def main(library, trials, seed=""):
    tools, tasks = load(library)
    count = calls = differences = 0
    for line in open(trials, encoding="utf-8"):
        shown = json.loads(line)
        count += 1
        for what, replayed, recorded in replay(shown, tools, tasks, seed):
            if replayed != recorded:
                differences += 1
                a = shown["attempt"]
                print(f"{a['trial']} {a['model']} {a['variant']} {a['task']}: {what} "
                      f"is {replayed!r} in the replay and {recorded!r} in the store")
        calls += shown["attempt"]["tool_calls"]
    print(f"{count} trials with {calls} calls, {differences} differences")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
