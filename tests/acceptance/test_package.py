"""What is released installs and runs outside of a checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src"


def run(*command: str | Path, folder: Path) -> str:
    """Return the output of a command that neither imports from this checkout nor reads the network."""
    environ = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {"UV_OFFLINE": "1"}
    done = subprocess.run(command, cwd=folder, env=environ, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", folder, folder=ROOT)
    with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
        archive.extractall(folder, filter="data")
    return next(path for path in folder.iterdir() if path.is_dir())


@pytest.fixture(scope="module")
def wheel(sdist: Path) -> Path:
    """A wheel that is built from the source distribution, as an installer without wheels would."""
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", folder=sdist)
    return next((sdist / "dist").glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command of an environment with the wheel, which finds what it depends on in this one."""
    folder = tmp_path_factory.mktemp("environment")
    uv = run(ROOT / "scripts" / "find-uv", folder=ROOT).strip()
    run(uv, "venv", "--quiet", "--python", sys.executable, "env", folder=folder)
    python = folder / "env" / "bin" / "python"
    run(uv, "pip", "install", "--quiet", "--no-deps", "--python", python, wheel, folder=folder)
    libraries = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", folder=folder)
    Path(libraries.strip(), "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return python.with_name("lakewright")


def test_the_wheel_has_the_sources_with_their_data_and_the_jar_and_nothing_else(wheel: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    sources = {path.relative_to(SOURCES) for path in SOURCES.rglob("*") if path.is_file()}
    assert names == {str(path) for path in sources if "__pycache__" not in path.parts}
    assert "lakewright/spark/lakewright-storage.jar" in names


def test_a_source_distribution_has_what_make_needs(sdist: Path) -> None:
    needed = ("Makefile", "mkdocs.yml", "requirements/dev.txt", "scripts/setup", "tests", "SECURITY.md")
    assert [name for name in needed if not (sdist / name).exists()] == []


def test_an_installed_wheel_makes_a_project_that_is_valid(installed: Path, tmp_path: Path) -> None:
    version = run(installed, "--version", folder=tmp_path).split()[-1]
    assert f'version = "{version}"' in (ROOT / "pyproject.toml").read_text()
    run(installed, "init", "lake", folder=tmp_path)
    assert "is valid" in run(installed, "validate", folder=tmp_path / "lake")
