"""Throughput formulas: their results for a path, and the assumptions that it violates."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from . import _engine
from .frames import printed
from .scenarios import at_least, numbers, texts


@dataclass(frozen=True)
class Estimate:
    """The estimate of one formula."""

    formula: str
    """The formula with its parameters."""
    rate_bps: float
    """Segment rate, in bit/s of payload."""
    window_segments: float
    """Average number of segments in flight."""
    peak_segments: float | None
    """The largest window of a cycle, in segments."""
    cycle_rtts: float | None
    """Round trips from one loss to the next."""
    assumes: list[str]
    """Its assumptions."""
    doubts: list[str]
    """The assumptions that the path violates or strains."""


class Theory:
    """The results; ``rate_bps`` is that of the selected formula. ``print`` shows the output of ``ackclock
    theory``."""

    def __init__(self, report: str, text: str) -> None:
        self.report: dict[str, Any] = json.loads(report)
        """The report, as in ``ackclock theory --json``."""
        self._text = text
        self.estimates = [Estimate(**row) for row in self.report["estimates"]]
        """The estimates, one per formula."""
        self.estimate = self.estimates[self.report["asked"]]
        """The selected estimate."""
        self.measured: dict[str, Any] | None = self.report.get("measured")
        """The simulation of a matching scenario, if requested."""

    @property
    def rate_bps(self) -> float:
        """The rate of the selected formula, in bit/s."""
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
    """Evaluate a formula: ``mathis``, ``aimd``, ``pftk`` or ``cubic``.

    Quantities have units: ``rtt="20ms"``, ``loss="0.1%"``, ``mss="1448B"``, ``rate="1Gbit/s"``.
    ``run`` names a profile to run a matching scenario with, as ``--run`` of the command line does.

    >>> round(theory("mathis", mss="1252B", rtt="2ms", loss="2%", extra_rtts=2).rate_bps / 1e6, 1)
    36.5

    Raises :class:`ValueError` for an invalid quantity, or one outside the formula's domain.
    """
    # Python names an argument of a wrong type only from 3.11 on.
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
