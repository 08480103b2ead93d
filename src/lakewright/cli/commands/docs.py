"""`lakewright docs`: write the project's documentation."""

from __future__ import annotations

import click

from lakewright.cli.call import Call
from lakewright.cli.completion import complete_arguments, names_of
from lakewright.cli.group import command
from lakewright.cli.page import Span, line
from lakewright.cli.progress import working
from lakewright.cli.render.words import counted

__all__ = ["docs"]


@command(
    examples=[
        "lakewright docs",
        "lakewright docs monthly month=2022-04-01",
        "lakewright docs --no-checks --open",
    ],
)
@click.argument("job", required=False, metavar="[JOB]", shell_complete=names_of("jobs"))
@click.argument("parameters", nargs=-1, metavar="[PARAM=VALUE]...", shell_complete=complete_arguments)
@click.option("--no-checks", is_flag=True, help="Start no Spark: run no checks, trace no columns.")
@click.option("--open", "is_opened", is_flag=True, help="Open the page in a browser.")
@click.pass_obj
def docs(
    call: Call, /, job: str | None, parameters: tuple[str, ...], *, no_checks: bool, is_opened: bool
) -> int:
    """Write the project's documentation: its definitions, their lineage, and the results of its checks.

    `documentation.yml` says what to write; by default it is a page in generated-documentation. Expressions
    are evaluated with the values of JOB and its parameters, or of the last run. Exits with 1 if a check
    fails.
    """
    from lakewright.documentation.target import check_metrics, failed_checks
    from lakewright.usecases.document_project import document_project

    with working(call.output, "Gathering"):
        written = document_project(call.app, job, parameters, is_offline=no_checks)
    failed = failed_checks(written.document)
    metrics = check_metrics(written.document)
    document = {
        "project": written.document.project,
        "files": [str(file) for file in written.files],
        **metrics,
        "failed": failed,
    }
    tried = f", {counted(metrics['checks'], 'check')} run" if metrics["checks"] else ""
    page = [
        *(line(Span("failed ", "bold red"), text) for text in failed),
        *(line(f"written: {file}") for file in written.files),
        line(Span(f"{counted(len(written.document.items), 'item')}{tried}, {len(failed)} failed", "bold")),
    ]
    call.output.result(document, page)
    if is_opened:
        click.launch(str(written.files[0]))
    return 1 if failed else 0
