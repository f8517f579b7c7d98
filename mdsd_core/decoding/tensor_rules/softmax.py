"""From logits to probabilities, every row at its own temperature."""

from collections.abc import Sequence

import torch
from torch import Tensor

from mdsd_core.distributions import GREEDY_BELOW, SamplingParams


@torch.no_grad()
def probabilities(logits: Tensor, temperature: float | Sequence[float]) -> Tensor:
    """The softmax of each row of logits over its own temperature, in float64.

    Parameters
    ----------
    logits : Tensor, shape [B, V]
        Real numbers; ``-inf`` marks a token that must not be drawn. Never written.
    temperature : float or sequence of B floats
        Temperature 0, and anything below :data:`mdsd_core.distributions.GREEDY_BELOW`, is greedy, decided before
        any division: all mass on the largest logit, lowest id among equals.

    Returns
    -------
    Tensor of float64, shape [B, V]
        Each row sums to 1 up to rounding, on the device of the logits.

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong type or shape, a temperature is negative or not finite, or a row of logits has
        NaN, ``+inf`` or nothing finite; the message names the row.

    Notes
    -----
    What :func:`mdsd_core.distributions.probabilities` gives row by row without filters (top-k, top-p, min-p: use it).

    Examples
    --------
    >>> probabilities(torch.tensor([[2.0, 1.0], [2.0, 2.0]]), [0.0, 1.0])
    tensor([[1.0000, 0.0000],
            [0.5000, 0.5000]], dtype=torch.float64)
    """
    if not isinstance(logits, Tensor) or not logits.dtype.is_floating_point:
        kind = logits.dtype if isinstance(logits, Tensor) else type(logits).__name__
        raise TypeError(f"logits must be a tensor of real floating-point numbers, got {kind}")
    if logits.ndim != 2 or logits.shape[1] == 0:
        raise ValueError(f"logits must have shape [B, V] with V >= 1, got {tuple(logits.shape)}")
    scalar = not isinstance(temperature, Sequence | Tensor) and not hasattr(temperature, "__len__")
    values = [temperature] * len(logits) if scalar else list(temperature)  # type: ignore[arg-type]
    if len(values) != len(logits):
        raise ValueError(f"temperature must be one number or {len(logits)}, one for each row, got {len(values)}")
    checked = [SamplingParams(temperature=float(value)).temperature for value in values]  # type: ignore[arg-type]
    z = logits.double()
    largest = z.amax(dim=1, keepdim=True)
    good = largest[:, 0].isfinite()  # NaN and +inf show in the largest, and so does a row of -inf only
    if not bool(good.all()):
        row = int((~good).nonzero()[0, 0])
        raise ValueError(
            f"row {row}: logits must be finite or -inf with one finite entry at least, got a largest logit of "
            f"{float(largest[row, 0])}"
        )
    t = torch.tensor(checked, dtype=torch.float64, device=z.device)[:, None]
    greedy = t < GREEDY_BELOW
    p = ((z - largest) / torch.where(greedy, 1.0, t)).exp_()
    p /= p.sum(dim=1, keepdim=True)
    best = torch.zeros_like(p).scatter_(1, z.argmax(dim=1, keepdim=True), 1.0)
    return torch.where(greedy, best, p)
