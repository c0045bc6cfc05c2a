"""Evaluation of a congestion controller, and the search for its worst case: here, or on an engine."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

from . import _engine, chunks
from .executors import Engine, engine_of
from .frames import framed, printed
from .progress import Callback, Progress, shown
from .scenarios import at_least, numbers, seconds, settings, texts

#: A run of a suite: the numbers of its criterion, world, sender and draw.
Run = list[int]
#: A world of a hunt: the level of each number and part of the search space.
World = list[int]
#: The figure of a world, and the packets that it retransmitted.
WorldFigure = tuple[float, int]


class SuiteReport:
    """The report of a suite. ``print`` shows the output of ``ackclock suite NAME --full``."""

    def __init__(self, report: str, text: str, page: str) -> None:
        self.json = report
        """The report, byte for byte as ``ackclock suite NAME --json`` prints it."""
        self.report: dict[str, Any] = json.loads(report)
        """The parsed report."""
        self.page = page
        """The page of ``ackclock suite NAME --report`` as HTML."""
        self._text = text

    @property
    def criteria(self) -> list[dict[str, Any]]:
        """The criteria with their verdicts and figures, in the order of the document."""
        return list(self.report["criteria"])

    @property
    def passes(self) -> bool:
        """Is there no criterion that fails?"""
        return all(criterion["verdict"] != "fail" for criterion in self.criteria)

    def __str__(self) -> str:
        return self._text.rstrip()

    def __repr__(self) -> str:
        failed = sum(criterion["verdict"] == "fail" for criterion in self.criteria)
        name = self.report["suite"]
        return f"<ackclock.SuiteReport {name}: {len(self.criteria)} criteria, {failed} failed>"

    def _repr_html_(self) -> str:
        return framed(self.page)


class HuntReport:
    """The cases that a hunt found. ``print`` shows the output of ``ackclock hunt``."""

    def __init__(self, report: str, text: str) -> None:
        self.json = report
        """The report, byte for byte as ``ackclock hunt --json`` prints it."""
        self.report: dict[str, Any] = json.loads(report)
        """The parsed report."""
        self._text = text

    @property
    def cases(self) -> list[dict[str, Any]]:
        """A case for each cause, the worst first; ``case["scenario"]`` is its scenario file."""
        return list(self.report["cases"])

    def __str__(self) -> str:
        return self._text.rstrip()

    def __repr__(self) -> str:
        return f"<ackclock.HuntReport: {self.report['worlds']} worlds, {len(self.cases)} cases>"

    def _repr_html_(self) -> str:
        return printed(str(self))


def suite(
    name: str,
    cc: str,
    *,
    against: Sequence[str] = (),
    criteria: Sequence[str] = (),
    phases: int | None = None,
    budget: int | None = None,
    noise: str = "hosts",
    seed: int = 0,
    knobs: Mapping[str, object] | None = None,
    jobs: int | None = None,
    executor: Any = None,
    chunk_s: float = 1.0,
    progress: Progress = False,
) -> SuiteReport:
    """Evaluate a sender: ``"rfc9743"``, ``"slow-start"`` or ``"tcpeval"``.

    ``cc`` is the sender (``"linux-6.18/cubic"``, or ``"mine.py:Mine"`` for a class of your own),
    ``against`` are the references (Reno and CUBIC of the same stack by default), ``criteria`` picks
    sections of the document; of ``rfc9743``, ``phases`` and ``budget`` are the draws of a world at first
    and at most, ``noise`` is that of the hosts, ``seed`` gives other draws; ``knobs`` changes knobs of
    the sender. All are as for ``ackclock suite``.

    Without ``executor`` the worlds run here on ``jobs`` threads (all cores by default). With one
    (any ``concurrent.futures.Executor``, a Dask client, or the module ``ray``) they run there, in
    chunks of about ``chunk_s`` seconds. The report is the same bytes in every case.

    ``progress`` is as for :func:`ackclock.sweep`, in runs. Raises :class:`ValueError` for an unknown
    suite, sender, knob or criterion.
    """
    texts(name=name, cc=cc)
    study = _engine.SuiteStudy(
        name,
        cc,
        listed("against", against),
        listed("criteria", criteria),
        at_least("phases", phases, 2),
        at_least("budget", budget, 2),
        noise,
        at_least("seed", seed, 0) or 0,
        settings(knobs),
    )
    threads = at_least("jobs", jobs, 1) or os.cpu_count() or 1
    seconds("chunk_s", chunk_s)
    engine = engine_of(executor)
    results: list[str] = []
    with shown(progress, f"suite {name}", "run") as callback:
        # Each round has the runs of the worlds that those before did not decide.
        while runs := study.runs_after(results):
            if engine is None:
                results += study.results(runs, threads, callback)
                continue
            cutter = chunks.Cutter([(0, len(runs))], chunk_s)
            # Worlds differ in size by a factor of a thousand.
            cutter.size = 1

            def own(chunk: chunks.Chunk, runs: list[Run] = runs) -> tuple[list[Run]]:
                return (runs[slice(*chunk)],)

            parts = dict(chunks.done(suite_runs, (study,), cutter, engine, callback, own))
            results += [one for chunk in sorted(parts) for one in parts[chunk]]
    return SuiteReport(*study.report(results))


def suite_runs(
    study: _engine.SuiteStudy, runs: list[Run], first: int, end: int
) -> tuple[list[str], float]:
    """Make the runs of a chunk in this process; returns their results and the seconds they took."""
    began = time.perf_counter()
    return study.results(runs, 1), time.perf_counter() - began


def hunt(
    cc: str,
    goal: str,
    *,
    limit: float | None = None,
    without: Sequence[str] = (),
    worlds: int = 4_000,
    seed: int = 1,
    jobs: int | None = None,
    executor: Any = None,
    chunk_s: float = 0.5,
    progress: Progress = False,
) -> HuntReport:
    """Search for the paths and the traffic in which a sender does worst.

    ``goal`` is ``"starvation"``, ``"utilisation"``, ``"delay"`` or ``"loss"``; ``limit``, ``without``,
    ``worlds`` and ``seed`` are as for ``ackclock hunt``. ``jobs``, ``executor`` and ``chunk_s`` are as
    for :func:`ackclock.suite`; the report is the same bytes in every case. ``progress`` is as for
    :func:`ackclock.sweep`, in worlds.

    Raises :class:`ValueError` for an unknown goal, sender or part.
    """
    texts(cc=cc, goal=goal)
    numbers(limit=limit)
    budget = at_least("worlds", worlds, 1) or 1
    study = _engine.HuntStudy(
        cc, goal, limit, listed("without", without), budget, at_least("seed", seed, 0) or 0
    )
    threads = at_least("jobs", jobs, 1) or os.cpu_count() or 1
    seconds("chunk_s", chunk_s)
    with shown(progress, f"hunt for {goal}", "world") as callback:
        runner = WorldRunner(study, engine_of(executor), threads, chunk_s, budget, callback)
        return HuntReport(*study.search(runner))


class WorldRunner:
    """Runs the worlds that a search asks for."""

    def __init__(
        self,
        study: _engine.HuntStudy,
        engine: Engine | None,
        threads: int,
        chunk_s: float,
        budget: int,
        progress: Callback | None,
    ) -> None:
        self.study = study
        self.engine = engine
        self.threads = threads
        self.chunk_s = chunk_s
        self.budget = budget
        self.progress = progress
        self.tried = 0
        # Worlds of a chunk, measured in the batches before.
        self.size = chunks.FIRST

    def __call__(self, worlds: list[World]) -> list[WorldFigure]:
        figures = self._here(worlds) if self.engine is None else self._spread(worlds, self.engine)
        self.tried += len(worlds)
        return figures

    def _here(self, worlds: list[World]) -> list[WorldFigure]:
        figures: list[WorldFigure] = []
        # Parts, so that progress shows.
        part = 16 * self.threads
        for first in range(0, len(worlds), part):
            figures += self.study.figures(worlds[first : first + part], self.threads)
            self._show(len(figures))
        return figures

    def _spread(self, worlds: list[World], engine: Engine) -> list[WorldFigure]:
        cutter = chunks.Cutter([(0, len(worlds))], self.chunk_s)
        # A batch of a local search is small: each worker gets a part of it.
        cutter.size = max(1, min(self.size, len(worlds) // engine.workers()))

        def own(chunk: chunks.Chunk) -> tuple[list[World]]:
            return (worlds[slice(*chunk)],)

        def show(done: int, _: int) -> None:
            self._show(done)

        parts = dict(chunks.done(hunt_worlds, (self.study,), cutter, engine, show, own))
        self.size = cutter.size
        return [one for chunk in sorted(parts) for one in parts[chunk]]

    def _show(self, done: int) -> None:
        if self.progress is not None:
            self.progress(min(self.tried + done, self.budget), self.budget)


def hunt_worlds(
    study: _engine.HuntStudy, worlds: list[World], first: int, end: int
) -> tuple[list[WorldFigure], float]:
    """Run the worlds of a chunk in this process; returns their figures and the seconds they took."""
    began = time.perf_counter()
    return study.figures(worlds, 1), time.perf_counter() - began


def listed(name: str, values: Sequence[str]) -> list[str]:
    """A list of str; a single one is not a list of its letters."""
    if isinstance(values, str):
        return [values]
    found = list(values)
    for value in found:
        texts(**{name: value})
    return found
