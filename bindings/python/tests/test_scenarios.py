"""Bad input: the same errors as the command line's, as exceptions with their positions."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from conftest import TABLES, WORLD

import ackclock


def test_an_error_has_its_position() -> None:
    with pytest.raises(ackclock.ScenarioError) as caught:
        ackclock.scenario(WORLD.replace('"20Mbit/s"', "20"))
    (error,) = caught.value.errors
    assert error["line"] == 8 and error["file"] == "<text>"
    assert "rate" in error["message"]
    assert isinstance(caught.value, ValueError)
    assert "<text>:8" in str(caught.value)


def test_all_errors_are_reported_at_once(world: Path) -> None:
    text = WORLD.replace("freebsd-14.3", "freebsd-14.4").replace("seed", "sede")
    world.write_text(text)
    with pytest.raises(ackclock.ScenarioError) as caught:
        ackclock.scenario(world)
    assert len(caught.value.errors) == 2
    assert {error["file"] for error in caught.value.errors} == {str(world)}
    assert any("freebsd-14.3" in (error["hint"] or "") for error in caught.value.errors)


@pytest.mark.parametrize(
    ("tables", "reported"),
    [
        ({**TABLES, "seed": {1, 2}}, "seed: expected a str, int, float, bool, list or dict, found set"),
        ({**TABLES, "seed": None}, "seed: .* found NoneType"),
        ({**TABLES, "seed": 1 << 70}, "seed: .* 64 bits"),
        ({**TABLES, 5: 1}, "keys are str, found 5"),
        ({**TABLES, "flow": [{"name": object()}]}, r"flow\[0\].name: expected"),
    ],
)
def test_a_value_that_toml_does_not_have(tables: dict[Any, Any], reported: str) -> None:
    with pytest.raises(TypeError, match=reported):
        ackclock.scenario(tables)


def test_endless_nesting_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(TypeError, match="nested too deeply"):
        ackclock.scenario({"path": loop})


def test_unknown_keys_of_a_dictionary_are_errors_too() -> None:
    with pytest.raises(ackclock.ScenarioError, match="speed"):
        ackclock.scenario({**TABLES, "speed": "1Gbit/s"})


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError, match="no scenario"):
        ackclock.scenario()
    with pytest.raises(TypeError, match="both"):
        ackclock.scenario(WORLD, host={})
    with pytest.raises(TypeError, match="not int"):
        ackclock.scenario(5)  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError):
        ackclock.scenario("nowhere.toml")
    with pytest.raises(TypeError, match="host.a.cc: expected"):
        ackclock.scenario(WORLD, set={"host.a.cc": ["newreno"]})
    with pytest.raises(ackclock.ScenarioError, match="host.c"):
        ackclock.scenario(WORLD, set={"host.c.cc": "newreno"})


def theory(**more: Any) -> ackclock.Theory:
    return ackclock.theory("aimd", rtt="20ms", loss="1%", **more)


@pytest.mark.parametrize(
    ("call", "kind", "reported"),
    [
        (lambda: ackclock.run(WORLD, seed="x"), TypeError, "seed: expected a whole number, found str"),
        (lambda: ackclock.run(WORLD, seed=True), TypeError, "seed: .* found bool"),
        (lambda: ackclock.run(WORLD, seed=-1), ValueError, "seed: expected 0 or more, .* found -1"),
        (lambda: ackclock.run(WORLD, seed=1 << 64), ValueError, "seed: .* within 64 bits"),
        (lambda: ackclock.run(WORLD, set=["a.cc=cubic"]), TypeError, "set: expected a dictionary, found list"),
        (lambda: ackclock.run(WORLD, set={5: 1}), TypeError, "set: keys are str, found 5"),
        (lambda: ackclock.run(WORLD, sett={}), TypeError, "both a scenario and tables of one: sett"),
        (lambda: ackclock.run(WORLD, controllers=[1]), TypeError, "controllers"),
        (lambda: ackclock.run(WORLD, controllers={5: int}), TypeError, "controllers: .*str"),
        (lambda: ackclock.register(5, int), TypeError, "name: expected a str, found int"),
        (lambda: ackclock.sweep(WORLD, axes=["a.cc"]), TypeError, "axes: expected a dictionary, found list"),
        (lambda: ackclock.sweep(WORLD, axes={"a.cc": 5}), TypeError, "a.cc: expected a list of values"),
        (lambda: ackclock.sweep(WORLD, axes={"a.cc": ["cubic"]}, repeat=2.5), TypeError, "repeat: .* float"),
        (lambda: ackclock.sweep(WORLD, axes={"a.cc": ["cubic"]}, chunk_s="1"), TypeError, "chunk_s: .* str"),
        (lambda: ackclock.sweep(WORLD, axes={"a.cc": ["cubic"]}, only="a.c == 1"), ValueError, "a.c"),
        (lambda: ackclock.diagnose(5), TypeError, "path: expected a str or a path, found int"),
        (lambda: ackclock.diagnose("x", flow=-1), ValueError, "flow: expected 0 or more"),
        (lambda: ackclock.whatif("x", compare="linux-6.18"), TypeError, "compare: expected a list"),
        (lambda: ackclock.sweep(WORLD, axes={"a.cc": ["cubic"]}, only=5), TypeError, "only: .* int"),
        (lambda: ackclock.whatif("x", compare=[5]), TypeError, "compare: expected a str, found int"),
        (lambda: ackclock.whatif("x", sender=5), TypeError, "sender: expected a str, found int"),
        (lambda: ackclock.theory("mathis", rtt=20, loss="1%"), TypeError, "rtt: expected a str, found int"),
        (lambda: theory(alpha="1"), TypeError, "alpha: expected a number, found str"),
        (lambda: theory(ack_every=2.5), TypeError, "ack_every: expected a whole number"),
        (lambda: ackclock.reproduce(["mathis", 5]), TypeError, "cases: expected a str, found int"),
    ],
)
def test_type_errors_name_the_argument(call: Any, kind: type[Exception], reported: str) -> None:
    with pytest.raises(kind, match=reported):
        call()


def test_bytes_that_are_not_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "latin.toml"
    path.write_bytes(b'title = "caf\xe9"\n')
    with pytest.raises(ackclock.ScenarioError, match="byte 12 is not UTF-8"):
        ackclock.scenario(path)


def test_theory_rejects_invalid_arguments() -> None:
    with pytest.raises(ValueError, match='rtt="20" has no unit'):
        ackclock.theory("mathis", rtt="20", loss="1%")
    with pytest.raises(ValueError, match="loss"):
        ackclock.theory("mathis", rtt="20ms", loss="0%")
    with pytest.raises(ValueError, match='expected "mathis"'):
        ackclock.theory("matis", rtt="20ms", loss="1%")
    with pytest.raises(ValueError, match="not a case"):
        ackclock.reproduce("slow-start")


def test_theory_of_the_seed() -> None:
    answer = ackclock.theory("mathis", mss="1252B", rtt="2ms", loss="2%", extra_rtts=2)
    # Published: 36.50 Mb/s.
    assert answer.rate_bps / 1e6 == pytest.approx(36.50, abs=0.005)
    run = ackclock.theory("mathis", rtt="20ms", loss="1%", run="freebsd-14.3")
    assert run.measured is not None and run.measured["rate_bps"] > 0


def test_a_preset_is_a_scenario_without_a_file() -> None:
    assert "lte" in ackclock.presets()
    assert ackclock.scenario("preset:example").title == ackclock.presets()["example"]
    with pytest.raises(ValueError, match='there is no preset "lta"; did you mean preset:lte?'):
        ackclock.scenario("preset:lta")


def test_times_are_texts_timedeltas_or_seconds(world: Path) -> None:
    def delay(value: object, key: str = "duration") -> str:
        return ackclock.scenario(world, set={key: value}).text

    assert delay(timedelta(milliseconds=1500)) == delay("1500000000ns") == delay(1.5, "duration_s")
    with pytest.raises(ValueError, match="duration_s: expected a time of 0 s or more"):
        delay(-1.0, "duration_s")
