"""The overhead of Python: in a sweep in chunks, and as a controller compared with Rust.

    pip install . pyarrow
    python bindings/python/bench/overhead.py

Builds the command line and the Rust controller (crates/runner/examples/own_controller.rs) itself. Times are
CPU times of all processes; the compared programs run in turn, and the best of several
counts, since any disturbance makes it longer.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import ackclock

ROOT = Path(__file__).resolve().parents[3]
TRIES = 5

SMALL = """
seed = 7
duration = "60s"
host.a = { profile = "freebsd-14.3" }
host.b = { profile = "linux-6.18" }
path = [ { from = "a", to = "b", forward = [
  { link = { rate = "20Mbit/s", buffer = "64KiB" } }, { loss = "0.5%" }, { delay = "10ms" } ],
  return = [ { delay = "10ms" } ] } ]
flow = [ { name = "up", from = "a", to = "b", bulk = "20kB" } ]
"""

FAST = """
duration = "60s"
host.a = { profile = "linux-6.18", cc = "own", knobs = { "net.ipv4.tcp_wmem" = ["4KiB", "16KiB", "64MiB"] } }
host.b = { profile = "linux-6.18", knobs = { "net.ipv4.tcp_rmem" = ["4KiB", "128KiB", "64MiB"] } }
path = [ { from = "a", to = "b", forward = [
  { link = { rate = "1Gbit/s", buffer = "1bdp" } }, { delay = "20ms" } ], return = [ { delay = "20ms" } ] } ]
flow = [ { name = "up", from = "a", to = "b", bulk = "unlimited" } ]
"""


class Own(ackclock.Controller):
    """Doubles its window each round trip until a loss, then adds a segment per round trip; halves it at a loss."""

    calls = 0

    def on_report(self, report: ackclock.Report) -> float:
        Own.calls += 1
        if report.ssthresh_bytes is None:
            return 2 * report.cwnd_bytes
        return report.cwnd_bytes + report.mss_bytes

    def on_loss(self, loss: ackclock.Loss) -> dict[str, float]:
        half = max(loss.cwnd_bytes // 2, 2 * loss.mss_bytes)
        return {"cwnd_bytes": half, "ssthresh_bytes": half}


class Watching(ackclock.Controller):
    """Leaves everything to the system's Reno, but is called on every acknowledgment, or once per round trip."""

    reno_grows = True
    calls = 0

    def on_report(self, report: ackclock.Report) -> None:
        Watching.calls += 1


class WatchingAll(Watching):
    every = "ack"


def built(*what: str) -> Path:
    """A program of a release build."""
    subprocess.run(["cargo", "build", "--profile", "full", "--quiet", *what], cwd=ROOT, check=True)
    target = os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target"))
    return Path(target) / "full"


def children_s() -> float:
    """CPU time of finished child processes, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def sweeps(program: Path, runs: int) -> None:
    """A sweep by the command line on one thread, and in chunks by one worker of a pool."""
    keys = {"a.cc": ["newreno", "cubic"], "path.loss": "0%..2% step 0.5%"}
    arguments = ["-m", "a.cc=newreno,cubic", "-m", "path.loss=0%..2% step 0.5%", "--jobs", "1"]
    rust: list[float] = []
    python: list[float] = []
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(
        1, mp_context=get_context("spawn")
    ) as pool:
        world = Path(folder) / "small.toml"
        world.write_text(SMALL)
        pool.submit(warm).result()
        for number in range(TRIES):
            before = children_s()
            out = Path(folder) / f"rust-{number}"
            command = [program, "sweep", world, *arguments, "--repeat", str(runs // 10), "--out", out]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            rust.append(children_s() - before)
            before = time.process_time() + pool.submit(time.process_time).result()
            began = time.perf_counter()
            kept = Path(folder) / f"python-{number}"
            ackclock.sweep(world, axes=keys, repeat=runs // 10, executor=pool, out=kept, chunk_s=1.0)
            wall = time.perf_counter() - began
            python.append(time.process_time() + pool.submit(time.process_time).result() - before)
            assert (kept / "runs.jsonl").read_bytes() == (out / "runs.jsonl").read_bytes()
        chunks = list((kept / "chunks").iterdir())
        size = sum(chunk.stat().st_size for chunk in chunks)
        lines = (kept / "runs.jsonl").stat().st_size
    a, b = min(rust) / runs * 1e6, min(python) / runs * 1e6
    print(f"{runs} runs of 20 kB: {a:.1f} us a run by the command line, {b:.1f} us in chunks from Python")
    print(f"  Python adds {b - a:.1f} us a run; {runs / wall:.0f} runs/s on one worker")
    print(f"  {len(chunks)} chunks, {size / runs:.0f} B a run as Parquet, {lines / runs:.0f} B as JSON")


def warm() -> None:
    """Make a worker load its modules."""
    import pyarrow.parquet  # noqa: F401

    ackclock.sweep(SMALL, axes={"a.cc": ["cubic"]})


def controllers(example: Path) -> None:
    """The same controller in Rust and in Python, and hooks at every acknowledgment."""
    world = ackclock.scenario(FAST, controllers={"own": Own})
    rust: list[float] = []
    python: list[float] = []
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(FAST)
        file.flush()
        for _ in range(TRIES):
            reported = subprocess.run([example, file.name], check=True, capture_output=True, text=True)
            segments, retransmitted, spent = map(int, reported.stdout.split())
            rust.append(spent / 1e9)
            Own.calls = 0
            seconds, report = timed(world)
            python.append(seconds)
            assert report["segments_simulated"] == segments
            assert report["flows"][0]["retransmitted_segments"] == retransmitted
    a, b = min(rust), min(python)
    print(f"1 Gbit/s, 40 ms, 60 s, {segments} segments, {retransmitted} retransmitted, {Own.calls} reports:")
    print(f"  {a:.3f} s in Rust, {b:.3f} s in Python: {(b / a - 1) * 100:+.1f} %")
    kinds = [("none", {}), ("rtt", {"own": Watching}), ("ack", {"own": WatchingAll})]
    worlds = {
        name: ackclock.scenario(FAST, set={} if known else {"a.cc": "reno"}, controllers=known)
        for name, known in kinds
    }
    best = dict.fromkeys(worlds, float("inf"))
    calls = dict.fromkeys(worlds, 0)
    for _ in range(TRIES):
        for name, one in worlds.items():
            Watching.calls = WatchingAll.calls = 0
            best[name] = min(best[name], timed(one)[0])
            calls[name] = max(Watching.calls, WatchingAll.calls)
    print(f"  Linux' own reno {best['none']:.3f} s; with a hook once per round trip {best['rtt']:.3f} s")
    ack = (best["ack"] - best["rtt"]) / (calls["ack"] - calls["rtt"]) * 1e9
    print(f"  at each of {calls['ack']} acknowledgments {best['ack']:.3f} s: {ack:.0f} ns a call")


def timed(world: ackclock.Scenario) -> tuple[float, dict[str, object]]:
    """CPU time of a run in seconds, and its report."""
    import json

    began = time.process_time()
    ran = world.run(False, False)
    return time.process_time() - began, json.loads(ran.json)


if __name__ == "__main__":
    programs = built("--package", "ackclock", "--package", "ackclock-runner", "--bins", "--example", "own_controller")
    sweeps(programs / "ackclock", int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
    controllers(programs / "examples" / "own_controller")
