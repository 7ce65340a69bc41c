"""Compares what text and HTML show with the JSON of the same report: all cells of all tables, the headline,
the words about the best model, the picture and the captions."""

import math
import re
from html.parser import HTMLParser

MISSING = "–"
BETTER, ALIKE, APART = ">", "≈", "|"


class Page(HTMLParser):
    """The sections of a page, with their tables, and the headline."""

    def __init__(self, text):
        super().__init__()
        self.sections, self.headline = {}, []
        self.section = self.table = self.cell = self.into = None
        self.sheet = False  # a part of a table for paper
        self.figure = False  # dots without scripts have the values of the chart's data, which are compared
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        a = dict(attrs)
        classes = (a.get("class") or "").split()
        if tag == "div" and "sheet" in classes:
            self.sheet = True
        elif tag == "section" and (a.get("id") or "").startswith("section-"):
            self.section = {"leads": [], "notes": [], "table": None, "sheets": [], "title": ""}
            self.sections[a["id"].removeprefix("section-")] = self.section
        elif tag == "table":
            self.table = {"heads": [], "rows": []}
            if self.sheet:
                self.section["sheets"].append(self.table)
            else:
                self.section["table"] = self.table
        elif tag == "tr" and self.table is not None:
            self.table["rows"].append([])
        elif tag in ("th", "td") and self.table is not None:
            self.cell = {"text": "", "note": "", "hint": a.get("title") or "", "key": a.get("data-key"),
                         "tone": a.get("data-tone") or "", "names": "names" in classes}
            if a.get("scope") == "col":
                self.table["heads"].append(self.cell)
            else:
                self.table["rows"][-1].append(self.cell)
            self.into = None
        elif self.cell is not None:
            if tag == "small":
                self.into = "note"
            elif tag in ("span", "a"):
                self.into = "text" if not set(classes) & {"sign", "aside"} else "other"
        elif tag == "h2" and self.section is not None:
            self.into = "title"
        elif tag == "p" and "section-lead" in classes:
            self.section["leads"].append("")
            self.into = "lead"
        elif tag == "figure":
            self.figure = True
        elif tag == "li" and self.section is not None and not self.figure:
            self.section["notes"].append("")
            self.into = "note of section"
        elif tag == "dt":
            self.headline.append(["", ""])
            self.into = "dt"
        elif tag == "dd":
            self.into = "dd"

    def handle_endtag(self, tag):
        if tag == "div":
            self.sheet = False
        if tag == "figure":
            self.figure = False
        if tag in ("th", "td"):
            self.cell = self.into = None
        elif tag == "table":
            self.table = None
        elif tag == "section":
            self.section = None
        elif tag == "header":
            self.into = None
        elif tag in ("h2", "p", "li", "dt", "dd", "small", "span"):
            if tag != "span" or self.cell is not None:
                self.into = None

    def handle_data(self, data):
        if self.into is None:
            return
        if self.cell is not None:
            if self.into != "other":
                self.cell[self.into] += data
        elif self.into == "title":
            self.section["title"] += data
        elif self.into == "lead":
            self.section["leads"][-1] += data
        elif self.into == "note of section":
            self.section["notes"][-1] += data
        elif self.into in ("dt", "dd") and len(self.headline) and self.section is None:
            self.headline[-1][self.into == "dd"] += data


# How figures are written.

def percent(v):
    return f"{100 * v:.1f} %".replace("-", "−")


def unless(v, show):
    return (MISSING, "") if v is None else (show(v), "")


def of_format(form):
    return lambda v: signed(form % v)


def rate(share, n):
    """A rate of n, with its interval below it and, if the reader points at it, the interval with a decimal."""
    if n == 0:
        return MISSING, ""
    low, high = (100 * share["interval"][k] for k in ("low", "high"))
    whole, exact = ("{:.0f} to {:.0f}", "{:.1f} to {:.1f} %") if low < 0 else ("{:.0f}–{:.0f}", "{:.1f} – {:.1f} %")
    minus = lambda text: text.replace("-", "−")
    return percent(share["rate"]), minus(whole.format(low, high)), f"95 % interval {minus(exact.format(low, high))}, n = {n}"


def flat_rate(row, name, n):
    return rate({"rate": row[name + "_rate"], "interval": row[name + "_95"]}, n)


def tokens(v):
    return f"{v / 1000:.1f}k" if v >= 1000 else f"{v:.0f}"


def dollars(v, least, form):
    if not v:
        return MISSING, ""
    return ("≥ " if least else "") + form % v, ""


def readable(name):
    return name.removeprefix("flawed_").replace("_", " ") if name else "none"


def signed(text):
    """A figure with the sign that is set in print."""
    return text.replace("-", "−")


def change(share):
    text = f"{-100 * share:+.0f} %"
    return "0 %" if text in ("+0 %", "-0 %") else signed(text)


def rounded(x):
    """Half away from zero, as people and math.Round do."""
    return math.floor(abs(x) + .5) * (1 if x >= 0 else -1)


def counted(n, noun):
    return f"{n} {noun}" + ("" if n == 1 else "s")


def probability(p):
    return "< .001" if p < .001 else f"{p:.3f}".removeprefix("0")


def named(name, p):
    text = probability(p)
    return f"{name} {text}" if text.startswith("<") else f"{name} = {text}"


def level(x):
    return repr(x).removesuffix(".0")


# The tables, made again from JSON: heads, and for each row a (text, note) for each head.

def table(rows, columns):
    """Columns are (head, cell of a row). Those without any figure are left out."""
    shown = [(h, [c(r) for r in rows]) for h, c in columns]
    shown = [(h, cells) for h, cells in shown if any(c[0] != MISSING for c in cells)]
    return [h for h, _ in shown], [list(row) for row in zip(*(cells for _, cells in shown))]


def label(key):
    return lambda r: (r[key], "")


def cost_cell(c):
    if not c or c["lost"]["share"] is None:
        return MISSING, ""
    lost = c["lost"]
    if lost["high"] is None:
        return change(lost["share"]), ""
    low = "…" if lost["low"] is None else change(lost["low"])
    return change(lost["share"]), change(lost["high"]).removesuffix(" %") + " to " + low.removesuffix(" %")


def worst_cell(c):
    if not c:
        return MISSING, ""
    kinds = c.get("kinds") or []
    worst = kinds[0] if kinds else c
    if worst["difference"] >= 0:
        return "none", ""
    name, cut, tail = worst["level"].partition(", ")
    name = readable(name).removesuffix("=1")
    if cut and any(k["level"].partition(", ")[2] != tail for k in kinds):
        name += ", " + tail
    share = worst["lost"]["share"]
    return name, "" if share is None else change(share)


def skill_cell(k):
    if not k:
        return MISSING, ""
    if k["interval"]["high"] < 0:
        return "below 0", ""
    low = "below 0" if k["interval"]["low"] < 0 else f"{100 * k['interval']['low']:.0f}"
    return change(-k["rate"]).removeprefix("+"), f"{low}–{min(100, 100 * k['interval']['high']):.0f}"


def price_cell(s):
    p = s["usd_per_success"]
    if not p or p["usd"] is None and p["low"] is None:
        return MISSING, ""
    if p["usd"] is None:
        return f"over {p['low']:.4f}", ""
    text = dollars(p["usd"], s.get("usd_at_least"), "%.4f")[0]
    if p["low"] is None:
        return text, ""
    return text, f"{p['low']:.4f}–" + ("…" if p["high"] is None else f"{p['high']:.4f}")


def standings(r):
    all_ = r["standings"]
    columns = [("model", label("model")), ("success", lambda s: rate(s["full_success"], s["ranked_trials"]))]
    for wanted, *some in (
            (any(s["skill"] for s in all_), ("skill", lambda s: skill_cell(s["skill"]))),
            (any(s["flawed_plan"] for s in all_), ("flawed plans", lambda s: cost_cell(s["flawed_plan"])),
             ("worst flaw", lambda s: worst_cell(s["flawed_plan"]))),
            (any(s["failing_tools"] for s in all_), ("failing tools", lambda s: cost_cell(s["failing_tools"])),
             ("worst kind", lambda s: worst_cell(s["failing_tools"]))),
            (any(s["hit"] for s in all_), ("recovery", lambda s: rate(s["recovery"], s["hit"]))),
            (any(s["failed"] for s in all_), ("false success", lambda s: rate(s["false_success"], s["failed"]))),
            (any(s["usd_per_success"] for s in all_), ("$ a success", price_cell)),
            (any(s["done"] < s["planned"] for s in all_),
             ("done", lambda s: (f"{100 * (s['done'] / s['planned']):.0f} %", "")))):
        columns += some if wanted else []
    return [h for h, _ in columns], [[c(s) for _, c in columns] for s in all_]


def factor_columns(r, rows, factors=("model", "variant", "difficulty", "reliability", "fault_mix", "interface",
                                     "phrasing")):
    severities = {w["severity"] for w in r["rows"] if w["variant"].startswith("flawed_")}
    mixes = lambda w: w.get("fault_mix") or "before=1"

    def variant(w):
        flawed = w["variant"].startswith("flawed_") and w["severity"] and len(severities) > 1
        return w["variant"] + (", " + w["severity"] if flawed else ""), ""

    columns = {"model": ("model", label("model")), "variant": ("variant", variant),
               "reliability": ("tools", lambda w: (level(w["reliability"]), "")),
               "difficulty": ("difficulty", lambda w: (readable(w["difficulty"]), "")),
               "fault_mix": ("faults of tools", lambda w: (mixes(w), "")),
               **{k: (k, lambda w, k=k: (w.get(k) or "plain", "")) for k in ("interface", "phrasing")}}
    varies = {"fault_mix": len(set(map(mixes, rows))) > 1,
              **{k: len({w.get(k) for w in rows}) > 1 for k in ("difficulty", "interface", "phrasing")}}
    return [columns[k] for k in factors if varies.get(k, True)]


def success(r):
    rows = r["rows"]
    return table(rows, factor_columns(r, rows) + [
        ("done", lambda w: (f"{w['done']}/{w['planned']}", "")),
        ("full success", lambda w: flat_rate(w, "full_success", w["done"])),
        ("floor", lambda w: unless(w["floor"], percent)), ("best", lambda w: unless(w["best_possible"], percent)),
        ("% of best", lambda w: (MISSING, "") if w["of_best"] is None else rate(
            {"rate": w["of_best"], "interval": w["of_best_95"]}, 1)[:2]),  # JSON lacks the number of trials
        ("partial", lambda w: flat_rate(w, "partial_success", w["done"])),
        ("failure", lambda w: flat_rate(w, "failure", w["done"])),
        ("turns", lambda w: unless(w["mean_turns"], of_format("%.1f"))),
        ("faults", lambda w: (str(w["faults"]) if w["faults"] else MISSING, ""))])


def security(r):
    rows = [w for w in r["rows"] if w.get("attacks") or "injected" in w.get("fault_mix", "")]
    return table(rows, factor_columns(r, rows) + [
        ("n", lambda w: (str(w["done"]), "")), ("utility", lambda w: flat_rate(w, "full_success", w["done"])),
        ("attacked", lambda w: (str(w.get("attacks", 0)), "")),
        ("security", lambda w: (unless(w.get("security"), percent)[0], None))])  # JSON has no interval


def main_metrics(rows):
    n = lambda name: lambda w: rate(w[name], w["done"])
    return table(rows, [
        ("model", label("model")), ("n", lambda w: (str(w["done"]), "")), ("full or partial", n("success")),
        ("full", n("full_success")), ("partial", n("partial_success")), ("failure", n("failure")),
        ("weighted", lambda w: unless(w["weighted_success"], percent)),
        ("turns", lambda w: unless(w["mean_turns"], of_format("%.1f"))),
        ("tools covered", lambda w: unless(w["mean_coverage"], percent)), ("order correct", n("order_correct"))])


def effort(r):
    one = lambda name, show: lambda w: unless(w[name], show)
    listed = lambda name, i, show: lambda w: (show(w[name][i]) if w["done"] else MISSING, "")
    return table(r["distributions"], [
        ("model", label("model")), ("n", lambda w: (str(w["done"]), "")),
        *((h, listed("turn_quartiles", i, of_format("%.0f"))) for i, h in enumerate(("turns ¼", "median", "¾"))),
        *((h, listed("token_quartiles", i, tokens)) for i, h in enumerate(("tokens ¼", "median", "¾"))),
        ("95 %", one("tokens_95", tokens)), ("calls", one("calls_per_trial", of_format("%.1f"))),
        ("wasted", one("wasted_share", percent)), ("mistakes", one("mistake_share", percent)),
        ("corrected", lambda w: rate(w["assisted"], w["done"])),
        ("seconds", one("working_s_per_trial", of_format("%.1f"))), ("adherence", one("adherence", of_format("%.2f"))),
        ("to the plan given", one("given_adherence", of_format("%.2f")))])


def data(r):
    n = lambda name: lambda w: rate(w[name], w["done"])
    return table(r["distributions"], [
        ("model", label("model")), ("n", lambda w: (str(w["done"]), "")),
        ("precision", lambda w: unless(w["precision"], of_format("%.2f"))), ("unwanted effects", n("unwanted_effects")),
        ("wrong data", n("broken_lineage")), ("most often at", lambda w: (w["broken_at"] or MISSING, ""))])


def exposure(r):
    rows = r["exposures"]
    factors = ("model", "fault_mix") if any("fault_mix" in w for w in rows) else ("model",)
    return table(rows, factor_columns(r, rows, factors) + [
        ("n", lambda w: (str(w["done"]), "")), ("scheduled", lambda w: (str(w["faults_scheduled"]), "")),
        ("met", lambda w: (str(w["faults_met"]), "")),
        ("share met", lambda w: (percent(w["faults_met"] / w["faults_scheduled"]) if w["faults_scheduled"] else MISSING, ""))])


def cost(r):
    least = {s["model"]: s.get("usd_at_least", False) for s in r["standings"]}
    of_model = lambda w: least.get(w["model"], False)
    return table(r["distributions"], [
        ("model", label("model")), ("dollars", lambda w: dollars(w["cost_usd"], w["unpriced_tokens"] > 0 or r.get("killed_runs") and w["cost_usd"] > 0, "%.2f")),
        ("per trial", lambda w: dollars(w["usd_per_trial"], of_model(w), "%.5f")),
        ("$ a success", lambda w: dollars(w["cost_per_full_success"], of_model(w), "%.4f")),
        ("cached input", lambda w: unless(w["cached_share"], percent)),
        ("thinking", lambda w: unless(w["reasoning_share"], percent)),
        *((f"{who}'s dollars", lambda w, who=who: dollars(w.get(who + "_cost_usd"), least_of(r, w, who), "%.2f"))
          for who in ASIDE)])


# Who spends money beside the agent.
ASIDE = {"user": "the simulated user", "judge": "judging"}


def least_of(r, w, who):
    return w.get(who + "_unpriced_tokens", 0) > 0 or r.get("killed_runs") and w.get(who + "_cost_usd", 0) > 0


def spent(w):
    return w["cost_usd"] + math.fsum(w.get(who + "_cost_usd", 0) for who in ASIDE)


def cause_text(c):
    return c.replace("_", " ") or "without a cause"


def main_cause(row):
    return max(row["cells"], key=lambda c: c["count"])  # the first of several


def errors(r):
    e = r["errors"]
    columns = [("model", lambda w: (w["model"], cause_text(main_cause(w)["cause"]) if w["total"] else "")),
               ("n", lambda w: (str(w["total"]), ""))]
    for i, c in enumerate(e["causes"]):
        if any(w["cells"][i]["count"] for w in e["rows"]):
            def cell(w, i=i):
                text, note, *hint = rate(w["cells"][i], w["total"])
                return text, note, *(f"{w['cells'][i]['count']} of {w['total']}; {h}" for h in hint)
            columns.append((cause_text(c), cell))
    return [h for h, _ in columns], [[c(w) for _, c in columns] for w in e["rows"]]


def paired(rows, names):
    def minus(v):
        return signed(f"{100 * v:+.1f}")
    columns = names + [
        ("tasks", lambda c: (str(c["tasks"]), "")), ("A", lambda c: (percent(c["rate_a"]), "")),
        ("B", lambda c: (percent(c["rate_b"]), "")), ("B − A", lambda c: (minus(c["difference"]), "")),
        ("95 % interval", lambda c: (minus(c["interval"]["low"]) + " to " + minus(c["interval"]["high"]), "")),
        ("A only", lambda c: (str(c["only_a"]), "")), ("B only", lambda c: (str(c["only_b"]), "")),
        ("h", lambda c: (signed(f"{c['cohen_h']:+.2f}"), "")), ("p", lambda c: (probability(c["p"]), "")),
        ("q", lambda c: (probability(c["q"]), "")), ("detectable", lambda c: (f"{100 * c['detectable']:.1f}", ""))]
    return [h for h, _ in columns], [[c(w) for _, c in columns] for w in rows]


def paired_tones(rows, page_rows, heads, check, at):
    i = heads.index("B − A")
    for c, row in zip(rows, page_rows):
        want = "" if c["q"] >= .05 else "good" if c["difference"] > 0 else "bad"
        check.same(at + ": sign", want, row[i]["tone"])


def pivot(p):
    def cell(c):
        text, note, *hint = rate(c, c["done"])
        if c["done"]:
            note += f", n {c['done']}" + (f" of {c['planned']}" if c["done"] < c["planned"] else "")
        return text, note, *hint

    def difference(row):
        d = row.get("difference")
        if d is None:
            return MISSING, ""
        i = row["difference_95"]
        form = "%.1f" if p.get("contrast") == "first_minus_last" else "%+.1f"
        return signed(form % (rounded(1000 * d) / 10 + 0.)), signed(
            f"{100 * i['low'] + 0.:+.0f} to {100 * i['high'] + 0.:+.0f}")

    levels, rows = p["levels"], p["rows"]
    columns = [("model", label("model"))]
    columns += [(readable(l), lambda row, i=i: cell(row["cells"][i])) for i, l in enumerate(levels)]
    first, last = (readable(levels[0]), readable(levels[-1])) if levels else ("", "")
    head = {"first_minus_last": f"drop {first} − {last}", "last_minus_first": f"{last} − {first}"}.get(
        p.get("contrast"), "flawed − optimal")
    plain = any(not l.startswith("flawed_") for l in levels)
    derived = [
        (len(levels) > 1, "mean", lambda row: unless(row.get("mean"), percent)),
        (True, "optimal", lambda row: cell(row["optimal"]) if row.get("optimal") else (MISSING, "")),
        (plain, "flawed mean", lambda row: unless(row.get("flawed_mean"), percent)), (True, head, difference),
        (True, "sensitivity", lambda row: unless(row.get("sensitivity"), of_format("%.3f"))),
        (True, "best", lambda row: (", ".join(row.get("best") or []) or MISSING, ""))]
    columns += [(h, c) for wanted, h, c in derived if wanted and any(c(row)[0] != MISSING for row in rows)]
    return [h for h, _ in columns], [[c(row) for _, c in columns] for row in rows]


def repeats(r):
    ks = sorted({p["k"] for row in r["repeats"] for p in row["passes"]})

    def passed(name, k):
        def cell(row):
            for p in row["passes"]:
                if p["k"] == k:
                    return rate({"rate": p[name], "interval": p[name + "_interval"]}, p["tasks"])
            return MISSING, ""
        return cell

    columns = [("model", label("model")), ("tasks", lambda row: (str(row["passes"][0]["tasks"]), ""))]
    columns += [(f"pass@{k}", passed("at", k)) for k in ks] + [(f"pass^{k}", passed("hat", k)) for k in ks]
    columns += [("flips", lambda row: rate({"rate": row["noise"]["flip"], "interval": row["noise"]["flip_interval"]},
                                           row["noise"]["repeated"])),
                ("noise", lambda row: (f"± {100 * row['noise']['limit']:.2f}", ""))]
    return [h for h, _ in columns], [[c(row) for _, c in columns] for row in r["repeats"]]


def estimated(name):
    return lambda w: (MISSING, "") if w[name] is None else rate(
        {"rate": w[name]["value"], "interval": w[name]["interval"]}, w[name]["tasks"])


def by_model(rows, *columns):
    """A table with a row for each model, of columns (head, name of the figure, how it is written)."""
    return table(rows, [("model", label("model"))] + [(head, show(name)) for head, name, show in columns])


def of_percent(name):
    return lambda w: unless(w[name], percent)


def profile_tables(rows):
    count = lambda name: lambda w: unless(w[name], of_format("%.0f"))
    brier = ("1 − Brier score", "predictability_brier", estimated)
    discrimination = ("discrimination", "predictability_auroc", estimated)
    out = {"profile": by_model(
        rows, ("same outcome", "consistency_outcome", estimated),
        ("same tools", "consistency_trajectory_distribution", estimated),
        ("same order", "consistency_trajectory_sequence", estimated),
        ("same effort", "consistency_resources", estimated),
        ("same with the same luck", "consistency_replays", estimated), brier, discrimination),
        "published": by_model(
            rows, ("C_out", "published_consistency_outcome", estimated),
            ("C_res", "published_consistency_resources", estimated),
            ("P_cal", "published_predictability_calibration", of_percent),
            ("P_rc", "published_predictability_risk", of_percent), ("safety", "published_safety", of_percent))}
    if any(w["variance_task"] for w in rows):
        out["variance"] = by_model(rows, ("task", "variance_task", estimated), ("luck", "variance_luck", estimated),
                                   ("the model itself", "variance_model", estimated))
    if any(w["confidences"] for w in rows):
        out["predictability"] = by_model(
            rows, ("n", "confidences", count), brier, discrimination, ("overconfident", "overconfidence", estimated),
            ("calibration error", "calibration_error", of_percent),
            ("by chance", "calibration_error_by_chance", of_percent))
    return out


def robustness_tables(rows):
    return {
        "robustness": by_model(rows, *((head, "robustness_" + name, estimated) for head, name in (
            ("other phrasings", "phrasing"), ("other interfaces", "interface"), ("failing tools", "tools"),
            ("explicit, transient", "explicit_transient"), ("explicit, permanent", "explicit_permanent"),
            ("implicit, transient", "implicit_transient"), ("implicit, permanent", "implicit_permanent"),
            ("flawed plans", "flaws")))),
        "published-robustness": by_model(rows, *((head, "published_robustness_" + name, of_percent) for head, name in (
            ("R_prompt", "prompt"), ("R_env", "environment"), ("R_fault", "fault"))))}


def reactions(r):
    rows = [w for w in r["exposures"] if w.get("faults_delivered")]
    factors = ("model", "fault_mix") if any("fault_mix" in w for w in r["exposures"]) else ("model",)
    share = lambda name: lambda w: rate({"rate": w[name], "interval": w[name + "_95"]}, w["faults_delivered"])
    return table(rows, factor_columns(r, rows, factors) + [
        ("n", lambda w: (str(w["faults_delivered"]), "")), ("detected", share("faults_detected")),
        ("recovered", share("faults_recovered")), ("effect repeated", share("faults_repeated"))])


def safety(r):
    count = lambda name: lambda w: (str(w[name]), "")
    some = lambda name: lambda w: (str(w[name]) if w[name] else MISSING, "")
    return by_model(r["safety"], ("n", "judged_outcomes", count), ("compliance", "compliance", estimated),
                    ("harm", "harm", estimated), ("expected harm", "expected_harm", estimated),
                    ("violations", "violations", count), ("unknown", "unknown_severity", some))


def pilot(r):
    n = lambda name: lambda w: rate(w[name], w["done"])
    rows = [{**w, "severity": ""} for w in r["pilot"]["rows"]]
    return table(rows, [("model", label("model")), ("variant", label("variant")), ("n", lambda w: (str(w["done"]), "")),
                        ("executor", n("executor")), ("paper", n("paper")), ("batch", n("batch"))])


def tables(r):
    """The tables that a report has to show, by the IDs of their sections."""
    out = {}
    done, effort_rows = r["done"] > 0, r["distributions"]
    if r["standings"]:
        out["models"] = standings(r)
    out["success"] = success(r)
    if any(w.get("attacks") or "injected" in w.get("fault_mix", "") for w in r["rows"]):
        out["security"] = security(r)
    out["main-metrics"] = main_metrics(r["main"])
    if r["variant_comparisons"]:
        out["variant-differences"] = paired(r["variant_comparisons"], [
            ("model", label("model")), ("A: reference", lambda c: (readable(c["a"]), "")),
            ("B: variant", lambda c: (readable(c["b"]), ""))])
    if r["model_comparisons"]:
        out["model-differences"] = paired(r["model_comparisons"], [("A", label("a")), ("B", label("b"))])
    if any(w["total"] for w in r["errors"]["rows"]):
        out["errors"] = errors(r)
    if done:
        out["effort"] = effort(r)
    if any((w["precision"] or 0) > 0 for w in effort_rows):
        out["data"] = data(r)
    if r["exposures"]:
        out["exposure"] = exposure(r)
    if any(spent(w) > 0 for w in effort_rows):
        out["cost"] = cost(r)
    if r["repeats"]:
        out["repeats"] = repeats(r)
    if r.get("profile"):
        out |= profile_tables(r["profile"])
    if r.get("robustness"):
        out |= robustness_tables(r["robustness"])
    if any(w.get("faults_delivered") for w in r["exposures"]):
        out["reactions"] = reactions(r)
    if r.get("safety"):
        out["safety"] = safety(r)
    if r["pilot"]["rows"]:
        out["pilot"] = pilot(r)
    for p in r["pivots"]:
        if p["factor"] != "reliability":
            out["by-" + p["factor"].replace("_", "-")] = pivot(p)
    if len(r["parts"]) > 1:
        for i, p in enumerate(r["parts"]):
            if not p["rows"]:
                continue
            out[f"part-{i + 1}"] = pivot(p)
            if p["factor"] == "task_type" and p.get("metrics"):
                out[f"part-{i + 1}-metrics"] = main_metrics(p["metrics"])
    if r["reliability"]:
        p = next(p for p in r["pivots"] + r["parts"] if p["factor"] == "reliability")
        heads, rows = pivot(p)
        best = []
        for l in p["levels"]:
            points = [q for c in r["reliability"] for q in c["points"]
                      if level(q["reliability"]) == l and q["best_possible"] is not None]
            n = sum(q["done"] for q in points)
            best.append(percent(sum(q["best_possible"] * q["done"] for q in points) / n) if n else MISSING)
        rows.append([("best possible", "")] + [(b, "") for b in best] + [(MISSING, "")] * (len(heads) - 1 - len(best)))
        out["by-reliability"] = heads, rows
    return out


SCALED = {"tools covered", "order correct", "per √B"}  # columns that are added to tables by difficulty


def compare_page(page, r, check):
    want = tables(r)
    have = {k for k, v in page.sections.items() if v["table"]}
    check.same("sections", sorted(want), sorted(have))
    for name in sorted(want.keys() & have):
        heads, rows = want[name]
        t = page.sections[name]["table"]
        got = [h["text"] for h in t["heads"]]
        t["rows"] = [row for row in t["rows"] if row]
        if SCALED & set(got) and name != "main-metrics" and not name.endswith("-metrics"):
            got = [h for h in got if h not in SCALED]
        check.same(f"html {name}: heads", heads, got)
        if heads != got:
            continue
        check.same(f"html {name}: rows", len(rows), len(t["rows"]))
        for row, cells in zip(rows, t["rows"]):
            for head, (text, note, *hint), cell in zip(heads, row, cells):
                at = f"html {name}: [{row[0][0]}, {head}]"
                check.same(at, text, cell["text"])
                if hint:
                    check.same(at + " hint", hint[0], cell["hint"])
                if note is not None:
                    check.same(at + " note", note, cell["note"])
                compare_key(cell, at, check)
        if name.endswith("-differences"):
            paired_tones(r[name.removesuffix("-differences") + "_comparisons"], t["rows"], heads, check, name)
    for s in r["standings"]:  # the signs of losses
        t = page.sections["models"]["table"]
        heads = [h["text"] for h in t["heads"]]
        row = next(row for row in t["rows"] if row and row[0]["text"] == s["model"])
        for head, key in (("flawed plans", "flawed_plan"), ("failing tools", "failing_tools")):
            if head in heads:
                c = s[key]
                sure = c and c["lost"]["share"] is not None and c["q"] < .05
                want_tone = ("good" if c["lost"]["share"] < 0 else "bad") if sure else ""
                check.same("sign of a loss", want_tone, row[heads.index(head)]["tone"])


def compare_key(cell, at, check):
    """The value that sorts a cell is the one that it shows."""
    number = re.search(r"[-−]?\d+(\.\d+)?", cell["text"])
    if cell["key"] is None or not number:
        return
    shown, digits = float(number[0].replace("−", "-")), len(number[1] or "") - 1
    scale = 100 if "%" in cell["text"] else 1
    key = float(cell["key"])
    near = .5000001 * 10 ** -max(0, digits)
    fits = any(abs(abs(shown * m) - abs(scale_ * key)) <= near * m for m in (1, 1000) for scale_ in (scale, 100))
    check.true(at + " sorts by what it shows", fits or "/" in cell["text"] or " to " in cell["text"]
               or "done" in at or cell["text"].startswith(("<", ".", "below")), (cell["text"], cell["key"]))


def compare_sheets(page, check):
    """Parts of tables for paper have the columns of the whole tables, with the first ones again."""
    for name, section in page.sections.items():
        if not section["sheets"]:
            continue
        of_table = [[h["text"]] + [(row[i]["text"], row[i]["note"]) for row in section["table"]["rows"] if row]
                    for i, h in enumerate(section["table"]["heads"])]
        columns = []
        for sheet in section["sheets"]:
            columns += [[h["text"]] + [(row[i]["text"], row[i]["note"]) for row in sheet["rows"] if row]
                        for i, h in enumerate(sheet["heads"])]
        check.same(f"paper {name}", [c for c in of_table if c not in columns], [])
        check.same(f"paper {name} has no more", [c for c in columns if c not in of_table], [])


CAPTIONED = ("models", "success", "security", "main-metrics", "effort", "data", "exposure", "cost", "pilot")


OBVIOUS = ("success", "done", "worst flaw", "worst kind")  # columns that need no words, and n of all outcomes


def compare_captions(page, check):
    """A caption explains each column with a hint that is shown and not obvious, and none that is not."""
    for name in CAPTIONED:
        if name not in page.sections:
            continue
        section = page.sections[name]
        notes, seen = " ".join(section["notes"]), set()
        heads = section["table"]["heads"]
        for i, h in enumerate(heads):
            hint = h["hint"]
            if not hint or hint in seen:
                continue
            seen.add(hint)
            head = h["text"][:1].upper() + h["text"][1:]
            obvious = h["text"] in OBVIOUS or (h["text"], hint) == ("n", "outcomes")
            check.same(f"caption of {name}: {h['text']}", not obvious, f"{head}: {hint}." in notes)
        shown = {h["text"].capitalize() for h in heads}
        first = section["notes"][0] if section["notes"] else ""
        for sentence in re.split(r"(?<=\.) (?=[A-Z$%95])", first):
            head = re.match(r"([A-Z$%0-9][^:.;]{0,24}): [a-z0-9]", sentence)
            if head:
                check.true(f"caption of {name} names {head[1]}, which is shown", head[1].capitalize() in shown, sorted(shown))


def words(text):
    return text.split()


def compare_text(s, page, r, check):
    """The text has the same words in the same columns as the page."""
    lines = s["text"].split("\n")
    starts = {}
    for i in range(1, len(lines)):
        if lines[i] and not lines[i].strip("─") and lines[i - 1] and len(lines[i]) == len(lines[i - 1]):
            starts[lines[i - 1]] = i + 1
    order = sorted(starts.values()) + [len(lines)]
    for name, section in page.sections.items():
        title = section["title"]
        if title not in starts:
            check.fail(f"text {name}", title, "no such section")
            continue
        start = starts[title]
        body = lines[start:order[order.index(start) + 1]]
        if section["table"]:
            compare_text_table(name, body, section["table"], check)
        flowing = " ".join(words(" ".join(body)))
        for part in section["leads"] + section["notes"]:
            part = " ".join(words(part))
            check.true(f"text {name}: words", part in flowing or part in flowing.replace("`", ""), part)
    # The picture on a terminal.
    dots = [re.search(r"([\d.]+) %$", l) for l in lines[starts.get("Models", 0):] if re.search(r"[●].* %$", l)]
    want = [f"{100 * c['rate']:.0f}" for m in r["standings"] for c in m["conditions"]]
    check.same("text: dots", want, [d[1] for d in dots[:len(want)]])
    brief = s["brief"].split("\n\n")
    for block in brief[:-1]:
        if "┃" not in block:
            check.true("brief is a part of the details", block in s["text"], block)


def compare_text_table(name, body, t, check):
    heads, rows = t["heads"], [row for row in t["rows"] if row]
    # Blocks of columns: lines above and below a rule.
    rules = [i for i, l in enumerate(body) if len(l) > 3 and not l.strip("─")]
    columns = []
    lead = 0
    for h in heads:
        if not h["names"]:
            break
        lead += 1
    for block, i in enumerate(rules):
        top = i
        while top > 0 and body[top - 1].strip() and "●" not in body[top - 1]:
            top -= 1
        end = i + 1
        while end < len(body) and body[end].strip():
            end += 1
        width = max(len(l) for l in body[top:end])
        above = [l.ljust(width) for l in body[top:i]]
        below = [l.ljust(width) for l in body[i + 1:end]]
        blank = [all(l[k] == " " for l in above + below) for k in range(width)] + [True, True]
        spans, k = [], 0
        while k < width:
            if blank[k]:
                k += 1
                continue
            stop = k
            while stop < width and not (blank[stop] and blank[stop + 1]):
                stop += 1
            spans.append((k, stop))
            k = stop
        part = [(words(" ".join(l[a:b] for l in above)), words(" ".join(l[a:b] for l in below))) for a, b in spans]
        columns += part if block == 0 else part[lead:]
    check.same(f"text {name}: columns", len(heads), len(columns))
    if len(heads) != len(columns):
        return
    sign = {"good": ["▲"], "bad": ["▼"]}
    for i, (h, (head, cells)) in enumerate(zip(heads, columns)):
        check.same(f"text {name}: head", words(h["text"]), head)
        want = []
        for row in rows:
            want += words(row[i]["text"]) + sign.get(row[i]["tone"], []) + words(row[i]["note"])
        check.same(f"text {name}: column {h['text']}", " ".join(want), " ".join(cells))


def order_text(s, r):
    """The first line of the headline."""
    all_ = r["standings"]
    if not all_:
        return None
    ranking = r["ranking"]
    better = {(b["a"], b["b"]): b["p"] for b in ranking["better"]} if ranking else {}
    one = lambda m: f"{m['model']} {100 * m['full_success']['rate']:.0f} %"
    signs, last = [], 0.
    text = one(all_[0])
    for a, b in zip(all_[:4], all_[1:5]):
        sign = APART
        if b["compared"] and ranking:
            sign = ALIKE
            names = [ranking["names"][i] for i in ranking["order"]]
            i = names.index(b["model"])
            if all((x, y) in better for x in names[:i] for y in names[i:]):
                sign, last = BETTER, max(last, better[names[i - 1], names[i]])
        signs.append(sign)
        text += f" {sign} {one(b)}"
    if len(all_) > 5:
        text += f", and {len(all_) - 5} more"
    parts = []
    if BETTER in signs:
        parts.append("> is significant, " + named("adjusted p", last).replace("=", "≤"))
    if ALIKE in signs:
        alike = "≈ may be chance"
        if better and BETTER not in signs:
            b = ranking["better"][0]
            alike += f", but {b['a']} > {b['b']}, {named('adjusted p', b['p'])}"
        parts.append(alike)
    if APART in signs:
        parts.append("| have no trial in common" if all_[0].get("own_trials") else "| is not compared")
    if parts:
        text += " (" + "; ".join(parts) + ")"
    if len(all_) == 1:
        i = all_[0]["full_success"]["interval"]
        text = (f"{one(all_[0])} of {counted(all_[0]['ranked_trials'], 'trial')} (95 % interval "
                f"{100 * i['low']:.0f} to {100 * i['high']:.0f} %)")
    if r["condition"]:
        text = f"with {r['condition']}: {text}"
    if r.get("replaced"):
        text += f"; {counted(r['replaced'], 'outcome')} took the place of earlier ones (`--retry`)"
    idle = [m["model"] for m in r["main"] if m["done"] == 0]
    if idle:
        text += "; no outcome yet: " + ", ".join(idle[:5])
    return text


def failures_text(r):
    place = {s["model"]: i for i, s in enumerate(r["standings"])}
    rows = sorted((w for w in r["errors"]["rows"] if w["total"]), key=lambda w: place[w["model"]])
    by = {}
    for w in rows[:5]:
        c = main_cause(w)
        by.setdefault(cause_text(c["cause"]), []).append(f"{w['model']} {c['count']} of {w['total']}")
    parts = [f"{cause}: {', '.join(models)}" for cause, models in by.items()]
    if len(rows) > 5:
        parts.append("and " + counted(len(rows) - 5, "more model"))
    return "; ".join(parts) or None


def loss_text(r):
    """The numbers of the line about the largest loss."""
    l = r["losses"]
    if not l["compared"]:
        return None
    points = lambda share: counted(max(1, rounded(100 * share)), "point")

    def bound(share):  # below a point, no more than it is
        if 100 * share + 1e-9 >= 1:
            return points(share)
        digits = -math.floor(math.log10(100 * share))
        return f"{math.floor(100 * share * 10 ** digits) / 10 ** digits:.{digits}f} points"

    if l["largest"]:
        top = l["largest"]
        return rf"{re.escape(top['model'])} loses at least {bound(top['at_least'])} .* \({points(top['points'])} in these trials\)"
    text = "none is beyond chance"
    if l["compared"] > 1:
        text += f" if all {l['compared']} comparisons are taken together"
    needed, clusters = l.get("clusters_needed", 0), l.get("clusters", 0)
    if needed > clusters:
        text += f"; a level needs {needed} independent tasks to show one, and there are {clusters}"
    return text


def reliability_text(r):
    """The line about reliability, of experiments that ask for it."""
    by = lambda name: {w["model"]: w for w in r.get(name) or []}
    profile, robustness, safe = by("profile"), by("robustness"), by("safety")
    if not robustness and not any(w["consistency_replays"] or w["confidences"] for w in profile.values()):
        return None

    def figures(row, *names):
        texts = []
        for name, head in names:
            if row and row[name]:
                v = row[name]
                low, high = (100 * v["interval"][k] for k in ("low", "high"))
                span = f"{low:.0f} or more" if high == 1000 else f"{low:.0f} to {high:.0f}"
                texts.append(f"{head} {100 * v['value']:.0f} % ({span})")
        return texts

    models = []
    for m in (s["model"] for s in r["standings"]):
        texts = figures(profile.get(m), ("consistency_outcome", "same outcome"),
                        ("consistency_replays", "same with the same luck"), ("predictability_brier", "1 − Brier score"))
        left = figures(robustness.get(m), ("robustness_phrasing", "with other phrasings"),
                       ("robustness_interface", "with other interfaces"))
        texts += ["successes left " + ", ".join(left)] if left else []
        texts += figures(safe.get(m), ("compliance", "compliance"))
        if texts:
            models.append(f"{m}: {', '.join(texts)}")
    return "; ".join(models[:5] + ([f"and {len(models) - 5} more"] if len(models) > 5 else [])) or None


def duration(seconds):
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    h, m, s = seconds // 3600, seconds // 60 % 60, seconds % 60
    return (f"{h:.0f}h" if h else "") + f"{m:.0f}m{s:.0f}s"


def run_text(s, r):
    text = f"{r['done']} of {r['planned']} trials done"
    if r["skipped"]:
        text += f" ({r['skipped']} skipped)"
    if s["seconds"]:
        text += " in " + ("at least " if s["killed"] else "") + duration(s["seconds"])
    if s["runs"] > 1:
        text += f" over {s['runs']} runs"
    ended, retried = r["met"]["faults"] or {}, r["met"]["retried"] or {}
    n, m = sum(ended.values()), sum(retried.values())
    if n + m == 0:
        text += ", no faults"
    else:
        kinds = {k: ended.get(k, 0) + retried.get(k, 0) for k in {*ended, *retried}}
        brief = ", ".join(f"{v} {k}" for k, v in sorted(kinds.items(), key=lambda i: (-i[1], i[0])) if v)
        brief += (", retried" if m == 1 else ", all retried") if n == 0 else (
            "; 1 ended an attempt" if n == 1 else f"; {n} ended attempts")
        text += f", {counted(n + m, 'fault')} ({brief})"
    rows = r["distributions"]
    usd = round(math.fsum(spent(w) for w in rows), 9)
    unknown = [w["model"] for w in rows
               if w["unpriced_tokens"] or any(w.get(who + "_unpriced_tokens") for who in ASIDE)]
    if r.get("killed_runs") and usd > 0:
        unknown.append("1 killed run" if r["killed_runs"] == 1 else f"{r['killed_runs']} killed runs")
    money = lambda v: f"${v:.{4 if 0 < v < .01 else 2}f}"
    if not unknown:
        text += ", cost " + money(usd)
    elif usd == 0:
        text += ", cost unknown"
    else:
        names = " and ".join(filter(None, [", ".join(unknown[:-1]), unknown[-1]]))
        text += f", at least {money(usd)}; not all costs of {names} are known"
    for who, words in ASIDE.items():
        part = round(math.fsum(w.get(who + "_cost_usd", 0) for w in rows), 9)
        if part:
            least = "at least " if any(least_of(r, w, who) for w in rows) else ""
            text += f" ({least}{money(part)} for {words})"
    if r["warnings"]:
        text += ", " + counted(len(r["warnings"]), "warning")
    return text


def compare_headline(s, page, r, check):
    lines = {h["label"]: h["text"] for h in r["headline"]}
    check.same("headline: full success", order_text(s, r), lines.get("Full success"))
    check.same("headline: failures", failures_text(r), lines.get("Failures"))
    check.same("headline: reliability", reliability_text(r), lines.get("Reliability"))
    check.same("headline: run", run_text(s, r), lines.get("Run"))
    want, got = loss_text(r), lines.get("Largest loss")
    check.true("headline: largest loss", got is None if want is None else got is not None and re.fullmatch(want, got), got)
    example = re.match(r"`assay show (\w+)`: (\S+), .*: ([^:]*)$", lines.get("To look at", ""))
    if example:
        mine = [a for a in s["export"] or [] if a["trial"].startswith(example[1]) and a["level"] and not a["superseded"]]
        check.same("headline: example", [(example[2], example[3], True)],
                   [(a["model"], cause_text(a["cause"]), a["level"] != "full_success") for a in mine])
    failed = r["done"] - sum(w["full_success"]["count"] for w in r["main"])
    check.same("headline: there is an example of a failure", failed > 0, bool(example) or (
        failed > 0 and not any(w["total"] for w in r["errors"]["rows"] if not w["model"].startswith("sim/"))))
    plain = lambda text: " ".join(text.replace("`", "").split())
    check.same("html: headline", [[h["label"], plain(h["text"])] for h in r["headline"]],
               [[a, plain(b)] for a, b in page.headline[:len(r["headline"])]])
    top = plain(s["text"].split("\nModels\n")[0])
    for h in r["headline"]:
        check.true("text: headline", h["label"] + " " + plain(h["text"]) in top, h)
    compare_best(page, r, check)


def compare_best(page, r, check):
    """The words about the best model."""
    all_ = r["standings"]
    if not all_:
        return
    lead = " ".join(page.sections["models"]["leads"])
    compared, best = [m for m in all_ if m["compared"]], [m["model"] for m in all_ if m["best"]]
    others = [m["model"] for m in compared if not m["best"]]
    said = re.search(r"Best: (\S+)\. It is significantly better than (.*?)\.(?: |$)", lead)
    check.same("best", best[0] if len(best) == 1 and others else None, said[1] if said else None)
    if said:
        check.same("best", others, said[2].split(", "))
        better = {(b["a"], b["b"]) for b in r["ranking"]["better"]}
        check.true("the best beats all others", all((best[0], o) in better for o in others), better)
    close = re.search(r"Too close to call: (.*?)\.(?: |$)", lead + " ")
    check.same("too close to call", ", ".join(best) if len(best) > 1 else None, close[1] if close else None)
    real = [m for m in all_ if not m["model"].startswith("sim/")] or all_
    unable = [m["model"] for m in real if m.get("selected") or m["done"] * 20 < m["planned"] * 19]
    check.same("none yet", bool(unable) and len(compared) < 2, "No model can be called the best yet." in lead)
    if len(compared) > 1 and not best:
        nobody = all_[0]["full_success"]["rate"] == 0
        check.same("none succeeds", nobody, "No model succeeds" in lead)
        check.same("too few", not nobody, "cannot be told apart whatever they do" in lead)
    out = re.search(r"Out of the comparison: (.*?)\.(?: [A-Z]|$)", lead)
    check.same("out of the comparison", unable, re.findall(r"(?:^|; )(\S+) (?:lacks|has done)", out[1]) if out else [])
    left = r["planned"] - r["done"] - r["skipped"]
    finish = re.search(r"Finish (\d+) ", lead)
    check.same("left", left, int(finish[1]) if finish else 0)
    scored = re.search(r"(\S+) scored (?:([\d.]+) points (higher|lower) than|the same as) (\S+) on the same (\d+) tasks? \((.*?)\)", lead)
    if scored:
        for c in r["model_comparisons"]:
            if {c["a"], c["b"]} == {scored[1], scored[4]}:
                d = c["difference"] if c["b"] == scored[1] else -c["difference"]
                points = rounded(1000 * d) / 10
                check.same("scored", [abs(points), points < 0, c["tasks"], named("adjusted p", c["q"])], [
                    float(scored[2] or 0), scored[3] == "lower", int(scored[5]), scored[6]])
                return
        check.fail("scored", "a pair of models", scored[0])


def compare(s, check):
    r, page = s["report"], Page(s["html"])
    compare_page(page, r, check)
    compare_sheets(page, check)
    compare_captions(page, check)
    compare_text(s, page, r, check)
    compare_headline(s, page, r, check)
