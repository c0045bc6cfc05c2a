"""Ten thousand runs on a Dask and on a Ray cluster of this machine; a worker is killed in the middle."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import WORLD, copies, output

import ackclock

#: Small transfers: only the clusters are tested.
SMALL = {"flow.up.bulk": "20kB"}
AXES: dict[str, Any] = {"a.cc": ["newreno", "cubic"], "path.loss": "0%..2% step 0.5%"}
RUNS = 10_000
REPEAT = RUNS // 10
#: Short chunks, so that there is a middle.
CHUNK_S = 0.5


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory, command: list[str]) -> Path:
    """The command line's output for the same sweep."""
    folder = tmp_path_factory.mktemp("cli")
    world = folder / "world.toml"
    world.write_text(WORLD)
    arguments = [part for key in AXES for part in ("-m", axis_text(key))]
    changes = [part for key, value in SMALL.items() for part in ("--set", f"{key}={value}")]
    out = folder / "out"
    output(command, "sweep", world, *arguments, *changes, "--repeat", REPEAT, "--out", out)
    return out


def axis_text(key: str) -> str:
    values = AXES[key]
    return f"{key}={values if isinstance(values, str) else ','.join(values)}"


@contextlib.contextmanager
def dask() -> Iterator[tuple[Any, Callable[[], int | None]]]:
    """A Dask cluster, and the process of a busy worker."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, processes=True
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        def at_work() -> int | None:
            # Asked each time: a test before may have killed a worker, which another replaced.
            processes = client.run(os.getpid, on_error="ignore")
            busy = (worker for worker, tasks in client.processing().items() if tasks)
            return next((processes[worker] for worker in busy if worker in processes), None)

        yield client, at_work


@contextlib.contextmanager
def ray() -> Iterator[tuple[Any, Callable[[], int | None]]]:
    """The same for Ray, which names its processes after their tasks."""
    ray = pytest.importorskip("ray")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        # By default its workers have low priority.
        patch.setenv("RAY_worker_niceness", "0")
        # The path where workers find the controller of this file, like an installed one.
        patch.setenv("PYTHONPATH", str(Path(__file__).parent))
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)

    def at_work() -> int | None:
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and (entry / "cmdline").read_bytes().startswith(
                    (b"ray::work", b"ray::judge")
                ):
                    return int(entry.name)
        return None

    try:
        yield ray, at_work
    finally:
        ray.shutdown()


@pytest.fixture(params=[dask, ray], ids=["dask", "ray"], scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[tuple[Any, Callable[[], int | None]]]:
    with request.param() as both:
        yield both


def files(folder: Path) -> dict[str, tuple[int, int]]:
    """The chunks with attributes that change if one is rewritten."""
    found = ((path.name, path.stat()) for path in folder.glob("*.parquet"))
    return {name: (stat.st_ino, stat.st_mtime_ns) for name, stat in found}


class Killer:
    """As ``progress``: kills a worker once, when a twentieth is done and chunks are written."""

    def __init__(self, chunks: Path, at_work: Any) -> None:
        self.chunks = chunks
        self.at_work = at_work
        self.before: dict[str, tuple[int, int]] = {}

    def __call__(self, done: int, total: int) -> None:
        finished = files(self.chunks)
        pid = self.at_work() if done >= total // 20 and finished and not self.before else None
        if pid is not None:
            self.before.update(finished)
            os.kill(pid, signal.SIGKILL)

    def check(self) -> None:
        """It killed a worker in the middle, and nothing finished was repeated."""
        after = files(self.chunks)
        assert self.before and len(self.before) < len(after), "a worker was killed in the middle"
        assert self.before.items() <= after.items(), "finished chunks were executed once"


def test_a_killed_worker_loses_only_its_chunk_and_the_table_is_the_commands(
    cluster: Any, expected: Path, world: Path, tmp_path: Path
) -> None:
    executor, at_work = cluster
    out = tmp_path / "out"
    kill = Killer(out / "chunks", at_work)
    result = ackclock.sweep(
        world,
        axes=AXES,
        set=SMALL,
        repeat=REPEAT,
        executor=executor,
        out=out,
        chunk_s=CHUNK_S,
        progress=kill,
    )
    kill.check()
    assert len(result) == RUNS
    for name in ("runs.jsonl", "runs.csv", "sweep.json", "scenario.toml"):
        assert (out / name).read_bytes() == (expected / name).read_bytes(), name


def test_rows_are_also_returned_without_a_folder(cluster: Any, world: Path) -> None:
    executor, _ = cluster
    there = ackclock.sweep(world, axes=AXES, set=SMALL, repeat=5, executor=executor)
    assert there.jsonl == ackclock.sweep(world, axes=AXES, set=SMALL, repeat=5).jsonl


class Failing(ackclock.Controller):
    """Raises in the middle of a run."""

    def on_report(self, report: ackclock.Report) -> float:
        return 1 / (report.losses - report.losses)


def test_exceptions_of_a_remote_controller_are_raised_here(cluster: Any, world: Path) -> None:
    executor, _ = cluster
    with pytest.raises(ackclock.RunError, match=r"run 0: .*on_report \(.*line \d+\): ZeroDivisionError"):
        ackclock.sweep(world, axes={"a.cc": ["f"]}, controllers={"f": Failing}, executor=executor)


def test_errors_of_a_remote_run_are_raised_here_with_their_position(cluster: Any, world: Path) -> None:
    executor, _ = cluster
    axes = {"path.link.buffer": ["64KiB", "64"]}
    with pytest.raises(ackclock.ScenarioError) as here:
        ackclock.sweep(world, axes=axes)
    with pytest.raises(ackclock.ScenarioError) as there:
        ackclock.sweep(world, axes=axes, executor=executor)
    assert str(there.value) == str(here.value) and there.value.errors == here.value.errors


def test_a_folder_of_captures_is_diagnosed_there_too(cluster: Any, captures: Path) -> None:
    executor, _ = cluster
    here = ackclock.diagnose_folder(captures)
    there = ackclock.diagnose_folder(captures, executor=executor, chunk_s=0.01)
    assert {name: one.json for name, one in there.items()} == {
        name: one.json for name, one in here.items()
    }
    assert there.failed == here.failed


def test_a_killed_worker_loses_no_capture(cluster: Any, captures: Path, tmp_path: Path) -> None:
    executor, at_work = cluster
    # Enough captures to observe a busy worker, even on a fast machine.
    copies(captures, 800)
    out = tmp_path / "out"
    kill = Killer(out / "chunks", at_work)
    # Chunks so short that there is a middle.
    there = ackclock.diagnose_folder(
        captures, executor=executor, out=out, chunk_s=0.01, progress=kill
    )
    kill.check()
    here = ackclock.diagnose_folder(captures)
    assert {name: one.json for name, one in there.items()} == {
        name: one.json for name, one in here.items()
    }
    assert there.failed == here.failed and len(here) == 803


def test_ray_must_be_connected() -> None:
    ray = pytest.importorskip("ray")
    if ray.is_initialized():
        ray.shutdown()
    with pytest.raises(ValueError, match=r"ray.init\(\)"):
        ackclock.sweep(WORLD, axes=AXES, executor=ray)
