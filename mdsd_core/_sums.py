"""Compensated summation inside kernels: running sums over 1e5 tokens that are good to the last digit or two."""

from mdsd_core._jit import inline_kernel


@inline_kernel
def add(total, lost, x):
    """Add x to the running sum ``total + lost`` (Knuth's two-sum, no branch); never compile it with `reassoc`.

    >>> total, lost = 1.0, 0.0
    >>> for _ in range(10):
    ...     total, lost = add(total, lost, 1e-16)
    >>> total + lost
    1.000000000000001
    """
    new = total + x
    rounded = new - total
    return new, lost + ((total - (new - rounded)) + (x - rounded))
