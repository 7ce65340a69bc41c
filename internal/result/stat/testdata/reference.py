"""Computes the figures of package stat again, from their definitions, without its shortcuts.

Standard input has the data as JSON; standard output gets the figures. It needs the standard library
only: the distribution function of Student's t is an integral, and bounds are found by bisection.
"""

import json
import math
import sys


def student(t, df):
    """P(T < t): the integral of cos(x)^(df-1) up to atan(t/sqrt(df)), by Simpson's rule."""
    def area(a, b, n=2000):
        f = lambda x: max(0.0, math.cos(x)) ** (df - 1)
        h = (b - a) / n
        odd = sum(f(a + (2 * i + 1) * h) for i in range(n // 2))
        even = sum(f(a + 2 * i * h) for i in range(1, n // 2))
        return h / 3 * (f(a) + 4 * odd + 2 * even + f(b))
    whole = math.sqrt(math.pi) * math.exp(math.lgamma(df / 2) - math.lgamma((df + 1) / 2))
    return 0.5 + area(0, math.atan(t / math.sqrt(df))) / whole


def bisect(f, low, high):
    """The place between low, where f is false, and high, where it is true."""
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (low, middle) if f(middle) else (middle, high)
    return high


def quantile(p, df):
    return bisect(lambda t: student(t, df) > p, 0, 1e4)


def rates(task):
    """A task's rates on both sides, and the unit of its difference."""
    cells = [c for c in task["Cells"] if c["NA"] and c["NB"]]
    k = len(cells)
    a, b = (sum(c[x] / c["N" + x] for c in cells) / k for x in "AB")
    return a, b, sum((1 / c["NA"] + 1 / c["NB"]) / 2 for c in cells) / k**2


def freedom(clusters, m):
    """Satterthwaite's degrees of freedom from the matrix of the jackknife's quadratic form."""
    rows = []
    for k in sorted(set(clusters)):
        n = clusters.count(k)
        rows.append([((c == k) - n / m) / (1 - n / m) for c in clusters])
    form = [[sum(r[i] * r[j] for r in rows) for j in range(m)] for i in range(m)]
    return sum(form[i][i] for i in range(m)) ** 2 / sum(x * x for r in form for x in r)


def test(d, clusters, size):
    """Mean and standard error with half a pseudo-task of each sign, leaving clusters out."""
    m = len(d)
    y, w = d + [size, -size], [1.0] * m + [0.5, 0.5]
    mean = sum(a * b for a, b in zip(w, y)) / (m + 1)
    names = sorted(set(clusters))
    variance = 0
    for k in names:
        kept = [i for i in range(m + 2) if i >= m or clusters[i] != k]
        left = sum(w[i] * y[i] for i in kept) / sum(w[i] for i in kept)
        variance += (left - mean) ** 2 * (len(names) - 1) / len(names)
    variance += sum(0.5 * (v - mean) ** 2 for v in (size, -size)) / (m + 1) ** 2
    return mean, math.sqrt(variance)


def figures(data):
    tasks = [rates(t) for t in data["Tasks"]]
    m = len(tasks)
    clusters = [t["Sequence"] if data["BySequence"] else i for i, t in enumerate(data["Tasks"])]
    d = [b - a for a, b, _ in tasks]
    step = sum(s for _, _, s in tasks) / m
    length = sum(map(abs, d))
    n = sum(clusters.count(c) for c in clusters) / m
    size = (sum(x * x for x in d) + step) / (length + step)
    size += (n - 1) * step / (max(0, min(length, m - length)) + step)
    df = freedom(clusters, m)
    t = quantile(0.975, df)
    mean, se = test(d, clusters, size)
    out = {"low": max(-1, mean - t * se), "high": min(1, mean + t * se),
           "p": 2 * student(-abs(mean) / se, df)}

    def differs(share):
        mean, se = test([(1 - share) * a - b for a, b, _ in tasks], clusters, size)
        return abs(mean) > t * se

    lost = 1 - sum(b for _, b, _ in tasks) / sum(a for a, _, _ in tasks)
    out["lost"] = lost
    out["lost_high"] = bisect(differs, lost, 1) if differs(1) else 1
    if differs(-9):
        out["lost_low"] = bisect(differs, lost, -9)
    return out


json.dump([figures(x) for x in json.load(sys.stdin)], sys.stdout)
