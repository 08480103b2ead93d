"""Diagnose the machine and the project: programs, jars, manifest and folders."""

from __future__ import annotations

import platform
import sys
import tempfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from lakewright.errors import LakewrightError, SpecError, StorageUnavailable
from lakewright.errors.phrase import Command, Phrase
from lakewright.lake.cluster import check_cluster_settings, lake_master
from lakewright.lake.files import files_at
from lakewright.lake.object_storage import try_writes
from lakewright.lake.paths import is_s3, join, local_path
from lakewright.lake.storage_errors import store_fault
from lakewright.spark.class_archive import archive_path
from lakewright.spark.cluster import check_master, is_cluster
from lakewright.spark.jars import DELTA_JARS, Jar, jars_folder, missing_jars
from lakewright.spark.java import find_java
from lakewright.spark.s3 import log_store_jar, s3_jars
from lakewright.spec.words import counted
from lakewright.stores.deferred import DeferredStore
from lakewright.stores.registry import select_backend
from lakewright.stores.write_access import write_fault
from lakewright.usecases.checks import Check, guarded

if TYPE_CHECKING:
    from lakewright.app import App

__all__ = ["machine_checks", "project_checks", "unopened_project"]

OLDEST_PYTHON = (3, 11)
PATIENCE_OF_DOCTOR = 5.0
"""Seconds in which the master of a cluster must answer."""
TESTED = {"pyspark": "4.2.0", "delta-spark": "4.4.0"}


def machine_checks(environ: Mapping[str, str]) -> Iterator[Check]:
    """Check Python, Java, Spark, Delta and its jars on this machine."""
    yield _python()
    yield guarded("Java", lambda: _java(environ))
    yield _package("Spark", "pyspark")
    yield _package("Delta", "delta-spark")
    yield guarded("jars", lambda: _jars(environ))
    yield guarded("archive of classes", lambda: _archive(environ))


def _python() -> Check:
    found = platform.python_version()
    if sys.version_info >= OLDEST_PYTHON:
        return Check("Python", True, f"{found} at {sys.executable}")
    return Check("Python", False, found, "Install Python 3.11 or newer.")


def _java(environ: Mapping[str, str]) -> str:
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


def _jars(environ: Mapping[str, str], jars: tuple[Jar, ...] = DELTA_JARS) -> str:
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
    archive = archive_path(find_java(environ))
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
    if app.lake.storage.is_used:
        yield guarded("jars for S3", lambda: _jars(app.environ, s3_jars()))
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
    if is_s3(root) or app.lake.is_started:
        return guarded("write access", lambda: _remote_write_access(app, root))
    said = f"not checked: only Spark can write to {root}"
    return Check(
        "write access", None, said, Phrase(Command("doctor", "--start"), " starts Spark and tries it.")
    )


def _remote_write_access(app: App, root: str) -> str:
    if is_s3(root):
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
