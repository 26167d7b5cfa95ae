"""Jain's index: how alike shares are, in one number, from 1 for all alike down to 1/n when one of n has everything.

For `x_i`, what i received over what it should have received, the index is `(sum x)^2 / (n * sum x^2)`. It is Jain,
Chiu and Hawe's ("A Quantitative Measure of Fairness and Discrimination", DEC-TR-301, 1984), whose `x_i` is likewise the
throughput measured over the fair one. It says how much of the pool is shared alike, not who is worse off, nor whether
anybody ever was for a moment: that is what the greatest gap says. A tenant of one request counts as much as any other.
"""

from __future__ import annotations

from collections.abc import Iterable

from fairpool_lab.measures.shares import Shares


def index(values: Iterable[float]) -> float:
    """The index of these, none of them negative; 1 if there is none or all are zero, for then all are alike."""
    values = tuple(values)
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 1.0


def of_shares(shares: Shares) -> float:
    """The index of received over entitled, among the tenants that were entitled to anything."""
    return index(tenant.received / tenant.entitled for tenant in shares.tenants if tenant.entitled > 0)
