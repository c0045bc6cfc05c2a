"""Everything public has a docstring."""

from __future__ import annotations

import inspect

import pytest

import ackclock


@pytest.mark.parametrize("name", [name for name in ackclock.__all__ if name != "__version__"])
def test_public_names_have_docstrings(name: str) -> None:
    thing = getattr(ackclock, name)
    if not isinstance(thing, type):
        # Figure is a type alias.
        assert thing.__doc__
        return
    assert inspect.getdoc(thing)
    for member, value in vars(thing).items():
        if not member.startswith("_") and (callable(value) or inspect.isdatadescriptor(value)):
            assert inspect.getdoc(value), f"{name}.{member}"
