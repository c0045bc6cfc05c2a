"""Congestion controllers in Python."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import pytest
from conftest import WORLD

import ackclock

CLEAN = {"path.loss": "0%", "path.link.buffer": "1MB", "flow.up.bulk": "5MB"}


class Aimd(ackclock.Controller):
    """One more segment per round trip, half at a loss."""

    def on_report(self, report: ackclock.Report) -> float:
        return report.cwnd_bytes + report.mss_bytes

    def on_loss(self, loss: ackclock.Loss) -> float:
        return max(loss.cwnd_bytes / 2, 2 * loss.mss_bytes)


class Fixed(ackclock.Controller):
    """Always ten segments."""

    def on_start(self, report: ackclock.Report) -> float:
        return 10 * report.mss_bytes

    def on_loss(self, loss: ackclock.Loss) -> float:
        return loss.cwnd_bytes


def test_a_fixed_window_gives_what_it_must() -> None:
    run = ackclock.run(WORLD, set={**CLEAN, "a.cc": "fixed"}, controllers={"fixed": Fixed})
    flow = run["up"]
    assert flow.cc == "fixed" and flow.finished
    assert flow.max_cwnd_bytes == 14_480
    # Ten segments per round trip of 20 ms plus the serialization time.
    assert flow.goodput_bps == pytest.approx(14_480 * 8 / 0.0206, rel=0.05)


def test_additive_increase_is_a_segment_each_round_trip() -> None:
    run = ackclock.run(WORLD, set={**CLEAN, "a.cc": "aimd"}, controllers={"aimd": Aimd})
    series = ackclock.to_pandas(run.series)
    windows = series["cwnd_bytes"].drop_duplicates().tolist()
    steps = {after - before for before, after in zip(windows, windows[1:])}
    assert steps == {1448}


@pytest.mark.parametrize("profile", ["freebsd-14.3", "freebsd-rack-main", "linux-6.18", "quic-rfc9002"])
def test_losses_are_reported_on_every_stack(profile: str) -> None:
    reported: list[str] = []

    class Watching(Aimd):
        def on_loss(self, loss: ackclock.Loss) -> float:
            reported.append(loss.kind)
            return super().on_loss(loss)

    changes = {"a.profile": profile, "b.profile": profile, "a.cc": "w", "path.loss": "1%"}
    run = ackclock.run(WORLD, set=changes, controllers={"w": Watching})
    assert run["up"].finished and "loss" in reported
    again = ackclock.run(WORLD, set=changes, controllers={"w": Watching})
    assert run.report["flows"] == again.report["flows"]


def test_each_connection_has_its_own() -> None:
    made: list[Any] = []

    class Counting(Aimd):
        def __init__(self) -> None:
            made.append(self)

    ackclock.run(WORLD, set={"a.cc": "c"}, controllers={"c": Counting})
    ackclock.run(WORLD, set={"a.cc": "c"}, controllers={"c": Counting})
    assert len({id(one) for one in made}) >= 2


def test_reports_at_every_acknowledgment_and_by_the_clock() -> None:
    class Acks(Aimd):
        every = "ack"
        calls = 0

        def on_report(self, report: ackclock.Report) -> None:  # type: ignore[override]
            Acks.calls += 1

    class Clocked(Acks):
        every = "100ms"
        times: list[float] = []

        def on_report(self, report: ackclock.Report) -> None:  # type: ignore[override]
            self.times.append(report.now_s)

    ackclock.run(WORLD, set={**CLEAN, "a.cc": "acks"}, controllers={"acks": Acks})
    assert Acks.calls > 500
    ackclock.run(WORLD, set={**CLEAN, "a.cc": "clocked"}, controllers={"clocked": Clocked})
    gaps = [after - before for before, after in zip(Clocked.times, Clocked.times[1:])]
    assert gaps and min(gaps) >= 0.1


def test_reno_may_grow_it() -> None:
    class Reno(ackclock.Controller):
        reno_grows = True

    own = ackclock.run(WORLD, set={"a.cc": "newreno"}).flows[0]
    ours = ackclock.run(WORLD, set={"a.cc": "reno2"}, controllers={"reno2": Reno}).flows[0]
    assert ours.duration_s == own.duration_s and ours.max_cwnd_bytes == own.max_cwnd_bytes


class Broken(Aimd):
    value: Any = None

    def on_report(self, report: ackclock.Report) -> Any:
        if self.value is ZeroDivisionError:
            return 1 / 0
        return self.value


@pytest.mark.parametrize(
    ("value", "reported"),
    [
        (ZeroDivisionError, r'"broken", on_report \(.*test_controllers.py, line \d+\): ZeroDivisionError'),
        ("fast", "returned: expected a number, found 'fast'"),
        (-1, "returned: expected 1448"),
        (float("nan"), "returned: expected 1448"),
        (float("inf"), "returned: expected 1448"),
        ({"cwnd": 5}, 'returned "cwnd", expected "cwnd_bytes"'),
        ({"pacing_bps": 0}, "pacing_bps: expected a rate"),
        ({5: 1}, "TypeError"),
    ],
)
def test_exceptions_and_invalid_values_are_reported_with_their_position(value: Any, reported: str) -> None:
    one = type("One", (Broken,), {"value": value})
    with pytest.raises(ackclock.RunError, match=reported):
        ackclock.run(WORLD, set={"a.cc": "broken"}, controllers={"broken": one})
    with pytest.raises(ackclock.RunError, match=reported):
        ackclock.sweep(WORLD, axes={"a.cc": ["broken"]}, controllers={"broken": one})


def test_invalid_controllers() -> None:
    class Nothing:
        pass

    class Never(Aimd):
        every = "sometimes"

    class Misspelt(ackclock.Controller):
        def on_lost(self, loss: ackclock.Loss) -> float:
            return loss.cwnd_bytes

    with pytest.raises(TypeError, match="on_report"):
        ackclock.run(WORLD, controllers={"nothing": Nothing})
    with pytest.raises(TypeError, match="did you mean `on_loss`"):
        ackclock.run(WORLD, controllers={"misspelt": Misspelt})
    with pytest.raises(TypeError, match="expected a class"):
        ackclock.run(WORLD, controllers={"five": 5})  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="built-in controller"):
        ackclock.run(WORLD, controllers={"cubic": Aimd})
    with pytest.raises(ValueError, match="expected \"rtt\", \"ack\" or a duration"):
        ackclock.run(WORLD, controllers={"never": Never})
    with pytest.raises(ackclock.ScenarioError, match="aimd"):
        ackclock.run(WORLD, set={"a.cc": "aimdd"}, controllers={"aimd": Aimd})


def test_a_sweep_passes_them_to_its_workers() -> None:
    ackclock.register("test-aimd", Aimd)
    axes = {"a.cc": ["newreno", "test-aimd"]}
    here = ackclock.sweep(WORLD, axes=axes, repeat=3)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
        there = ackclock.sweep(WORLD, axes=axes, repeat=3, executor=executor)
    assert here.jsonl == there.jsonl
