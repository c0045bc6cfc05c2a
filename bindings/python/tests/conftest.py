"""A small scenario for all tests."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]

WORLD = """
title = "two hosts"
seed = 7
duration = "60s"
host.a = { profile = "freebsd-14.3" }
host.b = { profile = "linux-6.18" }
path = [ { from = "a", to = "b", forward = [
  { link = { rate = "20Mbit/s", buffer = "64KiB" } },
  { loss = "0.5%" },
  { delay = "10ms" } ], return = [ { delay = "10ms" } ] } ]
flow = [ { name = "up", from = "a", to = "b", bulk = "1MB" } ]
"""

TABLES: dict[str, Any] = {
    "title": "two hosts",
    "seed": 7,
    "duration": "60s",
    "host": {"a": {"profile": "freebsd-14.3"}, "b": {"profile": "linux-6.18"}},
    "path": [
        {
            "from": "a",
            "to": "b",
            "forward": [
                {"link": {"rate": "20Mbit/s", "buffer": "64KiB"}},
                {"loss": "0.5%"},
                {"delay": "10ms"},
            ],
            "return": [{"delay": "10ms"}],
        }
    ],
    "flow": [{"name": "up", "from": "a", "to": "b", "bulk": "1MB"}],
}


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """The scenario as a file."""
    path = tmp_path / "world.toml"
    path.write_text(WORLD)
    return path


@pytest.fixture(scope="session")
def command() -> list[str]:
    """The command line program of the same version."""
    named = os.environ.get("ACKCLOCK_BIN")
    found = named or shutil.which("ackclock")
    if found is None:
        pytest.skip("the command line program is not there: set ACKCLOCK_BIN")
    return [found]


@pytest.fixture
def captures(tmp_path: Path) -> Path:
    """A folder of three captures, one of them in a subfolder, and a file that is not a capture."""
    folder = tmp_path / "captures"
    (folder / "deep").mkdir(parents=True)
    for number, (case, place) in enumerate(
        {"h1_rwnd_cubic": "", "k1_two_flows": "", "l1_healthy_cubic": "deep"}.items()
    ):
        shutil.copy(ROOT / f"golden/linux/{case}/sender.pcap.xz", folder / place / f"{number}.pcap.xz")
    (folder / "notes.txt").write_text("taken on a Tuesday\n")
    (folder / ".hidden").write_text("not looked at\n")
    return folder


def copies(folder: Path, count: int) -> None:
    """Adds identical captures to the folder."""
    for number in range(count):
        os.link(folder / "0.pcap.xz", folder / f"again-{number}.pcap.xz")


def output(command: list[str], *arguments: object) -> bytes:
    """The output of the program."""
    done = subprocess.run([*command, *map(str, arguments)], capture_output=True, check=True)
    return done.stdout
