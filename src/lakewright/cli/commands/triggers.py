"""`lakewright triggers`: list the triggers of the project, and run, pause or resume one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import click

from lakewright.cli.call import Call
from lakewright.cli.commands.arguments import names_of
from lakewright.cli.faults import fault_line
from lakewright.cli.group import group
from lakewright.cli.page import Block, Line, Span, ago, labelled, line, status, table_of
from lakewright.errors.phrase import Command, Phrase
from lakewright.spec.words import duration

if TYPE_CHECKING:
    from lakewright.errors import Fault
    from lakewright.usecases.triggers import TriggerStatus, Withheld


NO_SERVER = Phrase("No server runs it at present; ", Command("serve"), " starts one.")


@group
def triggers(call: Call, /) -> None:
    """List the triggers of the project: what they run, when next, how they ended last, and who runs them.

    Examples:
        lakewright triggers
        lakewright triggers run nightly
        lakewright triggers pause arrivals
        lakewright triggers resume arrivals
    """
    from lakewright.usecases.triggers import list_triggers, withheld_triggers

    call.accept_faults(are_reported=call.settings.is_json)
    found, project = list_triggers(call.app), call.app.project
    faults = fault_blocks(project.faults, withheld_triggers(project))
    page = [*triggers_page(found, call.clock()), *faults]
    call.output.result([each.as_json() for each in found], page)


@triggers.add("run")
@click.argument("trigger", shell_complete=names_of("triggers"))
def run(call: Call, /, trigger: str) -> None:
    """Run a trigger now, also after a failure.

    Examples:
        lakewright triggers run nightly
    """
    from lakewright.usecases.triggers import run_trigger

    call.accept_faults()
    _show_changed(call, run_trigger(call.app, trigger))


@triggers.add("pause")
@click.argument("trigger", shell_complete=names_of("triggers"))
def pause(call: Call, /, trigger: str) -> None:
    """Keep a trigger from starting runs until it is resumed.

    Examples:
        lakewright triggers pause arrivals
    """
    from lakewright.usecases.triggers import pause_trigger

    call.accept_faults()
    _show_changed(call, pause_trigger(call.app, trigger, is_paused=True), needs_server=False)


@triggers.add("resume")
@click.argument("trigger", shell_complete=names_of("triggers"))
def resume(call: Call, /, trigger: str) -> None:
    """Let a paused trigger start runs again.

    Examples:
        lakewright triggers resume arrivals
    """
    from lakewright.usecases.triggers import pause_trigger

    call.accept_faults()
    _show_changed(call, pause_trigger(call.app, trigger, is_paused=False))


def _show_changed(call: Call, found: tuple[TriggerStatus, ...], *, needs_server: bool = True) -> None:
    call.output.answer([each.as_json() for each in found], triggers_page(found, call.clock()))
    if needs_server and not any(each.holder for each in found):
        call.output.note(NO_SERVER)


STUCK = ("failed", "retrying", "interrupted", "paused")
MOST_FAULTS = 10


def triggers_page(triggers: Sequence[TriggerStatus], now: datetime) -> Iterator[Block]:
    """Yield the triggers as a table, and below it why some did not succeed."""
    yield table_of([_cells(each, now) for each in triggers], "no triggers")
    named = [each for each in triggers if each.message or each.warnings or each.state.is_paused]
    yield from trigger_branches(named, now)


def trigger_branches(triggers: Sequence[TriggerStatus], now: datetime) -> tuple[Line, ...]:
    """Return the triggers that an operator should look at."""
    shown = (each for each in triggers if each.word in STUCK or each.warnings or each.state.is_paused)
    return tuple(trigger_branch(each, now) for each in shown)


def fault_blocks(faults: Sequence[Fault], withheld: Sequence[Withheld]) -> Iterator[Block]:
    """Yield what is wrong in the project's files, and which triggers wait for it; the others go on."""
    if not faults:
        return
    below = [fault_line(fault) for fault in faults[:MOST_FAULTS]]
    if len(faults) > MOST_FAULTS:
        below.append(line(Span(Phrase(f"{len(faults) - MOST_FAULTS} more: ", Command("validate")), "dim")))
    title = Span("Faults of the project's files", "bold red")
    yield line(title, Span(f" {len(faults)}", "dim"), below=below)
    if withheld:
        waiting = tuple(
            line(Span(str(each), "bold"), f": {each.fault.located_message.splitlines()[0]}")
            for each in withheld
        )
        title = Span("Triggers that wait until they are mended", "bold")
        yield line(title, Span(f" {len(withheld)}", "dim"), below=waiting)


def next_line(triggers: Sequence[TriggerStatus], now: datetime) -> Line | None:
    """Return what runs next by itself; without a time, what it waits for. None if nothing runs by itself."""
    active = [each for each in triggers if each.trigger.enabled and not each.state.is_paused]
    times = [(at, each) for each in active if (at := each.state.retry_at or each.next)]
    if not times:
        waits = ", ".join(f"{each.lane} on {each.when}" for each in active)
        return line(Span("By itself", "bold"), f" {waits}") if waits else None
    at, each = min(times, key=lambda found: found[0])
    where = "" if each.holder else ", if a server runs then"
    return line(Span("Next", "bold"), f" {each.lane}: {each.runs} {_when(at, now)}{where}")


def trigger_branch(trigger: TriggerStatus, now: datetime) -> Line:
    """Return a trigger with why its last run failed, the command to type, and what that run warned of."""
    state = trigger.state
    head = (status(trigger.word), f" {trigger.lane}: {trigger.runs}")
    below = [line(text) for text in trigger.message.splitlines()[:1]]
    if trigger.word == "retrying" and state.retry_at is not None:
        when = _when(state.retry_at, now) if trigger.holder else "once a server runs"
        below.append(line(f"attempt {state.failures + 1} {when}, by itself"))
    if trigger.run_id is not None:
        below.append(labelled("look", Phrase(Command("history", "show", trigger.run_id))))
    if state.is_paused:
        below = [*_paused(trigger), labelled("do", Phrase(trigger.commands[-1]))]
    if trigger.word == "failed":
        typed = Phrase.joined(", then ", trigger.commands)
        below.append(labelled("do", Phrase("mend the cause, then ", typed)))
    elif trigger.word in ("retrying", "interrupted") and trigger.holder is None:
        below.append(labelled("do", Phrase.joined(", then ", trigger.commands)))
    return line(*head, below=(*below, *_warnings(trigger, now)))


def _paused(trigger: TriggerStatus) -> Iterator[Line]:
    """Yield what a paused trigger will do, which is no news if it only waits."""
    state = trigger.state
    if state.running is not None and trigger.holder is not None:
        yield line("paused: it begins no further run until it is resumed")
    elif state.running is not None or state.pending:
        yield line("a run is due, and begins once it is resumed")


def _warnings(trigger: TriggerStatus, now: datetime) -> Iterator[Line]:
    if trigger.warnings and trigger.state.last is not None:
        when = f" by its last run, {ago(trigger.state.last.finished, now)}:"
        yield line(Span("warned", "yellow"), when, below=map(line, trigger.warnings))


def _cells(each: TriggerStatus, now: datetime) -> dict[str, object]:
    last = each.state.last
    return {
        "trigger": each.lane.trigger,
        "runs": each.runs,
        "when": each.when,
        "state": status(each.word),
        "next": _when(each.state.retry_at or each.next, now),
        "last": "" if last is None else f"{last.result} {ago(last.finished, now)}",
        "held by": each.holder,
    }


def _when(at: datetime | None, now: datetime) -> str:
    if at is None:
        return ""
    return f"in {duration((at - now).total_seconds())}" if at > now else "now"
