"""Captures: the same results as on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import ROOT, output

import ackclock

SMALL_WINDOW = ROOT / "golden/linux/h1_rwnd_cubic/sender.pcap.xz"


def test_a_small_window_is_found_and_a_larger_one_is_simulated(command: list[str]) -> None:
    diagnosis = ackclock.diagnose(SMALL_WINDOW)
    assert diagnosis.primary == "CC401"
    assert diagnosis.report == json.loads(output(command, "diagnose", SMALL_WINDOW, "--json"))
    assert "CC401" in str(diagnosis) and "CC401" in diagnosis._repr_html_()
    assert "; cure at the receiver (net.ipv4.tcp_rmem): 3.27 s to " in str(diagnosis).splitlines()[0]
    (cure,) = diagnosis.connections[0]["cures"]
    assert cure["recorded_s"] > 4 * cure["duration_s"]
    bare = ackclock.diagnose(SMALL_WINDOW, cures=False)
    assert bare.report == json.loads(output(command, "diagnose", SMALL_WINDOW, "--json", "--no-cures"))
    larger = {"receiver.knobs.net.ipv4.tcp_rmem": '["4KiB","128KiB","6MiB"]'}
    answer = ackclock.whatif(SMALL_WINDOW, set=larger, compare=["freebsd-14.3"])
    assert answer.licensed and answer.senders[0]["misfit"] < 0.05
    other, wide = answer.alternatives
    assert wide["time_ratio"] < 0.5 < other["time_ratio"]


def test_a_fit_is_a_scenario_like_any_other() -> None:
    fitted = ackclock.scenario_from(SMALL_WINDOW)
    assert "# Fitted to a capture" in fitted.text
    assert ackclock.run(fitted).flows[0].goodput_bps == pytest.approx(9.8e6, rel=0.05)


def test_files_that_are_not_captures(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        ackclock.diagnose("nowhere.pcap")
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(ValueError, match="empty"):
        ackclock.diagnose(tmp_path / "empty")
    with pytest.raises(ValueError, match="no connection 7"):
        ackclock.diagnose(SMALL_WINDOW, flow=7)
    with pytest.raises(ackclock.ScenarioError):
        ackclock.whatif(SMALL_WINDOW, compare=["windows-11"])
    with pytest.raises(TypeError, match="no capture"):
        ackclock.diagnose()


def test_findings_and_the_answer_of_a_diagnosis() -> None:
    diagnosis = ackclock.diagnose(SMALL_WINDOW)
    (primary,) = (finding for finding in diagnosis.findings if finding["primary"])
    assert primary["code"] == diagnosis.primary == "CC401"
    assert primary["flow"] == diagnosis.connections[0]["id"]
    assert diagnosis.answer.startswith("limited by the receiver's window")
    # A notebook shows the card of the page above the text.
    assert "timebar" in diagnosis._repr_html_()
