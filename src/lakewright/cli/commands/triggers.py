"""`lakewright triggers`: list the triggers of the project, and run, pause or resume one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import click

from lakewright.cli.call import Call
from lakewright.cli.completion import names_of
from lakewright.cli.faults import fault_branch
from lakewright.cli.group import group
from lakewright.cli.page import Block, Branch, Line, Span, Table, ago, line
from lakewright.errors.phrase import Command, Phrase
from lakewright.spec.words import duration

if TYPE_CHECKING:
    from lakewright.errors import Fault
    from lakewright.usecases.triggers import TriggerStatus, Withheld


NO_SERVER = Phrase("No server runs it at present; ", Command("serve"), " starts one.")


@group(
    examples=[
        "lakewright triggers",
        "lakewright triggers run nightly",
        "lakewright triggers pause arrivals",
        "lakewright triggers resume arrivals",
    ],
)
def triggers(call: Call, /) -> None:
    """List the triggers of the project: what they run, when next, how they ended last, and who runs them."""
    from lakewright.usecases.triggers import list_triggers, withheld_triggers

    call.accept_faults(are_reported=call.settings.is_json)
    found, project = list_triggers(call.app), call.app.project
    faults = fault_blocks(project.faults, withheld_triggers(project))
    page = [*triggers_page(found, call.clock()), *faults]
    call.output.result([each.as_json() for each in found], page)


@triggers.add(name="run", examples=["lakewright triggers run nightly"])
@click.argument("trigger", shell_complete=names_of("triggers"))
def run(call: Call, /, trigger: str) -> None:
    """Run a trigger now, also after a failure.

    A paused trigger runs once it is resumed.
    """
    from lakewright.usecases.triggers import run_trigger

    call.accept_faults()
    _show_changed(call, run_trigger(call.app, trigger))


@triggers.add(name="pause", examples=["lakewright triggers pause arrivals"])
@click.argument("trigger", shell_complete=names_of("triggers"))
def pause(call: Call, /, trigger: str) -> None:
    """Keep a trigger from starting runs until it is resumed; the latest that becomes due is remembered."""
    from lakewright.usecases.triggers import pause_trigger

    call.accept_faults()
    _show_changed(call, pause_trigger(call.app, trigger, is_paused=True), needs_server=False)


@triggers.add(name="resume", examples=["lakewright triggers resume arrivals"])
@click.argument("trigger", shell_complete=names_of("triggers"))
def resume(call: Call, /, trigger: str) -> None:
    """Let a paused trigger start runs again."""
    from lakewright.usecases.triggers import pause_trigger

    call.accept_faults()
    _show_changed(call, pause_trigger(call.app, trigger, is_paused=False))


def _show_changed(call: Call, found: tuple[TriggerStatus, ...], *, needs_server: bool = True) -> None:
    call.output.answer([each.as_json() for each in found], triggers_page(found, call.clock()))
    if needs_server and not any(each.holder for each in found):
        call.output.note(NO_SERVER)


STYLES = {
    "failed": "bold red",
    "retrying": "yellow",
    "interrupted": "yellow",
    "running": "cyan",
    "due": "cyan",
    "paused": "yellow",
}
STUCK = ("failed", "retrying", "interrupted", "paused")
MOST_FAULTS = 10


def triggers_page(triggers: Sequence[TriggerStatus], now: datetime) -> Iterator[Block]:
    """Yield the triggers as a table, and below it why some did not succeed."""
    if not triggers:
        yield line("no triggers")
        return
    columns = ("trigger", "runs", "when", "state", "next", "last", "held by")
    yield Table(columns, tuple(_cells(each, now) for each in triggers))
    for each in triggers:
        if (each.message and each.word in STUCK) or each.warnings or each.state.is_paused:
            yield trigger_branch(each, now)


def trigger_branches(triggers: Sequence[TriggerStatus], now: datetime) -> tuple[Branch, ...]:
    """Return the triggers that an operator should look at."""
    shown = (each for each in triggers if each.word in STUCK or each.warnings or each.state.is_paused)
    return tuple(trigger_branch(each, now) for each in shown)


def fault_blocks(faults: Sequence[Fault], withheld: Sequence[Withheld]) -> Iterator[Block]:
    """Yield what is wrong in the project's files, and which triggers wait for it; the others go on."""
    if not faults:
        return
    below = [fault_branch(fault) for fault in faults[:MOST_FAULTS]]
    if len(faults) > MOST_FAULTS:
        below.append(
            Branch(line(Span(Phrase(f"{len(faults) - MOST_FAULTS} more: ", Command("validate")), "dim")))
        )
    title = Span("Faults of the project's files", "bold red")
    yield Branch(line(title, Span(f" {len(faults)}", "dim")), tuple(below))
    if withheld:
        waiting = tuple(Branch(line(Span(str(each), "bold"), f": {_head(each.fault)}")) for each in withheld)
        title = Span("Triggers that wait until they are mended", "bold")
        yield Branch(line(title, Span(f" {len(withheld)}", "dim")), waiting)


def _head(fault: Fault) -> str:
    return fault.located_message.partition("\n")[0]


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


def trigger_branch(trigger: TriggerStatus, now: datetime) -> Branch:
    """Return a trigger with why its last run failed, the command to type, and what that run warned of."""
    state = trigger.state
    head = line(Span(trigger.word, STYLES.get(trigger.word, "")), f" {trigger.lane}: {trigger.runs}")
    below = [Branch(line(text)) for text in trigger.message.splitlines()[:1]]
    if trigger.word == "retrying" and state.retry_at is not None:
        when = _when(state.retry_at, now) if trigger.holder else "once a server runs"
        below.append(Branch(line(f"attempt {state.failures + 1} {when}, by itself")))
    if trigger.run_id is not None:
        below.append(Branch(line(Span("look: ", "dim"), Phrase(Command("history", "show", trigger.run_id)))))
    if state.is_paused:
        below = [*_paused(trigger), _do(Phrase(trigger.commands[-1]))]
    if trigger.word == "failed":
        typed = Phrase.joined(", then ", trigger.commands)
        below.append(_do(Phrase("mend the cause, then ", typed)))
    elif trigger.word in ("retrying", "interrupted") and trigger.holder is None:
        below.append(_do(Phrase.joined(", then ", trigger.commands)))
    return Branch(head, (*below, *_warnings(trigger, now)))


def _paused(trigger: TriggerStatus) -> Iterator[Branch]:
    """Yield what a paused trigger will do, which is no news if it only waits."""
    state = trigger.state
    if state.running is not None and trigger.holder is not None:
        yield Branch(line("paused: it begins no further run until it is resumed"))
    elif state.running is not None or state.pending:
        yield Branch(line("a run is due, and begins once it is resumed"))


def _warnings(trigger: TriggerStatus, now: datetime) -> Iterator[Branch]:
    if trigger.warnings and trigger.state.last is not None:
        head = line(Span("warned", "yellow"), f" by its last run, {ago(trigger.state.last.finished, now)}:")
        yield Branch(head, tuple(Branch(line(text)) for text in trigger.warnings))


def _do(text: str) -> Branch:
    return Branch(line(Span("do: ", "dim"), text))


def _cells(each: TriggerStatus, now: datetime) -> tuple[Line, ...]:
    last = each.state.last
    return (
        line(str(each.lane.trigger)),
        line(each.runs),
        line(each.when),
        line(Span(each.word, STYLES.get(each.word, ""))),
        line(_when(each.state.retry_at or each.next, now)),
        line("" if last is None else f"{last.result} {ago(last.finished, now)}"),
        line(each.holder or ""),
    )


def _when(at: datetime | None, now: datetime) -> str:
    if at is None:
        return ""
    return f"in {duration((at - now).total_seconds())}" if at > now else "now"
