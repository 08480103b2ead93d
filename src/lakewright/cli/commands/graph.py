"""`lakewright graph`: show the dependencies between the targets of a job in one phase."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import click

from lakewright.cli.call import Call
from lakewright.cli.commands.arguments import job_arguments, job_request
from lakewright.cli.group import command
from lakewright.cli.page import Line, Span, line
from lakewright.plan.phase import Phase
from lakewright.plan.step import PhasePlan

if TYPE_CHECKING:
    from lakewright.plan.graph import Node
    from lakewright.plan.resource import Resource

__all__ = ["graph"]


@dataclass(slots=True)
class _Drawing:
    """The targets of a phase, with the resources they require and provide if requested."""

    phase: PhasePlan
    nodes: Mapping[str, Node] = field(default_factory=dict)

    def targets(self) -> Iterator[tuple[str, str]]:
        """Yield the edges from a target to one that depends on it."""
        for step in self.phase.steps:
            for source in self.phase.steps:
                if source.target in self.phase.sources.get(step.target, ()):
                    yield source.target, step.target

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
        "lakewright graph monthly build month=2022-01-01",
        "lakewright graph monthly build month=2022-01-01 --resources",
        "lakewright graph monthly build month=2022-01-01 --format mermaid",
        "lakewright graph monthly build month=2022-01-01 --format dot | dot -Tsvg > monthly.svg",
    ],
)
@job_arguments
@click.option(
    "--format", "form", type=click.Choice(["text", "mermaid", "dot"]), default="text", show_default=True
)
@click.option("--resources", is_flag=True, help="Show what each target requires and provides, too.")
@click.pass_obj
def graph(
    call: Call, /, name: str, phase: Phase, parameters: tuple[str, ...], *, form: str, resources: bool
) -> None:
    """Show which targets of a job depend on which in one phase: a failure blocks those after it."""
    request = job_request(name, phase, parameters, no_lifecycle=True)
    from lakewright.usecases.plan_job import plan_job, target_nodes

    phases = [found for instance in plan_job(call.app, request).instances[:1] for found in instance.phases]
    nodes = target_nodes(call.app, request) if resources else {}
    drawn = _Drawing(phases[0] if phases else PhasePlan(phase, ()), nodes)
    document = {"job": name, "phase": phase.value.lower(), "targets": list(_documents(drawn))}
    call.output.result(document, {"text": _text, "mermaid": _mermaid, "dot": _dot}[form](drawn))


def _documents(drawing: _Drawing) -> Iterator[dict[str, object]]:
    for step in drawing.phase.steps:
        sources = sorted(drawing.phase.sources.get(step.target, ()))
        document: dict[str, object] = {"name": step.target, "kind": step.kind, "sources": sources}
        node = drawing.nodes.get(step.target)
        if node is not None:
            document |= {
                "requires": sorted(map(str, node.requires)),
                "provides": sorted(map(str, node.provides)),
            }
        yield document


def _text(drawing: _Drawing) -> Iterator[Line]:
    edges = list(drawing.targets())
    for step in drawing.phase.steps:
        sources = [source for source, target in edges if target == step.target]
        after = f" after {', '.join(sources)}" if sources else ""
        yield line(Span(step.target, "bold"), Span(f" ({step.kind})", "dim"), after)
        node = drawing.nodes.get(step.target)
        if node is not None:
            yield from (line(Span("  needs ", "dim"), str(each)) for each in sorted(node.requires, key=str))
            yield from (line(Span("  gives ", "dim"), str(each)) for each in sorted(node.provides, key=str))


def _mermaid(drawing: _Drawing) -> Iterator[Line]:
    ids: dict[object, str] = {step.target: f"t{index}" for index, step in enumerate(drawing.phase.steps)}
    ids |= {resource: f"r{index}" for index, resource in enumerate(drawing.resources())}
    yield line("flowchart LR")
    for step in drawing.phase.steps:
        yield line(f'  {ids[step.target]}["{_quoted(step.target)}"]')
    for resource in drawing.resources():
        yield line(f'  {ids[resource]}[("{_quoted(str(resource))}")]')
    for source, target in drawing.targets() if not drawing.nodes else ():
        yield line(f"  {ids[source]} --> {ids[target]}")
    for one, other in (*drawing.needs(), *drawing.gives()):
        yield line(f"  {ids[one]} --> {ids[other]}")


def _quoted(text: str) -> str:
    return text.replace('"', "#quot;")


def _dot(drawing: _Drawing) -> Iterator[Line]:
    yield line("digraph {")
    yield line("  rankdir=LR; node [shape=box];")
    for step in drawing.phase.steps:
        yield line(f"  {json.dumps(step.target)};")
    for resource in drawing.resources():
        yield line(f"  {json.dumps(str(resource))} [shape=cylinder];")
    for source, target in drawing.targets() if not drawing.nodes else ():
        yield line(f"  {json.dumps(source)} -> {json.dumps(target)};")
    for one, other in (*drawing.needs(), *drawing.gives()):
        yield line(f"  {json.dumps(str(one))} -> {json.dumps(str(other))};")
    yield line("}")
