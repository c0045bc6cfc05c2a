"""Progress of long calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: Called with what is done and what there is to do, in the calling thread.
Callback = Callable[[int, int], object]


@contextmanager
def shown(progress: bool | Callback, what: str, unit: str) -> Iterator[Callback | None]:
    """A callback for the engine: the caller's own, or one that moves a bar of tqdm.

    ``True`` asks for a bar, which needs tqdm; without it there is none.
    """
    if callable(progress):
        yield progress
        return
    if not progress:
        yield None
        return
    try:
        from tqdm.auto import tqdm
    except ImportError:
        yield None
        return
    with tqdm(desc=what, unit=unit, leave=False) as bar:

        def moved(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield moved
