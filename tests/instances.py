"""Pairs (p, q) that the tests share: random, realistic and adversarial ones. Every pair is float64 and normalised."""

import numba
import numpy as np

#: False under `make coverage`, where kernels run as plain Python: tests then take fewer and smaller instances.
COMPILED = not numba.config.DISABLE_JIT


def fewer(items, every):
    """All items, or one in so many where kernels are not compiled."""
    return items if COMPILED else items[::every]


def normalised(x):
    x = np.asarray(x, dtype=np.float64)
    return x / x.sum()


def one_hot(V, i):
    x = np.zeros(V)
    x[i] = 1.0
    return x


def random_pair(rng, V):
    """One small pair; zeros, ties, skew and equality each come up often."""
    kind = rng.integers(8)
    if kind == 0:  # coarse grid: ties in p, q and p/q
        p, q = rng.integers(0, 4, V) + 0.0, rng.integers(0, 4, V) + 0.0
    elif kind == 1:  # skewed over many orders of magnitude
        p, q = 10.0 ** -rng.uniform(0, 12, V), 10.0 ** -rng.uniform(0, 12, V)
    elif kind == 2:
        p, q = rng.dirichlet(np.full(V, 0.1)), rng.dirichlet(np.full(V, 0.1))
    else:
        z = rng.normal(size=V) * rng.choice([0.5, 1.0, 3.0])
        p, q = np.exp(z), np.exp(z + rng.normal(size=V) * rng.choice([0.1, 0.7, 2.0]))
    if kind in (0, 4):
        p, q = p * (rng.random(V) < 0.7), q * (rng.random(V) < 0.7)
    if kind == 5:
        q = p.copy()
    p[rng.integers(V)] += 1e-300 if p.sum() > 0 else 1.0
    q[rng.integers(V)] += 1e-300 if q.sum() > 0 else 1.0
    return normalised(p), normalised(q)


def random_pairs(seed, count, sizes=range(1, 8)):
    rng = np.random.default_rng(seed)
    sizes = list(sizes)
    return [random_pair(rng, int(rng.choice(sizes))) for _ in range(count)]


def steep_pairs(seed, count, sizes=(5, 6, 7)):
    """Target and draft far apart: nested labels hold several blocks, and coarse tolerances cost acceptance."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        V = int(rng.choice(sizes))
        q = normalised(rng.dirichlet(np.full(V, 0.5)) + 1e-9)
        yield normalised(q * 10.0 ** rng.uniform(-2, 2, V)), q


def softmax_pair(rng, V, scale=3.0, noise=0.7, temperature=1.0):
    """A pair as a language model makes them: logits N(0, scale^2), the draft's with N(0, noise^2) added."""
    z = rng.normal(size=V) * scale
    d = z + rng.normal(size=V) * noise
    p, q = np.exp((z - z.max()) / temperature), np.exp((d - d.max()) / temperature)
    return normalised(p), normalised(q)


def dirichlet_pair(rng, V, concentration=0.1):
    return tuple(normalised(rng.dirichlet(np.full(V, concentration)) + 1e-320) for _ in range(2))


def adversarial_pairs():
    """The inputs that broke other implementations, by name."""
    ulp = np.nextafter
    half = np.array([0.5, 0.5])
    return {
        "V=1": (np.array([1.0]), np.array([1.0])),
        "V=2 equal": (half, half.copy()),
        "p=q": (normalised([5, 3, 2, 1]), normalised([5, 3, 2, 1])),
        "p one ulp below q": (
            np.array([ulp(0.5, 0), 0.3, 0.2]) / np.array([ulp(0.5, 0), 0.3, 0.2]).sum(),
            np.array([0.5, 0.3, 0.2]),
        ),
        "disjoint": (np.array([0.6, 0.4, 0, 0]), np.array([0, 0, 0.7, 0.3])),
        "one-hot p": (one_hot(4, 2), normalised([4, 3, 2, 1])),
        "one-hot p, q misses it": (one_hot(4, 3), normalised([4, 3, 2, 0])),
        "one-hot q": (normalised([4, 3, 2, 1]), one_hot(4, 1)),
        "both one-hot, equal": (one_hot(3, 1), one_hot(3, 1)),
        "both one-hot, unequal": (one_hot(3, 0), one_hot(3, 2)),
        "q support 2 of 5": (normalised([1, 2, 3, 4, 5]), normalised([0, 3, 0, 1, 0])),
        "q nearly one-hot": (normalised([1, 2, 3, 4]), normalised([1, 1e-16, 1e-17, 1e-18])),
        "ties in q": (np.array([1.0, 0, 0]), np.array([0.4, 0.4, 0.2])),
        "all tied": (normalised([1, 1, 1, 1]), normalised([1, 1, 1, 1])),
        "ties in p/q": (normalised([2, 4, 1, 1]), normalised([1, 2, 2, 2])),
        "after top-p": (np.array([0.9, 0.1, 0, 0, 0]), np.array([0.5, 0, 0.3, 0.2, 0])),
        "subnormal": (normalised([1, 5e-324, 1e-310, 1]), normalised([1, 1e-310, 5e-324, 2])),
        "1e-38 entries": (normalised([1, 1e-38, 0.5, 1e-38]), normalised([0.5, 1e-38, 1, 1e-30])),
        "greedy off T": (np.array([0.7, 0, 0, 0, 0.3]), np.array([0.22, 0.2, 0.2, 0.2, 0.18])),
        "float32 residue": (np.array([1 - 2.0**-24, 2.0**-24]), np.array([1.0, 0.0])),
        "B9": (np.array([0.4, 0.3, 0.3]), np.array([0.1, 0.5, 0.4])),
        "B11": (np.array([0.1, 0.9]), np.array([0.9, 0.1])),
        "A7": (np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.45, 0.35])),
    }


def total_variation(a, b):
    return 0.5 * float(np.abs(np.asarray(a) - np.asarray(b)).sum())
