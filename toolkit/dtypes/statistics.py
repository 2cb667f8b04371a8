"""Statistics of integers, computed exactly and rounded once, to the nearest float.

Floats lose what these columns hold: the mean of ``[1, -2**255 + 1, 2**255 - 1]`` is 1/3, and 0.0 in float
arithmetic. `std`, `sem` and `skew` take one square root more.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["STATISTICS", "quantile", "statistic"]


def statistic(name: str, values: Sequence[int], *, ddof: int = 1) -> float | None:
    """Return a statistic of integers.

    Parameters
    ----------
    name : {'mean', 'median', 'var', 'std', 'sem', 'skew', 'kurt'}
        As pandas names and defines them.
    values : sequence of int
        Any length, any order, nothing missing.
    ddof : int, default 1
        Delta degrees of freedom of ``var``, ``std`` and ``sem``; the others ignore it.

    Returns
    -------
    float or None
        None if there are too few values.
    """
    if name in _OTHERS:
        return _OTHERS[name](values)
    variance = _variance(values, ddof)
    if variance is None:
        return None
    if name == "var":
        return float(variance)
    return math.sqrt(variance if name == "std" else variance / len(values))


def quantile(ordered: Sequence[int], place: float, interpolation: str) -> Fraction | int | None:
    """Return the quantile of sorted integers.

    Parameters
    ----------
    ordered : sequence of int
        In ascending order.
    place : float
        The quantile, from 0 to 1.
    interpolation : {'linear', 'lower', 'higher', 'midpoint', 'nearest'}
        What to return between two values, as in ``Series.quantile``.

    Returns
    -------
    Fraction, int or None
        Exact; an int for ``lower``, ``higher`` and ``nearest``; None if there are no values.
    """
    if not ordered:
        return None
    position = place * (len(ordered) - 1)  # a float, so that 0.1 of eleven values is the second, as in numpy
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1) if position > below else below
    if interpolation in {"lower", "higher", "nearest"}:
        return ordered[{"lower": below, "higher": above, "nearest": round(position)}[interpolation]]
    part = Fraction(1, 2) if interpolation == "midpoint" and above > below else Fraction(position) - below
    return ordered[below] + (ordered[above] - ordered[below]) * part


def _mean(values: Sequence[int]) -> float | None:
    return sum(values) / len(values) if values else None


def _median(values: Sequence[int]) -> float | None:
    middle = quantile(sorted(values), 0.5, "linear")
    return None if middle is None else float(middle)


def _variance(values: Sequence[int], ddof: int) -> Fraction | None:
    count, total = len(values), sum(values)
    if count <= ddof or not count:
        return None
    return Fraction(count * sum(value * value for value in values) - total * total, count * (count - ddof))


def _deviations(values: Sequence[int]) -> list[int]:
    """Return n times the distance of each value from the mean, which is an integer."""
    count, total = len(values), sum(values)
    return [count * value - total for value in values]


def _skew(values: Sequence[int]) -> float | None:
    """Return the adjusted Fisher-Pearson coefficient (G1)."""
    count, away = len(values), _deviations(values)
    squares = sum(one**2 for one in away)
    if count < 3 or not squares:  # noqa: PLR2004 - the definition divides by n - 2
        return None
    cubes = sum(one**3 for one in away)
    size = math.sqrt(Fraction(count**2 * (count - 1) * cubes**2, (count - 2) ** 2 * squares**3))
    return -size if cubes < 0 else size


def _kurt(values: Sequence[int]) -> float | None:
    """Return the excess kurtosis (G2)."""
    count, away = len(values), _deviations(values)
    squares = sum(one**2 for one in away)
    if count < 4 or not squares:  # noqa: PLR2004 - the definition divides by n - 3
        return None
    below = (count - 2) * (count - 3)
    fourths = Fraction(count * (count + 1) * (count - 1) * sum(one**4 for one in away), below * squares**2)
    return float(fourths - Fraction(3 * (count - 1) ** 2, below))


_OTHERS: dict[str, Callable[[Sequence[int]], float | None]] = {
    "mean": _mean,
    "median": _median,
    "skew": _skew,
    "kurt": _kurt,
}
STATISTICS = frozenset({"var", "std", "sem", *_OTHERS})
"""Names that `statistic` takes."""
