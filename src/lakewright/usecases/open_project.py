"""What use cases ask of an open project: the slices of its entities, whether Spark works, who is informed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lakewright.app import App
from lakewright.errors import LakewrightError
from lakewright.lake.cluster import check_cluster_settings
from lakewright.lake.object_storage import check_stores
from lakewright.run.lineage.listener import CommandEnd, Reporter, is_configured, reporting_command
from lakewright.run.session_settings import state_folder
from lakewright.slices.application import application_of
from lakewright.slices.chain import SliceChain

if TYPE_CHECKING:
    from lakewright.manifest.ledger import Ledger
    from lakewright.spec.models.entity import Entity
    from lakewright.spec.models.places import Places


def chain_of(app: App, entity: Entity, ledger: Ledger | None = None) -> SliceChain:
    """Return the slices of an entity, with the manifest as it is opened or as another ledger writes it."""
    return SliceChain(app.lake, ledger or app.ledger, entity, application_of(app.project.name, entity))


def placed_entities(app: App) -> Iterator[tuple[Entity, Places]]:
    """Yield the entities whose places are known, with these; `due_rebuilds` names the others.

    Others take part of their places from the parameters of a job.
    """
    for entity in app.project.entities.values():
        try:
            yield entity, entity.places(app.project.lake)
        except LakewrightError:
            continue


def check_session(app: App) -> None:
    """Raise an error if Spark work can't succeed.

    Raises:
        SparkUnavailable: The session that is running already lacks Delta Lake, or is of Spark Connect.
        SpecError: Spark can't use an object store, that of the lake would lose commits, or a cluster does not
            see the lake.
    """
    check_cluster_settings(app.lake, has_entities=bool(app.project.entities))
    app.sessions.check()
    root = app.project.lake.root_folder
    check_stores(app.lake.storage, root, state_folder(app.project, app.environ))


@contextmanager
def reported_command(app: App, verb: str, entity: Entity) -> Iterator[CommandEnd]:
    """Report to a collector, if there is one, that the command in the block starts, and how it ends."""
    if not is_configured(app.project.config, app.environ):
        yield CommandEnd()
        return
    reporter = Reporter(app.project.config, app.environ, app.redactor, app.clock)
    named = f"{verb}.{entity.name}"
    subject = reporter.subject(app.project.name, named, app.run_id, "COMMAND", entity.description)
    with reporting_command(subject, entity, app.workspace, reporter) as end:
        yield end
