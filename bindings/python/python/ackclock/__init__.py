"""Ackclock: diagnosis and simulation of slow TCP and QUIC transfers.

>>> import ackclock
>>> run = ackclock.run("scenarios/slow-start-lro.toml")  # doctest: +SKIP
>>> run.flows[0].goodput_bps  # doctest: +SKIP

Reading order: :func:`scenario` and :func:`run` (one run), :func:`sweep` (many), :func:`diagnose` (why a
captured transfer was slow), :func:`whatif` (a captured transfer with other senders), :func:`theory`
(throughput formulas), :func:`reproduce` (published figures and ours), :func:`suite` and :func:`hunt`
(evaluation of a congestion controller, and its worst case), :class:`Controller` (user-defined controllers). Every column and attribute has
its unit in its name: ``_s`` seconds, ``_bps`` bit/s, ``_bytes`` bytes, ``_mss`` full segments.
"""

from ._engine import VERSION as __version__
from ._engine import Loss, Report, RunError, Scenario, ScenarioError, Table
from .captures import Diagnosis, WhatIf, diagnose, scenario_from, whatif
from .cases import CaseReport, Figure, reproduce
from .controllers import Controller, register
from .folders import Diagnoses, diagnose_folder
from .formulas import Estimate, Theory, theory
from .runs import Flow, Run, run
from .scenarios import presets, scenario
from .suites import HuntReport, SuiteReport, hunt, suite
from .sweeps import Sweep, sweep
from .tables import to_arrow, to_pandas, to_polars

__all__ = [
    "CaseReport",
    "Controller",
    "Diagnoses",
    "Diagnosis",
    "Estimate",
    "Figure",
    "Flow",
    "HuntReport",
    "Loss",
    "Report",
    "Run",
    "RunError",
    "Scenario",
    "ScenarioError",
    "SuiteReport",
    "Sweep",
    "Table",
    "Theory",
    "WhatIf",
    "__version__",
    "diagnose",
    "diagnose_folder",
    "hunt",
    "presets",
    "register",
    "reproduce",
    "run",
    "scenario",
    "scenario_from",
    "suite",
    "sweep",
    "theory",
    "to_arrow",
    "to_pandas",
    "to_polars",
    "whatif",
]
