"""Rows of a notebook's table on what needs a person beside runs and slices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lakewright.errors import Fault
from lakewright.spec.words import counted
from lakewright.usecases.bronze_status import Vanished
from lakewright.usecases.quarantine_status import Quarantined
from lakewright.usecases.rebuild_status import DueRebuild
from lakewright.usecases.triggers import TriggerStatus

__all__ = ["concern_rows"]


def concern_rows(
    *,
    faults: Sequence[Fault],
    bronze: Sequence[Fault],
    warned: Sequence[Mapping[str, Any]],
    rebuilds: Sequence[DueRebuild],
    quarantined: Sequence[Quarantined],
    vanished: Sequence[Vanished],
    unrecorded: Sequence[str],
    triggers: Sequence[TriggerStatus],
) -> Iterator[tuple[str, str, str, str]]:
    """Yield a state, an entity or target, a message and what to do; the parts are those of the status."""
    for fault in faults:
        yield "project", "", fault.located_message, fault.remedy or ""
    for fault in bronze:
        yield "bronze", "", fault.message, fault.remedy or ""
    for entry in warned:
        error = entry["error"] or {"message": "; ".join(entry["reasons"])}
        yield "warning", entry["name"], error["message"], error.get("remedy") or ""
    for due in rebuilds:
        yield "rebuild", due.entity, due.reason, due.command
    for aside in quarantined:
        yield "put aside", aside.entity, f"{counted(aside.rows, 'bad row')} in {aside.folder}", ""
    for gone in vanished:
        yield "gone", gone.entity, f"{counted(gone.count, 'processed slice')} gone from bronze", ""
    for entity in unrecorded:
        yield "manifest", entity, "its table has commits, but the manifest is empty", ""
    for trigger in triggers:
        if trigger.has_failed:
            yield f"trigger {trigger.word}", trigger.lane.trigger, trigger.message, ""
