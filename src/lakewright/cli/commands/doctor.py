"""`lakewright doctor`: whether machine and project have what a run needs, with a remedy for each lack."""

from __future__ import annotations

import platform
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lakewright.cli.call import Call
from lakewright.cli.group import command
from lakewright.cli.page import Block, Branch, Span, line
from lakewright.cli.progress import working
from lakewright.errors import LakewrightError, NotInstalled, SpecError

if TYPE_CHECKING:
    from lakewright.app import App

__all__ = ["Check", "doctor"]

OLDEST_PYTHON = (3, 11)
TESTED = {"pyspark": "4.2.0", "delta-spark": "4.4.0"}


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at: fine, or not and then with what to do.

    Attributes:
        is_ok: None where it couldn't be asked.
    """

    name: str
    is_ok: bool | None
    message: str
    remedy: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the check as `doctor -o json` prints it."""
        return {"name": self.name, "ok": self.is_ok, "message": self.message, "remedy": self.remedy}


@command(
    examples=["lakewright doctor", "lakewright doctor --start", "lakewright doctor -o json"],
)
@click.option("--start", is_flag=True, help="Start a Spark session too, which takes some seconds.")
@click.pass_obj
def doctor(call: Call, /, *, start: bool) -> int:
    """Check Python, Java, Spark, Delta, its jars, the project, its manifest and its folders.

    Each is OK, or comes with what to do about it.
    """
    with working(call.output, "looking"):
        checks = [*_of_machine(call.environ), *_of_project(call, start=start)]
    is_ok = all(check.is_ok is not False for check in checks)
    call.output.result({"ok": is_ok, "checks": [check.as_json() for check in checks]}, _page(checks))
    return 0 if is_ok else 1


def _page(checks: list[Check]) -> Iterator[Block]:
    width = max(len(check.name) for check in checks)
    marks = {
        True: Span("OK      ", "green"),
        False: Span("NOT OK  ", "bold red"),
        None: Span("SKIPPED ", "dim"),
    }
    for check in checks:
        below = (Branch(line(Span("do: ", "dim"), check.remedy)),) if check.remedy else ()
        yield Branch(line(marks[check.is_ok], check.name.ljust(width), "  ", check.message), below)


def _of_machine(environ: Mapping[str, str]) -> Iterator[Check]:
    yield _python()
    yield _guarded("Java", lambda: _java(environ))
    yield _package("Spark", "pyspark")
    yield _package("Delta", "delta-spark")
    yield _guarded("jars", lambda: _jars(environ))


def _python() -> Check:
    found = platform.python_version()
    if sys.version_info >= OLDEST_PYTHON:
        return Check("Python", True, f"{found} at {sys.executable}")
    return Check("Python", False, found, "Install Python 3.11 or newer.")


def _java(environ: Mapping[str, str]) -> str:
    from lakewright.lake.java import find_java

    java = find_java(environ)
    return f"{java.feature} at {java.home} (from {java.origin})"


def _package(name: str, distribution: str) -> Check:
    remedy = "Run `pip install 'lakewright[spark]'`."
    try:
        found = version(distribution)
    except PackageNotFoundError:
        return Check(name, False, f"{distribution} is not installed", remedy)
    tested = TESTED[distribution]
    note = "" if found == tested else f"; tested with {tested}"
    return Check(name, True, f"{distribution} {found}{note}")


def _jars(environ: Mapping[str, str]) -> str:
    from lakewright.lake.jars import DELTA_JARS, jars_folder, missing_jars

    folder = jars_folder(environ)
    missing = missing_jars(folder)
    if missing:
        names = ", ".join(jar.name for jar in missing)
        raise NotInstalled(
            f"{folder} lacks {names}",
            remedy="The first run fetches them; without a network, `python -m lakewright.lake.jars`.",
        )
    return f"{len(DELTA_JARS)} in {folder}"


def _guarded(name: str, ask: Callable[[], str]) -> Check:
    try:
        return Check(name, True, ask())
    except LakewrightError as error:
        return Check(name, False, str(error), error.remedy)
    except OSError as error:
        return Check(name, False, str(error), "See that the path exists and that this user may write there.")


def _of_project(call: Call, *, start: bool) -> Iterator[Check]:
    try:
        app = call.app
    except LakewrightError as error:
        yield _no_project(call, error)
        return
    project = app.project
    yield Check("project", True, f"{project.name} in {project.basedir}, {len(project.jobs)} jobs")
    yield _guarded("manifest", lambda: _manifest(app))
    yield _guarded("write access", lambda: _write_access(str(project.lake.root_folder)))
    if start:
        yield _guarded("session", lambda: _session(app))


def _no_project(call: Call, error: LakewrightError) -> Check:
    if isinstance(error, SpecError):
        count = len(error.faults)
        return Check(
            "project", False, f"{count} errors, the first: {error.faults[0]}", "See `lakewright validate`."
        )
    if call.settings.project is not None:
        return Check("project", False, str(error), error.remedy)
    return Check(
        "project", None, "none here or above: its manifest and folders can't be looked at", error.remedy
    )


def _manifest(app: App) -> str:
    items = sum(app.store.counts().values())
    kind = app.project.manifest.get("kind", "sqlite")
    return f"{kind}, answers, {items} verdicts"


def _write_access(root: str) -> str:
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", root) and not root.startswith("file:"):
        return f"{root} is not on this machine and wasn't tried"
    folder = Path(root.removeprefix("file://"))
    nearest = next(place for place in (folder, *folder.parents) if place.is_dir())
    with tempfile.TemporaryFile(dir=nearest):
        return f"{nearest} can be written" + ("" if nearest == folder else f"; {folder} will be made there")


def _session(app: App) -> str:
    return f"Spark {app.lake.spark.version} started"
