"""The dependency graph of a job's targets, and what starts them: as a run would see it, or as declared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lakewright.app import App
from lakewright.errors.phrase import Command
from lakewright.manifest.plain_values import document_of
from lakewright.plan.graph import Node, build_graph, direct_sources
from lakewright.plan.phase import Phase
from lakewright.run.request import JobRequest
from lakewright.usecases import run_job as planning
from lakewright.usecases.declared_nodes import declared_nodes, offline_lake, sample_workspace

_PHASES = (Phase.VALIDATE, Phase.CREATE, Phase.BUILD, Phase.VERIFY)


@dataclass(frozen=True, slots=True)
class DrawnTarget:
    """A target in a graph.

    Attributes:
        sources: The targets whose failure blocks it.
        reads: The targets whose output it reads, or after which it is declared, in whatever phase they run.
        entity: The entity that it processes; None for other targets.
        node: What it requires and provides, if that was asked for.
    """

    name: str
    kind: str
    sources: frozenset[str]
    reads: frozenset[str] = frozenset()
    entity: str | None = None
    node: Node | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the target as `graph -o json` prints it."""
        places = {} if self.node is None else {"requires": self.node.requires, "provides": self.node.provides}
        resources = {name: sorted(map(str, found)) for name, found in places.items()}
        sources, reads = sorted(self.sources), sorted(self.reads)
        return document_of(self, "name", "kind", "entity", sources=sources, reads=reads, **resources)


@dataclass(frozen=True, slots=True)
class DrawnTrigger:
    """A trigger that starts targets of a graph without a person.

    Attributes:
        runs: The command that it runs.
        when: When it runs.
        starts: The targets that it starts with: those of the job that wait for no other, or those of the
            entity that it processes.
    """

    name: str
    runs: Command
    when: str
    enabled: bool
    starts: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the trigger as `graph -o json` prints it."""
        return document_of(self, runs=" ".join(self.runs.argv))


def graph_as_json(
    job: str, phase: Phase | None, targets: Sequence[DrawnTarget], triggers: Sequence[DrawnTrigger]
) -> dict[str, Any]:
    """Return the document that `graph -o json` prints."""
    return {
        "job": job,
        "phase": None if phase is None else phase.value.lower(),
        "targets": [each.as_json() for each in targets],
        "triggers": [each.as_json() for each in triggers],
    }


def starting_triggers(app: App, job: str, drawn: Sequence[DrawnTarget]) -> tuple[DrawnTrigger, ...]:
    """Return the triggers that run a job, and those that process entities of its targets without it."""
    first = tuple(each.name for each in drawn if not each.sources)
    writers: dict[str, list[str]] = {}
    for each in drawn:
        if each.entity is not None:
            writers.setdefault(each.entity, []).append(each.name)
    found = []
    for name in app.project.triggers:
        trigger = app.project.trigger(name)
        if trigger.job == job:
            runs = Command("job", job, str(trigger.phase).lower())
            found.append(DrawnTrigger(name, runs, trigger.when(), trigger.enabled, first))
        for entity in trigger.entities:
            if entity in writers:
                when, starts = trigger.when(entity), tuple(writers[entity])
                found.append(DrawnTrigger(name, Command("process", entity), when, trigger.enabled, starts))
    return tuple(found)


def phase_graph(app: App, request: JobRequest, *, with_resources: bool) -> tuple[DrawnTarget, ...]:
    """Return the targets of one phase, in the order in which a run would take them.

    Raises:
        SpecError: The job, its arguments or a definition are wrong.
    """
    phases = [
        found for instance in planning.plan_job(app, request).instances[:1] for found in instance.phases
    ]
    nodes = planning.target_nodes(app, request) if with_resources else {}
    return tuple(
        DrawnTarget(
            step.target,
            step.kind,
            sources := frozenset(phase.sources.get(step.target, ())),
            reads=sources,
            entity=app.project.processed_entities.get(step.target),
            node=nodes.get(step.target),
        )
        for phase in phases[:1]
        for step in phase.steps
    )


def declared_graph(
    app: App, name: str, arguments: Sequence[str] = (), *, with_resources: bool
) -> tuple[DrawnTarget, ...]:
    """Return all targets of a job, with what connects them in any phase of its build.

    Parameters without a value get one of their type. What only Spark knows is left out.

    Raises:
        SpecError: The job, its arguments or a definition are wrong.
    """
    job = app.project.job(name)
    workspace = sample_workspace(app.project, job, offline_lake(app.project), arguments)
    names = job.target_names(workspace.scope)
    sources: dict[str, frozenset[str]] = dict.fromkeys(names, frozenset())
    found: dict[str, Node] = {}
    for phase in _PHASES:
        nodes = list(declared_nodes(workspace, names, phase))
        for target, others in build_graph(nodes, phase).sources.items():
            sources[target] |= others
        found |= {node.name: node for node in nodes if phase is Phase.BUILD or node.name not in found}
    order = build_graph([Node(each, after=tuple(sources[each])) for each in names], Phase.BUILD).order
    read = direct_sources(list(found.values()))
    kinds = {each: workspace.target(each).kind for each in order}
    return tuple(
        DrawnTarget(
            each,
            kinds[each],
            sources[each],
            reads=sources[each] | read.get(each, frozenset()),
            entity=app.project.processed_entities.get(each),
            node=found.get(each) if with_resources else None,
        )
        for each in order
    )
