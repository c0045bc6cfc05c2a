"""The notebooks in `examples/` run without errors."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from conftest import ROOT
from test_runs import ENDLESS

NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def test_there_is_one_for_each_seed_and_one_for_users() -> None:
    assert len(NOTEBOOKS) >= 5


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs(path: Path) -> None:
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(path, as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells), "commit it without outputs"
    client = nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}
    )
    client.execute()
    assert any(cell.get("outputs") for cell in notebook.cells)


def test_interrupting_the_kernel_ends_only_a_long_cell() -> None:
    manager = pytest.importorskip("jupyter_client.manager")
    kernel, client = manager.start_new_kernel(kernel_name="python3")
    try:
        begin = "import ackclock, sys; sys.path.insert(0, 'bindings/python/tests')\nfrom conftest import WORLD"
        client.execute_interactive(f"import os; os.chdir({str(ROOT)!r})\n{begin}", timeout=60)
        cell = client.execute(f"ackclock.run(WORLD, set={ENDLESS})")
        while client.get_iopub_msg(timeout=60)["header"]["msg_type"] != "execute_input":
            pass
        time.sleep(0.3)
        kernel.interrupt_kernel()
        answer = client.get_shell_msg(timeout=60)
        assert answer["parent_header"]["msg_id"] == cell
        assert answer["content"]["ename"] == "KeyboardInterrupt"
        # The kernel is still usable.
        reported: list[str] = []
        client.execute_interactive(
            "run = ackclock.run(WORLD); run",
            timeout=60,
            output_hook=lambda message: reported.extend(message["content"].get("data", {})),
        )
        assert "text/html" in reported
    finally:
        client.stop_channels()
        kernel.shutdown_kernel(now=True)
