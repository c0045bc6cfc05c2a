"""Execution engines behind one interface: submit a call, wait for the first results.

Supported: any ``concurrent.futures.Executor`` (process pools, ``mpi4py.futures``, the one of
``dask.distributed.Client.get_executor()``), a Dask client, and Ray (the module itself).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any, Protocol


class Engine(Protocol):
    """An execution engine."""

    def workers(self) -> int:
        """Number of concurrent calls at present: clusters grow and shrink."""

    def share(self, argument: Any) -> Any:
        """An argument of many calls in a form that the engine transfers once."""

    def submit(self, call: Callable[..., Any], *args: Any) -> Any:
        """Start a call; returns a ticket."""

    def finished(self, tickets: list[Any]) -> list[Any]:
        """Wait until at least one is done; returns those that are."""

    def result(self, ticket: Any) -> Any:
        """What a finished call returned; raises what it raised."""

    def cancel(self, tickets: list[Any]) -> None:
        """Cancel calls that have not started."""


def engine_of(executor: Any) -> Engine | None:
    """The engine for the user's ``executor=``; ``None`` for this process."""
    if executor is None:
        return None
    if getattr(executor, "__name__", None) == "ray":
        return Ray(executor)
    if hasattr(executor, "get_executor") and hasattr(executor, "nthreads"):
        return Dask(executor)
    if callable(getattr(executor, "submit", None)) and not isinstance(executor, type):
        return Futures(executor)
    raise TypeError(
        "executor: expected a concurrent.futures.Executor, a Dask client or the module ray, "
        f"found {type(executor).__name__}"
    )


#: Retries of a call that was lost with its worker.
RETRIES = 3


class Futures:
    """Any executor of ``concurrent.futures``."""

    def __init__(self, executor: Any) -> None:
        self.executor = executor

    def workers(self) -> int:
        # Dask's own executor has a client with the number of threads.
        client = getattr(self.executor, "_client", None)
        if hasattr(client, "nthreads"):
            return threads_of(client)
        # Python's pools and mpi4py.futures use different names.
        for name in ("_max_workers", "num_workers"):
            known = getattr(self.executor, name, None)
            if isinstance(known, int) and known > 0:
                return known
        return os.cpu_count() or 1

    def share(self, argument: Any) -> Any:
        return argument

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


class Dask(Futures):
    """A Dask cluster."""

    def __init__(self, client: Any) -> None:
        super().__init__(client.get_executor(pure=False, retries=RETRIES))
        self.client = client

    def workers(self) -> int:
        return threads_of(self.client)


def threads_of(client: Any) -> int:
    """Number of concurrent calls of the workers of a Dask cluster."""
    threads: dict[str, int] = client.nthreads()
    return max(1, sum(threads.values()))


class Ray:
    """A Ray cluster that the program is connected to."""

    def __init__(self, ray: Any) -> None:
        if not ray.is_initialized():
            raise ValueError("executor: ray is not connected; call ray.init() first")
        self.ray = ray
        self.remotes: dict[Callable[..., Any], Any] = {}

    def workers(self) -> int:
        return max(1, int(self.ray.cluster_resources().get("CPU", 1)))

    def share(self, argument: Any) -> Any:
        return self.ray.put(argument)

    def submit(self, call: Callable[..., Any], *args: Any) -> Any:
        # A function is sent to the cluster once for each of these.
        remote = self.remotes.get(call)
        if remote is None:
            remote = self.remotes[call] = self.ray.remote(call).options(max_retries=RETRIES)
        return remote.remote(*args)

    def finished(self, tickets: list[Any]) -> list[Any]:
        done, _ = self.ray.wait(tickets, num_returns=1)
        return list(done)

    def result(self, ticket: Any) -> Any:
        try:
            return self.ray.get(ticket)
        except self.ray.exceptions.RayTaskError as error:
            # The exception of the call itself, as in every other engine.
            if isinstance(error.cause, Exception):
                raise error.cause from error
            raise

    def cancel(self, tickets: list[Any]) -> None:
        for ticket in tickets:
            self.ray.cancel(ticket)
