"""OpenLineage events of a command that works on one entity without a job: `process`, `undo`, `rebuild`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from lakewright.errors import Fault, LakewrightError
from lakewright.plan.status import Status
from lakewright.run.lineage.events import Subject, entity_datasets, event_state, run_uuid

if TYPE_CHECKING:
    from lakewright.run.lineage.reporter import Reporter
    from lakewright.spec.models.entity import Entity
    from lakewright.workspace.workspace import Workspace

__all__ = ["CommandEnd", "CommandNames", "telling_command"]


@dataclass(frozen=True, slots=True)
class CommandNames:
    """The names of a command's events.

    Attributes:
        verb: The command.
    """

    project: str
    verb: str
    run_id: str


@dataclass(slots=True)
class CommandEnd:
    """The outcome of a command, which the command fills in before it ends.

    Attributes:
        metrics: What the command counted; `slices` has the metrics of each slice.
    """

    status: Status = Status.SUCCESS
    error: Fault | None = None
    metrics: Mapping[str, Any] = field(default_factory=dict)


@contextmanager
def telling_command(
    names: CommandNames, entity: Entity, workspace: Workspace, reporter: Reporter
) -> Iterator[CommandEnd]:
    """Tell a collector that the command in the block starts, and how it ends.

    Args:
        names: The names of its events.
        entity: The entity that it works on.
        workspace: The project's definitions.
        reporter: Sends the events.
    """
    end = CommandEnd()
    subject = Subject(
        reporter.namespace(names.project),
        f"{names.project}.{names.verb}.{entity.name}",
        run_uuid(names.run_id),
        "COMMAND",
        description=entity.description,
    )
    make = partial(entity_datasets, entity, workspace)
    reporter.send(subject, "START", make)
    try:
        yield end
    except BaseException as error:
        is_abort = not isinstance(error, Exception)
        fault = error.as_fault() if isinstance(error, LakewrightError) else Fault(str(error) or repr(error))
        state = "ABORT" if is_abort else "FAIL"
        reporter.send(subject, state, make, error=None if is_abort else reporter.shown(fault))
        raise
    else:
        failed = reporter.shown(end.error) if end.status.is_failure else None
        metrics = reporter.redactor.value(dict(end.metrics))
        reporter.send(subject, event_state(end.status), make, metrics=metrics, error=failed)
    finally:
        reporter.close()
