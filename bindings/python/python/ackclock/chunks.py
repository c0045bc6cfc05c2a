"""Work in chunks: executed anywhere, stored in files that are written atomically."""

from __future__ import annotations

import os
import re
import secrets
from bisect import bisect_right
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from itertools import accumulate
from pathlib import Path
from typing import Any

from . import _engine
from .executors import RETRIES, Engine
from .progress import Callback

#: Items of the first chunks, whose time determines the size of the others.
FIRST = 8
#: A chunk grows by no more than this factor over the one before.
GROWTH = 8
#: Name of a chunk's file: first item and the one after the last.
NAME = re.compile(r"^(\d{12})-(\d{12})\.parquet$")

Chunk = tuple[int, int]


def path_of(folder: Path, chunk: Chunk) -> Path:
    """The file of a chunk."""
    return folder / f"{chunk[0]:012d}-{chunk[1]:012d}.parquet"


def write(folder: Path, chunk: Chunk, table: Any) -> None:
    """Write a chunk as Parquet under a temporary name, then rename it."""
    import pyarrow.parquet as parquet

    path = path_of(folder, chunk)
    temporary = folder / f".{path.name}.{secrets.token_hex(8)}.part"
    try:
        parquet.write_table(table, temporary, compression="zstd")
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def whole(path: Path, text: str) -> None:
    """Write a text under a temporary name, then rename it."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)


def claim(out: Path, name: str, ours: str, what: str) -> Path:
    """The folder of chunks in `out`, which is new or whose file `name` equals `ours`."""
    about = out / name
    if about.exists():
        if about.read_text(encoding="utf-8") != ours:
            raise ValueError(f"{out} holds another {what}, or one of another version of Ackclock")
    elif out.exists() and any(not entry.name.startswith(".") for entry in out.iterdir()):
        raise ValueError(f"{out} is not empty and holds no {what}")
    else:
        out.mkdir(parents=True, exist_ok=True)
        whole(about, ours)
    folder = out / "chunks"
    folder.mkdir(exist_ok=True)
    return folder


def kept(folder: Path) -> list[Chunk]:
    """The existing chunks in order, without overlapping ones."""
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


def gaps(chunks: list[Chunk], pieces: int) -> list[Chunk]:
    """The missing ranges between chunks."""
    missing: list[Chunk] = []
    at = 0
    for first, end in chunks:
        if first > at:
            missing.append((at, first))
        at = end
    if at < pieces:
        missing.append((at, pieces))
    return missing


class Cutter:
    """Divides the missing ranges into chunks that take about `seconds` each.

    Items have equal weight, such as the runs of a sweep, or `weights`, such as the bytes of captures.
    """

    def __init__(
        self, missing: list[Chunk], seconds: float, weights: Sequence[int] | None = None
    ) -> None:
        self.missing = list(reversed(missing))
        self.seconds = seconds
        # Total weight of all items before each.
        self.before = None if weights is None else [0, *accumulate(max(1, one) for one in weights)]
        first = missing[0][0] if missing else 0
        self.size = self.weight((first, first + FIRST))

    def weight(self, chunk: Chunk) -> int:
        """Total weight of the items of a chunk."""
        if self.before is None:
            return chunk[1] - chunk[0]
        return self.before[min(chunk[1], len(self.before) - 1)] - self.before[chunk[0]]

    def measured(self, chunk: Chunk, seconds: float) -> None:
        """Adapts the size to the time of a chunk."""
        fitting = int(self.weight(chunk) * self.seconds / max(seconds, 1e-6))
        self.size = max(1, min(fitting, self.size * GROWTH))

    def next(self) -> Chunk | None:
        """The next chunk, or ``None``."""
        if not self.missing:
            return None
        first, end = self.missing.pop()
        cut = first + self.size
        if self.before is not None:
            cut = max(first + 1, bisect_right(self.before, self.before[first] + self.size) - 1)
        cut = min(end, cut)
        if cut < end:
            self.missing.append((cut, end))
        return first, cut


#: The work of a worker: from its arguments, the first item and the one after the last it computes
#: the result and the seconds it took; ``None`` if it did nothing new.
Work = Callable[..., tuple[Any, float | None]]
#: Arguments specific to a chunk.
Own = Callable[[Chunk], tuple[Any, ...]]
#: Finished chunks with their result and the seconds they took.
Ended = Generator[tuple[Chunk, Any, float | None], None, None]


def done(
    work: Work,
    arguments: tuple[Any, ...],
    cutter: Cutter,
    engine: Engine | None,
    progress: Callback | None,
    own: Own = lambda _: (),
) -> Iterator[tuple[Chunk, Any]]:
    """Do the missing work on an engine, or in this process; yields each chunk when it ends, with the
    result of `work`."""
    total = sum(end - first for first, end in cutter.missing)
    ready = 0
    if engine is None:
        ended = here(work, arguments, cutter, own)
    else:
        ended = spread(work, arguments, cutter, engine, own)
    with closing(ended):
        for chunk, made, took in ended:
            # Before the next chunk is cut.
            if took is not None:
                cutter.measured(chunk, took)
            ready += chunk[1] - chunk[0]
            if progress is not None:
                progress(ready, total)
            yield chunk, made


def here(work: Work, arguments: tuple[Any, ...], cutter: Cutter, own: Own) -> Ended:
    """Work in this process, one chunk after another."""
    while (chunk := cutter.next()) is not None:
        yield chunk, *work(*arguments, *own(chunk), *chunk)


def spread(work: Work, arguments: tuple[Any, ...], cutter: Cutter, engine: Engine, own: Own) -> Ended:
    """Work on an engine, with two chunks per worker: one waits while the other runs.

    A chunk whose worker died is repeated, :data:`RETRIES` times at most; an exception of the work
    itself is raised at once.
    """
    arguments = tuple(engine.share(argument) for argument in arguments)
    in_flight: list[tuple[Any, Chunk, int]] = []

    def begin(chunk: Chunk, tried: int) -> None:
        in_flight.append((engine.submit(work, *arguments, *own(chunk), *chunk), chunk, tried))

    def fill() -> None:
        room = 2 * engine.workers()
        while len(in_flight) < room:
            chunk = cutter.next()
            if chunk is None:
                return
            begin(chunk, 0)

    try:
        fill()
        while in_flight:
            ready = engine.finished([ticket for ticket, _, _ in in_flight])
            for entry in [entry for entry in in_flight if any(entry[0] is t for t in ready)]:
                in_flight.remove(entry)
                ticket, chunk, tried = entry
                try:
                    made, took = engine.result(ticket)
                except Exception as error:
                    if final(error) or tried >= RETRIES:
                        raise
                    begin(chunk, tried + 1)
                    continue
                yield chunk, made, took
            fill()
    finally:
        engine.cancel([ticket for ticket, _, _ in in_flight])


def final(error: BaseException) -> bool:
    """Is the error permanent, such as an exception of the engine itself or a broken pool?"""
    from concurrent.futures import BrokenExecutor

    cause = getattr(error, "cause", None)
    return isinstance(error, (ValueError, TypeError, _engine.RunError, BrokenExecutor, OSError)) or (
        isinstance(cause, BaseException) and final(cause)
    )
