"""What commands print with --json is of their schemas, and the schemas lack none of its fields."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, output

jsonschema = pytest.importorskip("jsonschema")

GOLDEN = ROOT / "golden/linux"
CAPTURE = GOLDEN / "h1_rwnd_cubic/sender.pcap.xz"
MATHIS = ["theory", "mathis", "--rtt", "20ms", "--loss", "0.1%"]
SWEEP = ["sweep", ROOT / "scenarios/example.toml", "-m", "sender.cc=newreno,cubic", "-m", "seed=1,2"]

# Both hosts are Linux, so that a kernel can be either.
LINUX = """
title = "two Linux hosts"
duration = "20s"
host = { a = { profile = "linux-6.18" }, b = { profile = "linux-6.18" } }
path = [ { from = "a", to = "b", return = [ { delay = "5ms" } ], forward = [
  { link = { rate = "20Mbit/s", buffer = "64KiB" } }, { delay = "5ms" } ] } ]
flow = [ { name = "up", from = "a", to = "b", bulk = "300kB" } ]
"""
PASTED = """[  5]   0.00-2.00   sec  2.17 MBytes  9.10 Mbits/sec   22             sender
[  5]   0.00-2.04   sec  2.10 MBytes  8.63 Mbits/sec                  receiver
"""
REPRODUCE = ["reproduce", "slow-start-lro"]

CALLS = {
    # The files are made in the folder of the test.
    "compare": [["compare", "linux.toml", "--model", "--kernel"], ["compare", "linux.toml", "--model", "--wire"]],
    "diagnose": [
        *(["diagnose", path] for path in sorted(GOLDEN.glob("*/sender.pcap.xz"))),
        ["diagnose", GOLDEN / "k1_two_flows/sender.pcap.xz", GOLDEN / "k1_two_flows/receiver.pcap.xz"],
        *(["diagnose", ROOT / "docs/samples" / name] for name in ("upload.sqlog", "damaged.qlog", "upload.siftr.log")),
        ["diagnose", *(ROOT / f"docs/samples/both-ends.{side}.sqlog" for side in ("client", "server"))],
        ["diagnose", ROOT / "docs/samples/both-ends.client.sqlog", ROOT / "docs/samples/both-ends.client.pcap"],
        ["diagnose", ROOT / "golden/quic/quinn-rebinding.pcapng"],
    ],
    # With `--json`, a document in each line.
    "diagnose-every": [
        ["diagnose", CAPTURE, "--every", "1s"],
        ["diagnose", GOLDEN / "k1_two_flows/sender.pcap.xz", "--every", "500ms"],
        ["diagnose", ROOT / "golden/captures/recorded/failures/reset-between.client.pcap.gz", "--every", "100ms"],
    ],
    "diagnose-pasted": [["diagnose", "pasted.txt"]],
    "hunt": [["hunt", "--cc", "reno", "--goal", "loss", "--worlds", "40"]],
    "interop": [
        ["interop", ROOT / "scenarios/example.toml", "--stacks", "quinn-0.11,linux-6.18", "--phases", "2", "--length", "3"]
    ],
    "kernel-check": [["kernel", "check"]],
    "kernel-list": [["kernel", "list"]],
    "packetdrill": [["packetdrill", ROOT / "golden/packetdrill"], ["packetdrill", ROOT / "docs/samples/packet-scripts"]],
    "read": [
        ["read", ROOT / "docs/samples" / name]
        for name in ("upload.siftr.log", "upload.sqlog", "damaged.qlog", "bufferbloat.flent.gz")
    ],
    "reproduce": [REPRODUCE, [*REPRODUCE, "--list"]],
    "run": [
        ["run", ROOT / "scenarios" / f"{name}.toml"]
        for name in (
            "bufferbloat",
            "example",
            "fairness-cubic-newreno",
            "rough-path",
            "shared-bottleneck",
            "short-flows",
            "slow-start-lro",
            "video",
            "web",
        )
    ],
    "scenario-check": [
        ["scenario", "check", ROOT / "scenarios/example.toml"],
        ["scenario", "check", ROOT / "docs/samples/unitless.toml"],
    ],
    "scenario-new": [["scenario", "new", "--list"]],
    "scenario-profiles": [["scenario", "profiles"]],
    "suite": [
        ["suite", "rfc9743", "--cc", "cubic", "--phases", "2", "--criterion", "5.1.1,5.1.2,7.4,7.7"],
        ["suite", "slow-start", "--cc", "cubic", "--criterion", "0.25bdp"],
    ],
    "suite-bbr": [["suite", "bbr", "--case", "probe-rtt,up-loss", "--path", "10M-40ms"]],
    # Made in the folder of the test, by the first call.
    "sweep": [[*SWEEP, "--out", "cells"]],
    "table": [[*SWEEP, "--out", "cells"], ["table", "cells", "--rows", "sender.cc", "--value", "rtos"]],
    "theory": [
        MATHIS,
        [*MATHIS, "--rate", "1Gbit/s", "--window", "1MiB", "--run", "linux-6.18"],
        ["theory", "aimd", "--rtt", "20ms", "--loss", "0.1%", "--beta", "0.7"],
        ["theory", "pftk", "--rtt", "100ms", "--loss", "1%"],
        ["theory", "cubic", "--rtt", "2ms", "--loss", "1%"],
    ],
    "theory-bbr": [
        ["theory", "bbr", "--rate", "40Mbit/s", "--rtt", "30ms", "--buffer", "4"],
        ["theory", "bbr", "--rate", "40Mbit/s", "--rtt", "30ms", "--buffer", "4", "--run"],
    ],
    # With `--json`, a document in each line.
    "watch": [["watch", "--port", "1", "--every", "100ms", "--count", "1"], ["watch", "--every", "100ms", "--count", "2"]],
    "whatif": [
        ["whatif", CAPTURE],
        ["whatif", CAPTURE, "--compare", "linux-6.18/reno,freebsd-main"],
        ["whatif", ROOT / "docs/samples/both-ends.client.sqlog"],
    ],
    "wire": [
        ["wire", "send", "linux.toml"],
        ["wire", "receive", "--bytes", "100kB"],
        ["wire", "compare", "linux.toml"],
        ["wire", "link", "linux.toml", "--run", "a=true", "--set", "host.a.cc=reno", "--set", "host.b.cc=reno"],
    ],
}
# What a command says that lacks the privilege or the kernel it needs. `make kernels` runs these tests with a kernel.
LACKING = (b"this needs CAP_", b"there is no kernel", b"without gcc")


def closed(schema: Any) -> Any:
    """The schema without further fields."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    done = {key: closed(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
        done.setdefault("additionalProperties", False)
    return done


def test_every_schema_is_tested(command: list[str]) -> None:
    assert output(command, "schema").decode().split() == sorted(CALLS)


@pytest.mark.parametrize("name", sorted(CALLS))
def test_output_is_of_its_schema(command: list[str], name: str, tmp_path: Path) -> None:
    schema = json.loads(output(command, "schema", name))
    jsonschema.Draft202012Validator.check_schema(schema)
    validators = [jsonschema.Draft202012Validator(one) for one in (schema, closed(schema))]
    (tmp_path / "linux.toml").write_text(LINUX)
    (tmp_path / "pasted.txt").write_text(PASTED)
    lacking = []
    for call in CALLS[name]:
        done = subprocess.run([*command, *map(str, call), "--json"], capture_output=True, cwd=tmp_path)
        if name in ("compare", "kernel-check", "wire") and any(one in done.stderr for one in LACKING):
            lacking.append(f"{call}: {done.stderr.decode()}")
            continue
        assert done.stdout, done.stderr
        texts = done.stdout.splitlines() if name in ("diagnose-every", "read", "watch") else [done.stdout]
        for text, validator in itertools.product(texts, validators):
            found = validator.iter_errors(json.loads(text))
            errors = [f"{one.json_path}: {one.message[:200]}" for one in found]
            assert not errors, (call, errors[:5])
    # A document of another kind is not of the schema; the fields of a line of `read` are all optional.
    assert not validators[name == "read"].is_valid({"format": 1})
    if os.environ.get("ACKCLOCK_REQUIRE_KERNEL"):
        assert all("CAP_" in one for one in lacking), lacking
    if lacking:
        pytest.skip(" ".join(lacking))
