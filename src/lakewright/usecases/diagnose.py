"""Look after the machine, the project and its tables: diagnose, prepare, repair and maintain them."""

from __future__ import annotations

import platform
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from lakewright import doctor as repairing
from lakewright.app import App
from lakewright.doctor import Diagnosis, RepairPlan, examine
from lakewright.errors import LakewrightError, NotInstalled, SpecError, StorageUnavailable
from lakewright.errors.phrase import Command, Phrase
from lakewright.lake.cluster import check_cluster_settings, lake_master
from lakewright.lake.commit import Commit, commit_text
from lakewright.lake.files import files_at
from lakewright.lake.object_storage import KINDS, try_writes
from lakewright.lake.observation import missing_files, observe_table
from lakewright.lake.paths import is_stored, join, local_path
from lakewright.lake.s3 import S3
from lakewright.lake.spark_errors import query_failure
from lakewright.lake.storage_errors import store_fault
from lakewright.manifest.store import Query
from lakewright.plan.permissions import NO_PERMISSIONS, Permissions
from lakewright.slices.chain import without_continued
from lakewright.slices.deviations import lost_folder_fault
from lakewright.slices.discovery import list_bronze
from lakewright.slices.lost_table import find_loss
from lakewright.slices.rewind.side_table import REHEARSAL, left_beside, side_address
from lakewright.spark.cluster import check_master, is_cluster
from lakewright.spark.jars import fetch_jars, jars_folder, log_store_jar, missing_jars
from lakewright.spark.java import archive_path, find_java
from lakewright.spark.releases import (
    DELTA,
    Jar,
    delta_jars,
    installed_release,
    installed_version,
    is_client_alone,
    store_jars,
)
from lakewright.spec.models.entity import Entity
from lakewright.spec.words import counted
from lakewright.stores.backend import write_fault
from lakewright.stores.deferred_store import DeferredStore
from lakewright.stores.registry import select_backend
from lakewright.strategies.adoption import is_adoptable
from lakewright.strategies.outdated import rebuild_command
from lakewright.targets.context import RunOptions
from lakewright.targets.entity.maintenance import Maintenance, look_at_silver, maintain
from lakewright.targets.entity.table_rules import KEY_ALIKE
from lakewright.usecases.history import REPAIR
from lakewright.usecases.items import Rows, entity_application
from lakewright.usecases.rewinding import listed

OLDEST_PYTHON = (3, 11)
PATIENCE_OF_DOCTOR = 5.0
"""Seconds in which the master of a cluster must answer."""


def machine_checks(environ: Mapping[str, str]) -> Iterator[Check]:
    """Check Python, Java, Spark, Delta and its jars here; a client of Spark Connect needs no Java."""
    yield _python()
    if is_client_alone():
        yield Check("Spark", True, f"pyspark-client {installed_version()}, for Spark Connect")
        return
    yield guarded("Java", lambda: _java(environ))
    yield guarded("Spark", _spark)
    yield guarded("jars", lambda: _jars(environ, delta_jars(installed_release())))
    yield guarded("archive of classes", lambda: _archive(environ))


def _python() -> Check:
    found = platform.python_version()
    if sys.version_info >= OLDEST_PYTHON:
        return Check("Python", True, f"{found} at {sys.executable}")
    return Check("Python", False, found, "Install Python 3.11 or newer.")


def _java(environ: Mapping[str, str]) -> str:
    java = find_java(environ)
    return f"{java.feature} at {java.home} (from {java.origin})"


def _spark() -> str:
    installed_release()
    return f"pyspark {installed_version()}, with Delta Lake {DELTA}"


def _jars(environ: Mapping[str, str], jars: tuple[Jar, ...]) -> str:
    folder = jars_folder(environ)
    missing = missing_jars(folder, jars)
    if missing:
        number = f"{len(missing)} of {len(jars)}"
        return Phrase(
            "the first run, or ",
            Command("setup"),
            f", fetches {number} into {folder}; if it has no network, copy that folder from a "
            "machine that has one",
        )
    return f"{len(jars)} in {folder}"


def _archive(environ: Mapping[str, str]) -> str:
    archive = archive_path(find_java(environ), environ)
    if archive.is_file():
        return str(archive)
    return Phrase(
        "none, so that each start of Spark takes some seconds longer; ", Command("setup"), " makes it"
    )


def project_checks(app: App, *, starts_session: bool) -> Iterator[Check]:
    """Check a project's manifest and folders; with `starts_session`, also check that Spark starts."""
    project = app.project
    jobs = counted(len(project.jobs), "job")
    yield Check("project", True, f"{project.name} in {project.basedir}, {jobs}")
    yield guarded("manifest", lambda: _manifest(app))
    for kind in KINDS:
        if kind.name in app.lake.storage.used:
            yield guarded(
                f"jars for {kind.title}",
                partial(_jars, app.environ, store_jars(installed_release(), kind.name)),
            )
    if S3.name in app.lake.storage.used:
        yield guarded("log store for S3", lambda: str(log_store_jar()))
    if is_cluster(master := lake_master(app.lake)):
        yield guarded("cluster", lambda: _cluster(app, master))
    if starts_session:
        yield guarded("session", lambda: f"Spark {app.lake.spark.version} started")
    yield _write_check(app, str(project.lake.root_folder))


def _cluster(app: App, master: str) -> str:
    check_cluster_settings(app.lake, has_entities=bool(app.project.entities))
    check_master(master, PATIENCE_OF_DOCTOR, app.environ)
    return f"{master} accepts connections; a run checks its executors before it claims a slice"


def unopened_project(error: LakewrightError, *, is_named: bool) -> Check:
    """Return the check of a project that cannot be opened."""
    if isinstance(error, SpecError):
        count = counted(len(error.faults), "error")
        return Check(
            "project",
            False,
            Phrase(f"{count}, the first: ", error.faults[0].phrase),
            Phrase("See ", Command("validate"), "."),
        )
    if is_named:
        return Check("project", False, str(error), error.remedy)
    return Check(
        "project",
        None,
        "there is none here or above: manifest and folders were not checked",
        error.remedy,
    )


def _manifest(app: App) -> str:
    settings = app.manifest_settings
    kind, backend = settings["kind"], select_backend(settings)
    if (fault := write_fault(backend)) is not None:
        raise StorageUnavailable(f"{kind}: {fault.message}", remedy=fault.remedy or "")
    if isinstance(app.store, DeferredStore) and not app.store.exists:
        folder, is_local = backend.new_folder, backend.local_place is not None
        can = "" if is_local else "; that was not tried"
        can = can if folder is None else f"; {_write_access(str(folder))}"
        return f"{kind}, does not exist yet, the first run creates it{can}"
    items = sum(app.store.counts().values())
    ahead = (app.store.now() - datetime.now(UTC)).total_seconds()
    clock = f"; its clock is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} this machine's"
    tried = "" if backend.is_writable else "; writing was not tried"
    return f"{kind}, answers, {items} verdicts{tried}" + (clock if abs(ahead) >= 1 else "")


def _write_check(app: App, root: str) -> Check:
    """Write a file in the lake and remove it, unless only Spark could and its session was not asked for."""
    if local_path(root) is not None:
        return guarded("write access", lambda: _write_access(root))
    if is_stored(root) or app.lake.is_started:
        return guarded("write access", lambda: _remote_write_access(app, root))
    said = f"not checked: only Spark can write to {root}"
    return Check(
        "write access", None, said, Phrase(Command("doctor", "--start"), " starts Spark and tries it.")
    )


def _remote_write_access(app: App, root: str) -> str:
    if is_stored(root):
        try_writes(app.lake.storage, root)
    else:
        _try_hadoop(app, root)
    return f"a file was written to {root}, and removed"


def _try_hadoop(app: App, root: str) -> None:
    from py4j.protocol import Py4JJavaError

    files, probe = files_at(root, app.lake), join(root, f".lakewright-probe-{uuid4()}")
    try:
        files.write(probe, b"")
        files.remove(probe)
    except Py4JJavaError as error:
        fault = store_fault(str(error.java_exception.getMessage()))
        raise StorageUnavailable(f"{root} can't be written: {fault.reason}", remedy=fault.remedy) from error


def _write_access(root: str) -> str:
    folder = (local_path(root) or Path(root)).absolute()
    nearest = next(place for place in (folder, *folder.parents) if place.exists())
    if not nearest.is_dir():
        raise NotADirectoryError(f"{nearest} is a file, and {folder} needs a folder there")
    with tempfile.TemporaryFile(dir=nearest):
        return f"{nearest} is writable" + ("" if nearest == folder else f"; {folder} will be created there")


@dataclass(frozen=True, slots=True)
class EntityDiagnosis:
    """The checks of an entity and its table.

    Attributes:
        diagnosis: The violations found in the rows; None if the rows could not be read.
    """

    checks: tuple[Check, ...]
    diagnosis: Diagnosis | None


def diagnose_entity(app: App, entity: str) -> EntityDiagnosis:
    """Check an entity's slices, the rows of its silver table, and the table's commits; nothing is written.

    Raises:
        SpecError: There is no such entity.
    """
    found = app.project.entity(entity)
    checks = tuple(_entity_checks(app, found))
    try:
        diagnosis = examine(app.context(), found)
    except Exception as error:
        failure = error if isinstance(error, LakewrightError) else query_failure(error, "in the checks")
        if failure is None:
            raise
        failed = Check("rows", False, failure.message, failure.remedy)
        return EntityDiagnosis(tuple(reported_once((*checks, failed))), None)
    return EntityDiagnosis((*checks, *_row_checks(found, diagnosis)), diagnosis)


def plan_repair(app: App, entity: str, permissions: Permissions = NO_PERMISSIONS) -> RepairPlan | None:
    """Return the repair of an entity's silver table, or None if every rule holds; nothing is written.

    Raises:
        SpecError: There is no such entity.
    """
    context = app.context(options=RunOptions(permissions=permissions))
    return repairing.plan_repair(context, app.project.entity(entity))


def repair_table(app: App, entity: str, planned: RepairPlan, *, author: str, reason: str) -> int | None:
    """Make a planned repair and return the table's new version; the repair is recorded in the history.

    Raises:
        LeaseHeld: A run writes to the table.
        CommitConflict: The table has changed since the repair was planned; nothing was written.
    """
    found = app.project.entity(entity)
    facts = {"author": author, "reason": reason, "changed": planned.changed, "removed": planned.removed}
    with listed(app, f"doctor {found.name}", REPAIR, facts) as attempt:
        attempt.is_begun = True
        return repairing.repair(app.context(), found, planned, facts)


def _entity_checks(app: App, entity: Entity) -> Iterator[Check]:
    """Check an entity's slices, the locks or failures that hold them back, and its silver table."""
    remedy = "Set enabled: true where it is declared."
    yield Check(
        "entity",
        entity.enabled,
        f"{entity.called} ({entity.strategy.value})",
        None if entity.enabled else remedy,
    )
    yield guarded("bronze", lambda: _bronze(app, entity))
    yield from _held_slices(app, entity)
    yield guarded("silver", lambda: _silver(app, entity))
    yield from _beside(app, entity)


def _beside(app: App, entity: Entity) -> Iterator[Check]:
    """Say that a rebuild, an undo or a rehearsal has left a table beside the entity's own."""
    try:
        silver = entity.places(app.project.lake).silver
        rehearsal = side_address(silver, REHEARSAL)
        left = left_beside(app.lake, entity)
        is_rehearsal_left = observe_table(app.lake, rehearsal).exists
    except LakewrightError:
        return
    if left is not None:
        yield Check("beside", None, left.words, Phrase(Phrase(left.advice).capitalized(), "."))
    if is_rehearsal_left:
        said = f"{rehearsal} belongs to a rehearsal that is running, or was killed"
        yield Check("beside", None, said, "The next rehearsal of the entity removes what is left.")


def _row_checks(entity: Entity, diagnosis: Diagnosis) -> Iterator[Check]:
    """Return checks of the rows of an entity's table, and of who wrote them."""
    repair = Phrase(Command("doctor", entity.called, "--repair"), " shows what would repair it.")
    convert = Phrase(
        rebuild_command(entity),
        " makes one record of them: primary keys are then of the values after the cast.",
    )
    for finding in diagnosis.findings:
        remedy = convert if finding.rule == KEY_ALIKE else repair
        said = f"{finding.count:,} {finding.words}: {_samples(finding.samples, finding.count)}"
        yield Check("rows", False, said + _since(diagnosis.since.get(finding.rule)), remedy)
    if diagnosis.is_sound and diagnosis.version is not None:
        yield Check("rows", True, f"every rule holds in version {diagnosis.version}")
    if diagnosis.foreign_commits:
        last = diagnosis.foreign_commits[-1]
        count = counted(len(diagnosis.foreign_commits), "commit")
        text = f"{count} not by Lakewright changed rows, the last: {commit_text(last)}"
        again = Phrase(rebuild_command(entity).plus("--over-foreign"), " makes the table again without them.")
        yield Check("writers", None, text, again)


def _samples(samples: Sequence[Mapping[str, Any]], count: int) -> str:
    shown = "; ".join(", ".join(f"{key}={value}" for key, value in one.items()) for one in samples)
    return shown + (" …" if count > len(samples) else "")


def _since(commit: Commit | None) -> str:
    return "" if commit is None else f"; since {commit_text(commit)}"


def _bronze(app: App, entity: Entity) -> str:
    chain = app.chain(entity)
    listing = list_bronze(chain.folder, app.lake)
    if (lost := lost_folder_fault(chain, listing)) is not None:
        raise StorageUnavailable(lost.message, remedy=lost.remedy or "")
    slices = listing.slices
    last = f", the last is {slices[-1].name}" if slices else ""
    return f"{counted(len(slices), 'slice')} in {chain.folder.pattern}{last}"


def _held_slices(app: App, entity: Entity) -> Iterator[Check]:
    application = entity_application(app, entity.called)
    rows = Rows(app)
    counts: Counter[str] = Counter()
    bronze = entity.places(app.project.lake).bronze
    for item in without_continued(app.store, app.store.select(Query(application=application)), bronze):
        for row in rows.of(item, application):
            counts[row.verdict.value] += 1
            if row.verdict.is_blocking and row.advice:
                yield Check("slice", False, f"{row.slice} is {row.verdict.value}", row.advice)
    text = ", ".join(f"{count:,} {verdict}" for verdict, count in sorted(counts.items()))
    yield Check(
        "manifest",
        True,
        text or Phrase("has no slice yet; ", Command("manifest", "discover"), " records them"),
    )


def _silver(app: App, entity: Entity) -> str:
    chain = app.chain(entity)
    silver = chain.silver
    state = observe_table(app.lake, silver)
    if (lost := find_loss(chain)) is not None:
        raise lost
    if not state.exists:
        return f"{silver} does not exist yet: the first slice creates it"
    gone = [] if state.version is None else missing_files(app.lake, silver, state.version)
    if gone:
        files = counted(len(gone), "data file")
        raise StorageUnavailable(
            f"{silver}, version {state.version}, lacks {files}, such as {gone[0]}",
            remedy=Phrase(
                "Bring what is gone back, from a backup if there is one. Otherwise ",
                rebuild_command(entity),
                " builds the table again from its slices.",
            ),
        )
    later = "; the next slice checks its rows, and adopts it" if is_adoptable(entity, state) else ""
    return f"{silver}, version {state.version}, {counted(len(state.columns), 'column')}{later}"


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check, with a remedy if it failed.

    Attributes:
        is_ok: None if it could not be checked.
    """

    name: str
    is_ok: bool | None
    message: str
    remedy: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the check as `doctor -o json` prints it."""
        return {"name": self.name, "ok": self.is_ok, "message": self.message, "remedy": self.remedy}


def reported_once(checks: Iterable[Check]) -> Iterator[Check]:
    """Yield checks; one that failed with the message of an earlier one only refers to it."""
    first_names: dict[str, str] = {}
    for check in checks:
        first = check.name if check.is_ok is not False else first_names.setdefault(check.message, check.name)
        yield check if first == check.name else Check(check.name, None, f"not checked: see {first}")


def guarded(name: str, ask: Callable[[], str]) -> Check:
    """Return the check of a question, which failed if the question raised an error."""
    try:
        return Check(name, True, ask())
    except LakewrightError as error:
        return Check(name, False, str(error), error.remedy)
    except OSError as error:
        return Check(name, False, str(error), "Make sure that the path exists and is writable.")


@dataclass(frozen=True, slots=True)
class SetUp:
    """What was prepared.

    Attributes:
        fetched: The number of jars that were missing.
        jars: Their folder.
        archive: The archive of classes, or None if it could not be made.
        is_new: Whether the archive was made now.
    """

    fetched: int
    jars: Path
    archive: Path | None
    is_new: bool


def set_up(environ: Mapping[str, str]) -> SetUp:
    """Fetch missing jars, and make the archive of this environment unless it exists.

    Raises:
        NotInstalled: There is no Java or no PySpark, or a jar cannot be fetched.
        SparkUnavailable: The PySpark is of a release that is not supported.
    """
    java = find_java(environ)
    folder = jars_folder(environ)
    wanted = delta_jars(installed_release())
    missing = missing_jars(folder, wanted)
    fetch_jars(environ, wanted)
    archive = archive_path(java, environ)
    is_there = archive.is_file()
    if not is_there:
        # A former failure was marked; this time it is asked for.
        archive.with_suffix(".vain").unlink(missing_ok=True)
        # It is written by a JVM at its end, so a process of its own starts one and ends it.
        command = [sys.executable, "-m", "lakewright.spark.warmup"]
        done = subprocess.run(command, env=dict(environ), capture_output=True, text=True, check=False)
        if done.returncode:
            message, *rest = done.stderr.strip().splitlines() or ["the archive of classes could not be made"]
            raise NotInstalled(message, remedy=" ".join(rest) or None)
    return SetUp(len(missing), folder, archive if archive.is_file() else None, not is_there)


def maintain_table(app: App, entity: str, *, is_dry: bool = False) -> Maintenance:
    """Maintain an entity's table if its files call for it; a dry run only reports what would be done.

    Raises:
        SpecError: There is no such entity.
        LeaseHeld: Another run writes the table.
    """
    found = app.project.entity(entity)
    return look_at_silver(app.lake, found) if is_dry else maintain(app.lake, app.leases(), found)
