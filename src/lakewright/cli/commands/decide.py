"""`lakewright decide`: say what only a person can say."""

from __future__ import annotations

import click

from lakewright.cli.call import Call
from lakewright.cli.commands.manifest.operate import operator_options
from lakewright.cli.completion import complete_decisions
from lakewright.cli.group import command
from lakewright.cli.page import Span, line
from lakewright.errors.phrase import Command, Phrase

__all__ = ["decide"]


@command(
    examples=[
        "lakewright decide regions/2025-07-02-slice.parquet place",
        "lakewright decide regions/2025-07-03-slice.parquet skip --reason 'the file is broken'",
    ],
)
@click.argument("subject", shell_complete=complete_decisions)
@click.argument("choice", shell_complete=complete_decisions)
@operator_options
@click.pass_obj
def decide(call: Call, /, subject: str, choice: str, *, author: str, reason: str) -> int:
    """Decide CHOICE about SUBJECT, as `lakewright plan` offers it; `lakewright apply` goes by it.

    SUBJECT is an entity, or ENTITY/SLICE. Nothing is recorded if the choice is not offered any more.
    """
    from lakewright.usecases.due.decide import decide as save

    made = save(call.app, subject, choice, author=author, reason=reason)
    document = {"subject": made.subject.text, "choice": made.verb.value, "basis": made.basis}
    decided = line(
        Span(made.subject.text, "bold"), Phrase(f": {made.verb.value}; ", Command("apply"), " goes by it")
    )
    call.output.result(document, [decided])
    return 0
