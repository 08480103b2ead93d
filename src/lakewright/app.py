"""The composition root: a project's files, the machine's clock and ids, its stores and Spark, put together.

Everything below takes what it needs as arguments; this is where the arguments are made.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import lakewright.connections
import lakewright.documentation.checks
import lakewright.mappings
import lakewright.relations
import lakewright.run.hooks
import lakewright.schemas
import lakewright.targets
import lakewright.targets.assertions
import lakewright.targets.datasets
import lakewright.targets.measures
from lakewright.connections.jdbc import driver_jars
from lakewright.doctor.examination import Diagnosis, Repair, examine, plan_repair, repair
from lakewright.errors import Fault, LakewrightError, SpecError, UsageError
from lakewright.lake.catalog import needs_catalog
from lakewright.lake.lake import Lake
from lakewright.manifest.journal import Journal
from lakewright.manifest.lease import Leases
from lakewright.manifest.ledger import Ledger, Takeover
from lakewright.manifest.record import Agent, Author
from lakewright.manifest.redact import Redactor
from lakewright.manifest.settings import kept_since, lease_duration, takeover
from lakewright.manifest.store import Store
from lakewright.plan.graph import Node
from lakewright.plan.permissions import NO_PERMISSIONS, Permissions
from lakewright.plan.step import Plan
from lakewright.run.case import CaseRun, moved_lake, moves_of
from lakewright.run.circles import find_circles
from lakewright.run.docs import Docs, DocsRequest, write_docs
from lakewright.run.execute import Interruption, Listener
from lakewright.run.job import JobRequest, JobRun
from lakewright.run.result import RunResult
from lakewright.slices.context import ProcessingOptions
from lakewright.slices.process import process_pending
from lakewright.slices.result import ProcessResult
from lakewright.spark.metastore import CATALOG
from lakewright.spark.session import OwnSession, Sessions, SessionSettings, throw_away_conf
from lakewright.spec.definitions.registry import Registry
from lakewright.spec.loading.case_setup import set_up_case
from lakewright.spec.loading.loader import load_project
from lakewright.spec.models.entity import Entity, Strategy
from lakewright.spec.project import Project
from lakewright.spec.reading.files import PROJECT_FILE
from lakewright.stores.deferred import DeferredStore
from lakewright.stores.memory import MemoryStore
from lakewright.stores.process import is_dead, this_process
from lakewright.stores.registry import check_manifest, open_lazily, read_store, resolve_settings
from lakewright.targets.context import Context, RunOptions
from lakewright.targets.defaults import TargetDefaults
from lakewright.targets.entity.maintenance import Maintenance, look_at_silver, maintain
from lakewright.targets.entity.work import processing_context
from lakewright.workspace.workspace import Workspace

log = logging.getLogger(__name__)

__all__ = ["App", "JobRequest", "find_project", "registry"]


def registry() -> Registry:
    """Return every kind that the tool offers, each imported when a project uses it."""
    packages = {
        "connection": lakewright.connections,
        "relation": lakewright.relations,
        "mapping": lakewright.mappings,
        "schema": lakewright.schemas,
        "target": lakewright.targets,
        "assertion": lakewright.targets.assertions,
        "check": lakewright.documentation.checks,
        "dataset": lakewright.targets.datasets,
        "measure": lakewright.targets.measures,
        "hook": lakewright.run.hooks,
    }
    return Registry(
        {category: package.KINDS for category, package in packages.items()},
        absent={category: package.NOT_OFFERED for category, package in packages.items()},
    )


def find_project(start: Path) -> Path:
    """Return the nearest folder upwards from `start` that holds a project.

    Raises:
        UsageError: There is none.
    """
    for folder in (start.absolute(), *start.absolute().parents):
        if (folder / PROJECT_FILE).is_file():
            return folder
    raise UsageError(
        f"there is no {PROJECT_FILE} in {start.absolute()} or above",
        remedy="Go to a project's folder, name it with --project, or make one with `lakewright init`.",
    )


def _utc_now() -> datetime:
    return datetime.now(UTC)


def _new_id() -> str:
    return str(uuid4())


@dataclass
class App:
    """A project with everything that its commands need, each part opened on first use.

    Attributes:
        environ: The process's environment.
        say: Prints a line of a target's own output.
        sessions: Starts and stops the Spark session of the lake.
    """

    project: Project
    environ: Mapping[str, str]
    clock: Callable[[], datetime] = _utc_now
    ids: Callable[[], str] = _new_id
    say: Callable[[str], None] = print
    run_id: str = field(default_factory=_new_id)
    sessions: Sessions = field(default_factory=OwnSession)

    @classmethod
    def open(
        cls,
        folder: Path | None = None,
        *,
        profiles: Sequence[str] = (),
        definitions: Mapping[str, str] | None = None,
        config: Mapping[str, str] | None = None,
        environ: Mapping[str, str] | None = None,
        say: Callable[[str], None] = print,
        sessions: Sessions | None = None,
    ) -> App:
        """Return the project in `folder`, or in the nearest folder upwards that holds one.

        Spark is started by `sessions`; without it, the app builds a session of its own when it needs one.

        Raises:
            SpecError: The project's files are wrong; the error has every fault.
            UsageError: There is no project.
        """
        environ = os.environ if environ is None else environ
        project = load_project(
            find_project(Path.cwd()) if folder is None else folder,
            kinds=registry(),
            profiles=tuple(profiles),
            definitions=definitions,
            config=config,
            environ=environ,
            clock=_utc_now,
            check_manifest=check_manifest,
        )
        return cls(project, environ, say=say, sessions=sessions or OwnSession())

    @property
    def warnings(self) -> tuple[Fault, ...]:
        """What was noticed while loading that isn't an error."""
        return self.project.warnings

    @cached_property
    def redactor(self) -> Redactor:
        """Takes the project's secrets out of whatever is recorded or shown."""
        project = self.project
        return Redactor.of(
            project.config, self.environ, secrets=project.secrets, met=project.scope.seen_secrets
        )

    @cached_property
    def lake(self) -> Lake:
        """The lake, whose Spark session starts on first use."""
        conf = {key: value for key, value in self.project.config.items() if key.startswith("spark.")}
        if needs_catalog(self.project):
            conf.setdefault(CATALOG, "hive")
        return Lake(
            self.project.lake,
            SessionSettings(
                self._state_folder(),
                app_name=f"lakewright {self.project.name}",
                conf=conf,
                drivers=driver_jars(self.project),
            ),
            sessions=self.sessions,
        )

    def manifest_settings(self) -> dict[str, Any]:
        """Return what `manifest:` says with its defaults; relative places begin at the project."""
        return resolve_settings(self.project.manifest, self.project.basedir)

    @cached_property
    def store(self) -> Store:
        """The manifest's back end; where there is none yet, the first write makes it."""
        return open_lazily(self.manifest_settings())

    @cached_property
    def ledger(self) -> Ledger:
        """The manifest's items and locks, written to as this tool."""
        return self._ledger(self.store, Author(Agent("lakewright", version("lakewright"))))

    @cached_property
    def journal(self) -> Journal:
        """The history of runs."""
        return self._journal(self.store)

    @property
    def lease_duration(self) -> timedelta:
        """How long a lease lasts without a heartbeat."""
        return lease_duration(self.project.manifest)

    @property
    def takeover(self) -> Takeover:
        """Who may take over a stale lock: the next run, or only an operator."""
        return takeover(self.project.manifest)

    def check(self) -> None:
        """Return where nothing is wrong with the project as far as shows without Spark or data.

        Raises:
            SpecError: Targets of a job read in a circle what they write.
        """
        if faults := tuple(find_circles(self.project, self.lake.session)):
            raise SpecError(faults)

    def plan(self, request: JobRequest) -> Plan:
        """Return what a run would do. Nothing is written anywhere, not even an empty manifest.

        Raises:
            SpecError: The job, its arguments or a definition are wrong.
        """

        def plan(store: Store) -> Plan:
            return self._job_run(request, store).plan()

        return read_store(self.manifest_settings(), plan)

    def nodes(self, request: JobRequest) -> dict[str, Node]:
        """Return what each target of a job needs and gives in one phase of its first instance.

        Raises:
            SpecError: The job, its arguments or a definition are wrong.
        """
        return self._job_run(request, MemoryStore()).nodes()

    @contextmanager
    def rehearsing(
        self, interruption: Interruption | None = None, *, keep_going: bool = False
    ) -> Iterator[Callable[[str], CaseRun]]:
        """Give what makes a test of the project ready to run, by its name.

        Whatever tests write lies in a folder that is removed afterwards; lake, manifest and history of the
        project are left alone.
        """
        conf = throw_away_conf(self.project.config)
        with TemporaryDirectory(prefix="lakewright-test-") as folder:
            session = SessionSettings(
                Path(folder) / "session",
                app_name="lakewright test",
                conf=conf,
                drivers=driver_jars(self.project),
            )
            shared = Lake(self.project.lake, session, sessions=self.sessions)
            try:
                yield partial(self._case, Path(folder), shared, interruption, keep_going)
            finally:
                shared.stop()

    def _case(
        self,
        folder: Path,
        shared: Lake,
        interruption: Interruption | None,
        keep_going: bool,
        name: str,
    ) -> CaseRun:
        stage = set_up_case(self.project, name)
        moves = moves_of(stage, shared, folder / f"test-{name}")
        store = MemoryStore()
        return CaseRun(
            stage=stage,
            lake=moved_lake(shared, moves),
            journal=self._journal(store),
            context=self._context(
                RunOptions(permissions=Permissions(allow_data_loss=True)), store, interruption
            ),
            clock=self.clock,
            environ=self.environ,
            keep_going=keep_going,
        )

    def process(
        self,
        entity: str,
        slice: str | None = None,
        *,
        strategy: str | None = None,
        processing_time: str | None = None,
        permissions: Permissions = NO_PERMISSIONS,
        wait: bool = False,
        interruption: Interruption | None = None,
    ) -> ProcessResult:
        """Return what processing an entity's pending slices, or one of them, came to.

        Args:
            entity: Its name or id.
            slice: Name of the slice; all that are ready unless given.
            strategy: `full`, `merge` or `historic` in place of the entity's own.
            processing_time: ISO 8601.
            permissions: What the run may do that is refused by default.
            wait: Wait for what another run holds.
            interruption: Asked between slices whether to stop.

        Raises:
            SpecError, UsageError: There is no such entity, slice or strategy, or the entity is disabled.
            BackdatedError: The processing time isn't later than what the table holds.
        """
        found = self.project.entity(entity)
        if not found.enabled:
            raise UsageError(
                f"the entity {found.name!r} is disabled",
                remedy="Set enabled: true where it, or its connection, is declared.",
            )
        self._make_store()
        options = ProcessingOptions(
            strategy=None if strategy is None else Strategy(strategy),
            processing_time=processing_time,
            permissions=permissions,
            wait=wait,
        )
        run_options = RunOptions(permissions=permissions, wait=wait)
        workspace = Workspace(self.project, self.project.scope, self.lake)
        context = self._context(run_options, self.store, interruption)(workspace)
        result = process_pending(processing_context(context, found, options), found, slice=slice)
        if result.slices and result.error is None and not result.is_stopped:
            self._keep_in_shape(found)
        return result

    def maintain(self, entity: str, *, is_dry: bool = False) -> Maintenance:
        """Return what was done, or would be, to keep the files of an entity's table few and lean.

        Raises:
            SpecError: There is no such entity.
            LeaseHeld: Another run writes the table.
        """
        found = self.project.entity(entity)
        return (
            look_at_silver(self.lake, found)
            if is_dry
            else maintain(self.lake, self._leases(self.store), found)
        )

    def _keep_in_shape(self, entity: Entity) -> None:
        """Maintain a table whose entity asks for it; where that can't be done now, a later run will."""
        if not entity.settings.maintenance.enabled:
            return
        try:
            maintain(self.lake, self._leases(self.store), entity)
        except Exception as error:  # the slices are in: what is only for speed must not fail them
            log.warning("%s: maintenance failed, and the next run tries again: %s", entity.name, error)

    def _leases(self, store: Store) -> Leases:
        return Leases(
            store, this_process(self.run_id), self.ids, duration=self.lease_duration, is_dead=is_dead
        )

    def run(self, request: JobRequest, *, listener: Listener, interruption: Interruption) -> RunResult:
        """Return how a run of the job ended; it is recorded from its start on.

        Raises:
            SpecError: The job, its arguments or a definition are wrong; nothing ran.
            StoreUnavailable: The manifest's back end doesn't answer; nothing ran.
        """
        since = kept_since(self.project.manifest, self.store.now)
        self._make_store()
        result = self._job_run(request, self.store, interruption).run(
            run_id=self.run_id,
            holder=this_process(self.run_id),
            listener=listener,
            interruption=interruption,
            facts=_versions(),
        )
        if since is not None:
            self._prune(since)
        return result

    def _make_store(self) -> None:
        """Have the manifest made before it is asked many things, which costs a connection each until then."""
        if isinstance(self.store, DeferredStore):
            self.store.create()

    def _prune(self, before: datetime) -> None:
        """Remove what is old from the history; the run that has just ended doesn't fail by that."""
        try:
            for run in self.journal.old_runs(before):
                self.journal.delete(run)
        except LakewrightError as error:
            log.warning("old runs could not be removed from the history: %s", error)

    def document(self, request: DocsRequest) -> Docs:
        """Return the project's documentation, written where `documentation.yml` says.

        Raises:
            SpecError: `documentation.yml`, the job or its arguments are wrong; nothing was written.
        """
        context = self._context(RunOptions(), self.store, None)
        return write_docs(self.project, self.lake, self.journal, context, request)

    def examine(self, entity: Entity) -> Diagnosis:
        """Return what is wrong with an entity's silver table, and since when; nothing is written."""
        return examine(self._desk(), entity)

    def plan_repair(self, entity: Entity, permissions: Permissions = NO_PERMISSIONS) -> Repair | None:
        """Return what would put an entity's silver table right, or None; nothing is written."""
        return plan_repair(self._desk(permissions), entity)

    def repair(self, entity: Entity, planned: Repair, *, author: str, reason: str) -> int | None:
        """Return the version of the table after a planned repair, which the history of runs keeps.

        Raises:
            LeaseHeld: A run writes to the table.
            CommitConflict: The table has changed since the repair was planned; nothing was written.
        """
        return repair(self._desk(), entity, planned, self.journal, author=author, reason=reason)

    def _desk(self, permissions: Permissions = NO_PERMISSIONS) -> Context:
        """What work outside of a job is given to work with."""
        workspace = Workspace(self.project, self.project.scope, self.lake)
        options = RunOptions(permissions=permissions)
        return self._context(options, self.store, None)(workspace)

    def close(self) -> None:
        """Let go of the store and stop Spark, if they were used."""
        for part, stop in (("lake", "stop"), ("store", "close")):
            if part in self.__dict__:
                getattr(self.__dict__.pop(part), stop)()

    def _job_run(self, request: JobRequest, store: Store, interruption: Interruption | None = None) -> JobRun:
        always = self.project.config.get("lakewright.execution.target.forceDirty", "").strip().lower()
        request = replace(request, force=request.force or always == "true")
        options = RunOptions(
            permissions=request.permissions,
            wait=request.wait,
            preview=request.preview,
        )
        context = self._context(options, store, interruption)
        journal = self._journal(store)
        return JobRun(self.project, self.lake, journal, request, context, self.clock, self.environ)

    def _context(
        self, options: RunOptions, store: Store, interruption: Interruption | None
    ) -> Callable[[Workspace], Context]:
        author = Author(Agent("lakewright", version("lakewright")))

        def context(workspace: Workspace) -> Context:
            return Context(
                workspace=workspace,
                ledger=self._ledger(store, author),
                leases=self._leases(store),
                clock=self.clock,
                run_id=self.run_id,
                say=self.say,
                options=options,
                defaults=TargetDefaults.of(self.project.config),
                takeover=self.takeover,
                is_stopping=lambda: interruption is not None and interruption.signal is not None,
                warn=log.warning,
                redact=self.redactor.text,
            )

        return context

    def _ledger(self, store: Store, author: Author) -> Ledger:
        return Ledger(store, author, ids=self.ids, is_dead=is_dead, redactor=self.redactor)

    def _journal(self, store: Store) -> Journal:
        return Journal(store, redactor=self.redactor, is_dead=is_dead)

    def _state_folder(self) -> Path:
        """Return a folder of the user's for what Spark insists on keeping, one for each project."""
        base = self.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
        digest = sha256(str(self.project.basedir.resolve()).encode()).hexdigest()[:12]
        return Path(base) / "lakewright" / f"{self.project.name}-{digest}"


def _versions() -> dict[str, Any]:
    return {"versions": {name: _version(name) for name in ("lakewright", "pyspark", "delta-spark")}}


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
