"""The figures of docs/ledger/scale.md.

    pip install ".[arrow]"
    python bindings/python/bench/scale.py

Times are CPU times, the best of several.
"""

from __future__ import annotations

import pickle
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from overhead import SMALL

from ackclock import _engine, chunks, sweeps

MEGABYTE = SMALL.replace("20kB", "1MB").replace("20Mbit/s", "100Mbit/s")
AXES = ["a.cc=newreno,cubic", "path.loss=0%..2% step 0.5%"]
#: Repetitions of each of the ten points.
MANY = 100_000_000


def study(text: str, repeat: int) -> _engine.Study:
    return _engine.Study(text, "<text>", [], AXES, repeat)


def best(call: Callable[[], object], tries: int = 5) -> float:
    """CPU time of a call in seconds."""
    found = []
    for _ in range(tries):
        began = time.process_time()
        call()
        found.append(time.process_time() - began)
    return min(found)


def main() -> None:
    for name, text, count in (("20 kB", SMALL, 5_000), ("1 MB", MEGABYTE, 1_000)):
        plan = study(text, count // 10)
        seconds = best(lambda: plan.rows(0, count, 1))
        with tempfile.TemporaryDirectory() as folder:
            # Warm up: the first call loads modules.
            sweeps.work(plan, folder, 0, 8)
            began = time.process_time()
            sweeps.work(plan, folder, 0, count)
            whole = time.process_time() - began
            size = chunks.path_of(Path(folder), (0, count)).stat().st_size
        lines = len(plan.rows(0, count, 1))
        print(
            f"runs of {name}: {count / seconds:.0f} runs/s on a core, {seconds / count * 1e6:.0f} us a run; "
            f"as Parquet {size / count:.0f} B a run, as JSON {lines / count:.0f} B; "
            f"writing the chunk takes {(whole - seconds) / count * 1e6:.0f} us a run"
        )

    began = time.process_time()
    huge = study(SMALL, MANY)
    made = time.process_time() - began
    print(f"a plan of {huge.runs} runs is made in {made * 1e3:.1f} ms, {len(pickle.dumps(huge))} B pickled")
    sent = best(lambda: pickle.loads(pickle.dumps(huge)))
    last = best(lambda: huge.rows(huge.runs - 1000, huge.runs, 1))
    print(f"  a worker has it in {sent * 1e3:.1f} ms; its last 1000 runs take {last * 1e3:.0f} ms")

    with tempfile.TemporaryDirectory() as folder:
        files = 100_000
        for number in range(files):
            (Path(folder) / f"{number * 10:012d}-{number * 10 + 10:012d}.parquet").touch()
        (Path(folder) / f"{500:012d}-{510:012d}.parquet").unlink()
        listed = best(lambda: chunks.gaps(chunks.kept(Path(folder)), files * 10), 3)
    print(f"  {files} chunks are listed and their gaps found in {listed * 1e3:.0f} ms")

    pieces = 5_000
    cutter = chunks.Cutter([(0, pieces)], 1.0)
    cutter.size = 1
    spent = best(lambda: [None for _ in chunks.spread(nothing, (), cutter, Instant(), None)], 1)
    print(f"  the driver's own part of a chunk: {spent / pieces * 1e6:.0f} us")


def nothing(first: int, end: int) -> tuple[None, None]:
    return None, None


class Instant:
    """An engine of 500 workers that finish immediately."""

    def workers(self) -> int:
        return 500

    def share(self, argument: object) -> object:
        return argument

    def submit(self, call: Callable[..., object], *args: object) -> object:
        return [call(*args)]

    def finished(self, tickets: list[object]) -> list[object]:
        return tickets[:1]

    def result(self, ticket: list[object]) -> object:
        return ticket[0]

    def cancel(self, tickets: list[object]) -> None:
        pass


if __name__ == "__main__":
    main()
