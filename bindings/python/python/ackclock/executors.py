"""The engines people run, behind one face: submit a call, wait for the first results.

Taken are: any ``concurrent.futures.Executor`` (process pools, ``mpi4py.futures``, the one of
``dask.distributed.Client.get_executor()``), a Dask client, and Ray (the module itself).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any, Protocol


class Engine(Protocol):
    """Where calls are done."""

    #: Calls that can run at once.
    workers: int

    def submit(self, call: Callable[..., Any], *args: Any) -> Any:
        """Begin a call; returns a ticket."""

    def finished(self, tickets: list[Any]) -> list[Any]:
        """Wait until at least one of them is done; those that are."""

    def result(self, ticket: Any) -> Any:
        """What a finished call returned; raises what it raised."""

    def cancel(self, tickets: list[Any]) -> None:
        """Give up calls that have not begun."""


def engine_of(executor: Any) -> Engine:
    """The engine behind what a user passed as ``executor=``."""
    if getattr(executor, "__name__", None) == "ray":
        return Ray(executor)
    if hasattr(executor, "get_executor"):
        workers = sum(executor.nthreads().values()) if hasattr(executor, "nthreads") else 1
        return Futures(executor.get_executor(pure=False, retries=RETRIES), max(1, workers))
    if callable(getattr(executor, "submit", None)):
        return Futures(executor, _workers(executor))
    raise TypeError(
        "executor: expected a concurrent.futures.Executor, a Dask client or the module ray, "
        f"found {type(executor).__name__}"
    )


#: How often a call that was lost with its worker is done again.
RETRIES = 3


class Futures:
    """Any executor of ``concurrent.futures``."""

    def __init__(self, executor: Any, workers: int) -> None:
        self.executor = executor
        self.workers = workers

    def submit(self, call: Callable[..., Any], *args: Any) -> Any:
        return self.executor.submit(call, *args)

    def finished(self, tickets: list[Future[Any]]) -> list[Future[Any]]:
        done, _ = wait(tickets, return_when=FIRST_COMPLETED)
        return [ticket for ticket in tickets if ticket in done]

    def result(self, ticket: Future[Any]) -> Any:
        return ticket.result()

    def cancel(self, tickets: list[Future[Any]]) -> None:
        for ticket in tickets:
            ticket.cancel()


class Ray:
    """A Ray cluster that the program is connected to."""

    def __init__(self, ray: Any) -> None:
        if not ray.is_initialized():
            raise ValueError("executor: ray is not connected; call ray.init() first")
        self.ray = ray
        self.workers = max(1, int(ray.cluster_resources().get("CPU", 1)))

    def submit(self, call: Callable[..., Any], *args: Any) -> Any:
        return self.ray.remote(call).options(max_retries=RETRIES).remote(*args)

    def finished(self, tickets: list[Any]) -> list[Any]:
        done, _ = self.ray.wait(tickets, num_returns=1)
        return list(done)

    def result(self, ticket: Any) -> Any:
        return self.ray.get(ticket)

    def cancel(self, tickets: list[Any]) -> None:
        for ticket in tickets:
            self.ray.cancel(ticket)


def _workers(executor: Any) -> int:
    known = getattr(executor, "_max_workers", None)
    return known if isinstance(known, int) and known > 0 else os.cpu_count() or 1
