"""Ten thousand runs on a Dask and on a Ray cluster of this machine."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import WORLD, output

import ackclock

#: Small transfers: the clusters are what is tested.
SMALL = {"flow.up.bulk": "20kB"}
AXES: dict[str, Any] = {"a.cc": ["newreno", "cubic"], "path.loss": "0%..2% step 0.5%"}
RUNS = 10_000
REPEAT = RUNS // 10


def expected(world: Path, tmp_path: Path, command: list[str]) -> bytes:
    arguments = [part for key in AXES for part in ("-m", axis_text(key))]
    changes = [part for key, value in SMALL.items() for part in ("--set", f"{key}={value}")]
    out = tmp_path / "cli"
    output(command, "sweep", world, *arguments, *changes, "--repeat", REPEAT, "--out", out)
    return (out / "runs.jsonl").read_bytes()


def axis_text(key: str) -> str:
    values = AXES[key]
    return f"{key}={values if isinstance(values, str) else ','.join(values)}"


def processes() -> dict[int, bytes]:
    """The command line of every process."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                found[int(entry.name)] = (entry / "cmdline").read_bytes()
    return found


def test_a_dask_cluster_gives_the_bytes_of_the_command_line_though_a_worker_is_killed(
    world: Path, tmp_path: Path, command: list[str]
) -> None:
    distributed = pytest.importorskip("distributed")
    whole = expected(world, tmp_path, command)
    out = tmp_path / "dask"
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, processes=True
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        workers = client.run(os.getpid)
        killed = threading.Event()

        def kill(done: int, total: int) -> None:
            if not killed.is_set():
                killed.set()
                os.kill(next(iter(workers.values())), signal.SIGKILL)

        result = ackclock.sweep(
            world,
            axes=AXES,
            set=SMALL,
            repeat=REPEAT,
            executor=client,
            out=out,
            chunk_s=0.5,
            progress=kill,
        )
    assert killed.is_set() and len(result) == RUNS
    assert result.jsonl == whole


def test_a_ray_cluster_gives_the_bytes_of_the_command_line_though_a_worker_is_killed(
    world: Path, tmp_path: Path, command: list[str]
) -> None:
    ray = pytest.importorskip("ray")
    whole = expected(world, tmp_path, command)
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    try:
        killed = threading.Event()

        def kill(done: int, total: int) -> None:
            # Ray names its processes for what they do.
            at_work = [pid for pid, name in processes().items() if name.startswith(b"ray::work")]
            if at_work and not killed.is_set():
                killed.set()
                os.kill(at_work[0], signal.SIGKILL)

        result = ackclock.sweep(
            world,
            axes=AXES,
            set=SMALL,
            repeat=REPEAT,
            executor=ray,
            out=tmp_path / "ray",
            chunk_s=0.5,
            progress=kill,
        )
    finally:
        ray.shutdown()
    assert killed.is_set() and len(result) == RUNS
    assert result.jsonl == whole


def test_python_adds_little_to_a_run(world: Path) -> None:
    """Printed, not asserted: times are noisy."""
    study_s = []
    for _ in range(3):
        began = time.perf_counter()
        ackclock.sweep(world, axes=AXES, set=SMALL, repeat=100, jobs=1)
        study_s.append(time.perf_counter() - began)
    print(f"{min(study_s) / 1000 * 1e6:.0f} us a run with Python around it")


def test_ray_must_be_connected() -> None:
    ray = pytest.importorskip("ray")
    with pytest.raises(ValueError, match=r"ray.init\(\)"):
        ackclock.sweep(WORLD, axes=AXES, executor=ray)
