"""A sweep in chunks: done anywhere, kept in files that are whole or not there."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import _engine
from .executors import RETRIES, Engine
from .progress import Callback

#: Runs of the first chunks, whose time tells how large the others should be.
FIRST = 8
#: A chunk grows by no more than this factor over the one before.
GROWTH = 8
#: Name of a chunk's file: first run and the one behind the last.
NAME = re.compile(r"^(\d{12})-(\d{12})\.parquet$")

Chunk = tuple[int, int]


def work(study: _engine.Study, first: int, end: int, folder: str | None) -> tuple[bytes, float]:
    """Do the runs of a chunk, here; returns their rows and the seconds they took.

    With a folder the rows are written there and none are returned.
    """
    began = time.perf_counter()
    rows = study.rows(first, end, 1)
    seconds = time.perf_counter() - began
    if folder is None:
        return rows, seconds
    write(Path(folder), study.keys, first, end, rows)
    return b"", seconds


def write(folder: Path, keys: list[str], first: int, end: int, rows: bytes) -> None:
    """Write a chunk as Parquet under a temporary name, then give it its own."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    table = pa.table(_engine.rows_table(rows, keys))
    # The row itself, with the first of its flows: results are put together from it.
    lines = iter(rows.decode().splitlines())
    runs = table.column("run").to_pylist()
    begins = [number == 0 or runs[number - 1] != run for number, run in enumerate(runs)]
    whole = pa.array([next(lines) if begin else None for begin in begins], pa.string())
    table = table.append_column("row_json", whole)
    name = f"{first:012d}-{end:012d}.parquet"
    temporary = folder / f".{name}.{os.getpid()}.{time.monotonic_ns()}.part"
    try:
        parquet.write_table(table, temporary, compression="zstd")
        os.replace(temporary, folder / name)
    finally:
        temporary.unlink(missing_ok=True)


def read(folder: Path, chunk: Chunk) -> bytes:
    """The rows of a chunk as lines of JSON."""
    import pyarrow.parquet as parquet

    table = parquet.read_table(folder / f"{chunk[0]:012d}-{chunk[1]:012d}.parquet", columns=["row_json"])
    lines = [line for line in table.column("row_json").to_pylist() if line is not None]
    return "".join(line + "\n" for line in lines).encode()


def kept(folder: Path) -> list[Chunk]:
    """The chunks that are there, in order, none of them overlapping."""
    found = sorted(
        (int(match[1]), int(match[2]))
        for entry in os.listdir(folder)
        if (match := NAME.match(entry))
    )
    chunks: list[Chunk] = []
    for chunk in found:
        if not chunks or chunk[0] >= chunks[-1][1]:
            chunks.append(chunk)
    return chunks


def gaps(chunks: list[Chunk], runs: int) -> list[Chunk]:
    """What is missing between them."""
    missing: list[Chunk] = []
    at = 0
    for first, end in chunks:
        if first > at:
            missing.append((at, first))
        at = end
    if at < runs:
        missing.append((at, runs))
    return missing


class Cutter:
    """Cuts what is missing into chunks that take about `seconds` each."""

    def __init__(self, missing: list[Chunk], seconds: float) -> None:
        self.missing = list(reversed(missing))
        self.seconds = seconds
        self.size = FIRST

    def measured(self, runs: int, seconds: float) -> None:
        """Tells how long that many runs took."""
        fitting = int(runs * self.seconds / max(seconds, 1e-6))
        self.size = max(1, min(fitting, self.size * GROWTH))

    def next(self) -> Chunk | None:
        """The next chunk, or ``None``."""
        if not self.missing:
            return None
        first, end = self.missing.pop()
        cut = min(end, first + self.size)
        if cut < end:
            self.missing.append((cut, end))
        return first, cut


def spread(
    study: _engine.Study,
    missing: list[Chunk],
    engine: Engine,
    folder: Path | None,
    seconds: float,
    progress: Callback | None,
) -> Iterator[tuple[Chunk, bytes]]:
    """Do what is missing on an engine; yields each chunk as it ends, with its rows.

    A chunk whose worker died is done again, :data:`RETRIES` times at most; what the scenario itself
    raises is raised at once.
    """
    cutter = Cutter(missing, seconds)
    place = None if folder is None else str(folder)
    total = sum(end - first for first, end in missing)
    done = 0
    under_way: list[tuple[Any, Chunk, int]] = []

    def begin(chunk: Chunk, tried: int) -> None:
        under_way.append((engine.submit(work, study, *chunk, place), chunk, tried))

    def fill() -> None:
        # One chunk waits at each worker while it does another.
        while len(under_way) < 2 * engine.workers:
            chunk = cutter.next()
            if chunk is None:
                return
            begin(chunk, 0)

    try:
        fill()
        while under_way:
            ready = engine.finished([ticket for ticket, _, _ in under_way])
            for entry in [entry for entry in under_way if any(entry[0] is t for t in ready)]:
                under_way.remove(entry)
                ticket, chunk, tried = entry
                try:
                    rows, took = engine.result(ticket)
                except Exception as error:
                    if final(error) or tried >= RETRIES:
                        raise
                    begin(chunk, tried + 1)
                    continue
                cutter.measured(chunk[1] - chunk[0], took)
                done += chunk[1] - chunk[0]
                if progress is not None:
                    progress(done, total)
                yield chunk, rows
            fill()
    finally:
        engine.cancel([ticket for ticket, _, _ in under_way])


def final(error: BaseException) -> bool:
    """Would the same happen again? So with what the engine itself raised, and a broken pool."""
    from concurrent.futures import BrokenExecutor

    cause = getattr(error, "cause", None)
    return isinstance(error, (ValueError, TypeError, _engine.RunError, BrokenExecutor, OSError)) or (
        isinstance(cause, BaseException) and final(cause)
    )
