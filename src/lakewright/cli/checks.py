"""Checks of the machine, the project and one entity: each thing is fine, or comes with what to do."""

from __future__ import annotations

import platform
import re
import shlex
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakewright.cli.items import Listing, entity_application
from lakewright.cli.render.items import advice
from lakewright.cli.render.words import counted
from lakewright.errors import LakewrightError, NotInstalled, SpecError
from lakewright.manifest.store import Query
from lakewright.stores.deferred import DeferredStore
from lakewright.stores.registry import select_backend

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.doctor.examination import Diagnosis
    from lakewright.lake.commit import Commit
    from lakewright.spec.models.entity import Entity

__all__ = ["Check", "diagnosis_checks", "entity_checks", "machine_checks", "no_project", "project_checks"]

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


def machine_checks(environ: Mapping[str, str]) -> Iterator[Check]:
    """Yield what there is to say of this machine and of what is installed."""
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
    from lakewright.spark.java import find_java

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
    from lakewright.spark.jars import DELTA_JARS, jars_folder, missing_jars

    folder = jars_folder(environ)
    missing = missing_jars(folder)
    if missing:
        names = ", ".join(jar.name for jar in missing)
        raise NotInstalled(
            f"{folder} lacks {names}",
            remedy="The first run fetches them; without a network, `python -m lakewright.spark.jars`.",
        )
    return f"{len(DELTA_JARS)} in {folder}"


def _guarded(name: str, ask: Callable[[], str]) -> Check:
    try:
        return Check(name, True, ask())
    except LakewrightError as error:
        return Check(name, False, str(error), error.remedy)
    except OSError as error:
        return Check(name, False, str(error), "See that the path exists and that this user may write there.")


def project_checks(app: App, *, starts_session: bool) -> Iterator[Check]:
    """Yield what there is to say of a project's manifest and folders, and perhaps of its session."""
    project = app.project
    jobs = counted(len(project.jobs), "job")
    yield Check("project", True, f"{project.name} in {project.basedir}, {jobs}")
    yield _guarded("manifest", lambda: _manifest(app))
    yield _guarded("write access", lambda: _write_access(str(project.lake.root_folder)))
    if starts_session:
        yield _guarded("session", lambda: _session(app))


def entity_checks(app: App, entity: Entity) -> Iterator[Check]:
    """Yield what there is to say of one entity: its slices, what holds them back, its silver table."""
    remedy = "Set enabled: true where it is declared."
    yield Check(
        "entity",
        entity.enabled,
        f"{entity.name} ({entity.strategy.value})",
        None if entity.enabled else remedy,
    )
    yield _guarded("bronze", lambda: _bronze(app, entity))
    yield from _held_slices(app, entity)
    yield _guarded("silver", lambda: _silver(app, entity))


def diagnosis_checks(entity: Entity, diagnosis: Diagnosis) -> Iterator[Check]:
    """Yield what is wrong with the rows of an entity's table, and with the slices that it should hold."""
    remedy = f"`lakewright doctor {shlex.quote(entity.name)} --repair` shows what would mend it."
    for finding in diagnosis.findings:
        said = f"{finding.count:,} {finding.words}: {_samples(finding.samples, finding.count)}"
        yield Check("rows", False, said + _since(diagnosis.since.get(finding.rule)), remedy)
    for mismatch in diagnosis.mismatches:
        yield Check("commits", False, mismatch.words, mismatch.remedy)
    if diagnosis.is_sound and diagnosis.version is not None:
        yield Check("rows", True, f"every rule holds in version {diagnosis.version}")
    if diagnosis.strangers:
        last = diagnosis.strangers[-1]
        count = counted(len(diagnosis.strangers), "commit")
        yield Check("writers", None, f"{count} not by Lakewright changed rows, the last: {_told(last)}")


def _samples(samples: Sequence[Mapping[str, Any]], count: int) -> str:
    shown = "; ".join(", ".join(f"{key}={value}" for key, value in one.items()) for one in samples)
    return shown + (" …" if count > len(samples) else "")


def _since(commit: Commit | None) -> str:
    return "" if commit is None else f"; since {_told(commit)}"


def _told(commit: Commit) -> str:
    at = f" of {commit.at:%Y-%m-%d %H:%M}" if commit.at is not None else ""
    item = commit.content.get("item")
    whose = f", slice {str(item).rpartition('/')[2]}" if item else ""
    return f"version {commit.version}{at} ({commit.operation}{whose})"


def _bronze(app: App, entity: Entity) -> str:
    from lakewright.slices.discover import list_slices

    place = entity.places(app.project.lake).bronze
    slices = list_slices(place, app.lake)
    last = f", the last is {slices[-1].name}" if slices else ""
    return f"{counted(len(slices), 'slice')} in {place}{last}"


def _held_slices(app: App, entity: Entity) -> Iterator[Check]:
    application = entity_application(app, entity.name)
    listing = Listing(app.store, app.ledger.lock)
    counts: Counter[str] = Counter()
    for item in app.store.select(Query(application=application)):
        for row in listing.rows(item, application):
            counts[row.verdict.value] += 1
            if row.verdict.is_blocking and (typed := advice(row)):
                yield Check("slice", False, f"{row.slice} is {row.verdict.value}", f"`{typed}`")
    told = ", ".join(f"{count:,} {verdict}" for verdict, count in sorted(counts.items()))
    yield Check("manifest", True, told or "knows no slice yet; `lakewright manifest discover` records them")


def _silver(app: App, entity: Entity) -> str:
    from lakewright.lake.observation import observe_table

    silver = entity.places(app.project.lake).silver
    state = observe_table(app.lake, silver)
    if not state.exists:
        return f"{silver} isn't there yet: the first slice makes it"
    return f"{silver}, version {state.version}, {counted(len(state.columns), 'column')}"


def no_project(error: LakewrightError, *, is_named: bool) -> Check:
    """Return what to say where the project can't be opened."""
    if isinstance(error, SpecError):
        count = len(error.faults)
        return Check(
            "project", False, f"{count} errors, the first: {error.faults[0]}", "See `lakewright validate`."
        )
    if is_named:
        return Check("project", False, str(error), error.remedy)
    return Check(
        "project", None, "none here or above: its manifest and folders can't be looked at", error.remedy
    )


def _manifest(app: App) -> str:
    settings = app.manifest_settings()
    kind = settings["kind"]
    if isinstance(app.store, DeferredStore) and not app.store.exists:
        folder = select_backend(settings).new_folder
        can = "" if folder is None else f"; {_write_access(str(folder))}"
        return f"{kind}, isn't there yet, the first run makes it{can}"
    items = sum(app.store.counts().values())
    ahead = (app.store.now() - datetime.now(UTC)).total_seconds()
    clock = f"; its clock is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} this machine's"
    return f"{kind}, answers, {items} verdicts" + (clock if abs(ahead) >= 1 else "")


def _write_access(root: str) -> str:
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", root) and not root.startswith("file:"):
        return f"{root} is not on this machine and wasn't tried"
    folder = Path(root.removeprefix("file://"))
    nearest = next(place for place in (folder, *folder.parents) if place.is_dir())
    with tempfile.TemporaryFile(dir=nearest):
        return f"{nearest} can be written" + ("" if nearest == folder else f"; {folder} will be made there")


def _session(app: App) -> str:
    return f"Spark {app.lake.spark.version} started"
