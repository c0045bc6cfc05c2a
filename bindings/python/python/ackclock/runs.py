"""One run of a scenario."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from . import _engine
from .controllers import Controllers
from .frames import framed, printed
from .progress import Progress, shown
from .scenarios import Source, scenario


@dataclass(frozen=True)
class Flow:
    """The results of one flow."""

    name: str
    """Name in the scenario."""
    profile: str
    """Profile of the sending host."""
    cc: str
    """Congestion control of the sending host."""
    bytes: int
    """Payload bytes read by the receiving application."""
    finished: bool
    """Has the transfer completed?"""
    duration_s: float
    """From the first SYN to the last byte read, or to the end of the run, in seconds."""
    goodput_bps: float
    """Payload read per second, in bit/s."""
    retransmitted_segments: int
    """Data packets retransmitted."""
    fast_recoveries: int
    """Fast recoveries entered."""
    rtos: int
    """Retransmission timeouts."""
    spurious_recoveries: int
    """Recoveries and timeouts that proved spurious and were undone."""
    max_cwnd_bytes: int
    """Largest congestion window."""
    mss_bytes: int
    """Payload of a full segment."""
    min_rtt_s: float | None = None
    """Smallest round-trip sample of the sender; ``None`` without a sample."""
    latency: dict[str, float] | None = None
    """Response times, for a flow with requests: requests, min_s, median_s, max_s."""

    @property
    def max_cwnd_mss(self) -> float:
        """Largest congestion window in full segments."""
        return self.max_cwnd_bytes / self.mss_bytes


def flow_of(row: Mapping[str, Any]) -> Flow:
    """A flow of a report; unknown fields are ignored."""
    known = {field.name for field in fields(Flow)}
    return Flow(**{key: value for key, value in row.items() if key in known})


class Run:
    """The result of a run. ``print(run)`` shows the table of ``ackclock run``."""

    def __init__(self, scenario: _engine.Scenario, ran: _engine.Run) -> None:
        self._ran = ran
        self.scenario = scenario
        """The scenario."""
        self.report: dict[str, Any] = json.loads(ran.json)
        """The whole report, as in ``ackclock run --json``."""
        self.flows: list[Flow] = [flow_of(row) for row in self.report["flows"]]
        """The flows, in the order of the scenario."""

    def __getitem__(self, name: str) -> Flow:
        """The flow of that name."""
        for flow in self.flows:
            if flow.name == name:
                return flow
        raise KeyError(name)

    @property
    def json(self) -> str:
        """The report, byte for byte as ``ackclock run --json`` prints it."""
        return self._ran.json

    @property
    def ended_s(self) -> float:
        """Virtual time at which the run ended, in seconds."""
        return float(self.report["ended_s"])

    @property
    def series(self) -> _engine.Table:
        """The senders' states over time; needs ``series=True``."""
        table: _engine.Table = _kept(self._ran.series, "series")
        return table

    @property
    def events(self) -> _engine.Table:
        """All events; needs ``events=True``."""
        table: _engine.Table = _kept(self._ran.events, "events")
        return table

    @property
    def page(self) -> str:
        """The page of ``ackclock run --report`` as HTML, of at most 50,000 values; needs
        ``series=True``."""
        page: str = _kept(self._ran.page, "series")
        return page

    def plot(self, axes: Any = None) -> Any:
        """Plot congestion window and bytes in flight over time with matplotlib; returns the axes."""
        from .plots import windows

        return windows(self, axes)

    def __str__(self) -> str:
        return self._ran.text.rstrip()

    def __repr__(self) -> str:
        return f"<ackclock.Run of {self.scenario!r}: {len(self.flows)} flows, {self.ended_s:.3f} s>"

    def _repr_html_(self) -> str:
        page = self._ran.page
        return printed(str(self)) + ("" if page is None else framed(page))


def _kept(found: Any, what: str) -> Any:
    if found is None:
        raise ValueError(f"{what} were not recorded: use run(..., {what}=True)")
    return found


def run(
    source: Source | None = None,
    *,
    set: Mapping[str, object] | None = None,
    seed: int | None = None,
    controllers: Controllers | None = None,
    series: bool = True,
    events: bool = False,
    progress: Progress = False,
    **tables: Any,
) -> Run:
    """Run a scenario in virtual time.

    The scenario and its overrides are as for :func:`ackclock.scenario`. ``series`` records the senders'
    states for ``.series``, ``.plot()`` and ``.page``, ``events`` all events; without either a
    run is fastest. ``progress`` is ``True`` for a bar of tqdm, such a bar, or a callable
    ``(done_ns, total_ns)`` of virtual time. The call does not hold the GIL, and Ctrl-C ends it.
    """
    world = scenario(source, set=set, seed=seed, controllers=controllers, **tables)
    with shown(progress, world.title or world.name, "s", 1e-9) as callback:
        return Run(world, world.run(series, events, callback))
