"""Suites and hunts: the bytes of the command line, here and on execution engines."""

from __future__ import annotations

import json
import pickle
import subprocess
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from test_clusters import dask, ray

import ackclock
from ackclock import _engine

CRITERIA = ["5.1.5", "7.6", "7.9"]
SUITE: dict[str, Any] = {"against": ["reno"], "criteria": CRITERIA, "phases": 2, "budget": 2}
#: A small space: flows of more than two make long runs.
WITHOUT = ["flows", "rate-change", "transfer", "rate"]
HUNT: dict[str, Any] = {"without": WITHOUT, "worlds": 60, "seed": 2}


def printed(command: list[str], *arguments: object) -> str:
    """The output of the program: status 1 if a criterion fails or a case was found, 3 if undecided."""
    done = subprocess.run([*command, *map(str, arguments)], capture_output=True, check=False)
    assert done.returncode in (0, 1, 3), done.stderr
    return done.stdout.decode()


@pytest.fixture(scope="module")
def expected_suite(command: list[str]) -> str:
    """The command line's report of the suite."""
    return printed(
        command,
        *("suite", "rfc9743", "--cc", "newreno", "--against", "reno"),
        *("--criterion", ",".join(CRITERIA), "--phases", 2, "--budget", 2, "--json"),
    )


@pytest.fixture(scope="module")
def expected_hunt(command: list[str]) -> str:
    """The command line's report of the hunt."""
    return printed(
        command,
        *("hunt", "--cc", "newreno", "--goal", "utilisation", "--without", ",".join(WITHOUT)),
        *("--worlds", 60, "--seed", 2, "--json"),
    )


@pytest.fixture(params=[dask, ray], ids=["dask", "ray"], scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[Any]:
    with request.param() as (executor, _):
        yield executor


def test_a_suite_is_that_of_the_command_line(expected_suite: str) -> None:
    counts: list[tuple[int, int]] = []
    report = ackclock.suite("rfc9743", "newreno", **SUITE, progress=lambda *at: counts.append(at))
    assert report.json == expected_suite
    assert counts[-1] == (20, 20)
    assert [one["section"] for one in report.criteria] == CRITERIA
    assert report.passes == all(one["verdict"] != "fail" for one in report.criteria)
    assert "5.1.5" in str(report) and "5.1.5" in report.page and "rfc9743" in repr(report)


def test_a_hunt_is_that_of_the_command_line(expected_hunt: str) -> None:
    counts: list[tuple[int, int]] = []
    report = ackclock.hunt(
        "newreno", "utilisation", **HUNT, progress=lambda *at: counts.append(at)
    )
    assert report.json == expected_hunt
    assert counts and counts[-1][1] == 60
    assert report.cases == json.loads(expected_hunt)["cases"]
    assert "worlds tried" in str(report) and "cases" in repr(report)


def test_an_executor_changes_nothing(expected_suite: str, expected_hunt: str) -> None:
    with ProcessPoolExecutor(2) as pool:
        assert ackclock.suite("rfc9743", "newreno", **SUITE, executor=pool).json == expected_suite
        hunt = ackclock.hunt("newreno", "utilisation", **HUNT, executor=pool)
        assert hunt.json == expected_hunt


def test_a_cluster_changes_nothing(cluster: Any, expected_suite: str, expected_hunt: str) -> None:
    report = ackclock.suite("rfc9743", "newreno", **SUITE, executor=cluster)
    assert report.json == expected_suite
    hunt = ackclock.hunt("newreno", "utilisation", **HUNT, executor=cluster)
    assert hunt.json == expected_hunt


def test_plans_can_be_pickled() -> None:
    suite = _engine.SuiteStudy(
        "slow-start", "cubic", ["reno"], ["1bdp"], None, None, "hosts", 0, []
    )
    runs = suite.runs_after([])
    assert pickle.loads(pickle.dumps(suite)).runs_after([]) == runs
    assert len(runs) == 50
    hunt = _engine.HuntStudy("bbr", "loss", None, [], 10, 1)
    again = pickle.loads(pickle.dumps(hunt))
    assert again.__getnewargs__() == hunt.__getnewargs__() == ("bbr", "loss", 2.0, [], 10, 1)


def test_errors_name_what_is_wrong() -> None:
    with pytest.raises(ValueError, match='unknown suite "rfc97"'):
        ackclock.suite("rfc97", "cubic")
    with pytest.raises(ValueError, match="cubik"):
        ackclock.suite("rfc9743", "cubik")
    with pytest.raises(ValueError, match=r'no criterion "5\.1\.9"; did you mean'):
        ackclock.suite("rfc9743", "cubic", criteria=["5.1.9"])
    with pytest.raises(ValueError, match="phases: expected 2 or more"):
        ackclock.suite("rfc9743", "cubic", phases=1)
    with pytest.raises(ValueError, match="noise \"much\": expected `hosts`"):
        ackclock.suite("rfc9743", "cubic", noise="much")
    with pytest.raises(ValueError, match="unknown goal"):
        ackclock.hunt("cubic", "latency")
    with pytest.raises(ValueError, match="without: the search space has no `flow`; did you mean"):
        ackclock.hunt("cubic", "loss", without=["flow"])
    with pytest.raises(ValueError, match="limit: expected a number above 0"):
        ackclock.hunt("cubic", "loss", limit=0.0)
    with pytest.raises(TypeError, match="criteria: expected a str"):
        ackclock.suite("rfc9743", "cubic", criteria=[5])  # type: ignore[list-item]


def test_a_class_of_the_user_is_a_sender(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    hook = "def on_report(self, report): return report.cwnd_bytes + report.mss_bytes"
    file.write_text(f"class Mine:\n    {hook}\nclass Bad:\n    {hook}\n    on_lost = on_report\n")
    report = ackclock.suite("rfc9743", f"{file}:Mine", criteria=["7.4"], phases=2, budget=2)
    assert report.report["sender"] == f"linux-6.18/{file}:Mine"
    with pytest.raises(ValueError, match="`on_lost`, which is no hook; did you mean `on_loss`"):
        ackclock.suite("rfc9743", f"{file}:Bad")


def test_an_exception_of_the_runner_ends_the_search() -> None:
    def runner(worlds: list[list[int]]) -> list[tuple[float, int]]:
        raise KeyboardInterrupt

    study = _engine.HuntStudy("cubic", "loss", None, [], 10, 1)
    with pytest.raises(KeyboardInterrupt):
        study.search(runner)
    with pytest.raises(ackclock.RunError, match="0 figures of"):
        study.search(lambda worlds: [])
