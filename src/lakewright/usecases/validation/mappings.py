"""Check mappings as a whole: the outputs that are named of them, and on request what Spark says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Mapping as Models
from dataclasses import dataclass, field, replace

from lakewright.errors import ColumnMismatch, Fault, LakewrightError, SpecError, TargetError
from lakewright.lake.lake import Lake
from lakewright.lake.spark_errors import reason_with_position
from lakewright.mappings.mapping import Mapping
from lakewright.spec.project import Project
from lakewright.spec.words import first_of
from lakewright.usecases.validation.definitions import Evaluated, Evaluation
from lakewright.workspace.workspace import Workspace

__all__ = ["Analysis", "analyse_with_spark", "check_outputs"]


def check_outputs(evaluation: Evaluation) -> None:
    """Report the outputs that evaluated definitions name and mappings do not have."""
    models = {
        (id(each.workspace), each.definition.name): each.model
        for each in evaluation.evaluated
        if isinstance(each.model, Mapping)
    }
    for each in evaluation.evaluated:
        evaluation.report(_unknown_outputs(each, models), is_error=True)


def _unknown_outputs(each: Evaluated, mappings: Models[tuple[int, str], Mapping]) -> Iterator[Fault]:
    for reference in each.model.references():
        name, is_output, output = reference.name.partition(":")
        found = mappings.get((id(each.workspace), name)) if reference.category == "mapping" else None
        if found is None:
            continue  # that it is unknown or wrong is a fault of its own; another project checks its own
        try:
            if is_output:
                found.check_output(output)
            else:
                found.check_main()
        except SpecError as error:
            message = f"{each.definition.subject}: {error.faults[0].message}"
            yield replace(error.faults[0], message=message, location=each.definition.at(*reference.path))


@dataclass(slots=True)
class Analysis:
    """What Spark says of the mappings.

    Attributes:
        accepted: The number of mappings that it accepts, or rejects.
        errors: What a run would fail with.
        warnings: What a run would warn of, and mappings that it can't analyse yet.
    """

    accepted: int = 0
    errors: list[Fault] = field(default_factory=list)
    warnings: list[Fault] = field(default_factory=list)


def analyse_with_spark(project: Project, lake: Lake, evaluation: Evaluation) -> Analysis:
    """Let Spark analyse all outputs of the mappings, over relations with their columns but no rows.

    Relations without declared columns are read, if they exist. What those that don't exist leave unknown is
    no fault.
    """
    from pyspark.errors import PySparkException

    analysis = Analysis()
    unknown: dict[str, list[str]] = {}
    analysed: set[str] = set()
    outlines: dict[int, Workspace] = {}
    for each in evaluation.evaluated:
        name = each.definition.name
        if not isinstance(each.model, Mapping) or each.definition.category != "mapping" or name in analysed:
            continue
        outline = outlines.setdefault(
            id(each.workspace), Workspace(project, each.workspace.scope, lake, is_outline=True)
        )
        analysed.add(name)
        try:
            _analyse(each.model, outline, name)
        except TargetError as error:
            if not isinstance(error, ColumnMismatch):
                unknown.setdefault(error.message, []).append(name)
                continue
            analysis.errors.append(replace(error.as_fault(), location=each.definition.at()))
        except SpecError as error:
            analysis.errors += error.faults
        except (PySparkException, LakewrightError) as error:
            said = f"{each.definition.subject}: Spark rejects it: {reason_with_position(error)}"
            analysis.errors.append(Fault(said, each.definition.at()))
        analysis.accepted += 1
    for outline in outlines.values():
        told = (each() for notes in outline.notes.values() for each in notes)
        analysis.warnings += (Fault(text) for text in told if text is not None)
        outline.close()
    analysis.warnings += (
        Fault(f"Spark can't check {_mappings(names)} yet: {why}", remedy="Validate again once it exists.")
        for why, names in unknown.items()
    )
    analysis.errors = list(dict.fromkeys(analysis.errors))
    analysis.warnings = list(dict.fromkeys(analysis.warnings))
    return analysis


def _analyse(mapping: Mapping, outline: Workspace, name: str) -> None:
    others = (f"{name}:{output}" for output in mapping.outputs() if output != "main")
    for each in (*([name] if mapping.has_main() else []), *others):
        _ = outline.frame(each).schema


def _mappings(names: Sequence[str]) -> str:
    return f"mapping{'s'[: len(names) > 1]} {first_of([repr(name) for name in names], 5)}"
