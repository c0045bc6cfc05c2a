"""Progress of long calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

#: Called with the work done and the total, in the calling thread.
Callback = Callable[[int, int], object]


class Bar(Protocol):
    """A progress bar with tqdm's interface."""

    total: Any
    n: Any

    def update(self, n: int) -> object:
        """Advances it by n."""


#: How progress is shown: not at all, by a tqdm bar (``True``), by the caller's own bar, by a
#: class of bars (``tqdm.tqdm`` itself), or by a function ``(done, total)``.
Progress = bool | Callback | Bar | type[Any]


@contextmanager
def shown(progress: Progress, what: str, unit: str, scale: float = 1) -> Iterator[Callback | None]:
    """A callback for the engine. A new bar shows `scale` times the engine's amounts in `unit`.

    ``True`` requests a bar, which needs tqdm; without tqdm there is none.
    """
    if progress is True:
        try:
            from tqdm.auto import tqdm as bars
        except ImportError:
            yield None
            return
        progress = bars
    if isinstance(progress, type):
        with progress(desc=what, unit=unit, unit_scale=scale if scale != 1 else False) as bar:
            yield mover(bar)
    elif progress is False or progress is None:
        yield None
    elif callable(getattr(progress, "update", None)):
        yield mover(progress)
    elif callable(progress):
        yield progress
    else:
        kind = type(progress).__name__
        raise TypeError(f"progress: expected a bool, a bar or a function (done, total), found {kind}")


def mover(bar: Any) -> Callback:
    """A callback that sets a bar to the work done."""

    def moved(done: int, total: int) -> None:
        bar.total = total
        bar.update(done - bar.n)

    return moved
