"""Executors: the same bytes as the command line, and nothing lost with a worker."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from conftest import copies, output

import ackclock
from ackclock.executors import Futures

AXES: dict[str, Any] = {"a.cc": ["newreno", "cubic"], "path.loss": "0%..2% step 1%"}
ARGUMENTS = ["-m", "a.cc=newreno,cubic", "-m", "path.loss=0%..2% step 1%", "--repeat", "40"]
FILES = ("runs.jsonl", "runs.csv", "runs.sums", "scenario.toml", "sweep.json")


@pytest.fixture
def expected(world: Path, tmp_path: Path, command: list[str]) -> Path:
    """The command line's output."""
    output(command, "sweep", world, *ARGUMENTS, "--out", tmp_path / "cli")
    return tmp_path / "cli"


def test_the_executor_of_a_dask_client(world: Path, tmp_path: Path, expected: Path, captures: Path) -> None:
    distributed = pytest.importorskip("distributed")
    options = {"threads_per_worker": 1, "dashboard_address": None, "processes": True}
    with (
        distributed.LocalCluster(n_workers=3, **options) as cluster,
        distributed.Client(cluster) as client,
        client.get_executor() as executor,
    ):
        # The number of workers of the cluster, not of this machine.
        assert Futures(executor).workers() == 3
        out = tmp_path / "out"
        found = ackclock.sweep(world, axes=AXES, repeat=40, executor=executor, out=out, chunk_s=0.05)
        assert [(out / name).read_bytes() for name in FILES] == [
            (expected / name).read_bytes() for name in FILES
        ]
        there = ackclock.sweep(world, axes=AXES, repeat=40, executor=executor, chunk_s=0.05)
        assert there.jsonl == found.jsonl
        there_too = ackclock.diagnose_folder(captures, executor=executor, chunk_s=0.01)
        here = ackclock.diagnose_folder(captures)
        assert {name: one.json for name, one in there_too.items()} == {
            name: one.json for name, one in here.items()
        }


#: The script of each MPI process, run by `python -m mpi4py.futures`.
MPI = """
import os, signal, sys
import ackclock
from ackclock.executors import Futures
from mpi4py.futures import MPIPoolExecutor

def main(world, out, captures, kill):
    axes = {"a.cc": ["newreno", "cubic"], "path.loss": "0%..2% step 1%"}
    with MPIPoolExecutor() as executor:
        worker = executor.submit(os.getpid).result()
        assert Futures(executor).workers() == 2

        def progress(done, total):
            if kill == "kill" and done >= total // 4:
                os.kill(worker, signal.SIGKILL)

        ackclock.sweep(
            world, axes=axes, repeat=40, executor=executor, out=out, chunk_s=0.02, progress=progress
        )
        there = ackclock.diagnose_folder(captures, executor=executor, chunk_s=0.01)
    here = ackclock.diagnose_folder(captures)
    assert [one.json for one in there.values()] == [one.json for one in here.values()]
    print(len(here), "captures")

if __name__ == "__main__":
    main(*sys.argv[1:])
"""


def mpi(script: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Runs a script on three MPI processes, one of them the master."""
    mpiexec = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if mpiexec is None:
        pytest.skip("mpiexec is not there")
    # Open MPI refuses to run as root without these.
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    call = [mpiexec, "-n", "3", sys.executable, "-m", "mpi4py.futures", script, *map(str, arguments)]
    return subprocess.run(
        call, env={**os.environ, **allowed}, capture_output=True, text=True, timeout=300, check=False
    )


def test_processes_of_mpi_one_of_them_killed(
    world: Path, tmp_path: Path, expected: Path, captures: Path
) -> None:
    pytest.importorskip("mpi4py", reason="mpi4py is not installed")
    script = tmp_path / "mpi.py"
    script.write_text(MPI)
    out = tmp_path / "out"
    killed = mpi(script, world, out, captures, "kill")
    assert killed.returncode != 0, killed.stderr
    assert not (out / "runs.jsonl").exists(), killed.stderr
    before = {path.name: path.stat().st_mtime_ns for path in (out / "chunks").glob("*.parquet")}
    assert before
    again = mpi(script, world, out, captures, "go on")
    assert again.returncode == 0 and again.stdout == "3 captures\n", again.stderr
    after = {path.name: path.stat().st_mtime_ns for path in (out / "chunks").glob("*.parquet")}
    assert before.items() < after.items()
    assert [(out / name).read_bytes() for name in FILES] == [
        (expected / name).read_bytes() for name in FILES
    ]


def end(signals: int) -> None:
    os.kill(os.getpid(), signals)


def test_a_killed_pool_loses_no_finished_capture(captures: Path, tmp_path: Path) -> None:
    copies(captures, 60)
    out = tmp_path / "out"
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:

        def stop(done: int, total: int) -> None:
            executor.submit(end, signal.SIGKILL)

        with pytest.raises(BrokenProcessPool):
            ackclock.diagnose_folder(captures, executor=executor, out=out, chunk_s=0.05, progress=stop)
    before = {path.name: path.stat().st_mtime_ns for path in (out / "chunks").glob("*.parquet")}
    assert before
    found = ackclock.diagnose_folder(captures, out=out)
    after = {path.name: path.stat().st_mtime_ns for path in (out / "chunks").glob("*.parquet")}
    assert before.items() < after.items()
    here = ackclock.diagnose_folder(captures)
    assert {name: one.json for name, one in found.items()} == {
        name: one.json for name, one in here.items()
    }
    assert found.failed == here.failed and len(here) == 63
