"""What the command line writes for other tools, read by libraries of these tools."""

from __future__ import annotations

import json
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from conftest import ROOT, output
from test_schemas import LACKING, LINUX

CAPTURES = ["f2_few_losses_cubic", "h1_rwnd_cubic", "k1_two_flows", "l1_healthy_cubic"]


@pytest.mark.parametrize("case", CAPTURES)
def test_sarif_is_of_its_schema(command: list[str], tmp_path: Path, case: str) -> None:
    """The models of this package are generated from the schema and allow no other fields."""
    model = pytest.importorskip("pydantic_sarif.model")
    path = tmp_path / "out.sarif"
    output(command, "diagnose", ROOT / f"golden/linux/{case}/sender.pcap.xz", "--sarif", path)
    log = json.loads(path.read_text())
    model.StaticAnalysisResultsFormatSarifVersion210JsonSchema.model_validate(log)
    log["runs"][0]["tool"]["driver"]["nme"] = "ackclock"
    with pytest.raises(ValueError):
        model.StaticAnalysisResultsFormatSarifVersion210JsonSchema.model_validate(log)


def test_sarif_of_differences_is_of_its_schema(command: list[str], tmp_path: Path) -> None:
    """A model beside this machine's kernel: their times differ by more than a nanosecond."""
    model = pytest.importorskip("pydantic_sarif.model")
    (tmp_path / "linux.toml").write_text(LINUX)
    call = ["compare", "linux.toml", "--model", "--wire", "--tolerance", "1ns", "--sarif", "out.sarif"]
    done = subprocess.run([*command, *call], capture_output=True, cwd=tmp_path)
    if any(one in done.stderr for one in LACKING):
        pytest.skip(done.stderr.decode())
    assert done.returncode == 1, done.stderr
    log = json.loads((tmp_path / "out.sarif").read_text())
    model.StaticAnalysisResultsFormatSarifVersion210JsonSchema.model_validate(log)
    assert log["runs"][0]["results"]


def test_junit_is_xml(command: list[str], tmp_path: Path) -> None:
    path = tmp_path / "out.xml"
    captures = [ROOT / f"golden/linux/{case}/sender.pcap.xz" for case in CAPTURES]
    output(command, "diagnose", *captures, "--junit", path)
    suite = ElementTree.parse(path).getroot()
    assert suite.tag == "testsuite"
    assert int(suite.attrib["tests"]) == len(suite.findall("testcase")) == 5
    assert int(suite.attrib["failures"]) == len(suite.findall("testcase/failure"))


def test_openmetrics_is_read(command: list[str], tmp_path: Path) -> None:
    parser = pytest.importorskip("prometheus_client.openmetrics.parser")
    captures = [ROOT / f"golden/linux/{case}/sender.pcap.xz" for case in CAPTURES]
    diagnosis, run = tmp_path / "diagnosis.txt", tmp_path / "run.txt"
    output(command, "diagnose", *captures, "--openmetrics", diagnosis)
    output(command, "run", ROOT / "scenarios/example.toml", "--openmetrics", run)
    for path, name, count in [
        (diagnosis, "ackclock_connection_goodput_bits_per_second", 5),
        (run, "ackclock_flow_goodput_bits_per_second", 2),
    ]:
        families = {one.name: one for one in parser.text_string_to_metric_families(path.read_text())}
        assert len(families[name].samples) == count
