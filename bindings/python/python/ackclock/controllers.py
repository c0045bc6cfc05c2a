"""Congestion controllers in a dozen lines of Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

from ._engine import Loss, Report

#: Return value of a hook: ``None`` changes nothing, a number is the window in bytes, a dictionary
#: has some of ``cwnd_bytes``, ``ssthresh_bytes`` and ``pacing_bps``.
Decision = float | Mapping[str, float] | None

#: Classes by the names that scenarios use.
Controllers = Mapping[str, type]


class Controller:
    """A congestion controller.

    The stack detects losses and runs recovery as its system does; you control the window. It is constant
    between reports unless ``reno_grows`` leaves its growth to the system's Reno. One object is
    created for each connection::

        class Halve(ackclock.Controller):
            def on_report(self, report):
                return report.cwnd_bytes + report.mss_bytes

            def on_loss(self, loss):
                return max(loss.cwnd_bytes / 2, 2 * loss.mss_bytes)

        ackclock.register("halve", Halve)
        ackclock.run("path.toml", set={"host.sender.cc": "halve"})
    """

    every: ClassVar[str] = "rtt"
    """When ``on_report`` is called: ``"rtt"``, ``"ack"`` (for teaching: slower), or an interval such as
    ``"10ms"``."""
    reno_grows: ClassVar[bool] = False
    """Does the system's Reno grow the window between reports?"""

    def on_start(self, report: Report) -> Decision:
        """The connection is established; the first window, the system's own by default."""
        return None

    def on_report(self, report: Report) -> Decision:
        """A round trip, or the interval, has ended."""
        return None

    def on_loss(self, loss: Loss) -> Decision:
        """A congestion event was detected. The returned window is the target of the recovery; by default half
        of the bytes in flight, as in Reno."""
        return None


_registered: dict[str, type] = {}
Class = TypeVar("Class", bound=type[Any])


def register(name: str, controller: Class) -> Class:
    """Register a class under a name, for every later scenario and sweep.

    Any class with ``on_report`` will do. Workers of a process pool or a cluster get it with the sweep,
    so pickle must be able to find it.
    """
    if not isinstance(name, str):
        raise TypeError(f"name: expected a str, found {type(name).__name__}")
    _registered[name] = controller
    return controller


def known(controllers: Controllers | None) -> dict[str, type] | None:
    """The registered classes and those of a call, which take precedence."""
    if controllers is not None and not isinstance(controllers, Mapping):
        raise TypeError(f"controllers: expected a dictionary, found {type(controllers).__name__}")
    every = {**_registered, **(controllers or {})}
    return every or None
