"""Tables that only a rebuild makes true again, as a look at their logs shows it.

Only tables on this machine are looked at: the logs of others are read more slowly, or by Spark alone. No item
of the manifest is read.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakewright.errors import LakewrightError
from lakewright.lake.observation import local_table_path, observe_table
from lakewright.lake.paths import local_path
from lakewright.strategies.compatibility import check_table_compatible, outdated_reasons
from lakewright.strategies.table_properties import STRATEGY_PROPERTY

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.spec.models.entity import Entity

__all__ = ["DueRebuild", "due_rebuilds"]


@dataclass(frozen=True, slots=True)
class DueRebuild:
    """A table that no longer is as its entity's declaration has it.

    Attributes:
        reason: Why.
        refuses_slices: Whether no slice is processed until it is rebuilt, or the declaration is as it was.
        command: The command that builds it again.
    """

    entity: str
    reason: str
    refuses_slices: bool
    command: str

    def as_json(self) -> dict[str, Any]:
        """Return the object that `status -o json` prints."""
        return {
            "entity": self.entity,
            "reason": self.reason,
            "refuses_slices": self.refuses_slices,
            "do": self.command,
        }


def due_rebuilds(app: App) -> Iterator[DueRebuild]:
    """Yield the tables of a project that a rebuild would make as they are declared now."""
    for entity in app.project.entities.values():
        try:
            yield from _of(app, entity)
        except LakewrightError:
            # A table that can't be read, or a place that can't be evaluated: a plan says so.
            continue


def _of(app: App, entity: Entity) -> Iterator[DueRebuild]:
    silver = entity.places(app.project.lake).silver
    if silver.location is None or local_path(silver.location) is None:
        return
    if not entity.enabled or local_table_path(app.lake, silver) is None:
        return
    state = observe_table(app.lake, silver)
    if STRATEGY_PROPERTY not in state.properties:
        return  # no table yet, or one of another program, which no slices could make again
    command = f"lakewright rebuild {shlex.quote(entity.name)}"
    try:
        check_table_compatible(state, entity.strategy, entity, allow_data_loss=False)
    except LakewrightError as error:
        yield DueRebuild(entity.name, error.message, True, command)
    for reason in outdated_reasons(state, entity, app.project.lake):
        yield DueRebuild(entity.name, reason, False, command)
