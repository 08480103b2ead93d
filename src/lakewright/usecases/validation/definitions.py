"""Evaluate the expressions of a project's definitions as its jobs would, with stand-ins for parameters.

A parameter without a default gets a value of its type. What fails only because of that value is no fault:
`LocalDate.parse($text)` may be right for every text that the job is ever given.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from lakewright.errors import Fault, LakewrightError, Location, SpecError
from lakewright.lake.lake import Lake
from lakewright.spec.arguments import expand_arguments, sample_arguments
from lakewright.spec.definitions.definition import VALIDATED, Definition
from lakewright.spec.expressions.scope import DEPENDS_ON_VALUE, Scope
from lakewright.spec.loading.entity_checks import check_places
from lakewright.spec.models.base import Named
from lakewright.spec.models.entity import Entity
from lakewright.spec.models.entity_settings import SourceConnection
from lakewright.spec.models.job import Job, Parameter
from lakewright.spec.models.text_marks import FileText, marked_texts
from lakewright.spec.project import Project, resolve_entity
from lakewright.spec.reading.parsed_file import texts_in, value_at
from lakewright.workspace.workspace import Workspace

_CATEGORIES = ("target", "relation", "mapping", "entity", "connection")


@dataclass(frozen=True, slots=True)
class Evaluated:
    """A definition with evaluated expressions, as one job sees it.

    Attributes:
        is_used: Whether a job uses the definition.
    """

    definition: Definition
    model: Named
    workspace: Workspace
    is_used: bool


@dataclass(slots=True)
class Evaluation:
    """The evaluated definitions of a project, and what is wrong with them.

    Attributes:
        errors: What a job or `process` would fail with.
        warnings: What may be meant as it is, such as faults of definitions that are used with `-D`, or what
            only Spark can decide.
        reported: Messages and places of the faults in either, without the jobs that use the definitions.
    """

    evaluated: list[Evaluated] = field(default_factory=list)
    errors: list[Fault] = field(default_factory=list)
    warnings: list[Fault] = field(default_factory=list)
    reported: set[tuple[str, Location | None]] = field(default_factory=set)

    def report(self, faults: Iterable[Fault], *, is_error: bool, where: str = "") -> None:
        """Add errors or warnings that were not reported yet; `where` names the job in their messages."""
        for fault in faults:
            if (fault.message, fault.location) not in self.reported:
                self.reported.add((fault.message, fault.location))
                found = replace(fault, message=f"{fault.message}{where}")
                (self.errors if is_error else self.warnings).append(found)


def evaluate_project(project: Project, lake: Lake) -> Evaluation:
    """Return all definitions of a project, evaluated with the names of each job that uses them.

    Definitions that no job uses are evaluated with the names of all jobs.
    """
    evaluation = Evaluation()
    seen: set[tuple[str, str]] = set()
    for job in project.jobs.values():
        seen |= _evaluate_job(project, job, lake, evaluation)
    everything = [parameter for job in project.jobs.values() for parameter in job.parameters]
    environment = {name: text for job in project.jobs.values() for name, text in job.environment.items()}
    rest = _Walk(project, lake, evaluation, Job(environment=environment, parameters=_distinct(everything)))
    for category in _CATEGORIES:
        # An entity is processed without a job, too.
        rest.is_used = category == "entity"
        for name in project.definitions(category):
            if (category, name) not in seen:
                rest.visit(category, name)
    _report_entries(project, rest.scope, evaluation)
    if project.jobs:
        evaluation.report(_targets_of_no_job(project, seen), is_error=False)
    return evaluation


def _targets_of_no_job(project: Project, seen: Container[tuple[str, str]]) -> Iterator[Fault]:
    """Yield a warning for each target that no run has; the slices of an entity are processed without one."""
    for name, definition in project.definitions("target").items():
        if ("target", name) not in seen and definition.kind != "entity":
            yield Fault(
                f"target {name!r}: no job has it, so that nothing builds it",
                project.located("target", name),
                "Add it to the `targets` of a job, or remove it.",
            )


def _evaluate_job(project: Project, job: Job, lake: Lake, evaluation: Evaluation) -> set[tuple[str, str]]:
    where = f" in job {job.name!r}"
    walk = _Walk(project, lake, evaluation, job, where=where)
    for name, text in job.environment.items():
        walk.try_to(lambda name=name: walk.scope.value(name), text, f"environment entry {name!r}")
    for target in job.targets:
        found = walk.try_to(lambda target=target: walk.scope.render(target), target, "targets")
        if isinstance(found, str):
            walk.visit("target", found)
    return walk.seen


class _Walk:
    """Evaluates definitions in the scope of one job, and what they refer to.

    Attributes:
        is_used: Whether what is visited is used by a job or by `process`.
        seen: The definitions that were visited, by category and name.
    """

    def __init__(
        self,
        project: Project,
        lake: Lake,
        evaluation: Evaluation,
        job: Job,
        *,
        where: str = "",
    ) -> None:
        self.where = where
        self.evaluation = evaluation
        self.is_used = bool(where)
        self.seen: set[tuple[str, str]] = set()
        self.scope = project.job_scope(job)
        values = {parameter.name: self._stand_in(parameter) for parameter in job.parameters}
        self.stand_ins = frozenset(values)
        self.scope = project.job_scope(job, values)
        self.workspace = Workspace(project.within(self.scope), self.scope, lake)

    def _stand_in(self, parameter: Parameter) -> Any:
        try:
            return expand_arguments([parameter], sample_arguments([parameter]), self.scope)[0][parameter.name]
        except SpecError as error:
            self._report(fault.about(f"parameter {parameter.name!r}") for fault in error.faults)
            plain = parameter.model_copy(update={"default": None, "granularity": None})
            return expand_arguments([plain], sample_arguments([plain]), self.scope)[0][parameter.name]

    def try_to(self, evaluate: Any, text: str, subject: str) -> object:
        """Return the value of a text, or None if it can't be evaluated; its faults are reported."""
        try:
            return evaluate()
        except SpecError as error:
            named = [fault.about(subject) for fault in error.faults]
            self._report(fault for fault in named if not self._is_about_value(fault, text))
            return None

    def visit(self, category: str, name: str) -> None:
        """Evaluate a definition and all that it refers to, once."""
        name = name.partition(":")[0]
        project = self.workspace.project
        home, slash, inner = name.partition("/")
        if slash and home in project.imports:
            self._visit_import(project.imports[home], category, inner)
            return
        declared = project.entity_definitions if category == "entity" else project.definitions(category)
        definition = declared.get(name)
        if (category, name) in self.seen or not isinstance(definition, Definition):
            return
        if definition.model is SourceConnection:
            return  # its settings are evaluated as those of each entity
        self.seen.add((category, name))
        model = self._resolved(definition)
        if model is None:
            model = definition.check()[0]
        else:
            self._check_files(definition, model)
            found = Evaluated(definition, model, self.workspace, self.is_used)
            self.evaluation.evaluated.append(found)
        for reference in () if model is None else (*model.references(), *model.mentions()):
            self.visit(reference.category, reference.name)

    def _visit_import(self, imported: Project, category: str, name: str) -> None:
        """Evaluate a definition of an imported project, and all that it reads."""
        home, slash, inner = name.partition("/")
        if slash and home in imported.imports:
            self._visit_import(imported.imports[home], category, inner)
            return
        definition = imported.definitions(category).get(name)
        key = (category, f"{imported.basedir}/{name}")
        if key in self.seen or not isinstance(definition, Definition):
            return
        self.seen.add(key)
        try:
            model = definition.resolve(imported.scope)
        except SpecError as error:
            self._report(fault.about(f"import {imported.name!r}") for fault in error.faults)
            return
        for reference in (*model.references(), *model.mentions()):
            self._visit_import(imported, reference.category, reference.name)

    def _resolved(self, definition: Definition) -> Named | None:
        try:
            if definition.category != "entity":
                return definition.resolve(self.scope)
            entity = resolve_entity(definition, self.scope)
            self._check_places(definition, entity)
            return entity
        except SpecError as error:
            self._report(
                fault
                for fault in error.faults
                if not self._is_about_value(
                    fault, *texts_in(value_at(definition.raw, fault.details.get(VALIDATED) or ()))
                )
            )
            return None

    def _check_places(self, definition: Definition, entity: Entity) -> None:
        lake = self.workspace.project.lake
        for key, names in entity.unknown_names(lake, self.scope).items():
            for name in sorted(names):
                why, remedy = f"{key} uses the unknown name {name!r}", f"Declare {name!r}, or correct it."
                self._report([definition.fault(why, "settings", key, remedy=remedy)])
        self._report(check_places(definition, entity, lake, self.scope)[0])

    def _check_files(self, definition: Definition, model: Named) -> None:
        for _, name, path in marked_texts(model, FileText):
            is_known = not self._depends_on_value(texts_in(value_at(definition.raw, path)))
            if is_known and not self.workspace.project_path(name).is_file():
                remedy = "Create it, or correct the path."
                self._report([definition.fault(f"there is no file {name}", *path, remedy=remedy)])

    def _depends_on_value(self, texts: Iterable[str]) -> bool:
        """Return whether texts use a parameter that a stand-in is the value of."""
        try:
            return any(self.scope.names_behind(text) & self.stand_ins for text in texts)
        except LakewrightError:
            return False

    def _is_about_value(self, fault: Fault, *texts: str) -> bool:
        """Return whether a fault may not occur for other values of the parameters."""
        if not fault.details.get(DEPENDS_ON_VALUE) and VALIDATED not in fault.details:
            return False
        return self._depends_on_value(texts)

    def _report(self, faults: Iterable[Fault]) -> None:
        self.evaluation.report(faults, is_error=self.is_used, where=self.where)


def _distinct(parameters: Iterable[Parameter]) -> tuple[Parameter, ...]:
    return tuple({parameter.name: parameter for parameter in parameters}.values())


def _report_entries(project: Project, scope: Scope, evaluation: Evaluation) -> None:
    """Report the entries of the project's environment that nothing can evaluate."""
    for name, _ in project.environment:
        try:
            scope.value(name)
        except SpecError as error:
            known = {each.location for each in evaluation.errors}
            faults = (each for each in error.faults if not each.details.get(DEPENDS_ON_VALUE))
            evaluation.report((each for each in faults if each.location not in known), is_error=False)
