"""`lakewright triggers`: list the triggers of the project, and run, pause or resume one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from lakewright.cli.call import Call
from lakewright.cli.completion import names_of
from lakewright.cli.group import LazyGroup
from lakewright.cli.options import settings_of
from lakewright.cli.render.triggers import fault_blocks, triggers_page
from lakewright.errors.phrase import Command, Phrase

if TYPE_CHECKING:
    from lakewright.usecases.triggers import TriggerStatus

__all__ = ["triggers"]

NO_SERVER = Phrase("No server runs it at present; ", Command("serve"), " starts one.")


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    examples=[
        "lakewright triggers",
        "lakewright triggers run nightly",
        "lakewright triggers pause arrivals",
        "lakewright triggers resume arrivals",
    ],
)
@click.pass_context
def triggers(context: click.Context, /) -> None:
    """List the triggers of the project: what they run, when next, how they ended last, and who runs them."""
    call = context.find_object(Call)
    if context.invoked_subcommand is not None or call is None:
        return
    from lakewright.usecases.triggers import list_triggers, withheld_triggers

    with call.configured(settings_of(context)):
        call.accept_faults(are_told=call.settings.is_json)
        found, project = list_triggers(call.app), call.app.project
        call.output.result(
            [each.as_json() for each in found],
            [
                *triggers_page(found, call.clock()),
                *fault_blocks(project.faults, withheld_triggers(project)),
            ],
        )


@triggers.add(name="run", examples=["lakewright triggers run nightly"])
@click.argument("trigger", shell_complete=names_of("triggers"))
@click.pass_obj
def run(call: Call, /, trigger: str) -> None:
    """Have a trigger run now, although it is not due; one that waits after a failure goes on.

    A paused trigger runs once it is resumed.
    """
    from lakewright.usecases.triggers import run_trigger

    call.accept_faults()
    _show(call, run_trigger(call.app, trigger))


@triggers.add(name="pause", examples=["lakewright triggers pause arrivals"])
@click.argument("trigger", shell_complete=names_of("triggers"))
@click.pass_obj
def pause(call: Call, /, trigger: str) -> None:
    """Keep a trigger from starting runs until it is resumed; the latest that becomes due is remembered."""
    from lakewright.usecases.triggers import pause_trigger

    call.accept_faults()
    _show(call, pause_trigger(call.app, trigger, is_paused=True), needs_server=False)


@triggers.add(name="resume", examples=["lakewright triggers resume arrivals"])
@click.argument("trigger", shell_complete=names_of("triggers"))
@click.pass_obj
def resume(call: Call, /, trigger: str) -> None:
    """Let a paused trigger start runs again."""
    from lakewright.usecases.triggers import pause_trigger

    call.accept_faults()
    _show(call, pause_trigger(call.app, trigger, is_paused=False))


def _show(call: Call, found: tuple[TriggerStatus, ...], *, needs_server: bool = True) -> None:
    call.output.answer([each.as_json() for each in found], triggers_page(found, call.clock()))
    if needs_server and not any(each.holder for each in found):
        call.output.note(NO_SERVER)
