"""The documented examples run: the README's five lines in a fresh environment, the rest here."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from conftest import ROOT


def blocks(path: Path) -> list[str]:
    """The blocks of Python in a document."""
    return re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)


def test_five_lines_run_after_pip_install_in_a_fresh_environment(tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (script,) = blocks(ROOT / "README.md")
    assert len(script.splitlines()) == 5 and "`pip install .`" in readme
    if shutil.which("cargo") is None:
        pytest.skip("pip install . needs Rust")
    venv.create(tmp_path / "fresh", with_pip=True)
    python = tmp_path / "fresh" / "bin" / "python"
    # Without the variables of this pytest run.
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "."]
    subprocess.run(install, cwd=ROOT, env=environment, check=True)
    done = subprocess.run(
        [python, "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "CC401" in done.stdout and "Mbit/s" in done.stdout
    # It is the package in the environment, not one next to the script.
    where = [python, "-c", "import ackclock; print(ackclock.__file__)"]
    found = subprocess.run(where, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.startswith(str(tmp_path))


@pytest.mark.parametrize("name", ["docs/python.md", "docs/adding-a-controller.md", "bindings/python/README.md"])
def test_the_blocks_of_a_page_run_one_after_the_other(name: str, tmp_path: Path) -> None:
    for folder in ("scenarios", "golden"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    # A file, so that processes started from it find its definitions.
    body = "\n".join(blocks(ROOT / name))
    script = tmp_path / "page.py"
    indented = "".join(f"    {line}" if line.strip() else line for line in body.splitlines(True))
    script.write_text(f"import matplotlib\nmatplotlib.use('Agg')\nif __name__ == '__main__':\n{indented}")
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
