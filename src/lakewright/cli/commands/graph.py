"""`lakewright graph`: what depends on what in one phase of a job."""

from __future__ import annotations

import json
from collections.abc import Iterator

import click

from lakewright.cli.call import Call
from lakewright.cli.commands.arguments import RunOptions, job_arguments
from lakewright.cli.group import command
from lakewright.cli.page import Line, Span, line
from lakewright.plan.phase import Phase
from lakewright.plan.step import PhasePlan

__all__ = ["graph"]


@command(
    examples=[
        "lakewright graph monthly build month=2022-01-01",
        "lakewright graph monthly build month=2022-01-01 --format mermaid",
        "lakewright graph monthly build month=2022-01-01 --format dot | dot -Tsvg > monthly.svg",
    ],
)
@job_arguments
@click.option(
    "--format", "form", type=click.Choice(["text", "mermaid", "dot"]), default="text", show_default=True
)
@click.pass_obj
def graph(call: Call, /, name: str, phase: Phase, parameters: tuple[str, ...], *, form: str) -> None:
    """Show which targets of a job come after which, in one phase, and through which a failure blocks."""
    request = RunOptions(no_lifecycle=True).request(name, phase, parameters)
    phases = [found for instance in call.app.plan(request).instances[:1] for found in instance.phases]
    drawn = phases[0] if phases else PhasePlan(phase, ())
    document = {
        "job": name,
        "phase": phase.value.lower(),
        "targets": [
            {"name": step.target, "kind": step.kind, "sources": sorted(drawn.sources.get(step.target, ()))}
            for step in drawn.steps
        ],
    }
    call.output.result(document, {"text": _text, "mermaid": _mermaid, "dot": _dot}[form](drawn))


def _text(phase: PhasePlan) -> Iterator[Line]:
    for step in phase.steps:
        sources = [
            other.target for other in phase.steps if other.target in phase.sources.get(step.target, ())
        ]
        after = f" after {', '.join(sources)}" if sources else ""
        yield line(Span(step.target, "bold"), Span(f" ({step.kind})", "dim"), after)


def _mermaid(phase: PhasePlan) -> Iterator[Line]:
    ids = {step.target: f"t{index}" for index, step in enumerate(phase.steps)}
    yield line("flowchart LR")
    for step in phase.steps:
        yield line(f'  {ids[step.target]}["{step.target.replace(chr(34), "#quot;")}"]')
    for source, target in _edges(phase):
        yield line(f"  {ids[source]} --> {ids[target]}")


def _dot(phase: PhasePlan) -> Iterator[Line]:
    yield line("digraph {")
    yield line("  rankdir=LR; node [shape=box];")
    for step in phase.steps:
        yield line(f"  {json.dumps(step.target)};")
    for source, target in _edges(phase):
        yield line(f"  {json.dumps(source)} -> {json.dumps(target)};")
    yield line("}")


def _edges(phase: PhasePlan) -> Iterator[tuple[str, str]]:
    for target in phase.steps:
        for source in phase.steps:
            if source.target in phase.sources.get(target.target, ()):
                yield source.target, target.target
