"""`lakewright validate`, `docs` and `schema`: check a project's files, document them, help to edit them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lakewright.cli.call import Call
from lakewright.cli.completion import complete_arguments, names_of
from lakewright.cli.group import command
from lakewright.cli.page import Block, Span, line
from lakewright.cli.progress import working
from lakewright.errors import SpecError
from lakewright.spec.words import counted

if TYPE_CHECKING:
    from lakewright.usecases.declarations import EditorSchemas


SECTIONS = ("relations", "mappings", "targets", "jobs", "entities", "connections", "tests", "triggers")


@command(
    examples=[
        "lakewright validate",
        "lakewright validate --project lake -o json",
        "lakewright validate --spark",
    ],
)
@click.option("--spark", is_flag=True, help="Let Spark analyse every mapping, too, over tables without rows.")
def validate(call: Call, /, *, spark: bool) -> None:
    """Check all files of the project and report every error, with file and line.

    This needs no Spark and reads no data. Expressions are evaluated with stand-ins for parameters. SQL
    that the parser rejects is a warning; Spark may accept it.
    """
    from lakewright.usecases.validate_project import validate_project

    call.accept_faults(are_reported=False)
    call.settings = replace(call.settings, checks_only=True)
    with working(call.output, "analysing") if spark else nullcontext():
        validation = validate_project(call.app, with_spark=spark)
    call.output.labelled("warning", (fault.phrase for fault in validation.warnings))
    if validation.errors:
        raise SpecError(validation.errors)
    project = call.app.project
    counts = {section: len(getattr(project, section)) for section in SECTIONS}
    words = {section: "entity" if section == "entities" else section[:-1] for section in SECTIONS}
    shown = ", ".join(counted(number, words[section]) for section, number in counts.items() if number)
    analysed = f"; Spark accepts {counted(validation.analysed, 'mapping')}" if spark else ""
    document = {
        "project": project.name,
        "errors": [],
        "warnings": [fault.as_json() for fault in (*call.app.warnings, *validation.warnings)],
        "counts": counts,
    }
    found = f": {shown or 'nothing is declared'}{analysed}"
    call.output.result(document, [line(Span(f"{project.name} is valid", "green"), found)])


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
def docs(
    call: Call, /, job: str | None, parameters: tuple[str, ...], *, no_checks: bool, is_opened: bool
) -> int:
    """Write the project's documentation: its definitions, their lineage, and the results of its checks.

    `documentation.yml` says what to write. Expressions have the values of JOB and its parameters, or of
    the last run. Exits with 1 if a check fails.
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


@command(examples=["lakewright schema", "lakewright schema /tmp/schemas", "lakewright schema -o json"])
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
def schema(call: Call, /, folder: Path | None) -> None:
    """Write JSON schemas of project.yml, modules, documentation.yml and entity files into DIR.

    DIR is by default the folder schemas of the project. The output says how an editor finds them.
    """
    from lakewright.usecases.declarations import write_schemas

    written = write_schemas(folder, project=call.settings.project)
    call.output.result(written.as_json(), _schemas_page(written))


def _schemas_page(written: EditorSchemas) -> Iterator[Block]:
    from lakewright.usecases.declarations import DOCUMENTATION, MODULE, PROJECT

    yield line(f"{counted(len(written.files), 'schema')} written to {written.folder}")
    yield line("")
    yield line(Span("In any editor with the YAML language server", "bold"), ": the first line of a file")
    absolute = written.folder.resolve()
    for file, name in (("project.yml", PROJECT), ("modules", MODULE), ("documentation.yml", DOCUMENTATION)):
        yield line(f"  # yaml-language-server: $schema={absolute / name}", Span(f"   ({file})", "dim"))
    yield line("")
    yield line(Span("In VS Code", "bold"), ": for all files at once, in .vscode/settings.json")
    for text in json.dumps(written.vscode, indent=2).splitlines():
        yield line(f"  {text}")
