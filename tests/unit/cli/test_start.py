"""What is loaded before anything is asked for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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


@pytest.mark.parametrize("options", [(), ("-o", "json"), ("-o", "json", "--state", "none")])
def test_a_reader_that_has_enough_is_no_error_to_tell(tmp_path: Path, options: tuple[str, ...]) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "project.yml").write_text("name: shop\nmodules: [model]\n")
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "lakewright", "manifest", "ls", "--project", str(tmp_path), *options]
    ended = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (ended.returncode, "Traceback" in ended.stderr, "Broken" in ended.stderr) == (1, False, False)


@pytest.mark.parametrize("module", ["logging", "lakewright", "click", "lakewright.cli.output"])
def test_ctrl_c_while_modules_are_imported_prints_no_traceback(module: str) -> None:
    """B8: the signal comes at the import of a module; the command ends with 130."""
    code = (
        "import os, signal, sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}:\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from lakewright_command import main\n"
        f"sys.modules.pop({module!r}, None)\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "sys.exit(main())"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (130, "error: interrupted\n")
