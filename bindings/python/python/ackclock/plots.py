"""Plots of a run by matplotlib, where it is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .tables import to_arrow

if TYPE_CHECKING:
    from .runs import Run

#: Okabe and Ito's colours, distinguishable for colour-blind readers.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")


def windows(run: Run, axes: Any = None) -> Any:
    """Congestion window and bytes in flight of every sender over time; returns the axes."""
    import matplotlib.pyplot as pyplot

    if axes is None:
        _, axes = pyplot.subplots(figsize=(8, 4.5), layout="constrained")
    table = to_arrow(run.series)
    senders: dict[str, tuple[list[float], list[float], list[float]]] = {}
    columns = (table.column(name).to_pylist() for name in ("flow", "time_s", "cwnd_bytes", "flight_bytes"))
    for flow, time_s, cwnd, flight in zip(*columns):
        times, cwnds, flights = senders.setdefault(flow, ([], [], []))
        times.append(time_s)
        cwnds.append(cwnd / 1000)
        flights.append(flight / 1000)
    for number, (flow, (times, cwnds, flights)) in enumerate(senders.items()):
        colour = COLOURS[number % len(COLOURS)]
        axes.step(times, cwnds, where="post", color=colour, label=f"{flow}: congestion window")
        axes.step(times, flights, where="post", color=colour, alpha=0.4, label=f"{flow}: flight")
    axes.set(xlabel="time [s]", ylabel="[kB]", title=run.scenario.title or run.scenario.name)
    axes.legend(loc="upper left", frameon=False)
    return axes
