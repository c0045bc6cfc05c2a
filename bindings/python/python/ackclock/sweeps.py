"""Many runs of one scenario: on this machine's cores, or on an existing execution engine."""

from __future__ import annotations

import hashlib
import io
import json
import os
import secrets
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from . import _engine, chunks
from .controllers import Controllers, known
from .executors import Engine, engine_of
from .frames import framed, printed
from .progress import Callback, Progress, shown
from .scenarios import Source, at_least, seconds, settings, text_of, texts, value_text

#: Values of an axis: a list, or a range such as ``"10ms..100ms step 10ms"``.
Values = Sequence[object] | str
#: Most runs that a notebook shows as a page: more would make its file large.
MOST = 20_000


class Sweep:
    """The result of a sweep, run by run in order."""

    def __init__(self, study: _engine.Study, rows: bytes | None, out: Path | None) -> None:
        self.study = study
        self.out = out
        """The directory it was written to, if any."""
        self._rows = rows

    @property
    def jsonl(self) -> bytes:
        """A line of JSON per run, identical to ``runs.jsonl`` of the command line."""
        if self._rows is None:
            assert self.out is not None
            whole = self.out / "runs.jsonl"
            folder = self.out / "chunks"
            if whole.exists():
                self._rows = whole.read_bytes()
            else:
                self._rows = b"".join(read(folder, chunk) for chunk in chunks.kept(folder))
        return self._rows

    @property
    def csv(self) -> str:
        """A line per flow of each run, identical to ``runs.csv`` of the command line."""
        return _engine.csv_head(self.study.keys) + _engine.csv_lines(self.jsonl)

    @property
    def table(self) -> _engine.Table:
        """A row per flow of each run."""
        return _engine.rows_table(self.jsonl, self.study.keys)

    def __len__(self) -> int:
        return self.study.runs

    def rows(self) -> list[dict[str, Any]]:
        """The runs as dictionaries."""
        return [json.loads(line) for line in io.BytesIO(self.jsonl)]

    def __repr__(self) -> str:
        return f"<ackclock.Sweep: {self.study.runs} runs over {', '.join(self.study.keys)}>"

    @property
    def page(self) -> str | None:
        """The page of ``ackclock sweep --report`` as HTML: heat maps over any two axes, and means.
        ``None`` if there are more rows than a page holds."""
        return _engine.sweep_page(self.study.about(), self.jsonl, self.study.name)

    def _repr_html_(self) -> str:
        page = None if len(self) > MOST else self.page
        return printed(repr(self)) + ("" if page is None else framed(page))


def sweep(
    source: Source | None = None,
    *,
    axes: Mapping[str | tuple[str, ...], Values] | None = None,
    set: Mapping[str, object] | None = None,
    seed: int | None = None,
    repeat: int | None = None,
    only: str | None = None,
    controllers: Controllers | None = None,
    jobs: int | None = None,
    executor: Any = None,
    out: str | os.PathLike[str] | None = None,
    chunk_s: float = 2.0,
    join: bool = True,
    progress: Progress = False,
    **tables: Any,
) -> Sweep:
    """Run a scenario over a grid.

    ``axes`` has keys as for ``set`` with lists of values or ranges, in addition to those of the scenario's
    ``[sweep]``: ``{"sender.cc": ["newreno", "cubic"], "path.loss": "0.1%..10% log 5"}``. Keys that change
    together are a tuple: ``{("a.cc", "b.cc"): [("newreno", "cubic"), ("cubic", "newreno")]}``. ``repeat``
    runs each point with that many seeds, ``only`` is a condition over the axes.

    Without ``executor`` the runs execute here on ``jobs`` threads (all cores by default). With one
    (any ``concurrent.futures.Executor``, a Dask client, or the module ``ray``) they execute there,
    in chunks of about ``chunk_s`` seconds. Results are the same bytes in every case.

    With ``out`` each chunk is written to a Parquet file in ``out/chunks``, by its
    worker, under a temporary name first; the same call resumes where an earlier one ended, and at the
    end the directory has the files of ``ackclock sweep --out``. Remote workers must see that
    directory. ``join=False`` stops at the chunks, which any reader of Parquet reads as one table:
    for results too large for a single machine.

    ``progress`` is ``True`` for a bar of tqdm, such a bar, or a callable ``(done, total)`` of runs.

    Raises :class:`ackclock.ScenarioError` for an error in the scenario or an axis,
    :class:`ValueError` for a directory that holds another sweep.
    """
    text, name = text_of(source, tables)
    seed, repeat = at_least("seed", seed, 0), at_least("repeat", repeat, 1)
    texts(only=only)
    if axes is not None and not isinstance(axes, Mapping):
        raise TypeError(f"axes: expected a dictionary, found {type(axes).__name__}")
    arguments = [axis(key, values) for key, values in (axes or {}).items()]
    study = _engine.Study(text, name, settings(set), arguments, repeat, only, seed, known(controllers))
    threads = at_least("jobs", jobs, 1) or os.cpu_count() or 1
    seconds("chunk_s", chunk_s)
    engine = engine_of(executor)
    with shown(progress, name, "run") as callback:
        if out is not None:
            return _kept(study, Path(out), engine, threads, chunk_s, join, callback)
        if engine is None:
            return Sweep(study, study.rows(0, study.runs, threads, callback), None)
        cutter = chunks.Cutter([(0, study.runs)], chunk_s)
        parts = dict(chunks.done(work, (study, None), cutter, engine, callback))
        return Sweep(study, b"".join(parts[chunk] for chunk in sorted(parts)), None)


def work(
    study: _engine.Study, folder: str | None, first: int, end: int, threads: int = 1
) -> tuple[bytes, float | None]:
    """Execute the runs of a chunk in this process; returns their rows and the seconds they took.

    With a folder the rows are written there and none are returned; an existing chunk is not repeated.
    """
    if folder is not None and chunks.path_of(Path(folder), (first, end)).exists():
        return b"", None
    began = time.perf_counter()
    rows = study.rows(first, end, threads)
    # The fixed cost of a chunk is excluded, so that it does not make chunks smaller.
    took = time.perf_counter() - began
    if folder is None:
        return rows, took
    import pyarrow as pa

    table = pa.table(_engine.rows_table(rows, study.keys))
    # The row itself, with the first of its flows: results are assembled from it.
    lines = iter(rows.decode().splitlines())
    runs = table.column("run").to_numpy()
    begins = [number == 0 or runs[number - 1] != run for number, run in enumerate(runs)]
    column = pa.array([next(lines) if begin else None for begin in begins], pa.string())
    chunks.write(Path(folder), (first, end), table.append_column("row_json", column))
    return b"", took


def read(folder: Path, chunk: chunks.Chunk) -> bytes:
    """The rows of a chunk as lines of JSON."""
    import pyarrow.parquet as parquet

    table = parquet.read_table(chunks.path_of(folder, chunk), columns=["row_json"])
    lines = [line for line in table.column("row_json").to_pylist() if line is not None]
    return "".join(line + "\n" for line in lines).encode()


def axis(key: str | tuple[str, ...], values: Values) -> str:
    """An axis in the syntax of ``-m``; several keys change together, each value is a tuple then."""
    keys = [part.strip() for part in key.split(",")] if isinstance(key, str) else list(key)
    if not keys or not all(isinstance(one, str) for one in keys):
        raise TypeError(f"axes: a key is a str or a tuple of str, found {key!r}")
    name = ",".join(keys)
    if isinstance(values, str):
        return f"{name}={values}"
    if not isinstance(values, Iterable):
        raise TypeError(f"{name}: expected a list of values or a range, found {type(values).__name__}")
    if len(keys) == 1:
        return f"{name}={','.join(part(name, value) for value in values)}"
    return f"{name}={','.join(group(keys, value) for value in values)}"


def part(key: str, value: object) -> str:
    """A value of an axis."""
    text = value_text(key, value)
    if "," in text:
        raise ValueError(f"{key}: a value with a comma belongs into [sweep.axes] of the scenario")
    return text


def group(keys: list[str], value: object) -> str:
    """A value of each of several keys."""
    name = ",".join(keys)
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise TypeError(f"{name}: expected a tuple with a value for each key, found {value!r}")
    if len(value) != len(keys):
        raise ValueError(f"{name}: {len(keys)} keys, and {len(value)} values in {value!r}")
    return f"({','.join(part(key, one) for key, one in zip(keys, value))})"


def _kept(
    study: _engine.Study,
    out: Path,
    engine: Engine | None,
    threads: int,
    chunk_s: float,
    join: bool,
    progress: Callback | None,
) -> Sweep:
    folder = chunks.claim(out, "sweep.json", study.about(), "sweep")
    if not (out / "scenario.toml").exists():
        chunks.whole(out / "scenario.toml", study.text())
    if (out / "runs.jsonl").exists():
        return Sweep(study, None, out)
    cutter = chunks.Cutter(chunks.gaps(chunks.kept(folder), study.runs), chunk_s)
    # A remote worker is one of many on its machine.
    own = partial(work, threads=threads) if engine is None else work
    deque(chunks.done(own, (study, str(folder)), cutter, engine, progress), maxlen=0)
    if join:
        _finish(study, out, folder)
    return Sweep(study, None, out)


def _finish(study: _engine.Study, out: Path, folder: Path) -> None:
    """Assemble the chunks into the files of the command line."""
    # runs.jsonl comes last: it marks the sweep as complete.
    names = ("runs.csv", "runs.sums", "runs.jsonl")
    temporary = {name: out / f".{name}.{secrets.token_hex(8)}.part" for name in names}
    try:
        with (
            open(temporary["runs.jsonl"], "xb") as lines,
            open(temporary["runs.sums"], "x", newline="") as sums,
            open(temporary["runs.csv"], "x", newline="") as table,
        ):
            table.write(_engine.csv_head(study.keys))
            for chunk in chunks.kept(folder):
                rows = read(folder, chunk)
                lines.write(rows)
                for row in io.BytesIO(rows):
                    sums.write(hashlib.sha256(row).hexdigest()[:16] + "\n")
                table.write(_engine.csv_lines(rows))
            for file in (lines, sums, table):
                file.flush()
                os.fsync(file.fileno())
        for name, path in temporary.items():
            os.replace(path, out / name)
    finally:
        for path in temporary.values():
            path.unlink(missing_ok=True)
