"""`lakewright docs`: the project's documentation."""

from __future__ import annotations

import click

from lakewright.cli.call import Call
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
@click.argument("job", required=False, metavar="[JOB]")
@click.argument("parameters", nargs=-1, metavar="[PARAM=VALUE]...")
@click.option("--no-checks", is_flag=True, help="Start no Spark: try no checks, trace no columns.")
@click.option("--open", "is_opened", is_flag=True, help="Open the page in a browser.")
@click.pass_obj
def docs(
    call: Call, /, job: str | None, parameters: tuple[str, ...], *, no_checks: bool, is_opened: bool
) -> int:
    """Write the project's documentation: what it declares, how it hangs together, whether its checks hold.

    Written as `documentation.yml` says, else as a page in generated-documentation. Names of a job come from
    JOB and its parameters, or from the last run. Ends with 1 if a check fails.
    """
    from lakewright.documentation.target import check_metrics, failed_checks
    from lakewright.run.docs import DocsRequest

    with working(call.output, "Gathering"):
        written = call.app.document(DocsRequest(job, parameters, is_offline=no_checks))
    failed = failed_checks(written.document)
    metrics = check_metrics(written.document)
    document = {
        "project": written.document.project,
        "files": [str(file) for file in written.files],
        **metrics,
        "failed": failed,
    }
    tried = f", {counted(metrics['checks'], 'check')} tried" if metrics["checks"] else ""
    page = [
        *(line(Span("failed ", "bold red"), text) for text in failed),
        *(line(f"written: {file}") for file in written.files),
        line(Span(f"{counted(len(written.document.items), 'item')}{tried}, {len(failed)} failed", "bold")),
    ]
    call.output.result(document, page)
    if is_opened:
        click.launch(str(written.files[0]))
    return 1 if failed else 0
