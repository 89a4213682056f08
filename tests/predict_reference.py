"""The method of docs/explanation/prediction.md in Python, written from that page: physical model, likeness, kernel, neighbours.

It takes rows as arrays and does in numpy what `weir fit` and `weir predict` do for one split. test_predict_reference.py holds the two
against each other.
"""
import math

import numpy as np

MASK = 2**64 - 1


# Chance: xoshiro256** seeded by splitmix64, and streams of a seed by name (FNV-1a).
def _split_mix(state):
    state = (state + 0x9E3779B97F4A7C15) & MASK
    z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return state, z ^ (z >> 31)


class Chance:
    def __init__(self, seed):
        self.s = []
        for _ in range(4):
            seed, word = _split_mix(seed)
            self.s.append(word)

    def next(self):
        def left(x, k):
            return ((x << k) | (x >> (64 - k))) & MASK

        s = self.s
        result = (left((s[1] * 5) & MASK, 7) * 9) & MASK
        t = (s[1] << 17) & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = left(s[3], 45)
        return result

    def integer(self, low, high):
        range_ = high - low + 1
        limit = range_ * (MASK // range_)
        value = self.next()
        while value >= limit:
            value = self.next()
        return low + value % range_

    def shuffle(self, items):
        for i in range(len(items), 1, -1):
            j = self.integer(0, i - 1)
            items[i - 1], items[j] = items[j], items[i - 1]


def stream(seed, purpose):
    if isinstance(purpose, str):
        value = 0xCBF29CE484222325
        for byte in purpose.encode():
            value = ((value ^ byte) * 0x100000001B3) & MASK
        purpose = value
    return _split_mix(seed ^ ((purpose * 0xD1342543DE82EF95 + 0x2545F4914F6CDD1D) & MASK))[1]


# The physical model.
HUBER, STEPS, HALVINGS, SWEEPS = 0.35, 8, 6, 80


def median(values):
    return sorted(values)[len(values) // 2]


def importance(hardware, even):
    if not even:
        return np.ones(len(hardware))
    counts = {name: hardware.count(name) for name in set(hardware)}
    weights = np.array([1 / (counts[name] + 1) for name in hardware])
    return weights * len(weights) / weights.sum()


def weights_of(terms, log_time, weight, prior, pull):
    def loss(w, penalty):
        miss = np.abs(log_time - np.log(np.maximum(terms @ w, 1e-300)))
        huber = np.where(miss < HUBER, miss**2, HUBER * (2 * miss - HUBER))
        return (weight * huber).sum() + (penalty * (w - prior) ** 2).sum()

    w, penalty = prior.copy(), np.zeros(len(prior))
    for _ in range(STEPS):
        predicted = np.maximum(terms @ w, 1e-300)
        miss = log_time - np.log(predicted)
        robust = weight * np.minimum(1, HUBER / np.maximum(np.abs(miss), 1e-12))
        x = terms / predicted[:, None]
        a, b = (x * robust[:, None]).T @ x, (x * (robust * (1 + miss))[:, None]).sum(0)
        penalty = pull * np.diag(a) / len(terms) + 1e-12 * np.diag(a)
        following = w.copy()
        for _ in range(SWEEPS):
            change = size = 0.0
            for k in range(len(w)):
                curvature = a[k, k] + penalty[k]
                if not curvature > 0:
                    continue
                slope = b[k] + penalty[k] * prior[k] - a[k] @ following + a[k, k] * following[k]
                value = max(0.0, slope / curvature)
                change += abs(value - following[k]) * math.sqrt(curvature)
                size += value * math.sqrt(curvature)
                following[k] = value
            if change <= 1e-9 * size:
                break
        before = loss(w, penalty)
        for halving in range(HALVINGS):
            trial = w + (following - w) / 2**halving
            if loss(trial, penalty) < before:
                w = trial
                break
        else:
            break
    return w


class Physical:
    def __init__(self, terms, log_time, hardware, group, pull, own_level, even):
        start = np.zeros(terms.shape[1])
        for k in range(len(start)):
            there = terms[:, k] > 0
            if there.any():
                start[k] = median(np.exp(log_time[there]) / terms[there, k]) / len(start)
        self.common = weights_of(terms, log_time, importance(hardware, even), start, 0.0)
        self.groups = {}
        for name in sorted(set(group)) if math.isfinite(pull) and len(set(group)) > 1 else []:
            at = [i for i, other in enumerate(group) if other == name]
            prior = self.common
            if own_level:
                level = median(log_time[at] - np.log(terms[at] @ prior)) * len(at) / (len(at) + 1)
                prior = prior * math.exp(level)
            self.groups[name] = weights_of(terms[at], log_time[at], importance([hardware[i] for i in at], even), prior, pull)

    def common_log(self, terms):
        return np.log(terms @ self.common)

    def base(self, terms, group):
        own = np.array([terms[i] @ self.groups.get(name, self.common) for i, name in enumerate(group)])
        return (np.log(own) + self.common_log(terms)) / 2


# Likeness: what makes two rows alike.
def coordinates(numbers, learned):
    """Logarithms of what is above 0 in every row of the fit, over the standard deviation."""
    columns = []
    for j in range(numbers.shape[1]):
        column, known = numbers[:, j], learned[:, j]
        if (known > 0).all():
            column, known = np.log(column), np.log(known)
        columns.append((column - known.mean()) / (known.std() or 1))
    return np.array(columns, dtype=np.float32).T.reshape(len(numbers), numbers.shape[1])


class Likeness:
    def __init__(self, physical, terms):
        self.physical = physical
        logs = physical.common_log(terms)
        self.mean, self.deviation = logs.mean(), logs.std()

    def points(self, numbers, terms):
        logs = self.physical.common_log(terms)
        shares = 3 * np.sqrt(terms * self.physical.common / np.exp(logs)[:, None])
        level = (logs - self.mean) / self.deviation
        return np.hstack([numbers, shares, level[:, None]]).astype(np.float32)


# Neighbours. A side is 0 hardware, 1 network, 2 run, 3 machine.
class Kernel:
    def __init__(self, number_sides, category_sides):
        self.number_sides, self.category_sides = np.array(number_sides), np.array(category_sides)
        self.numbers, self.categories = np.full(len(number_sides), 0.15), np.full(len(category_sides), 0.4)
        self.parts, self.noise = [1, 0.5, 0.3, 0.1], 0.05  # all, network, hardware, run

    def copy(self):
        other = Kernel(self.number_sides, self.category_sides)
        other.numbers, other.categories = self.numbers.copy(), self.categories.copy()
        other.parts, other.noise = list(self.parts), self.noise
        return other

    def covariance(self, x, c, y, d):
        apart = np.zeros((4, len(x), len(y)))
        for j, side in enumerate(self.number_sides):
            apart[side] += self.numbers[j] * np.abs(x[:, None, j].astype(float) - y[None, :, j])
        for j, side in enumerate(self.category_sides):
            apart[side] += self.categories[j] * ((c[:, None, j] != d[None, :, j]) | (c[:, None, j] < 0))
        hardware, network, run = np.exp(-apart[0] - apart[3]), np.exp(-apart[1]), np.exp(-apart[2])
        whole, of_network, of_hardware, of_run = self.parts
        return run * (whole * hardware * network + of_network * network + of_hardware * hardware + of_run)


def neighbours(kernel, x, c, values, asked_x, asked_c, count, use=None):
    """The mean of each asked point; `use` tells for each asked point which points it may see."""
    means = []
    near = kernel.covariance(asked_x, asked_c, x, c)
    for i in range(len(asked_x)):
        allowed = np.arange(len(x)) if use is None else np.flatnonzero(use[i])
        nearest = allowed[np.argsort(-near[i, allowed], kind="stable")[:count]]
        if not len(nearest):
            means.append(0.0)
            continue
        among = kernel.covariance(x[nearest], c[nearest], x[nearest], c[nearest])
        # A point's covariance with itself does not depend on its categories being known.
        np.fill_diagonal(among, sum(kernel.parts) + kernel.noise)
        means.append(near[i, nearest] @ np.linalg.solve(among, values[nearest]))
    return np.array(means)


def tune(x, c, values, folds, number_sides, category_sides, seed):
    chance = Chance(stream(seed, "tune"))
    chosen = list(range(len(values)))
    chance.shuffle(chosen)
    chosen = np.array(chosen[:1500])
    asked, use = [], []
    for train, test in folds:
        test, seen = list(test), ~np.isin(chosen, test)
        for i in range(min(200 // len(folds) + 1, len(test))):
            j = chance.integer(i, len(test) - 1)
            test[i], test[j] = test[j], test[i]
            asked.append(test[i])
            use.append(seen)
    asked = np.array(asked)

    def score(kernel):
        guess = neighbours(kernel, x[chosen], c[chosen], values[chosen], x[asked], c[asked], 40, use)
        return np.minimum(1.5, np.abs(values[asked] - guess)).mean()

    best = Kernel(number_sides, category_sides)
    least = score(best)

    def walk(factor, scale):
        nonlocal best, least
        for step in (factor, 1 / factor):
            moved = False
            for _ in range(3):
                other = best.copy()
                scale(other, step)
                scored = score(other)
                if scored >= least * 0.999:
                    break
                best, least, moved = other, scored, True
            if moved:
                return

    def scale_noise(kernel, step):
        kernel.noise *= step

    def scale_side(side):
        def scale(kernel, step):
            kernel.numbers[kernel.number_sides == side] *= step
            kernel.categories[kernel.category_sides == side] *= step
        return scale

    def scale_part(part):
        def scale(kernel, step):
            kernel.parts[part] *= step
        return scale

    def scale_one(of, j):
        def scale(kernel, step):
            getattr(kernel, of)[j] *= step
        return scale

    def sides():
        walk(3, scale_noise)
        for side in range(4):
            walk(2, scale_side(side))
        for part in (1, 2, 3):
            walk(3, scale_part(part))

    sides()
    for j in range(len(category_sides)):
        walk(4, scale_one("categories", j))
    for j in range(len(number_sides)):
        if (x[chosen, j] != x[chosen[0], j]).any():
            walk(4, scale_one("numbers", j))
    sides()
    return best


# Folds, and one split as a whole.
def folds_by_chance(rows, seed):
    part = [i % 4 for i in range(rows)]
    Chance(stream(seed, "folds")).shuffle(part)
    return folds_of(part, 4)


def folds_by_key(keys, seed):
    sizes = [(name, keys.count(name)) for name in sorted(set(keys))]
    Chance(stream(seed, "keys")).shuffle(sizes)
    load, part_of = [0] * min(5, len(sizes)), {}
    for name, size in sizes:
        part_of[name] = load.index(min(load))
        load[part_of[name]] += size
    return [fold for fold in folds_of([part_of[key] for key in keys], len(load)) if len(fold[0]) >= len(keys) // 3]


def folds_of(part, parts):
    return [([i for i, p in enumerate(part) if p != one], [i for i, p in enumerate(part) if p == one]) for one in range(parts)]


def predict(rows, asked, split, seed=1):
    """Predicts log(ms). `rows` and `asked`: numbers (all but hardware's), number_sides, codes, category_sides, terms, group, hardware; of
    rows log_time, too."""
    folds = folds_by_chance(len(rows["terms"]), seed) if split == "inside" else folds_by_key(rows["hardware"], seed)
    inside = split == "inside"
    physical = Physical(rows["terms"], rows["log_time"], rows["hardware"], rows["group"], 10 if inside else 3, not inside, not inside)
    likeness = Likeness(physical, rows["terms"])
    x = likeness.points(coordinates(rows["numbers"], rows["numbers"]), rows["terms"])
    y = likeness.points(coordinates(asked["numbers"], rows["numbers"]), asked["terms"])
    sides = list(rows["number_sides"]) + [2] * (rows["terms"].shape[1] + 1)
    kernel = tune(x, rows["codes"], rows["log_time"] - physical.common_log(rows["terms"]), folds, sides, rows["category_sides"], stream(seed, split))
    left = rows["log_time"] - physical.base(rows["terms"], rows["group"])
    return physical.base(asked["terms"], asked["group"]) + neighbours(kernel, x, rows["codes"], left, y, asked["codes"], 64)
