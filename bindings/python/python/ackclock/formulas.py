"""Closed forms: what they say of a path, and what speaks against them there."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from . import _engine
from .frames import printed
from .scenarios import at_least, numbers, texts


@dataclass(frozen=True)
class Estimate:
    """What one formula says."""

    formula: str
    """The formula with its parameters."""
    rate_bps: float
    """Whole segments per second, in bit/s."""
    window_segments: float
    """Segments under way on average."""
    peak_segments: float | None
    """The largest window of a cycle, in segments."""
    cycle_rtts: float | None
    """From one loss to the next, in round trips."""
    assumes: list[str]
    """What it takes for granted."""
    doubts: list[str]
    """What the numbers speak against."""


class Theory:
    """An answer; ``rate_bps`` is that of the formula asked for. ``print`` shows what ``ackclock theory``
    prints."""

    def __init__(self, report: str, text: str) -> None:
        self.report: dict[str, Any] = json.loads(report)
        """The answer as ``ackclock theory --json`` prints it."""
        self._text = text
        self.estimates = [Estimate(**row) for row in self.report["estimates"]]
        """One for each formula."""
        self.estimate = self.estimates[self.report["asked"]]
        """The formula asked for."""
        self.measured: dict[str, Any] | None = self.report.get("measured")
        """A run of a matching scenario, if one was asked for."""

    @property
    def rate_bps(self) -> float:
        """What the formula asked for says, in bit/s."""
        return float(self.estimate.rate_bps)

    def __str__(self) -> str:
        return self._text.rstrip()

    def _repr_html_(self) -> str:
        return printed(str(self))

    def __repr__(self) -> str:
        doubts = f", {len(self.estimate.doubts)} doubts" if self.estimate.doubts else ""
        return f"<ackclock.Theory {self.estimate.formula}: {self.rate_bps / 1e6:.2f} Mbit/s{doubts}>"


def theory(
    model: str,
    *,
    rtt: str,
    loss: str,
    mss: str = "1448B",
    rate: str | None = None,
    window: str | None = None,
    extra_rtts: float | None = None,
    ack_delay: str | None = None,
    ack_every: int | None = None,
    rto: str | None = None,
    alpha: float | None = None,
    beta: float | None = None,
    w_max: float | None = None,
    run: str | None = None,
    cc: str | None = None,
    random: bool = False,
    seed: int = 1,
) -> Theory:
    """Ask a formula: ``mathis``, ``aimd``, ``pftk`` or ``cubic``.

    Quantities have units: ``rtt="20ms"``, ``loss="0.1%"``, ``mss="1448B"``, ``rate="1Gbit/s"``.
    ``run`` names a profile to run a matching scenario with, as ``--run`` of the command line does.

    >>> round(theory("mathis", mss="1252B", rtt="2ms", loss="2%", extra_rtts=2).rate_bps / 1e6, 1)
    36.5

    Raises :class:`ValueError` for a quantity that is none, or that the formula does not take.
    """
    # Python itself names an argument of a wrong type from 3.11 on alone.
    texts(model=model, rtt=rtt, loss=loss, mss=mss, rate=rate, window=window, ack_delay=ack_delay)
    texts(rto=rto, run=run, cc=cc)
    numbers(extra_rtts=extra_rtts, alpha=alpha, beta=beta, w_max=w_max)
    return Theory(
        *_engine.theory(
            model,
            mss,
            rtt,
            loss,
            rate,
            window,
            extra_rtts,
            ack_delay,
            at_least("ack_every", ack_every, 0),
            rto,
            alpha,
            beta,
            w_max,
            run,
            cc,
            random,
            at_least("seed", seed, 0) or 0,
        )
    )
