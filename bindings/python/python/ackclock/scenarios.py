"""Scenarios from files, texts, dictionaries or keyword arguments."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from . import _engine
from .controllers import Controllers, known

#: Sources of a scenario: the path of a file, its text, a dictionary, or an existing scenario.
Source = str | os.PathLike[str] | Mapping[str, Any] | _engine.Scenario


def scenario(
    source: Source | None = None,
    *,
    set: Mapping[str, object] | None = None,
    seed: int | None = None,
    controllers: Controllers | None = None,
    **tables: Any,
) -> _engine.Scenario:
    """Read a scenario.

    ``source`` is the path of a TOML file, ``preset:NAME`` for one that the package has
    (:func:`ackclock.presets`), the text of one (anything with a line break), a dictionary of the same
    shape, or an existing scenario. Without it the tables are the keyword arguments::

        ackclock.scenario(
            host={"a": {"profile": "freebsd-14.3"}, "b": {"profile": "linux-6.18"}},
            path=[{"from": "a", "to": "b", "forward": [{"link": {"rate": "100Mbit/s", ...}}]}],
            flow=[{"from": "a", "to": "b", "bulk": "10MB"}],
        )

    ``set`` changes keys (``{"host.a.cc": "cubic"}``, as ``--set`` does); a time is a text with its unit, a
    :class:`datetime.timedelta`, or a number of seconds if the key ends with ``_s``. ``seed`` is the seed.
    ``controllers`` are classes that ``cc`` may name in addition to the registered ones
    (:func:`ackclock.register`).

    Raises :class:`ackclock.ScenarioError` with the position of every error, :class:`TypeError` for a
    value that TOML does not have, :class:`OSError` if the file cannot be read.
    """
    text, name = text_of(source, tables)
    return _engine.load(text, name, settings(set), at_least("seed", seed, 0), known(controllers))


def presets() -> dict[str, str]:
    """The scenarios that the package has: names, each after ``preset:`` a source, and their titles."""
    return dict(_engine.presets())


def text_of(source: Source | None, tables: Mapping[str, Any]) -> tuple[str, str]:
    """The text of a scenario and its name in error messages."""
    if source is not None and tables:
        raise TypeError(f"both a scenario and tables of one: {', '.join(tables)}")
    if isinstance(source, _engine.Scenario):
        return source.text, source.name
    if source is None:
        if not tables:
            raise TypeError("no scenario: give a path, a text, a dictionary or tables")
        return _engine.to_toml(dict(tables)), "<tables>"
    if isinstance(source, Mapping):
        return _engine.to_toml(dict(source)), "<dictionary>"
    if isinstance(source, str) and "\n" in source:
        return source, "<text>"
    if isinstance(source, str) and (preset := _engine.preset_text(source)) is not None:
        return preset, source
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        data = path.read_bytes()
        try:
            return data.decode("utf-8"), str(path)
        except UnicodeDecodeError as error:
            raise _engine.ScenarioError(f"{path}: byte {error.start} is not UTF-8 text") from error
    raise TypeError(
        "a scenario is a path, a text, a dictionary or an ackclock.Scenario, "
        f"not {type(source).__name__}"
    )


def settings(set: Mapping[str, object] | None) -> list[str]:
    """Overrides in the syntax of ``--set``."""
    if set is not None and not isinstance(set, Mapping):
        raise TypeError(f"set: expected a dictionary, found {type(set).__name__}")
    for key in set or {}:
        if not isinstance(key, str):
            raise TypeError(f"set: keys are str, found {key!r}")
    return [f"{key}={value_text(key, value)}" for key, value in map(in_seconds, (set or {}).items())]


def in_seconds(setting: tuple[str, object]) -> tuple[str, object]:
    """A setting; a number of a key that ends with ``_s`` is a time in seconds."""
    key, value = setting
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not key.endswith("_s") or not is_number:
        return setting
    return key.removesuffix("_s"), timedelta_text(key, float(value))  # type: ignore[arg-type]


def timedelta_text(key: str, time_s: float) -> str:
    """A time in seconds as text, to the nanosecond."""
    if not 0 <= time_s < math.inf:
        raise ValueError(f"{key}: expected a time of 0 s or more, found {time_s}")
    return f"{round(time_s * 1e9)}ns"


def value_text(key: str, value: object) -> str:
    """A value in the syntax of ``--set`` and ``-m``."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, timedelta):
        return timedelta_text(key, value.total_seconds())
    if isinstance(value, (str, int, float)):
        return str(value)
    raise TypeError(f"{key}: expected a str, int, float, bool or timedelta, found {type(value).__name__}")


def texts(**arguments: object) -> None:
    """Checks optional str arguments."""
    for name, value in arguments.items():
        if value is not None and not isinstance(value, str):
            raise TypeError(f"{name}: expected a str, found {type(value).__name__}")


def numbers(**arguments: object) -> None:
    """Checks optional number arguments."""
    for name, value in arguments.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
            raise TypeError(f"{name}: expected a number, found {type(value).__name__}")


def at_least(name: str, value: int | None, least: int) -> int | None:
    """Checks an optional integer argument."""
    if value is None:
        return None
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name}: expected a whole number, found {type(value).__name__}")
    number = value.__index__()
    if not least <= number < 1 << 64:
        raise ValueError(f"{name}: expected {least} or more, within 64 bits, found {number}")
    return number


def seconds(name: str, value: float) -> float:
    """Checks a time in seconds."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name}: expected a time in seconds, found {type(value).__name__}")
    if not 0 < value < math.inf:
        raise ValueError(f"{name}: expected a time above 0 s, found {value}")
    return value
