"""Plans and runs as trees: instances, phases and targets, with statuses, reasons and metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import groupby
from typing import Any

from lakewright.cli.faults import fault_details, fault_line, headline, recorded_fault, remedy_lines
from lakewright.cli.page import (
    SHORT_ID,
    Block,
    Line,
    Span,
    ago,
    assignments,
    labelled,
    line,
    status,
    table_of,
    took,
)
from lakewright.errors import Fault
from lakewright.errors.fault import BRIEF
from lakewright.errors.phrase import Command, Phrase
from lakewright.manifest.journal import Run
from lakewright.plan.phase import Phase
from lakewright.plan.reason import Code
from lakewright.plan.status import Planned, Status
from lakewright.plan.step import InstancePlan, PhasePlan, Plan, Step
from lakewright.run.result import InstanceResult, PhaseResult, RunResult, TargetResult
from lakewright.spec.reason import Reason, reasons_text
from lakewright.spec.words import counted, duration, first_of

SHORT_TREE = 12
"""The largest number of steps whose tree leaves its failures on the screen."""

MOST_REASONS = 2
MOST_NAMED = 5

_SAME_LABELS = ("category", "kind")
"""Labels that all values of a metric share; they matter where metrics are sent."""

ERROR_ELSEWHERE = "its error is on stderr"
"""Stands in the tree of stdout where no terminal shows both streams."""

# Metrics of a slice that are shown unless they are zero, with their words.
COUNTS = {
    "inserted": "inserted",
    "updated": "updated",
    "unchanged": "unchanged",
    "closed": "closed",
    "deleted": "deleted",
    "superseded": "superseded in the slice",
    "outdated": "older than the table",
    "quarantined": "put aside",
}


def run_page(result: RunResult, *, is_whole: bool = False, has_errors: bool = True) -> Iterator[Block]:
    """Yield the page of a run: a heading, then a tree for each instance.

    What was skipped is only counted, with its reasons, unless `is_whole`. Without `has_errors`, the errors
    that `failure_lines` prints are left to it.
    """
    reported = frozenset() if has_errors else frozenset(id(target) for _, target, _ in _failures(result))
    yield line(
        Span(f"{result.project}/{result.job}", "bold"),
        f" up to {result.phase.value.lower()}, run {result.run_id}",
    )
    if is_whole:
        for each in result.instances:
            yield _instance(each, (_whole_phase(phase, reported) for phase in each.phases))
        return
    for is_quiet, group in groupby(result.instances, key=_is_quiet):
        instances = list(group)
        if is_quiet and len(instances) > 1:
            yield _quiet_instances(instances)
        else:
            yield from (_folded_instance(each, reported) for each in instances)


def _happened(target: TargetResult) -> bool:
    return target.status is not Status.SKIPPED or target.error is not None


def _is_quiet(instance: InstanceResult) -> bool:
    """Return whether nothing but skipped targets is in an instance."""
    return not any(_happened(target) for phase in instance.phases for target in phase.targets)


def _quiet_instances(instances: Sequence[InstanceResult]) -> Line:
    """Return one line for instances that follow each other and in which nothing happened."""
    first, last = (assignments(each.parameters) for each in (instances[0], instances[-1]))
    skipped = [target for each in instances for phase in each.phases for target in phase.targets]
    head = (Span(f"{first} … {last}", "bold"), " ", status(Status.SKIPPED.value))
    why = _reasons(skipped) or Phrase.joined(
        "; ", _notes(phase for each in instances for phase in each.phases)
    )
    return line(*head, Phrase(f" {counted(len(instances), 'instance')}: ", why))


def _notes(phases: Iterable[PhaseResult]) -> Iterable[str]:
    """Return why phases have no targets, each reason once."""
    return dict.fromkeys(phase.note or "nothing takes part" for phase in phases if not phase.targets)


def _folded_instance(instance: InstanceResult, reported: frozenset[int]) -> Line:
    shown = [
        _folded_phase(phase, reported) for phase in instance.phases if any(map(_happened, phase.targets))
    ]
    quiet = [phase for phase in instance.phases if not any(map(_happened, phase.targets))]
    skipped = [target for phase in quiet for target in phase.targets]
    if quiet:
        names = ", ".join(phase.phase.value for phase in quiet)
        why = Phrase.joined("; ", filter(None, (_reasons(skipped), *_notes(quiet))))
        shown.append(line(names, " ", status(Status.SKIPPED.value), Span(Phrase(": ", why), "dim")))
    return _instance(instance, shown)


def _folded_phase(phase: PhaseResult, reported: frozenset[int]) -> Line:
    branches = [_targets([target], reported) for target in phase.targets if _happened(target)]
    skipped = [target for target in phase.targets if not _happened(target)]
    branches += [
        line(status(Status.SKIPPED.value), Span(Phrase(" ", said), "dim")) for said in _by_reason(skipped)
    ]
    return _phase(phase, branches, phase.seconds)


def _by_reason(skipped: Sequence[TargetResult]) -> Iterator[str]:
    """Yield how many targets of a phase were skipped for each reason; the rarest are counted together."""
    counts = Counter(map(_reason, skipped)).most_common()
    for reason, count in counts[:MOST_REASONS]:
        names = [target.name for target in skipped if _reason(target) == reason]
        yield Phrase(f"{names[0] if count == 1 else counted(count, 'target')}: ", reason)
    if rest := counts[MOST_REASONS:]:
        more = counted(sum(count for _, count in rest), "more target")
        yield f"{more} for {counted(len(rest), 'other reason')}; -v shows all"


def _reasons(skipped: Sequence[TargetResult]) -> str:
    """Return how many targets were skipped, with the most frequent reasons; those of BUILD say most."""
    if not skipped:
        return ""
    built = [target for target in skipped if target.phase is Phase.BUILD]
    counts = [Counter(map(_reason, each)) for each in (built, skipped)]
    found = list(dict.fromkeys(reason for count in counts for reason, _ in count.most_common()))
    named = skipped[0].name if len(skipped) == 1 else counted(len(skipped), "target")
    shown = Phrase.joined(", ", found[:MOST_REASONS])
    more = f" and {counted(len(found) - MOST_REASONS, 'more reason')}; -v shows all"
    return Phrase(f"{named}: ", shown, more if len(found) > MOST_REASONS else "")


def _reason(target: TargetResult) -> str:
    return reasons_text(target.reasons) or "no reason"


def failure_lines(result: RunResult, *, is_one_screen: bool = False) -> Iterator[Line]:
    """Yield each failure again in full: after a long tree, these are the lines still on the screen.

    Args:
        result: The result.
        is_one_screen: Whether the tree was written to the same screen; a short one is not repeated there.
    """
    if is_one_screen and len(result.targets()) <= SHORT_TREE:
        return
    for instance, target, error in _failures(result):
        place = (target.name, "in", target.phase.value, assignments(instance.parameters))
        head = f" {' '.join(filter(None, place))}: {_first(error)}"
        yield line(status(target.status.value), head, below=fault_details(error))


def _failures(result: RunResult) -> Iterator[tuple[InstanceResult, TargetResult, Fault]]:
    """Yield each target with an error, unless the same target failed in a later phase."""
    for instance in result.instances:
        targets = [target for phase in instance.phases for target in phase.targets]
        failed = {t.name for t in targets if t.status.is_failure and t.error and not _refers_to_earlier(t)}
        for target in targets:
            # What a check of the same target found before is the cause, and part of the tree.
            is_repeated = target.name in failed and not target.status.is_failure
            if target.error is not None and not is_repeated:
                yield instance, target, target.error


def _refers_to_earlier(target: TargetResult) -> bool:
    """Return whether a failure only says that a slice has failed, and the message stands where it did."""
    error = target.error
    return error is not None and BRIEF in error.details and len(error.parts) == 1


def slice_line(metrics: Mapping[str, Any]) -> Line:
    """Return the metrics of one slice in one line, with its warnings below."""
    without_row = int(metrics.get("without_row") or metrics.get("withoutRow") or 0)
    # Records that arrive deleted complete the sum of the slice, also if there is nothing to delete.
    arrived = "closed" if metrics.get("strategy") == "historic" else "deleted"
    counts = {key: metrics[key] for key in COUNTS if isinstance(metrics.get(key), int)}
    counts[arrived] = counts.get(arrived, 0) - without_row
    parts = [f"{count:,} {_counted_as(key, count, metrics)}" for key, count in counts.items() if count]
    if without_row:
        parts.append(f"{counted(without_row, 'delete')} without a row")
    if metrics.get("inferred_deletes") and metrics["inferred_deletes"] != metrics.get("deleted"):
        parts.append(f"{counted(metrics['inferred_deletes'], 'delete')} inferred")
    records = metrics.get("records_in_slice")
    read = f"{counted(records, 'record')}: " if isinstance(records, int) else ""
    tail = [f"version {metrics['delta_version']}"] if metrics.get("delta_version") is not None else []
    tail += [duration(metrics["seconds"])] if isinstance(metrics.get("seconds"), int | float) else []
    return line(
        Span(str(metrics.get("slice", "")), "bold"),
        f" {metrics.get('strategy', '')} {read}{', '.join(parts) or _done_without_rows(metrics)}",
        Span(f" ({', '.join(tail)})" if tail else "", "dim"),
        below=map(_warning, metrics.get("warnings", ())),
    )


def _warning(text: object) -> Line:
    return labelled("warning", text if isinstance(text, str) else str(text))


def _done_without_rows(metrics: Mapping[str, Any]) -> str:
    """Return what a slice without rows has done."""
    # Its first version is an empty table.
    is_emptied = metrics.get("strategy") == "full" and bool(metrics.get("delta_version"))
    return "the table is emptied" if is_emptied else "nothing to do"


def _counted_as(key: str, count: int, metrics: Mapping[str, Any]) -> str:
    """Return the words of a count; of rows that Merge updates, they say how many differ from the table."""
    changed = metrics.get("changed")
    if key != "updated" or metrics.get("strategy") != "merge" or changed in (None, count):
        return COUNTS[key]
    return f"{COUNTS[key]} ({f'{changed:,}' if changed else 'none'} of them changed)"


def warning_lines(result: RunResult) -> Iterator[Line]:
    """Yield which targets of a run have warnings, and the command that shows them, in one line."""
    warned = list(dict.fromkeys(each.name for each in result.targets() if each.all_warnings))
    if warned:
        have = "has" if len(warned) == 1 else "have"
        named = f"{counted(len(warned), 'target')} {have} warnings: {first_of(warned, MOST_NAMED)}"
        typed = Command("history", "show", result.run_id)
        yield labelled("warning", Phrase(f"{named}; ", typed, " shows them"))


def maintenance_line(found: Mapping[str, Any]) -> Line:
    """Return the results of a table's maintenance, made or planned, in one line."""
    why = Span(f" ({'; '.join(found['reasons'])})", "dim")
    window = found.get("undo_window")
    kept = f"; files of the last {window} are kept for undo" if window else ""
    if found["done"]:
        files = counted(found["files_removed"], "file")
        return line(f"compacted {files} into {found['files_added']:,}", kept, why)
    if found["reasons"]:
        return line("to be compacted", why)
    if found.get("undo_window_begins"):
        return line(f"files of the last {window} are to be kept for undo")
    return line("nothing to do", kept)


def _instance(instance: InstanceResult | InstancePlan, phases: Iterable[Line]) -> Line:
    named = assignments(instance.parameters) or "without parameters"
    return line(Span(named, "bold"), " ", status(instance.status.value), below=phases)


def _phase(phase: PhaseResult | PhasePlan, branches: Iterable[Line], took: float = 0.0) -> Line:
    """Return a phase with what took part in it, or why nothing did."""
    if shown := tuple(branches):
        time = Span(f" {duration(took)}" if took else "", "dim")
        return line(phase.phase.value, " ", status(phase.status.value), time, below=shown)
    why = Phrase(" skipped: ", phase.note or "nothing takes part")
    return line(phase.phase.value, Span(why, "dim"))


def _whole_phase(phase: PhaseResult, reported: frozenset[int]) -> Line:
    grouped = groupby(phase.targets, key=_sameness)
    return _phase(phase, (_targets(list(targets), reported) for _, targets in grouped), phase.seconds)


def _sameness(target: TargetResult) -> tuple[object, ...]:
    return (target.name,) if _happened(target) else (target.status, target.reasons)


def _targets(targets: Sequence[TargetResult], reported: frozenset[int]) -> Line:
    """Return targets that ended alike; of those that are shown elsewhere, the error is left out."""
    first = targets[0]
    named = "" if len(targets) == 1 else ", ".join(target.name for target in targets)
    return target_branch(
        first.as_json(), named, has_time=first.status.is_success, is_reported=id(first) in reported
    )


def target_branch(
    target: Mapping[str, Any], named: str = "", *, has_time: bool, is_reported: bool = False
) -> Line:
    """Return the tree of a target from its JSON document.

    Args:
        target: The document.
        named: The names of several targets that ended alike.
        has_time: Whether to show how long it took.
        is_reported: Whether its error is shown elsewhere.
    """
    metrics, error = target["metrics"], recorded_fault(target["error"]) if target["error"] else None
    # An error is shown below.
    coded = zip(target["reasons"], target["reason_codes"], strict=False)
    said = [text for text, reason in coded if error is None or reason["code"] != Code.ERROR]
    if is_reported:
        said.append(ERROR_ELSEWHERE)
        error, metrics = None, metrics if any(metrics.values()) else {}
    time = Span(f" {duration(target['seconds'])}", "dim") if has_time else ""
    reasons = Phrase(": ", Phrase.joined("; ", said)) if said else ""
    shown = named or f"{target['name']} ({target['kind']})"
    below = details(metrics, error, target["warnings"])
    return line(status(target["status"]), f" {shown}", time, reasons, below=below)


def details(metrics: Mapping[str, Any], error: Fault | None, warnings: Iterable[str] = ()) -> Iterator[Line]:
    """Yield the lines below a target."""
    yield from map(slice_line, metrics.get("slices", ()))
    # With slices, the other metrics are only their sums.
    known = ("slices", "maintenance")
    rest = {} if "slices" in metrics else {key: value for key, value in metrics.items() if key not in known}
    if metrics.get("maintenance"):
        yield maintenance_line(metrics["maintenance"])
    is_nothing = error is not None and not any(rest.values())
    if rest and not is_nothing:
        yield line(Span(" ".join(f"{name}={metric_text(value)}" for name, value in rest.items()), "dim"))
    yield from map(_warning, warnings)
    if error is not None:
        yield labelled("error", _first(error), below=fault_details(error))


def metric_text(value: Any) -> str:
    """Return the value of a metric, or its values with the labels that tell them apart.

    Example:
        >>> metric_text([{"value": 1500, "labels": {"category": "mapping", "name": "seen"}}])
        '1,500 (name=seen)'
    """
    if value is None:
        return "none"
    if isinstance(value, list) and all(isinstance(each, Mapping) and "value" in each for each in value):
        return first_of([_labelled(each) for each in value], MOST_NAMED)
    if isinstance(value, float):
        return f"{value:g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _labelled(found: Mapping[str, Any]) -> str:
    labels = found.get("labels", {})
    labels_text = ", ".join(f"{name}={labels[name]}" for name in labels if name not in _SAME_LABELS)
    return f"{metric_text(found['value'])} ({labels_text})" if labels_text else metric_text(found["value"])


def _first(error: Fault) -> str:
    """Return the first line of an error; the cause is left out if it stands where the slice failed."""
    return str(error.details.get(BRIEF) or headline(error))


REPEATED = 60
"""Characters of the longest reason that the next phases repeat."""


def plan_page(plan: Plan) -> Iterator[Block]:
    """Yield the page of a plan: a heading, a tree for each instance, and the counts."""
    yield line(
        Span(f"{plan.project}/{plan.job}", "bold"),
        f" up to {plan.phase.value.lower()}, {counted(len(plan.instances), 'instance')}",
    )
    for instance in plan.instances:
        first_phases: dict[tuple[str, Reason], Phase] = {}
        yield _instance(
            instance, (_planned_phase(_reported_once(phase, first_phases)) for phase in instance.phases)
        )
    if plan.warning is not None:
        yield fault_line(plan.warning, "warning")
    counts = Counter(step.status for step in plan.steps())
    numbers = " ".join(f"{one.value}={counts[one]}" for one in Planned)
    yield line(Span(f"Plan. {numbers}", "bold"))


def removal_page(plan: Plan) -> Iterator[Block]:
    """Yield what a TRUNCATE or DESTROY would empty or remove: a line for each target, and its warning."""
    for instance in plan.instances:
        of_instance = f" ({assignments(instance.parameters)})" if instance.parameters else ""
        steps = (step for phase in instance.phases for step in phase.steps)
        for step in filter(lambda each: each.status is Planned.WOULD_RUN, steps):
            does = "remove " if step.phase is Phase.DESTROY else "empty "
            yield line(Span(does, "bold red"), f"{step.target}{of_instance}: ", _step_reasons(step))
            if step.warning is not None:
                yield fault_line(step.warning, "warning")


def _reported_once(phase: PhasePlan, first_phases: dict[tuple[str, Reason], Phase]) -> PhasePlan:
    """Return a phase with the phase that showed a long reason of a target before, in the place of the reason.

    What can't be observed is the reason in each phase, and its text is long.
    """

    def short(step: Step, reason: Reason) -> Reason:
        first = first_phases.setdefault((step.target, reason), phase.phase)
        is_short = first is phase.phase or len(reason.text) <= REPEATED
        return reason if is_short else Reason(Code.AS_BEFORE, {"phase": first.value})

    steps = (replace(step, reasons=tuple(short(step, each) for each in step.reasons)) for step in phase.steps)
    return replace(phase, steps=tuple(steps))


def _planned_phase(phase: PhasePlan) -> Line:
    grouped = groupby(phase.steps, key=_planned_sameness)
    return _phase(phase, (_steps(list(steps)) for _, steps in grouped))


def _planned_sameness(step: Step) -> tuple[object, ...]:
    # Adjacent steps with the same status and reasons share a line.
    has_details = bool(step.changes) or step.error is not None or step.warning is not None
    return (step.target,) if has_details else (step.status, step.reasons)


def _steps(steps: Sequence[Step]) -> Line:
    first = steps[0]
    names = ", ".join(step.target for step in steps) if len(steps) > 1 else f"{first.target} ({first.kind})"
    return line(status(first.status.value), f" {names}: ", _step_reasons(first), below=_step_details(first))


def _step_details(step: Step) -> Iterator[Line]:
    for change in step.changes:
        loss = "" if change.loses is None else f", loses {change.loses}"
        yield labelled("change", change.description, Span(loss, "bold red"))
    if step.fault is not None and step.fault.location is not None:
        yield labelled("where", str(step.fault.location))
    if step.error is not None:
        yield from remedy_lines(step.error.remedy)
    if step.warning is not None:
        yield fault_line(step.warning, "warning")


def _step_reasons(step: Step) -> str:
    return reasons_text(step.reasons)


def runs_table(runs: Sequence[Run], now: datetime, none: str = "") -> Block:
    """Return runs as a table, the newest first."""
    return table_of([_cells(run, now) for run in runs], none)


def _cells(run: Run, now: datetime) -> dict[str, object]:
    return {
        "run": run.run_id[:SHORT_ID],
        "status": status(run.status),
        "job": run.job,
        "phase": _phase_of(run),
        "parameters": Span(assignments(run.parameters)),
        "started": ago(run.started, now),
        "took": took(run.started, run.finished) if run.finished else "",
    }


def _phase_of(run: Run) -> str:
    """Return the phase of a run as text; a rebuild that only compares writes nothing."""
    return f"{run.phase.lower()} --check" if run.facts.get("check") else run.phase.lower()
