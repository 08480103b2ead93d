"""`lakewright ls`, `show`, `graph`, `validate`, `docs` and `schema`: what the project declares."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lakewright.cli.call import Call
from lakewright.cli.commands.arguments import (
    CATEGORIES,
    complete_arguments,
    complete_definition,
    complete_phase_and_arguments,
    names_of,
)
from lakewright.cli.group import command
from lakewright.cli.page import Block, Line, Span, line, table_of, whole
from lakewright.cli.progress import working
from lakewright.errors import SpecError, UsageError
from lakewright.errors.phrase import Phrase
from lakewright.plan.phase import Phase
from lakewright.spec.words import counted

if TYPE_CHECKING:
    from lakewright.plan.graph import Node
    from lakewright.plan.resource import Resource
    from lakewright.usecases.declarations import EditorSchemas
    from lakewright.usecases.draw_graph import DrawnTarget, DrawnTrigger


@command
@click.argument("section", type=click.Choice(["jobs", "targets", "entities", "relations", "mappings"]))
def ls(call: Call, /, section: str) -> None:
    """List the jobs, targets, entities, relations or mappings of the project.

    Examples:
        lakewright ls jobs
        lakewright ls entities -o json
    """
    from lakewright.usecases.declarations import list_section

    call.accept_faults()
    rows = list_section(call.app, section)
    call.output.answer(rows, [table_of(rows, f"no {section}")])


@command
@click.argument(
    "words", nargs=-1, required=True, metavar="[CATEGORY] NAME", shell_complete=complete_definition
)
@click.option("--types", is_flag=True, help="Of an entity: each column's type, and where it comes from.")
@click.option("--long", "is_long", is_flag=True, help="All of a name, as YAML of the long form.")
def show(call: Call, /, words: tuple[str, ...], *, types: bool, is_long: bool) -> None:
    """Show one definition of the project; an entity with the settings of its connection.

    CATEGORY is job, target, entity, relation, mapping or connection. It may be left out with --long.

    Examples:
        lakewright show job monthly
        lakewright show entity regions --types
        lakewright show regions --long
    """
    from lakewright.usecases.declarations import show_definition

    call.accept_faults()
    name = words[-1]
    if is_long:
        _show_long(call, name)
        return
    if len(words) != 2 or words[0] not in CATEGORIES:
        raise UsageError(
            "show needs a category and a name",
            remedy=f"Write one of {', '.join(CATEGORIES)} and a name, or give --long.",
        )
    category = words[0]
    if types:
        _show_types(call, category, name)
        return
    document = show_definition(call.app, category, name)
    place = f" {document['location'] or ''}".rstrip()
    definition = line(Span(f"{category} {name}", "bold"), place, below=_branches(document["definition"]))
    call.output.answer(document, [definition])


def _show_long(call: Call, name: str) -> None:
    import yaml

    from lakewright.usecases.declarations import long_form

    document = long_form(call.app, name)
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)
    call.output.answer(document, [whole(each) for each in text.rstrip().splitlines()])


def _show_types(call: Call, category: str, name: str) -> None:
    from lakewright.usecases.declarations import entity_types

    if category != "entity":
        raise UsageError(f"a {category} has no types", remedy="--types is for an entity.")
    document = entity_types(call.app, name)
    rows = [{**each, "type": each["type"] or "not known yet"} for each in document["columns"]]
    call.output.answer(document, [table_of(rows, "no columns are known yet")])


def _branches(value: Any) -> Iterator[Line]:
    pairs = value.items() if isinstance(value, Mapping) else ((None, inner) for inner in value)
    for key, inner in pairs:
        yield _branch("-" if key is None else f"{key}:", inner)


def _branch(label: str, value: Any) -> Line:
    if isinstance(value, Mapping | list):
        return line(Span(label, "dim"), below=_branches(value))
    lines = str("" if value is None else value).splitlines() or [""]
    if len(lines) == 1:
        return line(Span(f"{label} ", "dim"), lines[0])
    return line(Span(label, "dim"), below=map(line, lines))


@dataclass(frozen=True, slots=True)
class _Drawing:
    """Targets in order, with the resources they require and provide if requested, and what starts them."""

    drawn: Sequence[DrawnTarget]
    triggers: Sequence[DrawnTrigger]

    @property
    def nodes(self) -> dict[str, Node]:
        """What each target requires and provides, if requested."""
        return {each.name: each.node for each in self.drawn if each.node is not None}

    def targets(self) -> Iterator[tuple[str, str]]:
        """Yield the edges from a target to one that depends on it."""
        for each in self.drawn:
            yield from ((source.name, each.name) for source in self.drawn if source.name in each.sources)

    def resources(self) -> list[Resource]:
        """Return each resource once."""
        each = (resource for node in self.nodes.values() for resource in (*node.requires, *node.provides))
        return sorted(set(each), key=str)

    def needs(self) -> Iterator[tuple[Resource, str]]:
        """Yield the edges from a resource to a target that requires it or a part of it."""
        for name, node in self.nodes.items():
            for resource in self.resources():
                if any(resource.intersects(needed) for needed in node.requires):
                    yield resource, name

    def gives(self) -> Iterator[tuple[str, Resource]]:
        """Yield the edges from a target to a resource that it provides."""
        for name, node in self.nodes.items():
            for resource in sorted(node.provides, key=str):
                yield name, resource


@command
@click.argument("name", metavar="JOB", shell_complete=names_of("jobs"))
@click.argument(
    "words", nargs=-1, metavar="[PHASE] [PARAM=VALUE]...", shell_complete=complete_phase_and_arguments
)
@click.option(
    "--format", "form", type=click.Choice(["text", "mermaid", "dot"]), default="text", show_default=True
)
@click.option("--resources", is_flag=True, help="Show what each target requires and provides, too.")
def graph(call: Call, /, name: str, words: tuple[str, ...], *, form: str, resources: bool) -> None:
    """Show which targets of a job depend on which: a failure blocks those after it.

    With PHASE, the targets are those that a run would take.

    Examples:
        lakewright graph monthly
        lakewright graph monthly build month=2022-01-01
        lakewright graph monthly build month=2022-01-01 --resources
        lakewright graph monthly --format mermaid
        lakewright graph monthly --format dot | dot -Tsvg > monthly.svg
    """
    from lakewright.run.request import JobRequest
    from lakewright.usecases.draw_graph import declared_graph, graph_as_json, phase_graph, starting_triggers

    has_phase = bool(words) and "=" not in words[0]
    phase = Phase.named(words[0]) if has_phase else None
    if phase is None:
        drawn = declared_graph(call.app, name, words, with_resources=resources)
    else:
        request = JobRequest(name, phase, words[1:], is_alone=True)
        drawn = phase_graph(call.app, request, with_resources=resources)
    drawing = _Drawing(drawn, starting_triggers(call.app, name, drawn))
    document = graph_as_json(name, phase, drawn, drawing.triggers)
    lines = {"text": _text, "mermaid": _mermaid, "dot": _dot}[form](drawing)
    call.output.answer(document, lines if form == "text" else (whole(str(each)) for each in lines))


def _text(drawing: _Drawing) -> Iterator[Line]:
    edges = list(drawing.targets())
    for each in drawing.drawn:
        sources = [source for source, target in edges if target == each.name]
        after = f" after {', '.join(sources)}" if sources else ""
        yield line(Span(each.name, "bold"), Span(f" ({each.kind})", "dim"), after)
        if each.node is not None:
            requires, provides = sorted(each.node.requires, key=str), sorted(each.node.provides, key=str)
            yield from (line(Span("  needs ", "dim"), str(resource)) for resource in requires)
            yield from (line(Span("  gives ", "dim"), str(resource)) for resource in provides)
    for trigger in drawing.triggers:
        yield line(Span("trigger ", "dim"), Span(trigger.name, "bold"), Phrase(" ", _words(trigger)))


def _words(trigger: DrawnTrigger) -> str:
    off, starts = "" if trigger.enabled else ", disabled", ", ".join(trigger.starts) or "nothing"
    return Phrase(f"({trigger.when}{off}) runs ", trigger.runs, f", from {starts}")


def _label(trigger: DrawnTrigger) -> str:
    return f"{trigger.name}: {trigger.when}{'' if trigger.enabled else ' (disabled)'}"


def _mermaid(drawing: _Drawing) -> Iterator[Line]:
    ids: dict[object, str] = {each.name: f"t{index}" for index, each in enumerate(drawing.drawn)}
    ids |= {resource: f"r{index}" for index, resource in enumerate(drawing.resources())}
    yield line("flowchart LR")
    for each in drawing.drawn:
        yield line(f'  {ids[each.name]}["{_quoted(each.name)}"]')
    for resource in drawing.resources():
        yield line(f'  {ids[resource]}[("{_quoted(str(resource))}")]')
    for source, target in drawing.targets() if not drawing.nodes else ():
        yield line(f"  {ids[source]} --> {ids[target]}")
    for one, other in (*drawing.needs(), *drawing.gives()):
        yield line(f"  {ids[one]} --> {ids[other]}")
    for index, trigger in enumerate(drawing.triggers):
        yield line(f'  g{index}>"{_quoted(_label(trigger))}"]')
        for target in trigger.starts:
            yield line(f"  g{index} -.-> {ids[target]}")


def _quoted(text: str) -> str:
    return text.replace('"', "#quot;")


def _dot(drawing: _Drawing) -> Iterator[Line]:
    yield line("digraph {")
    yield line("  rankdir=LR; node [shape=box];")
    for each in drawing.drawn:
        yield line(f"  {json.dumps(each.name)};")
    for resource in drawing.resources():
        yield line(f"  {json.dumps(str(resource))} [shape=cylinder];")
    for source, target in drawing.targets() if not drawing.nodes else ():
        yield line(f"  {json.dumps(source)} -> {json.dumps(target)};")
    for one, other in (*drawing.needs(), *drawing.gives()):
        yield line(f"  {json.dumps(str(one))} -> {json.dumps(str(other))};")
    for index, trigger in enumerate(drawing.triggers):
        yield line(f"  trigger{index} [label={json.dumps(_label(trigger))}, shape=note];")
        for target in trigger.starts:
            yield line(f"  trigger{index} -> {json.dumps(target)} [style=dashed];")
    yield line("}")


SECTIONS = ("relations", "mappings", "targets", "jobs", "entities", "connections", "tests", "triggers")


@command
@click.option("--spark", is_flag=True, help="Let Spark analyse every mapping, too.")
def validate(call: Call, /, *, spark: bool) -> None:
    """Check all files of the project and report every error, with file and line.

    This needs no Spark and reads no data.

    Examples:
        lakewright validate
        lakewright validate --project lake -o json
        lakewright validate --spark
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


@command
@click.argument("job", required=False, metavar="[JOB]", shell_complete=names_of("jobs"))
@click.argument("parameters", nargs=-1, metavar="[PARAM=VALUE]...", shell_complete=complete_arguments)
@click.option("--no-checks", is_flag=True, help="Start no Spark: run no checks, trace no columns.")
@click.option("--open", "is_opened", is_flag=True, help="Open the page in a browser.")
def docs(
    call: Call, /, job: str | None, parameters: tuple[str, ...], *, no_checks: bool, is_opened: bool
) -> int:
    """Write the project's documentation: its definitions, their lineage, and the results of its checks.

    Expressions have the values of JOB and its parameters, or of the last run. Exits with 1 if a check fails.

    Examples:
        lakewright docs
        lakewright docs monthly month=2022-04-01
        lakewright docs --no-checks --open
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


@command
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
def schema(call: Call, /, folder: Path | None) -> None:
    """Write JSON schemas of project.yml, modules, documentation.yml and entity files into DIR.

    The output says how an editor finds them.

    Examples:
        lakewright schema
        lakewright schema /tmp/schemas
        lakewright schema -o json
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
