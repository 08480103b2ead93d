"""The composition root: a project with the clock, ids, Spark session and stores that its use cases need.

Everything below takes these as arguments. The use cases are in `lakewright.usecases`, one module
each, with an `App` as first argument.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from lakewright.errors import Fault, LakewrightError
from lakewright.lake.cluster import check_cluster_settings
from lakewright.lake.lake import Lake
from lakewright.lake.object_storage import check_stores
from lakewright.manifest.journal import Journal
from lakewright.manifest.lease import Holder, Leases
from lakewright.manifest.ledger import Ledger
from lakewright.manifest.record import Agent, Author
from lakewright.manifest.redaction import Redactor
from lakewright.manifest.settings import lease_duration, takeover
from lakewright.manifest.store import Store
from lakewright.run.kinds import registry
from lakewright.run.session_settings import (
    master_of_project,
    settings_of_project,
    state_folder,
    storage_of_project,
)
from lakewright.slices.application import application_of
from lakewright.slices.chain import SliceChain
from lakewright.slices.result import SliceReport
from lakewright.spark.connect import sessions_for
from lakewright.spark.session import OwnSession, Sessions
from lakewright.spec.loading.loader import load_project
from lakewright.spec.loading.settings import LoadOptions
from lakewright.spec.models.entity import Entity
from lakewright.spec.models.places import Places
from lakewright.spec.project import Project
from lakewright.spec.reading.files import find_project
from lakewright.stores.deferred_store import DeferredStore
from lakewright.stores.process import is_dead, this_process
from lakewright.stores.registry import check_manifest, open_lazily, resolve_settings
from lakewright.threads import shared_property
from lakewright.workspace.workspace import Workspace

if TYPE_CHECKING:
    from lakewright.run.execution import Interruption
    from lakewright.run.lineage.listener import CommandEnd
    from lakewright.targets.context import Context, RunOptions


TRIGGER = "LAKEWRIGHT_TRIGGER"
"""The environment variable that names what began a run: a trigger, or another scheduler's own name for it."""


log = logging.getLogger(__name__)

_utc_now = partial(datetime.now, UTC)


@dataclass
class App:
    """An open project with everything its use cases need; each part is opened on first use.

    Attributes:
        environ: The environment variables of the process.
        say: Prints a line of a target's own output.
        sessions: Starts and stops the Spark session; by default the app builds its own when it needs one.
        on_slice: Receives the end of each slice, in the thread that processed it.
        maintain_later: Receives each entity whose table slices made due for maintenance; without it, runs
            maintain tables themselves.
    """

    project: Project
    environ: Mapping[str, str]
    clock: Callable[[], datetime] = _utc_now
    ids: Callable[[], str] = lambda: str(uuid4())
    say: Callable[[str], None] = print
    run_id: str = field(default_factory=lambda: str(uuid4()))
    sessions: Sessions = field(default_factory=OwnSession)
    on_slice: Callable[[SliceReport], None] = lambda _: None
    maintain_later: Callable[[str], None] | None = None

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
        overrides: Path | None = None,
        on_read: Callable[[Path], None] = lambda _: None,
        despite_faults: bool = False,
        checks_only: bool = False,
    ) -> App:
        """Load the project in `folder`, or in the nearest project folder from the current one up.

        A user's own settings are read from the folder `overrides`. `on_read` receives each file and folder
        that the project is read from. With `despite_faults`, definitions that no fault touches can be used
        although others are faulty; with `checks_only` also if a fault may concern the whole project.

        Raises:
            SpecError: The project's files are wrong; the error has every fault.
            UsageError: There is no project.
        """
        environ = os.environ if environ is None else environ
        project = load_project(
            find_project(Path.cwd()) if folder is None else folder,
            LoadOptions(
                kinds=registry(),
                profiles=tuple(profiles),
                definitions=definitions or {},
                config=config or {},
                environ=environ,
                clock=_utc_now,
                check_manifest=check_manifest,
                overrides=overrides,
                on_read=on_read,
                despite_faults=despite_faults,
                checks_only=checks_only,
            ),
        )
        sessions = sessions or sessions_for(master_of_project(project, environ))
        return cls(project, environ, say=say, sessions=sessions)

    @property
    def warnings(self) -> tuple[Fault, ...]:
        """The warnings that loading the project gave."""
        return self.project.warnings

    @shared_property
    def redactor(self) -> Redactor:
        """Removes the project's secrets from everything that is recorded or shown."""
        project = self.project
        secrets = project.secrets
        config = {key: text for key, text in project.config.items() if text not in project.scope.defaults}
        return Redactor.of(config, self.environ, secrets=secrets, met=project.scope.seen_secrets)

    @shared_property
    def lake(self) -> Lake:
        """The lake, whose Spark session starts on first use."""
        settings = settings_of_project(self.project, self.environ)
        storage = storage_of_project(self.project, self.environ)
        return Lake(self.project.lake, settings, sessions=self.sessions, storage=storage)

    @property
    def workspace(self) -> Workspace:
        """The project's definitions outside of any job."""
        return Workspace(self.project, self.project.scope, self.lake)

    @property
    def manifest_settings(self) -> dict[str, Any]:
        """The settings of the manifest's back end."""
        project = self.project
        options = storage_of_project(project, self.environ).options
        return resolve_settings(project.manifest, project.basedir, options)

    @shared_property
    def store(self) -> Store:
        """The manifest's back end; if it does not exist yet, the first write creates it."""
        return open_lazily(self.manifest_settings)

    def make_store(self) -> None:
        """Create the manifest if it does not exist yet: until then, each read looks for it again."""
        if isinstance(self.store, DeferredStore):
            self.store.create()

    @shared_property
    def ledger(self) -> Ledger:
        """The manifest's items and locks, written in the name of this tool."""
        return self.ledger_of(self.store)

    def ledger_of(self, store: Store, author: str | None = None) -> Ledger:
        """Return the items and locks in a store, written in the name of an operator or of this tool."""
        tool = Author(Agent("lakewright", version("lakewright")))
        named = tool if author is None else Author.named(author)
        return Ledger(
            store, named, ids=self.ids, is_dead=is_dead, redactor=self.redactor, trigger=self.trigger
        )

    @shared_property
    def journal(self) -> Journal:
        """The history of runs."""
        return Journal(self.store, redactor=self.redactor, is_dead=is_dead)

    def journal_of(self, store: Store) -> Journal:
        """Return the history of runs in a store; in the project's own one, it is `journal`."""
        if store is self.__dict__.get("store") and self.journal.store is store:
            return self.journal
        return Journal(store, redactor=self.redactor, is_dead=is_dead)

    @property
    def trigger(self) -> str | None:
        """What started this run: a trigger, or the name that another scheduler or the page gave."""
        return self.environ.get(TRIGGER) or None

    @property
    def holder(self) -> Holder:
        """The holder of the locks and leases that this process takes."""
        return this_process(self.run_id)

    def context(
        self,
        workspace: Workspace | None = None,
        *,
        options: RunOptions | None = None,
        store: Store | None = None,
        interruption: Interruption | None = None,
    ) -> Context:
        """Return what targets are given of the project.

        Args:
            workspace: The definitions as a job sees them; by default those outside of any job.
            options: The options of the run.
            store: The manifest, by default that of the project.
            interruption: Shows whether to stop.
        """
        from lakewright.targets.context import Context, RunOptions, TargetDefaults  # few commands need it

        store = store or self.store
        return Context(
            workspace=workspace or self.workspace,
            ledger=self.ledger_of(store),
            leases=self.leases(store),
            clock=self.clock,
            run_id=self.run_id,
            say=self.say,
            options=options or RunOptions(),
            defaults=TargetDefaults.of(self.project.config),
            takeover=takeover(self.project.manifest),
            is_stopping=lambda: interruption is not None and interruption.signal is not None,
            warn=log.warning,
            show=log.warning,
            report=self._report,
            redact=self.redactor.text,
            maintain_later=self.maintain_later,
        )

    def _report(self, slice_: SliceReport) -> None:
        text = self.redactor.text(str(slice_))
        log.info("%s", text, extra={"run_id": self.run_id, "item": slice_.item_id})
        if not slice_.is_beside:
            self.on_slice(slice_)

    def chain(self, entity: Entity, ledger: Ledger | None = None) -> SliceChain:
        """Return the slices of an entity, with the manifest as it is opened or another ledger of it."""
        return SliceChain(self.lake, ledger or self.ledger, entity, application_of(self.project.name, entity))

    def placed_entities(self) -> Iterator[tuple[Entity, Places]]:
        """Yield the entities whose places are known, with these.

        Others take part of their places from the parameters of a job.
        """
        for entity in self.project.entities.values():
            with suppress(LakewrightError):
                yield entity, entity.places(self.project.lake)

    def check_session(self) -> None:
        """Raise an error if Spark work can't succeed.

        Raises:
            SparkUnavailable: The session that is running already lacks Delta Lake, or is of Spark Connect.
            SpecError: Spark can't use an object store, that of the lake would lose commits, or a cluster does
                not see the lake.
        """
        check_cluster_settings(self.lake, has_entities=bool(self.project.entities))
        self.sessions.check()
        root = self.project.lake.root_folder
        check_stores(self.lake.storage, root, state_folder(self.project, self.environ))

    def reported_command(self, verb: str, entity: Entity) -> AbstractContextManager[CommandEnd]:
        """Report to a collector, if there is one, that the command in the block starts, and how it ends."""
        from lakewright.run.lineage.listener import Reporter, reporting_command  # few commands need it

        reporter = Reporter(self.project.config, self.environ, self.redactor, self.clock)
        return reporting_command(reporter, verb, self.run_id, entity, self.workspace)

    def leases(self, store: Store | None = None) -> Leases:
        """Return the leases in a store, by default the manifest's, taken by this process."""
        duration = lease_duration(self.project.manifest)
        return Leases(store or self.store, self.holder, self.ids, duration=duration, is_dead=is_dead)

    def begin_run(self) -> None:
        """Give the next run an id of its own; without this call, a second run would overwrite the first."""
        self.run_id = str(uuid4())

    def close(self) -> None:
        """Close the store and stop Spark, if they were used."""
        if "journal" in self.__dict__:
            self.journal.save_ends()
        for part, stop in (("lake", "stop"), ("store", "close")):
            if part in self.__dict__:
                getattr(self.__dict__.pop(part), stop)()
