"""Published figures beside ours."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from . import _engine
from .progress import Callback, shown

#: A published figure beside ours, as ``ackclock reproduce --json`` prints it.
Figure = dict[str, Any]


class CaseReport:
    """What a published case gave."""

    def __init__(self, case: dict[str, Any]) -> None:
        #: Name on the command line.
        self.id: str = case["id"]
        #: What it shows.
        self.title: str = case["title"]
        #: Where the figures were published.
        self.source: str = case["source"]
        #: Inputs it declares: name, value, source.
        self.knobs: list[dict[str, str]] = case["knobs"]
        #: The figures.
        self.rows: list[Figure] = case["rows"]

    @property
    def holds(self) -> bool:
        """Does every asserted figure hold?"""
        return all(row.get("holds") is not False for row in self.rows)

    def __repr__(self) -> str:
        missed = sum(row.get("holds") is False for row in self.rows)
        return f"<ackclock.CaseReport {self.id}: {len(self.rows)} figures, {missed} missed>"


def reproduce(
    cases: str | Sequence[str] | None = None, *, progress: bool | Callback = False
) -> list[CaseReport]:
    """Run published cases, all of them by default.

    Raises :class:`ValueError` for a name that is no case.
    """
    names = [cases] if isinstance(cases, str) else None if cases is None else list(cases)
    with shown(progress, "reproduce", "case") as callback:
        report = json.loads(_engine.reproduce(names, callback))
    return [CaseReport(case) for case in report["cases"]]
