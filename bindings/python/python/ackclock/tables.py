"""Conversion of tables to other libraries, without a copy for Arrow."""

from __future__ import annotations

from typing import Any

from ._engine import Table


def to_arrow(table: Table) -> Any:
    """The table as a ``pyarrow.Table``."""
    import pyarrow

    return pyarrow.table(table)


def to_pandas(table: Table) -> Any:
    """The table as a ``pandas.DataFrame`` (via pyarrow)."""
    return to_arrow(table).to_pandas()


def to_polars(table: Table) -> Any:
    """The table as a ``polars.DataFrame``."""
    import polars

    return polars.DataFrame(table)
