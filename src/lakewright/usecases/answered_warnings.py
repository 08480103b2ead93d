"""Warnings of targets to which an operator has answered since: nothing is left to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING

from lakewright.errors import LakewrightError
from lakewright.manifest.journal import Taint, TargetPhase
from lakewright.plan.phase import Phase
from lakewright.plan.status import Status
from lakewright.run.added_before import ADDED_BEFORE
from lakewright.run.kept_rows import KEPT_ROWS
from lakewright.run.leftovers import is_entry_undone
from lakewright.run.losses import LOST_ROWS
from lakewright.slices.other_runs import entity_name
from lakewright.slices.other_writers import ROWS_CHANGED
from lakewright.spec.expressions.secrets import HIDDEN
from lakewright.usecases.staleness.earlier_builds import former_names
from lakewright.usecases.staleness.emptying import emptying_commands

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.manifest.item import Item, Mark
    from lakewright.manifest.journal import Run
    from lakewright.usecases.history import Warned

__all__ = ["is_requeued", "unanswered"]

_CLEANUP = (Phase.TRUNCATE, Phase.DESTROY)

_KEEPING = (KEPT_ROWS, ADDED_BEFORE)
"""The codes of builds that have left rows of before, of which each is there once too often."""


def unanswered(app: App, warned: Iterable[Warned], runs: Sequence[Run]) -> Iterator[Warned]:
    """Yield the warnings that nobody has answered, given the latest runs, newest first.

    One of rows that a build has kept, or added once more, names the commands that empty what it wrote and
    build all of it again. The first one of a job names those for all targets whose rows came once more.
    """
    kept: dict[str, bool] | None = None
    left: list[Warned] = []
    for each in warned:
        if kept is None and each.entry["error"].get("code") in _KEEPING:
            kept = {one.place.key: one.kept is not None for one in former_names(app).taints()}
        is_answered = is_requeued(app, each) or _is_rebuilt(app, each, runs) or _is_emptied(app, each, runs)
        if not (_is_told_elsewhere(each, kept or {}) or is_answered):
            left.append(each)
    first: dict[str, Warned] = {}
    for each in left:
        if each.entry["error"].get("code") != ADDED_BEFORE:
            yield _with_commands(app, each, (each,))
        elif first.setdefault(each.run.job, each) is each:
            alike = [e for e in left if e.entry["error"].get("code") == ADDED_BEFORE]
            yield _with_commands(app, each, [e for e in alike if e.run.job == each.run.job])
        else:
            told = f"What is named for {first[each.run.job].subject} empties and builds it, too."
            error = {**each.entry["error"], "remedy": told}
            yield replace(each, entry={**each.entry, "error": error})


def _is_told_elsewhere(warned: Warned, kept: Mapping[str, bool]) -> bool:
    """Return whether a warning is only of a table that was gone before the run, or of rows of before.

    While it is gone, `status` tells that; what was built into one that was made anew is to be built again.
    Once it is back, the commands would add its rows twice. What holds rows of before is to be built again,
    too, until it is emptied.

    Args:
        warned: The warning.
        kept: The keys of the places of targets that are to be built again, with whether they are emptied
            first.
    """
    error, entry = warned.entry["error"], warned.entry
    if "\n" in str(error["message"]):
        return False
    place = TargetPhase(warned.run.project, entry["name"], Phase.BUILD.value, entry.get("instance") or {})
    code = error.get("code")
    is_told = kept.get(place.key, False) if code == ADDED_BEFORE else place.key in kept
    return code == LOST_ROWS or (code in _KEEPING and is_told)


def _with_commands(app: App, warned: Warned, alike: Iterable[Warned]) -> Warned:
    """Return a warning with the commands that empty and build what it, and others of its job, warn of."""
    entry, job = warned.entry, app.project.jobs.get(warned.run.job)
    error = entry["error"]
    if error.get("code") not in _KEEPING or job is None:
        return warned
    taints = [_taint(app, each) for each in alike]
    if any(HIDDEN in text for each in taints for text in each.place.parameters.values()):
        return warned
    try:
        commands = emptying_commands(app, job, taints)
    except LakewrightError:  # a wrong definition is told by itself
        return warned
    remedy = f"Type {', then '.join(f'`{each}`' for each in commands)}."
    return replace(warned, entry={**entry, "error": {**error, "remedy": remedy}})


def _taint(app: App, warned: Warned) -> Taint:
    entry, message = warned.entry, warned.entry["error"]["message"]
    place = TargetPhase(app.project.name, entry["name"], Phase.BUILD.value, entry.get("instance") or {})
    return Taint(place, message, kept=message)


def is_requeued(app: App, warned: Warned) -> bool:
    """Return whether a warning is only about changed slices, and each was requeued or accepted since."""
    changed, error = warned.entry.get("changed", ()), warned.entry["error"]
    if not changed or "\n" in str(error["message"]):
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


def _is_emptied(app: App, warned: Warned, runs: Sequence[Run]) -> bool:
    """Return whether a warning is only of rows that were added once more, before the target was emptied."""
    error = warned.entry["error"]
    if error.get("code") != ADDED_BEFORE or "\n" in str(error["message"]):
        return False
    later = takewhile(lambda run: run.run_id != warned.run.run_id, runs)
    return any(
        each["name"] == warned.entry["name"] and each["phase"] in _CLEANUP and not is_entry_undone(each)
        for run in later
        if run.project == warned.run.project and run.phase in _CLEANUP
        for each in app.journal.targets(run.run_id)
    )


def _is_rebuilt(app: App, warned: Warned, runs: Sequence[Run]) -> bool:
    """Return whether a warning is only of rows that another program changed before a rebuild."""
    error, definition = warned.entry["error"], app.project.targets.get(warned.entry["name"])
    if error.get("code") != ROWS_CHANGED or "\n" in str(error["message"]) or definition is None:
        return False
    with suppress(LakewrightError):  # a wrong definition is told by itself
        called = entity_name(app.project, definition.raw)
        job = None if called is None else f"rebuild {app.project.entity(called).name}"
        return any(
            run.job == job
            and run.status == Status.SUCCESS
            and not run.facts.get("check")
            and run.started >= warned.run.started
            for run in runs
        )
    return False
