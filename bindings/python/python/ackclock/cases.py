"""Published figures beside ours."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from . import _engine
from .frames import printed
from .progress import Progress, shown
from .scenarios import texts

#: A published figure beside ours, as ``ackclock reproduce --json`` prints it.
Figure = dict[str, Any]


class CaseReport:
    """What a published case gave. ``print`` shows what ``ackclock reproduce`` prints."""

    def __init__(self, case: dict[str, Any], text: str) -> None:
        self._text = text
        self.id: str = case["id"]
        """Name on the command line."""
        self.title: str = case["title"]
        """What it shows."""
        self.source: str = case["source"]
        """Where the figures were published."""
        self.knobs: list[dict[str, str]] = case["knobs"]
        """Inputs it declares: name, value, source."""
        self.rows: list[Figure] = case["rows"]
        """The figures."""

    @property
    def holds(self) -> bool:
        """Does every asserted figure hold?"""
        return all(row.get("holds") is not False for row in self.rows)

    def __str__(self) -> str:
        return self._text.rstrip()

    def _repr_html_(self) -> str:
        return printed(str(self))

    def __repr__(self) -> str:
        missed = sum(row.get("holds") is False for row in self.rows)
        return f"<ackclock.CaseReport {self.id}: {len(self.rows)} figures, {missed} missed>"


def reproduce(
    cases: str | Sequence[str] | None = None, *, progress: Progress = False
) -> list[CaseReport]:
    """Run published cases, all of them by default.

    Raises :class:`ValueError` for a name that is no case.
    """
    names = [cases] if isinstance(cases, str) else None if cases is None else list(cases)
    for name in names or ():
        texts(cases=name)
    with shown(progress, "reproduce", "case") as callback:
        report, told = _engine.reproduce(names, callback)
    return [CaseReport(case, text) for case, text in zip(json.loads(report)["cases"], told)]
