"""The engine's interface to the package; the public API is in ``ackclock`` itself."""

from collections.abc import Callable
from typing import Any, final

__all__ = [
    "connections_table",
    "Loss",
    "Report",
    "diagnose_files",
    "scenario_text",
    "whatif",
    "RunError",
    "ScenarioError",
    "Scenario",
    "load",
    "cases",
    "reproduce",
    "theory",
    "Run",
    "Study",
    "HuntStudy",
    "SuiteStudy",
    "csv_head",
    "csv_lines",
    "rows_table",
    "sweep_page",
    "Table",
    "presets",
    "preset_text",
    "to_toml",
    "VERSION",
]

#: Name of a capture with the binary file to read, or ``None`` for the file of that name.
_Source = tuple[str, Any | None]

VERSION: str

class ScenarioError(ValueError):
    """A scenario is invalid; the message is that of the command line."""

    errors: list[dict[str, Any]]
    """One per error: file, line and column (from 1), width, source_line, message, found, expected,
    hint."""
    run: int
    """Number of the run of a sweep whose values are not a valid scenario."""

class RunError(RuntimeError):
    """A run failed."""

@final
class Report:
    """The events since the last report. Times are in seconds, windows in bytes."""

    @property
    def now_s(self) -> float:
        """Virtual time, in seconds."""
    @property
    def interval_s(self) -> float:
        """Time since the last report, in seconds."""
    @property
    def acked_bytes(self) -> int:
        """Bytes acknowledged in the interval."""
    @property
    def losses(self) -> int:
        """Fast recoveries and ECN reductions that began in the interval."""
    @property
    def timeouts(self) -> int:
        """Retransmission timeouts in the interval."""
    @property
    def rtt_min_s(self) -> float | None:
        """Smallest round-trip sample in the interval, in seconds; ``None`` without a sample."""
    @property
    def rtt_s(self) -> float | None:
        """Latest round-trip sample in the interval, in seconds."""
    @property
    def srtt_s(self) -> float:
        """Smoothed round-trip time of the stack, in seconds."""
    @property
    def cwnd_bytes(self) -> int:
        """Current congestion window, in bytes."""
    @property
    def cwnd_mss(self) -> float:
        """Current congestion window in full segments."""
    @property
    def ssthresh_bytes(self) -> int | None:
        """Slow-start threshold, in bytes; ``None`` while unset."""
    @property
    def mss_bytes(self) -> int:
        """Payload of a full segment, in bytes."""
    @property
    def in_recovery(self) -> bool:
        """In fast recovery?"""
    @property
    def flight_bytes(self) -> int:
        """Bytes sent and not yet acknowledged."""
    @property
    def delivered_bytes(self) -> int:
        """Bytes acknowledged since the connection was established."""
    @property
    def packets(self) -> int:
        """Packets delivered in the interval, acknowledged or SACKed."""
    @property
    def ecn_marks(self) -> int:
        """Reductions by echoes of CE marks in the interval; they count as losses too."""
    @property
    def window_limited(self) -> bool:
        """Did the window limit the last flight, not the application or the receiver?"""
    @property
    def peer_window_bytes(self) -> int:
        """Receive window of the peer."""
    @property
    def rounds(self) -> int:
        """Round trips that ended since the connection was established."""
    @property
    def delivery_bps(self) -> float:
        """Bytes acknowledged over the interval, in bit/s."""

@final
class Loss:
    """A congestion event detected by the stack."""

    @property
    def now_s(self) -> float:
        """Virtual time, in seconds."""
    @property
    def kind(self) -> str:
        """``"loss"``, ``"ecn"`` or ``"timeout"``."""
    @property
    def cwnd_bytes(self) -> int:
        """Current congestion window, in bytes."""
    @property
    def ssthresh_bytes(self) -> int | None:
        """Slow-start threshold, in bytes; ``None`` while unset."""
    @property
    def pipe_bytes(self) -> int:
        """Bytes in flight as estimated by the stack (pipe)."""
    @property
    def mss_bytes(self) -> int:
        """Payload of a full segment, in bytes."""
    @property
    def lost_packets(self) -> int:
        """Packets marked lost since the connection was established, where the stack counts them."""

@final
class Table:
    """A table of columns with their units, exported by the Arrow PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...
    def __len__(self) -> int: ...
    @property
    def column_names(self) -> list[str]:
        """Names of the columns, with their units."""
    @property
    def descriptions(self) -> list[tuple[str, str]]:
        """The description of each column."""

@final
class Run:
    @property
    def page(self) -> str | None: ...
    @property
    def json(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def series(self) -> Table | None: ...
    @property
    def events(self) -> Table | None: ...

@final
class Scenario:
    """A valid scenario: hosts, paths, flows."""

    @property
    def text(self) -> str:
        """The text of the scenario with all overrides applied."""
    @property
    def name(self) -> str:
        """Name of the file it came from."""
    @property
    def sha256(self) -> str:
        """SHA-256 of the text."""
    @property
    def title(self) -> str:
        """Title."""
    @property
    def seed(self) -> int:
        """Seed of every random stream."""
    @property
    def hosts(self) -> list[str]:
        """Names of the hosts."""
    @property
    def flows(self) -> list[str]:
        """Names of the flows."""
    @property
    def duration_s(self) -> float:
        """Maximum virtual time of a run, in seconds."""
    def run(
        self, series: bool, events: bool, progress: Callable[[int, int], object] | None = None
    ) -> Run: ...

@final
class Study:
    def __new__(
        cls,
        text: str,
        name: str,
        set: list[str],
        axes: list[str],
        repeat: int | None = None,
        only: str | None = None,
        seed: int | None = None,
        controllers: dict[str, type] | None = None,
    ) -> Study: ...
    def __getnewargs__(self) -> tuple[Any, ...]: ...
    @property
    def name(self) -> str: ...
    @property
    def runs(self) -> int: ...
    @property
    def keys(self) -> list[str]: ...
    @property
    def sha256(self) -> str: ...
    def about(self) -> str: ...
    def text(self) -> str: ...
    def settings(self, run: int) -> list[tuple[str, str]]: ...
    def text_of(self, run: int) -> str: ...
    def rows(
        self,
        first: int,
        end: int,
        jobs: int,
        progress: Callable[[int, int], object] | None = None,
    ) -> bytes: ...

@final
class SuiteStudy:
    def __new__(
        cls,
        name: str,
        cc: str,
        against: list[str],
        criteria: list[str],
        phases: int | None,
        budget: int | None,
        noise: str,
        seed: int,
        knobs: list[str],
    ) -> SuiteStudy: ...
    def __getnewargs__(self) -> tuple[Any, ...]: ...
    def runs_after(self, results: list[str]) -> list[list[int]]: ...
    def results(
        self,
        runs: list[list[int]],
        jobs: int,
        progress: Callable[[int, int], object] | None = None,
    ) -> list[str]: ...
    def report(self, results: list[str]) -> tuple[str, str, str]: ...

@final
class HuntStudy:
    def __new__(
        cls,
        cc: str,
        goal: str,
        limit: float | None,
        without: list[str],
        worlds: int,
        seed: int,
    ) -> HuntStudy: ...
    def __getnewargs__(self) -> tuple[Any, ...]: ...
    def figures(self, worlds: list[list[int]], jobs: int) -> list[tuple[float, int]]: ...
    def search(
        self, runner: Callable[[list[list[int]]], list[tuple[float, int]]]
    ) -> tuple[str, str]: ...

def load(
    text: str,
    name: str,
    set: list[str],
    seed: int | None = None,
    controllers: dict[str, type] | None = None,
) -> Scenario: ...
def presets() -> list[tuple[str, str]]: ...
def preset_text(source: str) -> str | None: ...
def to_toml(data: dict[str, Any]) -> str: ...
def csv_head(keys: list[str]) -> str: ...
def csv_lines(lines: bytes) -> str: ...
def rows_table(lines: bytes, keys: list[str]) -> Table: ...
def cases() -> list[str]: ...
def reproduce(
    names: list[str] | None = None, progress: Callable[[int, int], object] | None = None
) -> tuple[str, list[str]]: ...
def theory(
    model: str,
    mss: str,
    rtt: str,
    loss: str,
    rate: str | None = None,
    window: str | None = None,
    extra_rtts: float | None = None,
    ack_delay: str | None = None,
    ack_every: int | None = None,
    rto: str | None = None,
    alpha: float | None = None,
    beta: float | None = None,
    w_max: float | None = None,
    run: str | None = None,
    cc: str | None = None,
    random: bool = False,
    seed: int = 1,
) -> tuple[str, str]: ...
def diagnose_files(
    sources: list[_Source],
    flow: int | None = None,
    cures: bool = True,
    progress: Callable[[int, int], object] | None = None,
) -> tuple[str, str, str]: ...
def connections_table(files: list[tuple[str, str | None, str | None]]) -> Table: ...
def sweep_page(about: str, lines: bytes, name: str) -> str | None: ...
def whatif(
    path: str,
    flow: int | None,
    compare: list[str],
    set: list[str],
    sender: str | None = None,
) -> tuple[str, str]: ...
def scenario_text(path: str, flow: int | None = None) -> str: ...
