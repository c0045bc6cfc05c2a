"""Many runs of one scenario: on this machine's cores, or on an engine people already run."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import _engine, chunks
from .controllers import Controllers, known
from .executors import engine_of
from .progress import Callback, shown
from .scenarios import Source, settings, text_of, value_text

#: Values of an axis: a list, or a range such as ``"10ms..100ms step 10ms"``.
Values = Sequence[object] | str


class Sweep:
    """The result of a sweep, run by run in order."""

    def __init__(self, study: _engine.Study, rows: bytes | None, out: Path | None) -> None:
        self.study = study
        #: The directory it was written to, if any.
        self.out = out
        self._rows = rows

    @property
    def jsonl(self) -> bytes:
        """A line of JSON for each run, byte for byte ``runs.jsonl`` of the command line."""
        if self._rows is None:
            assert self.out is not None
            self._rows = (self.out / "runs.jsonl").read_bytes()
        return self._rows

    @property
    def csv(self) -> str:
        """A line for each flow of each run, byte for byte ``runs.csv`` of the command line."""
        return _engine.csv_head(self.study.keys) + _engine.csv_lines(self.jsonl)

    @property
    def table(self) -> _engine.Table:
        """A row for each flow of each run."""
        return _engine.rows_table(self.jsonl, self.study.keys)

    def __len__(self) -> int:
        return self.study.runs

    def rows(self) -> list[dict[str, Any]]:
        """The runs as dictionaries."""
        return [json.loads(line) for line in io.BytesIO(self.jsonl)]

    def __repr__(self) -> str:
        return f"<ackclock.Sweep: {self.study.runs} runs over {', '.join(self.study.keys)}>"

    def _repr_html_(self) -> str:
        from .tables import to_pandas

        shown: str = to_pandas(self.table).to_html(max_rows=20, index=False)
        return shown


def sweep(
    source: Source | None = None,
    *,
    axes: Mapping[str, Values] | None = None,
    set: Mapping[str, object] | None = None,
    seed: int | None = None,
    repeat: int | None = None,
    only: str | None = None,
    controllers: Controllers | None = None,
    jobs: int | None = None,
    executor: Any = None,
    out: str | os.PathLike[str] | None = None,
    chunk_s: float = 2.0,
    progress: bool | Callback = False,
    **tables: Any,
) -> Sweep:
    """Run a scenario over a grid.

    ``axes`` has keys as for ``set`` with lists of values or ranges, beside those of the scenario's
    ``[sweep]``: ``{"sender.cc": ["newreno", "cubic"], "path.loss": "0.1%..10% log 5"}``. ``repeat``
    runs each point with that many seeds, ``only`` is a condition over the axes.

    Without ``executor`` the runs are done here on ``jobs`` threads (all cores by default). With one
    (any ``concurrent.futures.Executor``, a Dask client, or the module ``ray``) they are done there,
    in chunks of about ``chunk_s`` seconds. Results are the same bytes in every case.

    With ``out`` each chunk is written to a Parquet file in ``out/chunks``, by the worker that did
    it, under a temporary name first; the same call goes on where an earlier one ended, and at the
    end the directory holds what ``ackclock sweep --out`` writes. Workers elsewhere must see that
    directory.

    Raises :class:`ackclock.ScenarioError` for a mistake in the scenario or an axis,
    :class:`ValueError` for a directory that holds another sweep.
    """
    text, name = text_of(source, tables)
    arguments = [axis(key, values) for key, values in (axes or {}).items()]
    study = _engine.Study(text, name, settings(set), arguments, repeat, only, seed, known(controllers))
    if jobs is not None and jobs < 1:
        raise ValueError(f"jobs: expected 1 or more, found {jobs}")
    if not chunk_s > 0:
        raise ValueError(f"chunk_s: expected a time above 0, found {chunk_s}")
    threads = jobs or os.cpu_count() or 1
    with shown(progress, name, "run") as callback:
        if out is not None:
            return _kept(study, Path(out), executor, threads, chunk_s, callback)
        if executor is None:
            return Sweep(study, study.rows(0, study.runs, threads, callback), None)
        parts = dict(
            chunks.spread(
                study, [(0, study.runs)], engine_of(executor), None, chunk_s, callback
            )
        )
        return Sweep(study, b"".join(parts[chunk] for chunk in sorted(parts)), None)


def axis(key: str, values: Values) -> str:
    """An axis as ``-m`` takes it."""
    if isinstance(values, str):
        return f"{key}={values}"
    texts = [value_text(key, value) for value in values]
    if any("," in text for text in texts):
        raise ValueError(f"{key}: a value with a comma belongs into [sweep.axes] of the scenario")
    return f"{key}={','.join(texts)}"


def _kept(
    study: _engine.Study,
    out: Path,
    executor: Any,
    threads: int,
    chunk_s: float,
    progress: Callback | None,
) -> Sweep:
    folder = _claim(study, out)
    if (out / "runs.jsonl").exists():
        return Sweep(study, None, out)
    missing = chunks.gaps(chunks.kept(folder), study.runs)
    if executor is not None:
        engine = engine_of(executor)
        for _ in chunks.spread(study, missing, engine, folder, chunk_s, progress):
            pass
    else:
        _here(study, missing, folder, threads, chunk_s, progress)
    _finish(study, out, folder)
    return Sweep(study, None, out)


def _claim(study: _engine.Study, out: Path) -> Path:
    """The folder of chunks in `out`, which is new or holds this very sweep."""
    about = out / "sweep.json"
    ours = study.about()
    if about.exists():
        if about.read_text() != ours:
            raise ValueError(f"{out} holds another sweep, or one of another version of Ackclock")
    elif out.exists() and any(out.iterdir()):
        raise ValueError(f"{out} is not empty and holds no sweep")
    folder = out / "chunks"
    folder.mkdir(parents=True, exist_ok=True)
    if not about.exists():
        _whole(out / "scenario.toml", study.text())
        _whole(about, ours)
    return folder


def _here(
    study: _engine.Study,
    missing: list[chunks.Chunk],
    folder: Path,
    threads: int,
    chunk_s: float,
    progress: Callback | None,
) -> None:
    import time

    total = sum(end - first for first, end in missing)
    done = 0
    cutter = chunks.Cutter(missing, chunk_s)
    while (chunk := cutter.next()) is not None:
        began = time.perf_counter()
        rows = study.rows(*chunk, threads)
        cutter.measured(chunk[1] - chunk[0], time.perf_counter() - began)
        chunks.write(folder, study.keys, *chunk, rows)
        done += chunk[1] - chunk[0]
        if progress is not None:
            progress(done, total)


def _finish(study: _engine.Study, out: Path, folder: Path) -> None:
    """Put the chunks together as the command line would have written them."""
    temporary = {name: out / f".{name}.{os.getpid()}.part" for name in ("runs.csv", "runs.jsonl")}
    try:
        with (
            open(temporary["runs.jsonl"], "wb") as lines,
            open(temporary["runs.csv"], "w", newline="") as table,
        ):
            table.write(_engine.csv_head(study.keys))
            for chunk in chunks.kept(folder):
                rows = chunks.read(folder, chunk)
                lines.write(rows)
                table.write(_engine.csv_lines(rows))
        # The lines come last: they say that all is there.
        for name, path in temporary.items():
            os.replace(path, out / name)
    finally:
        for path in temporary.values():
            path.unlink(missing_ok=True)


def _whole(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    temporary.write_text(text)
    os.replace(temporary, path)
