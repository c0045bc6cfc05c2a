"""Published figures and ours."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from . import _engine
from .frames import printed
from .progress import Progress, shown
from .scenarios import texts

#: A published figure and ours, as in ``ackclock reproduce --json``.
Figure = dict[str, Any]


class CaseReport:
    """The result of a published case. ``print`` shows the output of ``ackclock reproduce``."""

    def __init__(self, case: dict[str, Any], text: str) -> None:
        self._text = text
        self.id: str = case["id"]
        """Name on the command line."""
        self.title: str = case["title"]
        """Title."""
        self.source: str = case["source"]
        """Where the figures were published."""
        self.knobs: list[dict[str, str]] = case["knobs"]
        """Declared inputs: name, value, source."""
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

    Raises :class:`ValueError` for an unknown case.
    """
    names = [cases] if isinstance(cases, str) else None if cases is None else list(cases)
    for name in names or ():
        texts(cases=name)
    with shown(progress, "reproduce", "case") as callback:
        report, case_texts = _engine.reproduce(names, callback)
    return [CaseReport(case, text) for case, text in zip(json.loads(report)["cases"], case_texts)]
