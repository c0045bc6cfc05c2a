"""Independent diagnosis of many captures: on this machine, or on an existing execution engine."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from . import _engine, chunks
from .captures import Diagnosis, PathLike, name_of
from .executors import engine_of
from .frames import printed
from .progress import Progress, shown
from .scenarios import seconds

#: The result of a capture: its name, its report as JSON and as text, or the error.
Judged = tuple[str, str | None, str | None, str | None]


class Diagnoses(Mapping[str, Diagnosis]):
    """The diagnoses of the captures of a folder, by their names.

    ``diagnoses["captures/upload.pcap"]`` is one of them, ``table`` has all their connections.
    """

    def __init__(self, judged: list[Judged]) -> None:
        self._judged = judged
        self._by_name = {name: (report, text) for name, report, text, _ in judged if report is not None}
        self.failed: dict[str, str] = {name: why for name, _, _, why in judged if why is not None}
        """Files that could not be diagnosed, with the reason."""

    @property
    def table(self) -> _engine.Table:
        """A row per connection, its costs and times in seconds; one per file without any."""
        return table(self._judged)

    def __getitem__(self, name: str) -> Diagnosis:
        report, text = self._by_name[name]
        return Diagnosis(report, text or "")

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    def __str__(self) -> str:
        lines = []
        for name, diagnosis in self.items():
            count = len(diagnosis.connections)
            found = diagnosis.primary or "no findings"
            lines.append(f"{name}: {count} connection{'s' * (count != 1)}, {found}")
        return "\n".join([*lines, *(f"{name}: {why}" for name, why in self.failed.items())])

    def __repr__(self) -> str:
        return f"<ackclock.Diagnoses: {len(self)} captures, {len(self.failed)} failed>"

    def _repr_html_(self) -> str:
        return printed(str(self))


def table(judged: list[Judged]) -> _engine.Table:
    """The connections of captures as a table."""
    return _engine.connections_table([(name, report, why) for name, report, _, why in judged])


def diagnose_folder(
    folder: PathLike,
    *,
    pattern: str = "*",
    executor: Any = None,
    cures: bool = True,
    out: str | os.PathLike[str] | None = None,
    chunk_s: float = 2.0,
    progress: Progress = False,
    storage_options: Mapping[str, Any] | None = None,
) -> Diagnoses:
    """Diagnose every capture below a folder, or below a prefix of an object store.

    ``folder`` is a path, or a URL that fsspec understands (``s3://bucket/captures``, with what it needs
    in ``storage_options``); bytes are streamed, nothing is copied to a disk. ``pattern`` picks
    files by their name below it (``*.pcap*``). A file that is not a capture is listed in ``.failed``.
    ``cures=False`` tries no cures, as ``--no-cures``.

    ``executor``, ``out``, ``chunk_s`` (in seconds) and ``progress`` are as for :func:`ackclock.sweep`:
    chunks are sized by bytes and measured time; with ``out`` each is a Parquet file with a row for each
    connection, and the same call resumes where an earlier one ended. Each report is the same, byte for
    byte, as that of ``ackclock diagnose --json``.

    Raises :class:`FileNotFoundError` for a missing folder, :class:`ValueError` for an ``out``
    that holds anything else.
    """
    options = dict(storage_options or {})
    seconds("chunk_s", chunk_s)
    engine = engine_of(executor)
    names, sizes = listing(name_of(folder), pattern, options)
    place: Path | None = None
    missing = [(0, len(names))] if names else []
    if out is not None:
        about: dict[str, Any] = {"ackclock": _engine.VERSION, "files": list(zip(names, sizes))}
        if not cures:
            about["cures"] = False
        about_text = json.dumps(about, indent=2) + "\n"
        place = chunks.claim(Path(out), "captures.json", about_text, "diagnosis of a folder")
        missing = chunks.gaps(chunks.kept(place), len(names))
    cutter = chunks.Cutter(missing, chunk_s, sizes)
    arguments = (options, cures, None if place is None else str(place))

    def own(chunk: chunks.Chunk) -> tuple[list[str]]:
        return (names[slice(*chunk)],)

    with shown(progress, name_of(folder), "capture") as callback:
        parts = dict(chunks.done(judge, arguments, cutter, engine, callback, own))
    if place is not None:
        parts = {chunk: read(place, chunk) for chunk in chunks.kept(place)}
    return Diagnoses([one for chunk in sorted(parts) for one in parts[chunk]])


def listing(folder: str, pattern: str, options: dict[str, Any]) -> tuple[list[str], list[int]]:
    """Files below a folder in order of their names, with their sizes in bytes; no hidden ones."""
    found: list[tuple[str, str, int]] = []
    if "://" in folder:
        from fsspec.core import url_to_fs

        system, root = url_to_fs(folder, **options)
        for path, about in system.find(root, detail=True).items():
            below = path[len(root) :].lstrip("/")
            found.append((below, system.unstrip_protocol(path), int(about["size"] or 0)))
        if not found and not system.exists(root):
            raise FileNotFoundError(2, "there is nothing", folder)
    else:
        if not os.path.isdir(folder):
            os.listdir(folder)
        for where, folders, files in os.walk(folder):
            folders.sort()
            for name in files:
                path = os.path.join(where, name)
                found.append((os.path.relpath(path, folder), path, os.stat(path).st_size))
    wanted = sorted(
        (path, size)
        for below, path, size in found
        if fnmatch(below, pattern) and not any(part.startswith(".") for part in Path(below).parts)
    )
    return [path for path, _ in wanted], [size for _, size in wanted]


def judge(
    options: dict[str, Any], cures: bool, folder: str | None, names: list[str], first: int, end: int
) -> tuple[list[Judged], float | None]:
    """Diagnose the captures of a chunk in this process; returns their results and the seconds it took.

    With a folder the results are written there and none are returned; an existing chunk is not repeated.
    """
    if folder is not None and chunks.path_of(Path(folder), (first, end)).exists():
        return [], None
    began = time.perf_counter()
    judged = [one(name, options, cures) for name in names]
    took = time.perf_counter() - began
    if folder is None:
        return judged, took
    import pyarrow as pa

    connections = pa.table(table(judged))
    # The report itself, with the first of its connections.
    rest = iter(judged)
    files = connections.column("file").to_pylist()
    begins = [next(rest) if not row or files[row - 1] != file else None for row, file in enumerate(files)]
    for number, name in ((1, "report_json"), (2, "report_text")):
        texts = pa.array([None if begin is None else begin[number] for begin in begins], pa.string())
        connections = connections.append_column(name, texts)
    chunks.write(Path(folder), (first, end), connections)
    return [], took


def one(name: str, options: dict[str, Any], cures: bool = True) -> Judged:
    """Diagnose one capture."""
    try:
        if "://" not in name:
            return (name, *_engine.diagnose_files([(name, None)], None, cures)[:2], None)
        import fsspec

        with fsspec.open(name, "rb", **options) as file:
            return (name, *_engine.diagnose_files([(name, file)], None, cures)[:2], None)
    except (OSError, ValueError) as error:
        return name, None, None, str(error)


def read(folder: Path, chunk: chunks.Chunk) -> list[Judged]:
    """The results of the captures of a chunk."""
    import pyarrow.parquet as parquet

    columns = ["file", "report_json", "report_text", "error"]
    table = parquet.read_table(chunks.path_of(folder, chunk), columns=columns)
    rows = zip(*(table.column(name).to_pylist() for name in columns))
    return [row for row in rows if row[1] is not None or row[3] is not None]
