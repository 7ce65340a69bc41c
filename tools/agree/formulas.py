"""The formulas of reports, written from their definitions: docs/results.md, and the sources that the
package stat names. Only the standard library is used."""

import math
from collections import Counter
from functools import lru_cache
from itertools import combinations
from statistics import NormalDist

Z95 = NormalDist().inv_cdf(.975)


def beta_cf(a, b, x):
    """The continued fraction of the incomplete beta function, by Lentz's method."""
    tiny = 1e-300
    c, d = 1., 1 - (a + b) * x / (a + 1)
    d = 1 / (d if abs(d) > tiny else tiny)
    h = d
    for m in range(1, 500):
        for numerator in (m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
                          -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))):
            d = 1 + numerator * d
            d = 1 / (d if abs(d) > tiny else tiny)
            c = 1 + numerator / c
            c = c if abs(c) > tiny else tiny
            h *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return h


def beta(x, a, b):
    """The regularized incomplete beta function."""
    if x <= 0:
        return 0.
    if x >= 1:
        return 1.
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return front * beta_cf(a, b, x) / a
    return 1 - front * beta_cf(b, a, 1 - x) / b


def t_tail(t, df):
    """The chance that Student's t is above t, for t >= 0."""
    return beta(df / (df + t * t), df / 2, .5) / 2


@lru_cache(100_000)
def t_quantile(p, df):
    """Student's quantile for p above one half, by bisection of the tail."""
    if df > 1e6:
        return NormalDist().inv_cdf(p)
    low, high = 0., 2.
    while t_tail(high, df) > 1 - p:
        low, high = high, high * 2
    for _ in range(100):
        mid = (low + high) / 2
        if t_tail(mid, df) > 1 - p:
            low = mid
        else:
            high = mid
        if high - low < 1e-13 * high:
            break
    return (low + high) / 2


def wilson(p, n, z):
    """Wilson's interval of a rate p in n trials: the rates r with |p - r| <= z sqrt(r (1 - r) / n)."""
    a, b, c = 1 + z * z / n, -(2 * p + z * z / n), p * p
    root = math.sqrt(max(0, b * b - 4 * a * c))
    low, high = (-b - root) / (2 * a), (-b + root) / (2 * a)
    return (0. if p <= 0 else max(0., low), 1. if p >= 1 else min(1., high))


def correlation(groups):
    """The ANOVA estimate of the correlation within groups of (some, n), shrunk towards 1."""
    n = sum(g[1] for g in groups)
    m = len(groups)
    rare = min(sum(k > 0 for k, _ in groups), sum(k < n for k, n in groups))
    if n <= m:
        return 0.
    if m < 2 or rare == 0:
        return 1.
    mean = sum(g[0] for g in groups) / n
    between = sum(n_i * (k / n_i - mean) ** 2 for k, n_i in groups) / (m - 1)
    within = sum(k * (n_i - k) / n_i for k, n_i in groups) / (n - m)
    size = (n - sum(n_i * n_i for _, n_i in groups) / n) / (m - 1)
    rho = (between - within) / (between + (size - 1) * within)
    return (rare * min(1, max(0, rho)) + .5) / (rare + .5)


def critical(groups, rho):
    n, m = sum(g[1] for g in groups), len(groups)
    repeats = n / m
    if repeats > 1 and rho < 1:
        return t_quantile(.975, (m - 1) * repeats / ((repeats - 1) * (1 - rho) ** 2))
    return Z95


def clustered(groups):
    """The rate over groups of (some, n): rate, interval, design effect."""
    groups = [g for g in groups if g[1] > 0]
    n = sum(g[1] for g in groups)
    if n == 0:
        return 0., (0., 1.), 1.
    rate = sum(g[0] for g in groups) / n
    rho = correlation(groups)
    effect = 1 + (sum(g[1] ** 2 for g in groups) / n - 1) * rho
    return rate, wilson(rate, n / effect, critical(groups, rho)), effect


def weighted_rate(tasks):
    """A rate over tasks (cluster, weight, [(full, n) of each condition]), in which a task has its weight."""
    groups, total, above = {}, 0., 0.
    for cluster, weight, cells in tasks:
        cells = [c for c in cells if c[1] > 0]
        if not cells:
            continue
        above += weight * sum(k / n for k, n in cells) / len(cells)
        total += weight
        g = groups.setdefault(cluster, [0, 0, 0.])
        g[0] += sum(k for k, _ in cells)
        g[1] += sum(n for _, n in cells)
        g[2] += weight
    if not groups:
        return 0., (0., 1.)
    plain = [(k, n) for k, n, _ in groups.values()]
    rho = correlation(plain)
    variance = sum((w / total) ** 2 * (1 + (n - 1) * rho) / n for _, n, w in groups.values())
    rate = min(1, above / total)
    return rate, wilson(rate, 1 / variance, critical(plain, rho))


def hypergeometric_variance(a, na, b, nb):
    """The variance of the difference of rates if a + b successes fall on na + nb trials by chance."""
    n, k = na + nb, a + b
    of_a = na * k / n * (1 - k / n) * nb / (n - 1)  # of the number of successes on one side
    return of_a * (1 / na + 1 / nb) ** 2


class Pairs:
    """Tasks (cluster, [(a, na, b, nb) of each condition]) that two sides have in common."""

    def __init__(self, tasks, conditions=None):
        self.conditions = conditions
        self.clusters, self.rates, self.pairs = {}, [], 0
        self.step = self.least = 0.
        self.only_a = self.only_b = 0
        for cluster, cells in tasks:
            cells = [c for c in cells if c[1] > 0 and c[3] > 0]
            if not cells:
                continue
            k = len(cells)
            a = sum(c[0] / c[1] for c in cells) / k
            b = sum(c[2] / c[3] for c in cells) / k
            self.rates.append((a, b))
            self.clusters.setdefault(cluster, []).append((a, b))
            self.pairs += sum(min(c[1], c[3]) for c in cells)
            self.step += sum((1 / c[1] + 1 / c[3]) / 2 for c in cells) / k ** 2
            self.least += sum(hypergeometric_variance(*c) for c in cells if c[1] != c[3]) / k ** 2 / 2
            self.only_b += b - a > 1e-9
            self.only_a += b - a < -1e-9
        self.tasks = len(self.rates)
        if self.tasks:
            self.step /= self.tasks
            self.a = min(1, sum(r[0] for r in self.rates) / self.tasks)
            self.b = min(1, sum(r[1] for r in self.rates) / self.tasks)
            self.difference = self.b - self.a
        self.sizes = tuple(len(c) for c in self.clusters.values())

    def typical(self):
        """The size of a difference in tasks: of half a task in favour of each side."""
        m = self.tasks
        size = sum((b - a) ** 2 for a, b in self.rates)
        length = sum(abs(b - a) for a, b in self.rates)
        mean_size = sum(n * n for n in self.sizes) / m
        rare = max(0, min(length, m - length))
        return (size + self.step) / (length + self.step) + (mean_size - 1) * self.step / (rare + self.step)

    def t(self, share=0., least=0.):
        """The mean of b - (1 - share) a, its standard error, and the degrees of freedom."""
        m, g, typical = self.tasks, len(self.sizes), self.typical()
        sums = [sum(b - (1 - share) * a for a, b in c) for c in self.clusters.values()]
        mean = sum(sums) / (m + 1)
        # The jackknife leaves out each cluster; the two halves of a task stay.
        without = [(sum(sums) - s) / (m + 1 - n) for s, n in zip(sums, self.sizes)]
        variance = (g - 1) / g * sum((w - mean) ** 2 for w in without)
        halves = ((typical - mean) ** 2 + (typical + mean) ** 2) / 2 / (m + 1) ** 2
        return mean, math.sqrt(max(variance + halves, least / (m + 1) ** 2)), jackknife_df(self.sizes)

    def test(self):
        """The interval of the difference and its p."""
        if len(self.sizes) < 2:
            return (-1., 1.), 1.
        mean, se, df = self.t(least=self.least)
        half = se * t_quantile(.975, df)
        return (max(-1, mean - half), min(1, mean + half)), min(1, 2 * t_tail(abs(mean) / se, df))

    def finds(self):
        """How often new data with a difference show it, as a function of the difference."""
        _, se, df = self.t(least=self.least)
        m, typical, limit = self.tasks, self.typical(), t_quantile(.975, df)
        # One side loses a share of what is more frequent, its successes or its failures.
        high = max((self.a + self.b) / 2, 1 - (self.a + self.b) / 2)

        def found(d):
            low = max(0, high - d)
            more = max(0, low * (1 - low) - high * (1 - high)) * self.step  # of the variance of a task
            least = max(0, d * typical - d * d)  # a mean of d has at least this one
            t = d / (math.sqrt(1 + 3 / df) * math.sqrt(max(se * se + more / (m + 1), least / (m + 1)))) - limit
            return 1 - t_tail(t, df) if t >= 0 else t_tail(-t, df)
        return found

    def detectable(self):
        if len(self.sizes) < 2:
            return 1., {"5": 0, "10": 0, "20": 0}
        found, low, high = self.finds(), 0., 1.
        for _ in range(50):
            mid = (low + high) / 2
            if found(mid) >= .8:
                high = mid
            else:
                low = mid
        return high, {"5": found(.05), "10": found(.1), "20": found(.2)}

    def lost(self):
        """The share of a's success that b lacks, with the shares that the test does not exclude."""
        a = sum(r[0] for r in self.rates)
        if not self.tasks or a == 0:
            return None, None, None
        share = 1 - sum(r[1] for r in self.rates) / a
        if len(self.sizes) < 2:
            return share, None, None

        def excluded(s):
            mean, se, df = self.t(s)
            return abs(mean) > se * t_quantile(.975, df)

        low = border(share, -9., excluded)
        return share, (low if low > -9 + 1e-6 else None), border(share, 1., excluded)


def border(inside, limit, excluded):
    if not excluded(limit):
        return limit
    for _ in range(50):
        mid = (inside + limit) / 2
        if excluded(mid):
            limit = mid
        else:
            inside = mid
    return inside


@lru_cache(10_000)
def jackknife_df(sizes):
    """Satterthwaite's degrees of freedom of the jackknife's variance over clusters of independent tasks.

    The deviation that leaving out a cluster of n of m tasks makes is the product of the tasks' differences
    with a vector; the degrees of freedom follow from the products of these vectors."""
    m = sum(sizes)

    def product(n, k):
        return -n * k / (m * (m - n) * (m - k))

    trace = sum(n / (m * (m - n)) for n in sizes)
    squares = sum((n / (m * (m - n))) ** 2 for n in sizes)
    squares += 2 * sum(product(n, k) ** 2 for n, k in combinations(sizes, 2))
    return trace * trace / squares


def price(clusters):
    """The price of a success over clusters of (usd, full, n), with Fieller's interval."""
    usd, full = sum(c[0] for c in clusters), sum(c[1] for c in clusters)
    dollars, g = (usd / full if full else None), len(clusters)
    if g < 2:
        return dollars, None, None
    offs = [usd_c / usd * full - full_c for usd_c, full_c, _ in clusters]
    n = sum(c[2] for c in clusters)
    usual = sum(c[2] ** 2 for c in clusters) / max(1, n)
    size = max(1, (sum(o * o for o in offs) + usual) / (sum(map(abs, offs)) + 1))

    def excluded(p):
        worth = [c[0] - p * c[1] for c in clusters]
        mean = sum(worth) / g
        variance = (sum((w - mean) ** 2 for w in worth) + (p * size) ** 2) / (g - 1) / g
        return abs(mean) > t_quantile(.975, g - 1) * math.sqrt(variance)

    if not full:
        return None, border(1e3 * usd, 0., excluded), None
    high = border(dollars, 1e3 * dollars, excluded) if dollars > 0 and excluded(1e3 * dollars) else None
    return dollars, border(dollars, 0., excluded), high


def mean_of_shares(values):
    """The mean of a value in [0,1] of each task, given as (cluster, value), with its interval."""
    m = len(values)
    if not m:
        return 0., (0., 1.)
    p = min(1, max(0, sum(v for _, v in values) / m))
    clusters = {}
    for c, v in values:
        clusters.setdefault(c, []).append(v)
    squares = sum(len(c) ** 2 for c in clusters.values())
    equal = m * m / squares
    share = 1.
    if 0 < p < 1:
        s = sum((sum(c) - len(c) * p) ** 2 for c in clusters.values()) / squares
        rare = equal * min(p, 1 - p)
        share = (rare * min(1, s / (p * (1 - p))) + .5) / (rare + .5)
    z = Z95
    if share < 1 and equal > 1:
        z = t_quantile(.975, (equal - 1) / (1 - share) ** 2)
    return p, wilson(p, equal / share, z)


def mean_of_figures(values):
    """The mean of a figure in [0,1] of each task, given as (cluster, value), by how much it varies."""
    return ratio_of_figures([(c, v, 1) for c, v in values])


def ratio_of_figures(values):
    """The same for tasks that have a weight, given as (cluster, figure times weight, weight)."""
    m = math.fsum(w for _, _, w in values)
    p = min(1, max(0, math.fsum(v for _, v, _ in values) / m))
    clusters = {}
    for c, v, w in values:
        clusters.setdefault(c, []).append((v, w))
    clusters = {c: [sum(v) for v in zip(*vs)] for c, vs in clusters.items()}
    means = [round(1e9 * v / w) for v, w in clusters.values()]
    squares, n = sum(w ** 2 for _, w in clusters.values()), len(clusters)
    others = (n - max(means.count(v) for v in means)) ** 3
    share = 1.
    if 0 < p < 1 and n > 1:
        s = sum((v - w * p) ** 2 for v, w in clusters.values()) / squares * n / (n - 1)
        share = (others * min(1, s / (p * (1 - p))) + 1) / (others + 1)
    return p, wilson(p, m * m / squares / share, t_quantile(.975, n - 1) if share < 1 else Z95)


def divergence(a, b):
    """The Jensen-Shannon divergence of two lists, from the entropies of both and of their mixture."""
    if not a or not b:
        return float(bool(a) != bool(b))
    shares = [{k: x.count(k) / len(x) for k in {*a, *b}} for x in (a, b)]
    shares.append({k: (shares[0][k] + shares[1][k]) / 2 for k in shares[0]})
    p, q, mixed = (-sum(v * math.log2(v) for v in s.values() if v) for s in shares)
    return mixed - (p + q) / 2


def edits(a, b):
    """Levenshtein's distance."""
    d = {(i, 0): i for i in range(len(a) + 1)} | {(0, j): j for j in range(len(b) + 1)}
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            d[i + 1, j + 1] = min(d[i, j] + (x != y), d[i, j + 1] + 1, d[i + 1, j] + 1)
    return d[len(a), len(b)]


def variation(runs):
    """The coefficient of variation of lists of resources, averaged over those that are known."""
    all = []
    for values in zip(*runs):
        if None not in values:
            m = sum(values) / len(values)
            all.append(math.sqrt(sum((v - m) ** 2 for v in values) / (len(values) - 1)) / m if m else 0.)
    return sum(all) / len(all)


def components(tasks):
    """The variances of task, luck and model, and their sum, of tasks that have by condition: the shares of pairs
    with and without the same luck that differ, halved, and the rate."""
    conditions = {}
    for t in tasks:
        for c, (_, _, rate) in t.items():
            conditions.setdefault(c, []).append(rate)
    apart, n = 0., 0
    for rates in conditions.values():
        if len(rates) > 1:
            # Half the squared difference of an outcome of one task and one of another.
            half = [(a * (1 - b) + b * (1 - a)) / 2 for a, b in combinations(rates, 2)]
            apart, n = apart + len(rates) * sum(half) / len(half), n + len(rates)
    if not n:
        return None
    replays, repeats = (sum(sum(v[i] for v in t.values()) / len(t) for t in tasks) / len(tasks) for i in (0, 1))
    return apart / n - repeats, repeats - replays, replays, apart / n


def split_variance(tasks, clusters):
    """The shares of task, luck and model with Fieller's intervals from a jackknife over clusters."""
    all = components(tasks) if tasks else None
    if not all or all[3] < 1e-9:
        return [None] * 3
    names = list(dict.fromkeys(clusters))
    without = [components([t for t, c in zip(tasks, clusters) if c != name]) for name in names]
    # If nothing ever differed, further clusters may differ as often as so many without one can hide.
    hidden = min(1, mean_of_shares([(n, 0.) for n in names])[1][1] / 2 / all[3])
    out = []
    for i in range(3):
        share = all[i] / all[3]
        value, low, high = min(1, max(0, share)), 0., 1.
        if None not in without:
            low, high = fieller(all[i], all[3], [(w[i], w[3]) for w in without])
            # A share beyond 0 or 1 is off by at least as much as it is beyond.
            low, high = max(0, min(low, 2 - share, value)), min(1, max(high, -share, value))
        out.append([value, low, high])
    constant = [all[1] + all[2] == 0, all[2] == 0]
    if constant[1]:
        out[2][2] = max(out[2][2], hidden)
    if constant[0]:
        out[1][2], out[0][1] = max(out[1][2], hidden), min(out[0][1], 1 - hidden)
    return [(value, (low, high)) for value, low, high in out]


def fieller(a, b, without):
    """The shares s from -1 to 2 for which a - s b is within Student's limits of 0, given both without each of the
    clusters: the roots of a quadratic equation around a / b."""
    g = len(without)
    mean_a, mean_b = sum(w[0] for w in without) / g, sum(w[1] for w in without) / g
    scale = t_quantile(.975, g - 1) ** 2 * (g - 1) / g
    aa = scale * sum((w[0] - mean_a) ** 2 for w in without)
    ab = scale * sum((w[0] - mean_a) * (w[1] - mean_b) for w in without)
    bb = scale * sum((w[1] - mean_b) ** 2 for w in without)
    # The distance is too large where p s^2 + q s + r > 0.
    p, q, r = b * b - bb, 2 * (ab - a * b), a * a - aa
    roots = []
    if q * q >= 4 * p * r and abs(p) > 1e-15:
        roots = [(-q + sign * math.sqrt(q * q - 4 * p * r)) / (2 * p) for sign in (-1, 1)]
    near = a / b
    low, high = ((limit if p * limit * limit + q * limit + r <= 0 else None) for limit in (-1., 2.))
    if low is None:
        low = max((x for x in roots if x <= near + 1e-9), default=near)
    if high is None:
        high = min((x for x in roots if x >= near - 1e-9), default=near)
    return low, high


def discrimination(tasks):
    """The chance that a success has a higher confidence than a failure at another task, over tasks (cluster,
    [(confidence, success)]), with an interval on the scale of log odds from a jackknife over clusters."""
    pairs = {}  # by the clusters of the success and of the failure: won, all
    for i, (c, some) in enumerate(tasks):
        for k, (d, others) in enumerate(tasks):
            if i != k:
                won = [(a > b) + (a == b) / 2 for a, good in some if good for b, fine in others if not fine]
                p = pairs.setdefault((c, d), [0., 0])
                p[0], p[1] = p[0] + sum(won), p[1] + len(won)

    def area(left_out=None):
        some = [p for key, p in pairs.items() if left_out not in key]
        n = sum(p[1] for p in some)
        return sum(p[0] for p in some) / n if n else None

    value = area()
    if value is None:
        return None
    clusters = {c for c, _ in tasks}
    areas = [area(c) for c in clusters]
    if not 0 < value < 1 or len(clusters) < 2 or any(a is None or not 0 < a < 1 for a in areas):
        good = sum(g for _, some in tasks for _, g in some)
        return value, wilson(value, min(good, sum(len(some) for _, some in tasks) - good), Z95)
    g, odds = len(areas), [math.log(a / (1 - a)) for a in areas]
    centre = sum(odds) / g
    half = t_quantile(.975, g - 1) * math.sqrt((g - 1) / g * sum((o - centre) ** 2 for o in odds))
    at = math.log(value / (1 - value))
    return value, tuple(1 / (1 + math.exp(-(at + sign * half))) for sign in (-1, 1))


def risk_coverage(statements):
    """Where the mean risk of the most confident ones, over all numbers of them, lies between that of no order (0)
    and that of the best one (1). The order of equal confidences is any, so each has the risk of all of them."""
    def area(risks):
        return sum(sum(risks[:k]) / k for k in range(1, len(risks) + 1)) / len(risks)

    failed = sorted(not good for _, good in statements)
    by_level = {}
    for confidence, good in statements:
        by_level.setdefault(confidence, []).append(not good)
    risks = [sum(r) / len(r) for _, r in sorted(by_level.items(), reverse=True) for _ in r]
    best, none = area(failed), sum(failed) / len(failed)
    if none - best < 1e-12:
        return 1.
    return min(1, max(0, (none - area(risks)) / (none - best)))


def pass_at(n, c, k):
    return 1 - math.comb(n - c, k) / math.comb(n, k)


def pass_hat(n, c, k):
    return math.comb(c, k) / math.comb(n, k)


def benjamini_hochberg(p):
    order = sorted(range(len(p)), key=lambda i: -p[i])
    q, least = [0.] * len(p), 1.
    for place, i in enumerate(order):
        least = min(least, p[i] * len(p) / (len(p) - place))
        q[i] = least
    return q


MASK = (1 << 128) - 1


class PCG:
    """PCG-DXSM, as math/rand/v2 of Go has it."""

    def __init__(self, high, low):
        self.state = high << 64 | low

    def uint32(self):
        multiplier = 0x2360ed051fc65da44385df649fccf645
        self.state = (self.state * multiplier + 0x5851f42d4c957f2d14057b7ef767814f) & MASK
        high, low = self.state >> 64, self.state & (1 << 64) - 1
        high ^= high >> 32
        high = high * 0xda942042e4dd58b5 & (1 << 64) - 1
        high ^= high >> 48
        return (high * (low | 1) & (1 << 64) - 1) >> 32


@lru_cache(64)
def sign_changes(rows):
    """Changes of signs of rows, as numbers whose bits are set for rows whose sign changes. Up to 14 rows
    there are all, up to the sign of all, and else 9,999 at random, and none first."""
    if rows <= 14:
        return range(1 << max(0, rows - 1))
    random = PCG(1993, 2005)
    patterns = [0] * 10_000
    for start in range(0, rows, 8):
        mask = (1 << min(8, rows - start)) - 1
        for draw in range(1, 10_000):
            patterns[draw] |= (random.uint32() & mask) << start
    return patterns


def max_t(sums, least):
    """The p-value of each pair of columns of sums, adjusted for all pairs: the share of changes of the
    rows' signs at which some pair differs as much as this one does, in its own standard deviations."""
    k = len(sums[0])
    pairs, columns = list(combinations(range(k), 2)), []
    for i, j in pairs:
        d = [s[i] - s[j] for s in sums]
        v = max(sum(x * x for x in d), least[i][j])
        columns.append([x / math.sqrt(v) for x in d] if v > 1e-12 else [0.] * len(d))
    seen = [abs(sum(c)) for c in columns]
    counts = [0] * len(pairs)
    patterns = sign_changes(len(sums))
    # Sums of 7 rows with all of their signs, so that a pattern takes few additions.
    tables = []
    for c in columns:
        blocks = []
        for start in range(0, len(c), 7):
            block = [0.]
            for x in c[start:start + 7]:
                block = [s + x for s in block] + [s - x for s in block]
            blocks.append(block)
        tables.append(blocks)
    for pattern in patterns:
        top = 0.
        for blocks in tables:
            total, rest = 0., pattern
            for block in blocks:
                total += block[rest & 127 if len(block) == 128 else rest & len(block) - 1]
                rest >>= 7
            top = max(top, abs(total))
        for i, s in enumerate(seen):
            counts[i] += top >= s - 1e-9
    return {pair: n / len(patterns) for pair, n in zip(pairs, counts)}


def fewer(sets):
    """The exact chance that some units have at most as many successes as they have, if they were drawn by chance from
    them and others. Each set is a list of the successes of the others, and one of their own."""
    chances = {0: 1.}
    for others, own in sets:
        ways = Counter({(0, 0): 1})  # of so many units with so many successes
        for score in others + own:
            for (n, s), w in list(ways.items()):
                if n < len(own):
                    ways[n + 1, s + score] += w
        total = math.comb(len(others) + len(own), len(own))
        more = {}
        for s, p in chances.items():
            for (n, k), w in ways.items():
                if n == len(own):
                    more[s + k] = more.get(s + k, 0) + p * (w / total)
        chances = more
    return math.fsum(p for s, p in chances.items() if s <= sum(sum(own) for _, own in sets))


def sign_flip(losses):
    """The exact one-sided p-value of a sum of losses under all changes of signs. Losses are rounded to whole
    numbers in the same proportions, if there are small ones."""
    chances, seen = {0.: 1.}, 0.
    for x in losses:
        if abs(x) < 1e-12:
            continue
        seen += x
        more = {}
        for s, p in chances.items():
            for y in (s + x, s - x):
                y = round(y, 9)
                more[y] = more.get(y, 0) + p / 2
        chances = more
        if len(chances) > 200_000:
            return None
    return sum(p for s, p in chances.items() if s >= seen - 1e-6)
