"""What is loaded before anything is asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("pyspark", "delta", "deltalake", "sqlalchemy", "pydantic", "jinja2", "rich", "yaml")


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["job", "--help"], ["manifest", "--help"]])
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    """Rules of the command line: help and version answer without loading Spark."""
    code = (
        "import sys\nfrom lakewright.cli import main\n"
        f"code = main({arguments!r})\n"
        f"found = [name for name in {HEAVY!r} if name in sys.modules]\n"
        "sys.exit(f'loaded: {found}' if found else code)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_the_package_is_a_command() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "lakewright", "--version"], capture_output=True, text=True, check=False
    )
    assert ended.stdout.startswith("lakewright ")
