"""OpenLineage events of commands that work on one entity without a job."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lakewright.run.lineage.listener import CommandEnd, CommandNames, Reporter, is_configured, telling_command

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.spec.models.entity import Entity

__all__ = ["told_command"]


@contextmanager
def told_command(app: App, verb: str, entity: Entity) -> Iterator[CommandEnd]:
    """Tell a collector, if there is one, that the command in the block starts, and how it ends."""
    if not is_configured(app.project.config, app.environ):
        yield CommandEnd()
        return
    reporter = Reporter(app.project.config, app.environ, app.redactor, app.clock)
    names = CommandNames(app.project.name, verb, app.run_id)
    with telling_command(names, entity, app.workspace, reporter) as end:
        yield end
