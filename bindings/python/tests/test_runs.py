"""One run: the same as the command line's, tables, interruption."""

from __future__ import annotations

import html
import json
import lzma
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
    # The text differs, and so does its hash.
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


def test_tables_reach_arrow_without_a_copy(world: Path) -> None:
    run = ackclock.run(world, events=True)
    series = pa.table(run.series)
    assert series.num_rows == len(run.series) > 100
    assert series.column_names == run.series.column_names
    assert series.schema.field("cwnd_bytes").metadata == {b"description": b"congestion window"}
    assert pa.schema(run.series) == series.schema
    assert set(series.column("flow").to_pylist()) == {"up"}
    largest = max(series.column("cwnd_bytes").to_pylist())
    # FreeBSD raises the window for one output, for limited transmit; the total is between ACKs.
    assert largest >= run.flows[0].max_cwnd_bytes
    # Exported twice, it is at the same address.
    places = [pa.table(run.series)["cwnd_bytes"].chunk(0).buffers()[1].address for _ in range(2)]
    assert places[0] == places[1]


def test_pandas_polars_and_duckdb_take_the_same_table(world: Path) -> None:
    run = ackclock.run(world, events=True)
    frame = ackclock.to_pandas(run.events)
    sent = (frame["event"] == "sent").sum()
    assert sent > 600 and frame["time_s"].is_monotonic_increasing
    polars = pytest.importorskip("polars")
    for taken in (ackclock.to_polars(run.events), polars.DataFrame(run.events)):
        assert taken.filter(polars.col("event").cast(polars.String) == "sent").height == sent
    duckdb = pytest.importorskip("duckdb")
    events = run.events
    found = duckdb.sql("select count(*) from events where event = 'sent'").fetchall()
    assert found == [(sent,)] and len(events) == len(frame)


def test_data_that_was_not_recorded_is_an_error(world: Path) -> None:
    run = ackclock.run(world, series=False)
    with pytest.raises(ValueError, match="series=True"):
        run.series


def test_notebooks_get_the_table_and_the_plots_of_the_report(
    world: Path, tmp_path: Path, command: list[str]
) -> None:
    run = ackclock.run(world)
    page = tmp_path / "page.html"
    output(command, "run", world, "--report", page)
    assert run.page == page.read_text()
    shown = run._repr_html_()
    # The plots with their data; the table is above them.
    assert ">two hosts" in shown and html.escape(run.page.partition("</head>")[2]) in shown
    fast = ackclock.run(world, series=False)
    assert "<iframe" not in fast._repr_html_() and str(fast) == str(run)


def test_a_page_of_a_long_run_stays_small() -> None:
    long = {"flow.up.bulk": "200MB", "path.loss": "0.1%", "path.link.rate": "1Gbit/s"}
    assert len(ackclock.run(WORLD, set=long).page) < 2_000_000


TWO_FLOWS = WORLD.replace("flow = [", 'flow = [ { name = "two", from = "a", to = "b", bulk = "1MB" },')


def test_fairness_is_reported_as_by_the_command_line(tmp_path: Path, command: list[str]) -> None:
    world = tmp_path / "two.toml"
    world.write_text(TWO_FLOWS)
    for run in (ackclock.run(world), ackclock.run(world, series=False)):
        assert run.json.encode() == output(command, "run", world, "--json")
        assert str(run) + "\n" == output(command, "run", world).decode()
        assert run.report["fairness"] and run.report["links"]


def test_matplotlib_draws_windows(world: Path) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    axes = ackclock.run(world).plot()
    assert len(axes.lines) == 2 and axes.get_xlabel() == "time [s]"


def test_progress_is_reported_and_its_exceptions_end_the_run() -> None:
    reported: list[tuple[int, int]] = []
    long = {"duration": "1000s", "flow.up.bulk": "10GB", "path.link.rate": "10Gbit/s", "path.loss": "0%"}
    with pytest.raises(ZeroDivisionError):
        ackclock.run(WORLD, set=long, series=False, progress=lambda *pair: reported.append(pair) or 1 / 0)
    assert reported and reported[0][1] == 1000 * 10**9


ENDLESS = """{'duration': '100000s', 'flow.up.bulk': '1000GB', 'path.link.rate': '10Gbit/s',
    'path.loss': '0%'}"""


CAPTURE = str(ROOT / "golden/linux/h1_rwnd_cubic/sender.pcap.xz")
ENDLESS_FIT = "{'duration': '100000s', 'flow.0.bulk': '1000GB'}"


class Endless:
    """A capture that repeats its packets endlessly."""

    def __init__(self) -> None:
        self.bytes = lzma.open(ROOT / "golden/linux/h1_rwnd_cubic/sender.pcap.xz").read()
        self.at = 0

    def read(self, size: int) -> bytes:
        if self.at >= len(self.bytes):
            self.at = 24
        self.at += size
        return self.bytes[self.at - size : self.at]


@pytest.mark.parametrize(
    "call",
    [
        f"ackclock.run(WORLD, series=False, set={ENDLESS})",
        f"ackclock.run(WORLD, set={ENDLESS})",
        f"ackclock.sweep(WORLD, axes={{'a.cc': ['newreno', 'cubic']}}, set={ENDLESS})",
        f"ackclock.sweep(WORLD, axes={{'a.cc': ['slow']}}, controllers={{'slow': Slow}}, set={ENDLESS})",
        "ackclock._engine.diagnose_files([('endless.pcap', Endless())])",
        f"ackclock.diagnose_folder({str(ROOT / 'golden')!r}, pattern='*.pcap.xz')",
        # Many runs, and a single one.
        f"ackclock.whatif({CAPTURE!r}, compare=['freebsd-14.3'] * 100_000)",
        f"ackclock.whatif({CAPTURE!r}, set={ENDLESS_FIT})",
        "ackclock.reproduce('reordering')",
        "ackclock.reproduce('mathis')",
        "ackclock.reproduce('cubic-hz')",
        # A hundred gigabits per second for four seconds before the measurement, and a sender
        # without a buffer limit.
        "ackclock.theory('mathis', rtt='20ms', loss='0.000001%', run='quic-rfc9002')",
    ],
)
def test_ctrl_c_ends_a_long_call(call: str) -> None:
    code = (
        "import ackclock, sys; sys.path.insert(0, 'tests'); from conftest import WORLD\n"
        "from test_runs import Endless\n"
        "class Slow(ackclock.Controller): pass\n"
        "print('begun', flush=True)\n"
        f"try: {call}\n"
        "except KeyboardInterrupt: print('ended', flush=True)\n"
        "else: print('too short', flush=True)\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=ROOT / "bindings" / "python",
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert child.stdout is not None and child.stdout.readline() == b"begun\n"
    time.sleep(0.3)
    assert child.poll() is None, child.communicate()[1].decode()
    os.kill(child.pid, signal.SIGINT)
    asked = time.monotonic()
    mercy = threading.Timer(30, child.kill)
    mercy.start()
    reported = child.stdout.readline()
    mercy.cancel()
    took = time.monotonic() - asked
    _, errors = child.communicate(timeout=30)
    assert reported == b"ended\n", (reported, errors.decode())
    # Some tenths of a second; the rest is for a loaded machine.
    assert took < 3, took


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


def test_progress_by_tqdm(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tqdm = pytest.importorskip("tqdm")
    for bars in (tqdm.tqdm, True):
        ackclock.sweep(world, axes={"a.cc": ["newreno", "cubic"]}, jobs=1, progress=bars)
    bar = tqdm.tqdm(leave=False)
    ackclock.sweep(world, axes={"a.cc": ["newreno", "cubic"]}, jobs=1, progress=bar)
    assert (bar.n, bar.total) == (2, 2)
    bar.close()
    ackclock.run(world, progress=tqdm.tqdm)
    shown = capsys.readouterr().err
    assert "2/2" in shown and str(world) in shown
    reported: list[tuple[int, int]] = []
    capture = ROOT / "golden/linux/h1_rwnd_cubic/sender.pcap.xz"
    ackclock.diagnose(capture, progress=lambda done, total: reported.append((done, total)))
    assert reported[-1] == (capture.stat().st_size, capture.stat().st_size)
    with pytest.raises(TypeError, match="progress: expected a bool, a bar or a function"):
        ackclock.run(world, progress=3)  # type: ignore[arg-type]
