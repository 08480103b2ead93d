"""Warnings of targets to which an operator has answered since: nothing is left to do."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from lakewright.errors import LakewrightError
from lakewright.errors.phrase import Phrase
from lakewright.manifest.journal import KeptRows, Taint, TargetPhase
from lakewright.plan.phase import Phase
from lakewright.plan.status import Status
from lakewright.run.added_before import ADDED_BEFORE
from lakewright.run.kept_rows import KEPT_ROWS
from lakewright.run.losses import LOST_ROWS
from lakewright.slices.lost_table import ROWS_CHANGED
from lakewright.slices.other_runs import entity_name
from lakewright.spec.expressions.secrets import HIDDEN
from lakewright.usecases.staleness.earlier_builds import former_names
from lakewright.usecases.staleness.emptying import emptying_commands

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.manifest.item import Item, Mark
    from lakewright.manifest.journal import Run
    from lakewright.usecases.history import Warned

__all__ = ["is_requeued", "unanswered"]


def unanswered(app: App, warned: Iterable[Warned], runs: Sequence[Run]) -> Iterator[Warned]:
    """Yield the warnings that nobody has answered, given the latest runs, newest first.

    One of rows that a build has kept names the commands that empty what it wrote and build all of it again.
    """
    kept: frozenset[str] | None = None
    for each in warned:
        if kept is None and each.entry["error"].get("code") == KEPT_ROWS:
            kept = frozenset(one.place.key for one in former_names(app).taints())
        if not (
            _is_told_elsewhere(each, kept or ()) or is_requeued(app, each) or _is_rebuilt(app, each, runs)
        ):
            yield _with_commands(app, each)


def _is_told_elsewhere(warned: Warned, kept: Collection[str]) -> bool:
    """Return whether a warning is only of a table that was gone before the run, or of rows of before.

    While it is gone, `status` tells that; what was built into one that was made anew is to be built again.
    Once it is back, the commands would add its rows twice. What holds rows of before, or rows more than once,
    is to be built again, too, until it is emptied.

    Args:
        warned: The warning.
        kept: The keys of the places of targets that are to be built again, some of them emptied first.
    """
    error, entry = warned.entry["error"], warned.entry
    if len(warned.parts) > 1:
        return False
    place = TargetPhase(warned.run.project, entry["name"], Phase.BUILD.value, entry.get("instance") or {})
    code = error.get("code")
    return code in (LOST_ROWS, ADDED_BEFORE) or (code == KEPT_ROWS and place.key in kept)


def _with_commands(app: App, warned: Warned) -> Warned:
    entry, job = warned.entry, app.project.jobs.get(warned.run.job)
    instance, error = entry.get("instance") or {}, entry["error"]
    if error.get("code") != KEPT_ROWS or job is None or any(HIDDEN in text for text in instance.values()):
        return warned
    place = TargetPhase(app.project.name, entry["name"], Phase.BUILD.value, instance)
    taint = Taint(place, error["message"], kept=KeptRows(error["message"]))
    try:
        commands = emptying_commands(app, job, [taint])
    except LakewrightError:  # a wrong definition is told by itself
        return warned
    remedy = Phrase("Type ", Phrase.joined(", then ", commands), ".")
    return replace(warned, entry={**entry, "error": {**error, "remedy": remedy}})


def is_requeued(app: App, warned: Warned) -> bool:
    """Return whether a warning is only about changed slices, and each was requeued or accepted since."""
    changed = warned.entry.get("changed", ())
    if not changed or len(warned.parts) > 1:
        return False
    items = app.store.read(list(changed))
    return all(
        (item := items.get(item_id)) is not None
        and any(mark.since >= warned.run.started for mark in _decisions(item))
        for item_id in changed
    )


def _decisions(item: Item) -> Iterator[Mark]:
    """Yield the records by which an item was last requeued, resolved or accepted."""
    if item.new is not None and item.revision > 1:
        yield item.new
    if item.resolved is not None:
        yield item.resolved


def _is_rebuilt(app: App, warned: Warned, runs: Sequence[Run]) -> bool:
    """Return whether a warning is only of rows that another program changed before a rebuild."""
    error, definition = warned.entry["error"], app.project.targets.get(warned.entry["name"])
    if error.get("code") != ROWS_CHANGED or len(warned.parts) > 1 or definition is None:
        return False
    with suppress(LakewrightError):  # a wrong definition is told by itself
        called = entity_name(app.project, definition.raw)
        job = None if called is None else f"rebuild {app.project.entity(called).called}"
        return any(
            run.job == job
            and run.status == Status.SUCCESS
            and not run.facts.get("check")
            and run.started >= warned.run.started
            for run in runs
        )
    return False
