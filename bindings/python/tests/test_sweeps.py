"""Sweeps: the same bytes on threads, processes and the command line; resumed after a loss."""

from __future__ import annotations

import html
import os
import signal
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest
from conftest import WORLD, output

import ackclock

AXES: dict[str, Any] = {"a.cc": ["newreno", "cubic"], "path.loss": "0%..2% step 1%"}
ARGUMENTS = ["-m", "a.cc=newreno,cubic", "-m", "path.loss=0%..2% step 1%", "--repeat", "4"]


def pool() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(2, mp_context=get_context("spawn"))


def test_threads_processes_and_the_command_line_give_the_same_bytes(
    world: Path, tmp_path: Path, command: list[str]
) -> None:
    output(command, "sweep", world, *ARGUMENTS, "--out", tmp_path / "cli")
    here = ackclock.sweep(world, axes=AXES, repeat=4)
    with pool() as executor:
        there = ackclock.sweep(world, axes=AXES, repeat=4, executor=executor, chunk_s=0.01)
    kept = ackclock.sweep(world, axes=AXES, repeat=4, out=tmp_path / "kept")
    for result in (here, there, kept):
        assert result.jsonl == (tmp_path / "cli" / "runs.jsonl").read_bytes()
        assert result.csv == (tmp_path / "cli" / "runs.csv").read_text()
    for name in ("runs.jsonl", "runs.csv", "scenario.toml", "sweep.json"):
        assert (tmp_path / "kept" / name).read_bytes() == (tmp_path / "cli" / name).read_bytes(), name
    pivot = ["table", "--rows", "path.loss", "--cols", "a.cc", "--value", "goodput"]
    assert output(command, *pivot[:1], tmp_path / "kept", *pivot[1:])


def test_the_table_has_a_row_for_each_flow(world: Path) -> None:
    result = ackclock.sweep(world, axes=AXES, repeat=2, jobs=1)
    frame = ackclock.to_pandas(result.table)
    assert len(result) == len(frame) == 12
    means = frame.groupby(["path.loss", "a.cc"], observed=True)["goodput_bps"].mean()
    assert means["0%"].min() > means["2%"].max()
    assert result.rows()[3]["set"] == {"a.cc": "newreno", "path.loss": "1%"}


def test_notebooks_get_the_page_of_the_report(world: Path, tmp_path: Path, command: list[str]) -> None:
    page = tmp_path / "page.html"
    output(command, "sweep", world, *ARGUMENTS, "--out", tmp_path / "cli", "--report", page)
    result = ackclock.sweep(world, axes=AXES, repeat=4, out=tmp_path / "kept")
    assert result.page == page.read_text()
    assert html.escape(page.read_text().partition("</head>")[2]) in result._repr_html_()


def test_chunks_alone_are_a_result_too(world: Path, tmp_path: Path) -> None:
    whole = ackclock.sweep(world, axes=AXES, repeat=4)
    parts = ackclock.sweep(world, axes=AXES, repeat=4, out=tmp_path / "out", chunk_s=0.001, join=False)
    assert not (tmp_path / "out" / "runs.jsonl").exists()
    assert parts.jsonl == whole.jsonl and parts.csv == whole.csv
    joined = ackclock.sweep(world, axes=AXES, repeat=4, out=tmp_path / "out")
    assert (tmp_path / "out" / "runs.jsonl").read_bytes() == joined.jsonl == whole.jsonl


class Dying:
    """An executor whose worker dies in the middle of a chunk, three times."""

    _max_workers = 2

    def __init__(self) -> None:
        self.calls = 0

    def submit(self, call: Any, *args: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.calls += 1
        if self.calls % 3 == 0:
            future.set_exception(ConnectionResetErrorOfAWorker("the worker is gone"))
        else:
            future.set_result(call(*args))
        return future


class ConnectionResetErrorOfAWorker(Exception):
    """The exception of an engine for a lost worker."""


def test_a_chunk_of_a_lost_worker_is_repeated(world: Path) -> None:
    whole = ackclock.sweep(world, axes=AXES, repeat=4)
    dying = Dying()
    result = ackclock.sweep(world, axes=AXES, repeat=4, executor=dying, chunk_s=0.01)
    assert dying.calls > 3
    assert result.jsonl == whole.jsonl


def killer(pid: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_pool_loses_only_its_chunks_and_a_rerun_resumes(world: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    seen: list[int] = []
    with pool() as executor:

        def stop(done: int, total: int) -> None:
            seen.append(done)
            executor.submit(killer, 0)

        with pytest.raises(BrokenProcessPool):
            ackclock.sweep(
                world, axes=AXES, repeat=40, executor=executor, chunk_s=0.02, out=out, progress=stop
            )
    assert seen and not (out / "runs.jsonl").exists()
    before = {path.name: path.stat().st_mtime_ns for path in (out / "chunks").glob("*.parquet")}
    assert before and len(before) < 240
    result = ackclock.sweep(world, axes=AXES, repeat=40, out=out)
    after = {path.name: path.stat().st_mtime_ns for path in (out / "chunks").glob("*.parquet")}
    assert before.items() <= after.items()
    assert result.jsonl == ackclock.sweep(world, axes=AXES, repeat=40).jsonl


def test_chunks_are_tables_with_described_columns(world: Path, tmp_path: Path) -> None:
    ackclock.sweep(world, axes=AXES, out=tmp_path / "out")
    table = parquet.read_table(tmp_path / "out" / "chunks")
    assert table.num_rows == 6
    assert b"bit/s" in table.schema.field("goodput_bps").metadata[b"description"]
    assert not list((tmp_path / "out").rglob("*.part"))


def test_other_sweeps_and_other_files_are_not_touched(world: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ackclock.sweep(world, axes=AXES, out=out)
    with pytest.raises(ValueError, match="another sweep"):
        ackclock.sweep(world, axes={"a.cc": ["cubic"]}, out=out)
    with pytest.raises(ValueError, match="holds no sweep"):
        ackclock.sweep(world, axes=AXES, out=tmp_path)


def test_bad_arguments() -> None:
    with pytest.raises(ackclock.ScenarioError, match="a.ccc"):
        ackclock.sweep(WORLD, axes={"a.ccc": ["cubic"]})
    with pytest.raises(ackclock.ScenarioError, match="cubik"):
        ackclock.sweep(WORLD, axes={"a.cc": ["cubik"]})
    with pytest.raises(TypeError, match="a.cc: expected"):
        ackclock.sweep(WORLD, axes={"a.cc": [None]})
    with pytest.raises(TypeError, match="executor: expected"):
        ackclock.sweep(WORLD, axes=AXES, executor=5)
    with pytest.raises(ValueError, match="repeat"):
        ackclock.sweep(WORLD, axes=AXES, repeat=0)
    with pytest.raises(ValueError, match="jobs"):
        ackclock.sweep(WORLD, axes=AXES, jobs=0)


def test_progress_of_a_sweep_and_its_end_by_an_exception(world: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        ackclock.sweep(world, axes=AXES, repeat=10_000, progress=lambda done, total: 1 / 0)


def test_keys_that_change_together_are_a_tuple(world: Path, tmp_path: Path, command: list[str]) -> None:
    axis = "a.cc,path.loss=(newreno,0%),(cubic,1%)"
    output(command, "sweep", world, "-m", axis, "--out", tmp_path / "cli")
    pairs = [("newreno", "0%"), ("cubic", "1%")]
    for key in (("a.cc", "path.loss"), "a.cc, path.loss"):
        result = ackclock.sweep(world, axes={key: pairs})
        assert result.jsonl == (tmp_path / "cli" / "runs.jsonl").read_bytes()
    with pytest.raises(TypeError, match="expected a tuple with a value for each key, found 'newreno'"):
        ackclock.sweep(world, axes={("a.cc", "path.loss"): ["newreno"]})
    with pytest.raises(ValueError, match="2 keys, and 1 values"):
        ackclock.sweep(world, axes={("a.cc", "path.loss"): [("newreno",)]})
