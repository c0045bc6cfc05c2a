"""Captures: diagnosis of a transfer, and simulation with other senders."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from . import _engine
from .frames import CARDS, framed, printed
from .progress import Progress, shown
from .scenarios import at_least, settings, texts

PathLike = str | os.PathLike[str]


class Diagnosis:
    """The diagnosis of captures. ``print(diagnosis)`` shows the output of ``ackclock diagnose``."""

    def __init__(self, report: str, text: str, cards: str = "") -> None:
        self.json = report
        """The report, byte for byte as ``ackclock diagnose --json`` prints it."""
        self.report: Any = json.loads(report)
        """The parsed report; a list for several files."""
        self._text = text
        self._cards = cards

    @property
    def answer(self) -> str:
        """What limits the worst connection, in one line."""
        return self._text.split("\n", 1)[0]

    @property
    def findings(self) -> list[dict[str, Any]]:
        """The findings of all connections, TCP's then QUIC's; each has the number of its connection as
        ``flow``, and is ``primary`` if it limited it."""
        found = []
        for one in self.connections + self.quic:
            for finding in one.get("findings", []):
                is_primary = finding["code"] == one.get("primary")
                found.append({"flow": one["id"], "primary": is_primary, **finding})
        return found

    @property
    def quic(self) -> list[dict[str, Any]]:
        """All QUIC connections, those of each file worst first."""
        files = self.report if isinstance(self.report, list) else [self.report]
        return [connection for file in files for connection in file.get("quic", [])]

    @property
    def connections(self) -> list[dict[str, Any]]:
        """All connections, those of each file worst first."""
        files = self.report if isinstance(self.report, list) else [self.report]
        return [connection for file in files for connection in file["connections"]]

    @property
    def primary(self) -> str | None:
        """Code of the primary finding of the worst connection."""
        worst = self.connections[:1]
        return worst[0]["primary"] if worst else None

    def __str__(self) -> str:
        return self._text.rstrip()

    def __repr__(self) -> str:
        return f"<ackclock.Diagnosis: {len(self.connections)} connections, primary {self.primary}>"

    def _repr_html_(self) -> str:
        cards = framed(self._cards, 420, CARDS) if self._cards else ""
        return cards + printed(str(self))


def diagnose(
    *paths: PathLike, flow: int | None = None, cures: bool = True, progress: Progress = False
) -> Diagnosis:
    """Find out from captures (or logs, or tcpdump's text) why a transfer was slow.

    Several files are taken to be from the same time: logs join the connections that captures show. For a
    folder of captures, each by itself, there is :func:`ackclock.diagnose_folder`. ``flow`` picks one
    connection by Wireshark's number. ``cures=False`` tries none, as ``--no-cures``. ``progress`` is as for :func:`ackclock.run`, in bytes read.

    Raises :class:`OSError` for a file that cannot be read, :class:`ValueError` for one that cannot be
    diagnosed.
    """
    if not paths:
        raise TypeError("no capture given")
    names = [name_of(path) for path in paths]
    with shown(progress, names[0], "B") as callback:
        sources: list[tuple[str, Any]] = [(name, None) for name in names]
        return Diagnosis(*_engine.diagnose_files(sources, at_least("flow", flow, 0), cures, callback))


def name_of(path: PathLike) -> str:
    """A path as str."""
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"path: expected a str or a path, found {type(path).__name__}")
    return os.fspath(path)


class WhatIf:
    """A captured transfer, simulated again. ``print`` shows the output of ``ackclock whatif``."""

    def __init__(self, report: str, text: str) -> None:
        self.report: dict[str, Any] = json.loads(report)
        """As ``ackclock whatif --json`` prints it."""
        self._text = text

    @property
    def licensed(self) -> bool:
        """Does the best fitting sender follow the recorded transfer closely enough for predictions?"""
        return bool(self.report["licensed"])

    @property
    def senders(self) -> list[dict[str, Any]]:
        """Candidates for the recorded sender, the best fit first."""
        return list(self.report["senders"])

    @property
    def alternatives(self) -> list[dict[str, Any]]:
        """The requested alternatives."""
        return list(self.report["alternatives"])

    def __str__(self) -> str:
        return self._text.rstrip()

    def __repr__(self) -> str:
        return f"<ackclock.WhatIf: {len(self.alternatives)} alternatives, licensed {self.licensed}>"

    def _repr_html_(self) -> str:
        return printed(str(self))


def whatif(
    path: PathLike,
    *,
    flow: int | None = None,
    compare: Sequence[str] = (),
    set: Mapping[str, object] | None = None,
    sender: str | None = None,
) -> WhatIf:
    """Fit a path to a captured transfer, simulate its own sender on it, then others.

    ``compare`` names senders as ``PROFILE`` or ``PROFILE/CC``; ``set`` changes the fitted scenario
    (:func:`ackclock.scenario_from`) for one more alternative, with ``sender`` if given.
    """
    if isinstance(compare, str):
        raise TypeError(f"compare: expected a list of names, found the str {compare!r}")
    for name in compare:
        texts(compare=name)
    texts(sender=sender)
    flow = at_least("flow", flow, 0)
    return WhatIf(*_engine.whatif(name_of(path), flow, list(compare), settings(set), sender))


def scenario_from(path: PathLike, *, flow: int | None = None) -> _engine.Scenario:
    """The scenario fitted to a captured transfer; ``.text`` explains the origin of each value."""
    return _engine.load(_engine.scenario_text(name_of(path), at_least("flow", flow, 0)), "<fitted>", [])
