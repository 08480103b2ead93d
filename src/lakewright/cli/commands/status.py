"""`lakewright status`: what is running, waiting and failed, and the command to run next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING

import click

from lakewright.cli.call import Call
from lakewright.cli.faults import fault_branch
from lakewright.cli.group import command
from lakewright.cli.page import Block, Branch, Span, line, remedy_branches
from lakewright.cli.render.history import runs_table
from lakewright.cli.render.triggers import fault_blocks, next_line, trigger_branches
from lakewright.cli.render.words import ago, assignments, counted
from lakewright.cli.render.words import status as coloured
from lakewright.errors import LakeMoved
from lakewright.errors.fault import remedy_of
from lakewright.errors.phrase import Command, Phrase
from lakewright.manifest.journal import Run
from lakewright.manifest.lock import Lock, failure_words
from lakewright.manifest.record import ANYONE
from lakewright.spec.words import first_of

if TYPE_CHECKING:
    from lakewright.slices.deviations import CorrectedSlices
    from lakewright.usecases.bronze_status import Arrived, Vanished
    from lakewright.usecases.damage.rebuild_status import DueRebuild
    from lakewright.usecases.damage.unrecorded_slices import Unrecorded
    from lakewright.usecases.failed_runs.resume import NextStep
    from lakewright.usecases.history import Warned
    from lakewright.usecases.items import Row
    from lakewright.usecases.project_status import Elsewhere, ProjectStatus
    from lakewright.usecases.staleness.tainted_targets import TaintedTarget
    from lakewright.usecases.undeclared import Undeclared

__all__ = ["status"]

MOST_SHOWN = 10
MOST_NAMED = 3


@command(
    examples=["lakewright status", "lakewright status -o json"],
)
@click.pass_obj
def status(call: Call, /) -> None:
    """Show what is running, waiting and failed, since when, with the command to run next."""
    from lakewright.usecases.status import project_status

    call.accept_faults(are_told=False)
    found = project_status(call.app)
    call.output.answer(found.as_json(), _page(found, call.app.store.now()))


def _page(found: ProjectStatus, now: datetime) -> Iterator[Block]:
    more = Command("manifest", "ls", "--state")
    locks = [_lock(row, row.lock, now) for row in found.locked if row.lock is not None]
    stale = [_lock(row, row.lock, now) for row in found.stale if row.lock is not None]
    running = [*(_run(run, now) for run in found.running), *locks]
    yield from fault_blocks(found.faults, found.withheld)
    if found.unwritable is not None:
        yield fault_branch(found.unwritable)
    if found.unrecorded:
        yield _lost(found.unrecorded, found.recorded_projects, is_told=bool(found.behind))
    behind = [_behind(each) for each in found.behind]
    title = "In tables, but unknown to the manifest"
    yield from _section(title, behind, Command("manifest", "discover"))
    if behind:
        yield line(
            "What was built meanwhile may be unknown, too: the plan of a job warns of rows that come twice."
        )
    yield from _section("Failed", [_failure(row, now) for row in found.failed], more.plus("failed"))
    yield from _section("Stale locks", stale, Command("manifest", "ls", "--stale"))
    # Commands are typed from top to bottom: a run reads what was mended in bronze and silver before it.
    yield from _bronze(found)
    yield from _silver(found)
    # A run that is resumed would make older slices late.
    waiting = list(_all_waiting(found))
    first, then = (waiting, []) if found.is_waiting_first else ([], waiting)
    yield from _section("Waiting", first, more.plus("ready"))
    shown, more_skipped = list(map(_corrected, found.corrected)), more.plus("skipped")
    corrected = _section("Skipped, but changed since", shown, more_skipped)
    yield from corrected if found.is_corrected_first else ()
    # A run fails where a table of its targets can't be read, and makes one anew that might be brought back.
    yield from _gold(found)
    yield from _failed_runs(found, now, is_last=False)
    yield from _section("Triggers", trigger_branches(found.triggers, now), Command("triggers"))
    warned = [_warning(each, now) for each in found.alike_warned]
    yield from _section("Warnings of the last runs", warned, Command("history"))
    yield from _section("Running", running, more.plus("locked"))
    yield from _section("Waiting", then, more.plus("ready"))
    yield from _section("Bad rows put aside", list(_quarantined(found)), Command("status", "-o", "json"))
    vanished = [_vanished(each) for each in found.vanished]
    yield from _section("Processed, but no longer in bronze", vanished, Command("manifest", "discover"))
    yield from () if found.is_corrected_first else corrected
    elsewhere = [_elsewhere(each) for each in found.elsewhere]
    yield from _section("Recorded in another place, which no run reads", elsewhere, Command("manifest", "ls"))
    undeclared = [_undeclared(each) for each in found.undeclared]
    yield from _section(
        "Recorded for entities that are not declared", undeclared, Command("status", "-o", "json")
    )
    yield from _section(
        "Targets to build again", _all_tainted(found.tainted), Command("status", "-o", "json")
    )
    yield from _failed_runs(found, now, is_last=True)
    yield from _unseen(found)
    if found.is_calm:
        yield line(Span("Nothing is running, waiting or failed.", "green"))
    if (soon := next_line(found.triggers, now)) is not None:
        yield soon
    if found.last_runs:
        yield line(Span("Last runs", "bold"))
        yield runs_table(found.last_runs, now)


def _failed_runs(found: ProjectStatus, now: datetime, *, is_last: bool) -> Iterator[Block]:
    """Yield the failed runs; those last that check what other commands mend before."""
    steps = ((run, found.step_after(run)) for run in found.undone)
    undone = [_undone(run, step, now) for run, step in steps if step.comes_last is is_last]
    ends = Phrase(
        "if nothing is left to do about such a run, ",
        Command("history", "accept", "RUN"),
        " removes it from this list",
    )
    title = "Runs whose checks failed" if is_last else "Runs that failed"
    yield from _section(title, undone, Command("history", "--status", "failed"), ends)


def _all_waiting(found: ProjectStatus) -> Iterator[Branch]:
    """Yield the slices that wait, and those that no run has seen yet."""
    told = {row.entity for row in found.waiting if row.entity in found.blocked and row.waits_for is None}
    arrived = ((each.is_refused, _arrived(each, is_told=each.entity in told)) for each in found.arrived)
    # A run that takes the others would fail because of those that it refuses.
    waiting = sorted((*_waiting(found), *arrived), key=lambda each: not each[0])
    yield from (branch for _, branch in waiting)


def _lost(entities: Sequence[str], projects: Sequence[str], *, is_told: bool) -> Branch:
    """Tell that the manifest is lost.

    Args:
        entities: The entities whose tables have commits.
        projects: Other projects of which the manifest has slices.
        is_told: Whether the commands that record the slices follow.
    """
    do = (
        "type the commands below, which record the slices that the tables hold"
        if is_told
        else Phrase(
            "the next run recovers the slices that the tables hold; ",
            Command("manifest", "discover"),
            " lists them",
        )
    )
    named = ", ".join(entities[:MOST_NAMED]) + (", …" if len(entities) > MOST_NAMED else "")
    return Branch(
        line(
            Span("The manifest has no slice of this project", "bold red"),
            f", only of {first_of(projects, MOST_NAMED)}," if projects else ",",
            f" but the tables of {named} have commits",
        ),
        (
            _do(
                Phrase(
                    "If it is another one, or was moved, bring it back or correct `manifest:`. Otherwise ",
                    do,
                    ".",
                )
            ),
        ),
    )


def _behind(found: Unrecorded) -> Branch:
    from lakewright.slices.recover_from_log import UNRECORDED_ADVICE

    typed = Phrase.joined(", then ", found.commands)
    said = f": {found.words}"
    advice = Phrase(UNRECORDED_ADVICE, ": " if typed else ".", typed)
    return Branch(line(Span(found.entity, "bold"), said), (_do(advice),))


def _quarantined(found: ProjectStatus) -> Iterator[Branch]:
    for each in found.quarantined:
        count = f"{counted(each.rows, 'row')} of {counted(len(each.slices), 'slice')}"
        yield Branch(line(Span(each.entity, "bold"), f": {count}, in {each.folder}"), (_do(each.advice),))


def _section(title: str, branches: Sequence[Branch], more: Command, note: str = "") -> Iterator[Block]:
    if not branches:
        return
    hidden = len(branches) - MOST_SHOWN
    texts = (Phrase(f"{hidden} more: ", more) if hidden > 0 else "", note)
    rest = tuple(Branch(line(Span(text, "dim"))) for text in texts if text)
    yield Branch(line(Span(title, "bold"), Span(f" {len(branches)}", "dim")), (*branches[:MOST_SHOWN], *rest))


def _failure(row: Row, now: datetime) -> Branch:
    since = f" {ago(row.since, now)}" if row.since else ""
    what = f" {row.owner} {row.slice}{since}: {failure_words(row.item)}"
    below = (_do(row.advice),) if row.advice else ()
    return Branch(line(coloured(row.verdict.value), what), below)


def _lock(row: Row, lock: Lock, now: datetime) -> Branch:
    held = f": {lock.stale_reason}" if lock.stale_reason else f" by {lock.holder}"
    since = ago(lock.processing.since, now)
    what = f" {row.owner} {row.slice} {since}{held}"
    return Branch(line(coloured("locked"), what), (_do(row.advice),) if row.advice else ())


def _run(run: Run, now: datetime) -> Branch:
    return Branch(line(*_said_of_run(run, now), f", by {run.holder}"))


def _undone(run: Run, step: NextStep, now: datetime) -> Branch:
    from lakewright.usecases.failed_runs.undone_runs import hidden_parameters

    why, typed = Phrase(Command("history", "show", run.run_id)), Phrase.joined(", then ", step.commands)
    names = " and ".join(hidden_parameters(run))
    filled = f", with the value of {names} filled in, which is secret and not recorded" if names else ""
    said = line(*_said_of_run(run, now), "; not run since")
    refused = () if step.refused is None else (Branch(line(Phrase("it would fail again: ", step.refused))),)
    cautious = () if step.caution is None else (Branch(line(step.caution)),)
    left = () if step.left_out is None else (Branch(line(f"--resume would leave out {step.left_out}")),)
    accept = Phrase("; or, if nothing is left to do, ", Command("history", "accept", run.run_id))
    end = Phrase(filled, accept if step.is_check_only else "")
    return Branch(
        said, (*refused, *cautious, *left, _do(Phrase("see why with ", why, ", then ", typed, end)))
    )


def _bronze(found: ProjectStatus) -> Iterator[Block]:
    """Yield what can't be read in bronze, and what waits although it is gone from there."""
    more = Command("status", "-o", "json")
    yield from _section("Bronze that can't be read", list(map(fault_branch, found.unreadable)), more)
    yield from _section("Slices that wait, but are gone", list(map(fault_branch, found.missing)), more)


def _silver(found: ProjectStatus) -> Iterator[Block]:
    """Yield what is wrong with tables of entities, by kind, and which of their slices have changed."""
    more = Command("status", "-o", "json")
    renamed = [each for each in found.rows_changed if each.code == LakeMoved.code]
    changed = [each for each in found.rows_changed if each.code != LakeMoved.code]
    yield from _section("Tables that can't be read", list(map(fault_branch, found.damaged_silver)), more)
    yield from _section("Tables that need a rebuild", list(map(_rebuild, found.rebuilds)), more)
    title = "Tables of a project or an entity with another name"
    yield from _section(title, list(map(fault_branch, renamed)), more)
    title = "Tables that another program has changed"
    yield from _section(title, [fault_branch(each, is_warning=True) for each in changed], more)
    slices = [fault_branch(each, is_warning=True) for each in found.changed]
    yield from _section("Changed since they were processed", slices, more)


def _gold(found: ProjectStatus) -> Iterator[Block]:
    """Yield what is wrong with tables and files that targets build, by kind."""
    more = Command("status", "-o", "json")
    title = "Tables of targets that can't be read"
    yield from _section(title, list(map(fault_branch, found.damaged_gold)), more)
    yield from _section(
        "Tables that are gone, or lack what was built", list(map(fault_branch, found.lost)), more
    )


def _warning(found: Warned, now: datetime) -> Branch:
    error = found.entry["error"]
    head, *rest = str(error["message"]).splitlines()
    place = f" {found.subject} {found.entry['phase']} {ago(found.run.started, now)}: {head}"
    below = [Branch(line(text)) for text in rest]
    below += remedy_branches(remedy_of(error))
    return Branch(line(coloured(found.entry["status"]), place), tuple(below))


def _said_of_run(run: Run, now: datetime) -> tuple[Span, str]:
    what = " ".join(filter(None, (run.job, run.phase.lower(), assignments(run.parameters))))
    return coloured(run.status), f" {what}, run {run.run_id}, {ago(run.started, now)}"


def _arrived(found: Arrived, *, is_told: bool) -> Branch:
    """Return new slices, and why a run would take none of them, unless that is told already."""
    named = ", ".join(found.slices[:MOST_NAMED]) + (", …" if found.count > MOST_NAMED else "")
    new = f"{counted(found.count, 'slice')} that no run has seen yet: {named}" if found.count else ""
    unfinished = f"not complete yet: {first_of(found.incomplete, MOST_NAMED)}" if found.incomplete else ""
    below = [_do(Phrase(command)) for command in found.commands]
    if found.late is not None:
        told = f"a run would refuse {first_of(found.late.names, MOST_NAMED)}: the slice is {found.late.words}"
        below = [Branch(line(told)), _do(found.late.remedy), *below]
    if found.refused is not None:
        they = f"a run would not take {'it' if found.count == 1 else 'them'}"
        below = [Branch(line(f"{they}: {found.refused.message}")), *remedy_branches(found.refused.remedy)]
        below = [Branch(line(f"{they} either"))] if is_told else below
    said = "; ".join(filter(None, (new, unfinished)))
    return Branch(line(Span(found.entity, "bold"), f": {said}"), tuple(below))


def _vanished(found: Vanished) -> Branch:
    named = ", ".join(found.slices[:MOST_NAMED]) + (", …" if found.count > MOST_NAMED else "")
    what = f": {counted(found.count, 'slice')}, such as {named}" if found.count > 1 else f": {named}"
    return Branch(line(Span(found.entity, "bold"), what))


def _corrected(found: CorrectedSlices) -> Branch:
    said = f": {first_of(found.names, MOST_NAMED)}"
    return Branch(line(Span(found.entity, "bold"), said), (_do(found.advice),))


def _elsewhere(found: Elsewhere) -> Branch:
    said = f": {counted(found.count, 'slice')} of {found.place}"
    return Branch(line(Span(found.entity, "bold"), said))


def _undeclared(found: Undeclared) -> Branch:
    from lakewright.usecases.undeclared import UNDECLARED_ADVICE

    others = f" and {counted(found.others, 'other')}" if found.others else ""
    said = f": {counted(found.processed, 'processed slice')}{others}"
    listed = Phrase(Command("manifest", "ls", "--application", found.application), " lists them")
    return Branch(line(Span(found.entity, "bold"), said), (Branch(line(UNDECLARED_ADVICE)), _do(listed)))


def _rebuild(found: DueRebuild) -> Branch:
    said = line(Span(found.entity, "bold"), f": {found.reason}")
    refused = (Branch(line("no slice is processed until then")),) if found.refuses_slices else ()
    return Branch(said, (*refused, _do(Phrase(found.command))))


def _all_tainted(found: Sequence[TaintedTarget]) -> list[Branch]:
    alike = groupby(found, key=lambda each: (each.commands, each.advice))
    return [_tainted(list(each)) for _, each in alike]


def _tainted(found: Sequence[TaintedTarget]) -> Branch:
    """Return targets that the same commands build again."""
    first, *others = found
    also = [Branch(line("also ", *_said_of_tainted(each))) for each in others]
    told: list[str] = list(map(Phrase, first.commands)) or [first.advice]
    done = map(_do, [Phrase.joined(", then ", told)] if first.is_emptied else told)
    return Branch(line(*_said_of_tainted(first)), (*also, *done))


def _said_of_tainted(found: TaintedTarget) -> tuple[Span, str]:
    named = [assignments(each) for each in found.instances if each]
    where = f" ({first_of(named, MOST_NAMED)})" if named else ""
    return Span(found.target, "bold"), f"{where}: {found.reason}"


def _unseen(found: ProjectStatus) -> Iterator[Block]:
    reasons: dict[str, list[str]] = {}
    for each in found.unseen:
        reasons.setdefault(each.why, []).append(each.entity)
    for why, names in reasons.items():
        yield line(Span(Phrase(f"Not looked at for a rebuild: {first_of(names, MOST_NAMED)}: ", why), "dim"))


def _waiting(found: ProjectStatus) -> Iterator[tuple[bool, Branch]]:
    """Yield what waits, with whether a run would refuse it."""
    groups: dict[tuple[str, str | None, bool, str | None, bool], list[Row]] = {}
    for row in found.waiting:
        foreign = found.foreign.get(str(row.application))
        item = row.item.item_id
        key = (_name_of(row), row.waits_for, item in found.late, foreign, item in found.to_place)
        groups.setdefault(key, []).append(row)
    for (name, waits_for, is_late, foreign, is_placed), of_group in groups.items():
        is_nobodys = of_group[0].application == ANYONE
        why = f"for {waits_for}" if waits_for else _what_takes(of_group, found.limits.get(name, ()))
        why = "for an application to process it" if is_nobodys else why
        why = "until the entity is enabled" if of_group[0].entity in found.disabled else why
        verb = "waits" if len(of_group) == 1 else "wait"
        what = counted(len(of_group), "item" if is_nobodys else "slice")
        is_open = not (waits_for or is_nobodys)
        commands = found.commands_for(of_group[0]) if is_open else ()
        refused = found.refusal_of(of_group[0]) if is_open else None
        is_misplaced = of_group[0].entity in found.misplaced
        place = "it in its place" if len(of_group) == 1 else "them in their place"
        if refused is not None:
            why = f"for a rebuild that puts {place}" if is_misplaced else "for a later processing time"
        told = () if refused is None else (Branch(line(f"a run would refuse it: {refused}")),)
        blocked = found.blocked.get(of_group[0].entity or "") if is_open and not is_late else None
        below = tuple(_do(Phrase(command)) for command in commands)
        if is_late:
            late = found.late_slices[of_group[0].entity or ""]
            late = late.only(*(row.slice for row in of_group[:MOST_SHOWN]))
            why = (
                f"for a rebuild that puts {place}"
                if late.rebuild is not None
                else "to be requeued or skipped"
            )
            below = (_do(late.remedy),)
        if is_placed and is_late and of_group[0].entity not in found.disabled:
            why, below = 'for the rebuild under "Runs that failed"', ()
        if foreign is not None:
            why = f"{foreign}{'it' if len(of_group) == 1 else 'them'}"
            told, below, blocked = (), (), None
        if blocked is not None:
            why = "until no slice blocks the next run"
            told = (Branch(line(f"a run would process none of the entity's slices: {blocked.message}")),)
            below = tuple(remedy_branches(blocked.remedy))
        is_refused = bool(told) or (is_late and foreign is None)
        yield is_refused, Branch(line(Span(name, "bold"), f": {what} {verb} {why}"), (*told, *below))


def _name_of(row: Row) -> str:
    """Return what a waiting item belongs to; one that no application has processed, to who added it."""
    new = row.item.new
    if row.application == ANYONE and new is not None:
        return f"added by {new.application}"
    return row.owner


def _what_takes(rows: Sequence[Row], limits: Sequence[str]) -> str:
    if not rows[0].application.is_of_entity:
        return f"to be processed by {rows[0].application}"
    if not limits:
        return "to be processed by the next run"
    named = ", ".join(row.slice for row in rows[:MOST_NAMED]) + (", …" if len(rows) > MOST_NAMED else "")
    return f"for a run that takes {named} ({'; '.join(limits)})"


def _do(text: str) -> Branch:
    return Branch(line(Span("do: ", "dim"), text))
