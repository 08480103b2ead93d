"""`lakewright graph`: show the dependencies between the targets of a job, and what starts them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from lakewright.cli.call import Call
from lakewright.cli.completion import complete_phase_and_arguments, names_of
from lakewright.cli.group import command
from lakewright.cli.page import Line, Span, line, whole
from lakewright.errors.phrase import Phrase
from lakewright.plan.phase import Phase

if TYPE_CHECKING:
    from lakewright.plan.graph import Node
    from lakewright.plan.resource import Resource
    from lakewright.usecases.draw_graph import DrawnTarget, DrawnTrigger


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
            for source in self.drawn:
                if source.name in each.sources:
                    yield source.name, each.name

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


@command(
    examples=[
        "lakewright graph monthly",
        "lakewright graph monthly build month=2022-01-01",
        "lakewright graph monthly build month=2022-01-01 --resources",
        "lakewright graph monthly --format mermaid",
        "lakewright graph monthly --format dot | dot -Tsvg > monthly.svg",
    ],
)
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

    Without PHASE, all targets are shown with what connects them in any phase. With PHASE, the targets are
    those that a run would take. Triggers are shown with the targets that they start with.
    """
    from lakewright.run.request import JobRequest
    from lakewright.usecases.draw_graph import (
        declared_graph,
        graph_as_json,
        phase_graph,
        starting_triggers,
    )

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
