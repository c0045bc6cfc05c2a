"""One run: the same as the command line's, tables, interruption."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest
from conftest import ROOT, TABLES, WORLD, output

import ackclock


def test_the_report_is_that_of_the_command_line(world: Path, command: list[str]) -> None:
    run = ackclock.run(world)
    assert run.json.encode() == output(command, "run", world, "--json")
    assert str(run) + "\n" == output(command, "run", world).decode()


def test_a_file_a_text_a_dictionary_and_tables_are_the_same_world(world: Path) -> None:
    reports = [
        ackclock.run(world).report,
        ackclock.run(str(world)).report,
        ackclock.run(WORLD).report,
        ackclock.run(TABLES).report,
        ackclock.run(**TABLES).report,
        ackclock.run(ackclock.scenario(WORLD)).report,
    ]
    # The text is another one, and with it its hash.
    flows = [json.dumps(report["flows"]) for report in reports]
    assert len(set(flows)) == 1


def test_flows_have_units_in_their_names(world: Path) -> None:
    run = ackclock.run(world)
    flow = run["up"]
    assert flow is run.flows[0]
    assert flow.bytes == 1_000_000 and flow.finished
    assert flow.goodput_bps == pytest.approx(8e6 / flow.duration_s)
    assert flow.max_cwnd_mss == flow.max_cwnd_bytes / 1448
    assert flow.min_rtt_s is not None and flow.min_rtt_s >= 0.020
    with pytest.raises(KeyError):
        run["down"]


def test_changes_are_those_of_set(world: Path) -> None:
    slow = ackclock.run(world, set={"host.a.cc": "newreno", "path.loss": "5%"})
    assert slow.flows[0].cc == "newreno"
    assert slow.flows[0].retransmitted_segments > ackclock.run(world).flows[0].retransmitted_segments
    assert ackclock.scenario(world, seed=9).seed == 9


def test_tables_reach_arrow_without_a_copy_and_pandas(world: Path) -> None:
    run = ackclock.run(world, events=True)
    series = pa.table(run.series)
    assert series.num_rows == len(run.series) > 100
    assert series.column_names == run.series.column_names
    assert series.schema.field("cwnd_bytes").metadata == {b"description": b"congestion window"}
    assert set(series.column("flow").to_pylist()) == {"up"}
    largest = max(series.column("cwnd_bytes").to_pylist())
    assert largest == run.flows[0].max_cwnd_bytes
    frame = ackclock.to_pandas(run.events)
    assert (frame["event"] == "sent").sum() > 600
    assert frame["time_s"].is_monotonic_increasing


def test_what_was_not_kept_is_told(world: Path) -> None:
    run = ackclock.run(world, series=False)
    with pytest.raises(ValueError, match="series=True"):
        run.series


def test_notebooks_get_the_table_and_a_picture(world: Path) -> None:
    shown = ackclock.run(world)._repr_html_()
    assert "goodput" in shown and "<svg" in shown


def test_matplotlib_draws_windows(world: Path) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    axes = ackclock.run(world).plot()
    assert len(axes.lines) == 2 and axes.get_xlabel() == "time [s]"


def test_progress_is_told_and_what_it_raises_ends_the_run() -> None:
    told: list[tuple[int, int]] = []
    long = {"duration": "1000s", "flow.up.bulk": "10GB", "path.link.rate": "10Gbit/s", "path.loss": "0%"}
    with pytest.raises(ZeroDivisionError):
        ackclock.run(WORLD, set=long, series=False, progress=lambda *pair: told.append(pair) or 1 / 0)
    assert told and told[0][1] == 1000 * 10**9


def test_ctrl_c_ends_a_run() -> None:
    code = (
        "import ackclock, sys; sys.path.insert(0, 'tests'); from conftest import WORLD\n"
        "print('begun', flush=True)\n"
        "ackclock.run(WORLD, series=False, set={'duration': '100000s', 'flow.up.bulk': '1000GB',"
        " 'path.link.rate': '10Gbit/s', 'path.loss': '0%'})"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=ROOT / "bindings" / "python",
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert child.stdout is not None and child.stdout.readline() == b"begun\n"
    time.sleep(0.3)
    os.kill(child.pid, signal.SIGINT)
    _, errors = child.communicate(timeout=30)
    assert b"KeyboardInterrupt" in errors


def test_a_run_does_not_hold_the_interpreter(world: Path) -> None:
    ticks = 0
    over = threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not over.is_set():
            ticks += 1
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    ackclock.run(world, set={"flow.up.bulk": "50MB", "path.loss": "0%"}, series=False)
    over.set()
    thread.join()
    assert ticks > 10
