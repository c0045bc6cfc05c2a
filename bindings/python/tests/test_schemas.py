"""What commands print with --json is of their schemas, and the schemas lack none of its fields."""

from __future__ import annotations

import itertools
import json
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

CALLS = {
    "diagnose": [
        *(["diagnose", path] for path in sorted(GOLDEN.glob("*/sender.pcap.xz"))),
        ["diagnose", GOLDEN / "k1_two_flows/sender.pcap.xz", GOLDEN / "k1_two_flows/receiver.pcap.xz"],
        *(["diagnose", ROOT / "docs/samples" / name] for name in ("upload.sqlog", "damaged.qlog", "upload.siftr.log")),
    ],
    "kernel-list": [["kernel", "list"]],
    "packetdrill": [["packetdrill", ROOT / "golden/packetdrill"], ["packetdrill", ROOT / "docs/samples/packet-scripts"]],
    "read": [["read", ROOT / "docs/samples" / name] for name in ("upload.siftr.log", "upload.sqlog", "damaged.qlog")],
    "run": [
        ["run", ROOT / "scenarios" / f"{name}.toml"]
        for name in ("example", "fairness-cubic-newreno", "rough-path", "shared-bottleneck", "slow-start-lro")
    ],
    "scenario-check": [
        ["scenario", "check", ROOT / "scenarios/example.toml"],
        ["scenario", "check", ROOT / "docs/samples/unitless.toml"],
    ],
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
    "whatif": [["whatif", CAPTURE], ["whatif", CAPTURE, "--compare", "linux-6.18/reno,freebsd-main"]],
}


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
    for call in CALLS[name]:
        done = subprocess.run([*command, *map(str, call), "--json"], capture_output=True, cwd=tmp_path)
        assert done.stdout, done.stderr
        texts = done.stdout.splitlines() if name == "read" else [done.stdout]
        for text, validator in itertools.product(texts, validators):
            found = validator.iter_errors(json.loads(text))
            errors = [f"{one.json_path}: {one.message[:200]}" for one in found]
            assert not errors, (call, errors[:5])
    # A document of another kind is not of the schema; the fields of a line of `read` are all optional.
    assert not validators[name == "read"].is_valid({"format": 1})
