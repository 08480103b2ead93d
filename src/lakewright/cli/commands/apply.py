"""`lakewright apply`: take what is due."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from lakewright.cli.call import Call
from lakewright.cli.commands.manifest.operate import author_option
from lakewright.cli.completion import names_of
from lakewright.cli.faults import FAILED, HELD, fault_branch
from lakewright.cli.group import command
from lakewright.cli.page import Span, line
from lakewright.cli.render.due import due_page, due_summary
from lakewright.cli.render.words import took
from lakewright.due.facts import Grant

if TYPE_CHECKING:
    from lakewright.due.plan import Step

__all__ = ["apply"]


@command(
    examples=[
        "lakewright apply",
        "lakewright apply regions --dry-run",
        "lakewright apply regions --allow replay",
    ],
)
@click.argument(
    "names", nargs=-1, metavar="[ENTITY|TARGET]...", shell_complete=names_of("entities", "targets")
)
@click.option(
    "--allow",
    "allowed",
    multiple=True,
    type=click.Choice([grant.value for grant in Grant]),
    help="Allow what destroys something or costs much.",
)
@click.option("--dry-run", is_flag=True, help="Only show what is due.")
@author_option("Who applies it.")
@click.pass_obj
def apply(
    call: Call, /, names: tuple[str, ...], *, allowed: tuple[str, ...], dry_run: bool, author: str
) -> int:
    """Take every step that is due and needs nobody; all of the project unless some are named.

    The exit code is 1 if a step failed, and 4 if something needs a person.
    """
    from lakewright.cli.commands.job import run_watched
    from lakewright.usecases.due.take import apply_plan, plan_of_project
    from lakewright.usecases.due.words import plan_document, step_words

    grants, begin = frozenset(map(Grant, allowed)), call.clock()
    if dry_run:
        plan = plan_of_project(call.app, names, grants)
        call.output.answer(plan_document(plan), due_page(plan))
        return 0

    def tell(step: Step) -> None:
        call.output.note(line(Span(step.subject.text, "bold"), f": {step_words(step)}"))

    done = apply_plan(
        call.app,
        lambda request: run_watched(call, request),
        names,
        grants=grants,
        author=author,
        on_step=tell,
    )
    document = {
        "taken": [{"id": each.step.id, "is_done": each.fault is None} for each in done.taken],
        "left": plan_document(done.left),
    }
    call.output.result(document, due_page(done.left))
    call.output.note(*(fault_branch(each.fault) for each in done.failed if each.fault is not None))
    counts = f"DONE={len(done.taken) - len(done.failed)} FAILED={len(done.failed)}"
    call.output.last(f"Applied. {counts} {due_summary(done.left)} in {took(begin, call.clock())}")
    if done.failed:
        return FAILED
    return HELD if done.needs_person else 0
