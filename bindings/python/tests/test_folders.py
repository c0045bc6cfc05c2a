"""Folders of captures: each report equals the command line's; chunks survive, reruns resume."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest
from conftest import output

import ackclock


def test_each_report_is_that_of_the_command_line(captures: Path, command: list[str]) -> None:
    found = ackclock.diagnose_folder(captures)
    assert len(found) == 3
    for name, diagnosis in found.items():
        assert diagnosis.json.encode() == output(command, "diagnose", name, "--json")
        assert str(diagnosis) + "\n" == output(command, "diagnose", name).decode()
    (failed,) = found.failed.items()
    assert failed[0].endswith("notes.txt") and "expected a capture" in failed[1]
    assert "CC401" in str(found) and "CC401" in found._repr_html_()


def test_all_connections_are_one_table(captures: Path) -> None:
    found = ackclock.diagnose_folder(captures)
    frame = ackclock.to_pandas(found.table)
    # One of the captures has two connections; the file that is not a capture also has a row.
    assert len(frame) == 5 and frame["error"].notna().sum() == 1
    window = frame[frame["primary"] == "CC401"].iloc[0]
    # What the transfer takes less without it, if it is simulated.
    assert window["cost_s"] == pytest.approx(2.53, abs=0.005)
    assert window["bytes"] == 4_000_000
    spent = [name for name in frame.columns if name.endswith("_s") and name not in NO_BUDGET]
    assert window[spent].sum() == pytest.approx(window["duration_s"], rel=1e-6)
    assert ("cost_s", "cost of the costliest finding, in seconds") in found.table.descriptions


NO_BUDGET = {"duration_s", "base_rtt_s", "cost_s"}


@pytest.mark.parametrize("make", ["threads", "processes"])
def test_executors_and_chunks_change_nothing(captures: Path, tmp_path: Path, make: str) -> None:
    here = ackclock.diagnose_folder(captures)
    pools = {
        "threads": lambda: ThreadPoolExecutor(2),
        "processes": lambda: ProcessPoolExecutor(2, mp_context=get_context("spawn")),
    }
    with pools[make]() as executor:
        for out in (None, tmp_path / "out"):
            there = ackclock.diagnose_folder(captures, executor=executor, out=out, chunk_s=0.001)
            assert reports(there) == reports(here) and there.failed == here.failed
    table = parquet.read_table(tmp_path / "out" / "chunks")
    assert table.num_rows == 5 and "report_json" in table.column_names


def reports(found: ackclock.Diagnoses) -> dict[str, tuple[str, str]]:
    return {name: (one.json, str(one)) for name, one in found.items()}


def test_a_rerun_resumes_where_the_last_one_ended(captures: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ackclock.diagnose_folder(captures, out=out, chunk_s=1e-6, progress=stop)
    before = {path.name: path.stat().st_mtime_ns for path in (out / "chunks").iterdir()}
    assert before
    reported: list[int] = []
    found = ackclock.diagnose_folder(
        captures, out=out, progress=lambda done, total: reported.append(total)
    )
    after = {path.name: path.stat().st_mtime_ns for path in (out / "chunks").iterdir()}
    assert before.items() <= after.items()
    assert reports(found) == reports(ackclock.diagnose_folder(captures))
    (captures / "another.pcap").write_bytes(b"")
    with pytest.raises(ValueError, match="another diagnosis of a folder"):
        ackclock.diagnose_folder(captures, out=out)


def test_an_object_store_by_fsspec(captures: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    store = fsspec.filesystem("memory")
    for path in captures.rglob("*"):
        if path.is_file():
            store.pipe(f"/bucket/{path.relative_to(captures)}", path.read_bytes())
    try:
        here = ackclock.diagnose_folder(captures)
        with ThreadPoolExecutor(2) as executor:
            there = ackclock.diagnose_folder("memory://bucket", executor=executor, chunk_s=0.001)
        assert len(there) == 3 and len(there.failed) == 1
        for name, diagnosis in there.items():
            below = name.removeprefix("memory:///bucket/").removeprefix("memory://bucket/")
            assert diagnosis.connections == here[str(captures / below)].connections
            assert diagnosis.report["file"] == name
        some = ackclock.diagnose_folder("memory://bucket", pattern="deep/*")
        assert len(some) == 1
        with pytest.raises(FileNotFoundError):
            ackclock.diagnose_folder("memory://nowhere")
    finally:
        store.rm("/bucket", recursive=True)


def test_processes_read_urls_too(captures: Path) -> None:
    pytest.importorskip("fsspec")
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
        there = ackclock.diagnose_folder(f"file://{captures}", executor=executor)
    here = ackclock.diagnose_folder(captures)
    assert [one.connections for one in there.values()] == [one.connections for one in here.values()]


class Broken:
    """A file that fails or returns invalid data."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def read(self, size: int) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("answer", "reported"),
    [
        (ConnectionResetError("gone"), "x.pcap.*gone"),
        ("a text", "x.pcap.*must return bytes, found str"),
        (b"x" * (2 << 20), "x.pcap.*more bytes than requested"),
    ],
)
def test_a_failing_store_is_reported_with_the_name(answer: Any, reported: str) -> None:
    with pytest.raises(OSError, match=reported):
        ackclock._engine.diagnose_files([("x.pcap", Broken(answer))])


def test_bad_arguments(captures: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        ackclock.diagnose_folder(tmp_path / "nowhere")
    with pytest.raises(NotADirectoryError):
        ackclock.diagnose_folder(captures / "notes.txt")
    with pytest.raises(TypeError, match="path: expected a str or a path, found int"):
        ackclock.diagnose_folder(5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="chunk_s"):
        ackclock.diagnose_folder(captures, chunk_s=0)
    with pytest.raises(TypeError, match="executor"):
        ackclock.diagnose_folder(captures, executor="dask")
    empty = tmp_path / "empty"
    empty.mkdir()
    assert len(ackclock.diagnose_folder(empty)) == 0


def test_files_deleted_meanwhile_are_reported(captures: Path) -> None:
    from ackclock.folders import one

    _, report, _, why = one(str(captures / "later.pcap.xz"), {})
    assert report is None and why is not None and "later.pcap.xz" in why
