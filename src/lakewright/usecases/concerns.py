"""What needs a person, made from an item, a lock, a run, a target's warning or a trigger."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from lakewright.app import App
from lakewright.errors import BackdatedError, Fault
from lakewright.errors.fault import remedy_of
from lakewright.errors.phrase import Command, Phrase, ShellLine
from lakewright.manifest.item import Item
from lakewright.manifest.journal import Run
from lakewright.manifest.lock import FAILED_ITEMS, Lock, command, recovery_advice, recovery_command
from lakewright.manifest.record import Application, format_instant
from lakewright.slices.discover import slice_name
from lakewright.spec.project import Project
from lakewright.spec.words import first_of
from lakewright.stores.registry import select_backend
from lakewright.stores.write_access import write_fault
from lakewright.usecases.failed_runs.resume import NextStep, is_resumable, is_rewind
from lakewright.usecases.history import Warned
from lakewright.usecases.slice_times.refused_times import commands_for_times, gives_place
from lakewright.usecases.staleness.tainted_targets import TaintedTarget
from lakewright.usecases.triggers import TriggerStatus, withheld_triggers

__all__ = [
    "MOST",
    "Concern",
    "concern_of_blocked",
    "concern_of_item",
    "concern_of_lock",
    "concern_of_run",
    "concern_of_tainted",
    "concern_of_trigger",
    "concern_of_waiting",
    "concern_of_warning",
    "concerns_of_files",
    "concerns_of_manifest",
    "fault_concern",
    "first_line",
    "other_lines",
]

MOST = 50
"""The largest number of concerns of one kind that are read."""

MOST_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Concern:
    """Something that needs a person.

    Attributes:
        kind: `project`, `unwritable`, `failed`, `damaged`, `stale`, `run`, `waiting`, `trigger`, `warning`,
            `changed`, `unreadable`, `missing`, `rebuild`, `rows_changed` or `tainted`; that of a notice is
            `vanished`, `corrected`, `quarantined` or `unseen`.
        subject: What it is about: an entity and its slice, or a job.
        why: The cause, in one line.
        more: The rest of the message.
        since: Since when.
        behind: How many slices wait behind it.
        blocked: The targets that were blocked by it in the last run.
        triggers: The triggers that start nothing until it is mended.
        advice: What to do, with the command to type.
        command: The command to type.
        action: What the command does, if a page may offer it: `resolve`, `requeue`, `release` or `resume`.
        item_id: The item, if it is about one.
        run_id: The run, if it is about one.
        entity: The entity, if it is about a slice of one.
        code: The code of the error.
    """

    kind: str
    subject: str
    why: str
    since: datetime | None
    more: str = ""
    behind: int = 0
    blocked: tuple[str, ...] = ()
    triggers: tuple[str, ...] = ()
    advice: str = ""
    command: ShellLine | None = None
    action: str | None = None
    item_id: str | None = None
    run_id: str | None = None
    entity: str | None = None
    code: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the concern as the API shows it."""
        return {
            "kind": self.kind,
            "subject": self.subject,
            "why": "\n".join(filter(None, (self.why, self.more))),
            "since": None if self.since is None else format_instant(self.since),
            "behind": self.behind,
            "blocked": list(self.blocked),
            "triggers": list(self.triggers),
            "do": self.command,
            "advice": self.advice,
            "item_id": self.item_id,
            "run_id": self.run_id,
            "entity": self.entity,
            "code": self.code,
        }


def concerns_of_files(project: Project) -> Iterator[Concern]:
    """Yield the faults of the project's files, each with the triggers that wait until it is mended."""
    withheld = withheld_triggers(project)
    for fault in project.faults[:MOST]:
        yield Concern(
            kind="project",
            subject=str(fault.location or project.name),
            why=first_line(fault.message),
            more=other_lines(fault.message),
            since=None,
            triggers=tuple(str(each) for each in withheld if each.fault == fault),
            advice=fault.remedy or "Correct it; the file is read again at once.",
            command=Command("validate"),
            code=fault.code,
        )


def concerns_of_manifest(app: App) -> Iterator[Concern]:
    """Yield that the manifest can be read but not written, so that runs fail, if it shows."""
    fault = write_fault(select_backend(app.manifest_settings))
    if fault is not None:
        yield Concern(
            kind="unwritable",
            subject="manifest",
            why=fault.message,
            since=None,
            advice=fault.remedy or "",
            code=fault.code,
        )


def concern_of_item(item: Item, ready: Mapping[tuple[str, str | None], int], named: str) -> Concern:
    """Return what is wrong with a failed or damaged item; `ready` counts what waits behind it."""
    entity, mark = _entity(item), item.failed
    if mark is None:
        return Concern(
            kind="damaged",
            subject=f"{entity or 'item'} {slice_name(item)}",
            why=item.problem or "its records contradict each other",
            since=item.since,
            advice="Inspect its records, then skip or requeue it.",
            command=command("show", named),
            item_id=item.item_id,
            entity=entity,
        )
    error = mark.note.get("error")
    message = error.get("message") if isinstance(error, Mapping) else error
    holds_back = bool(mark.note.get("holds_back", True))
    typed = recovery_command(item, named)
    return Concern(
        kind="failed",
        subject=f"{entity or mark.application} {slice_name(item)}",
        why=first_line(message),
        more=other_lines(message),
        since=mark.since,
        behind=_behind(mark.application, ready) if holds_back else 0,
        advice=recovery_advice(item, named, is_beside=True),
        command=typed,
        action="requeue" if "requeue" in typed.argv else "resolve",
        item_id=item.item_id,
        run_id=mark.run_id,
        entity=entity,
        code=error.get("code") if isinstance(error, Mapping) else None,
    )


def _behind(application: Application, ready: Mapping[tuple[str, str | None], int]) -> int:
    return ready.get(application.key, 0)


def concern_of_lock(lock: Lock, item: Item, named: str, *, is_taken_over: bool) -> Concern:
    """Return what a stale lock of an item asks for; runs may take such locks over."""
    program = lock.processing.application
    if not program.is_of_entity:
        advice = f"See whether its work is done, release it, and run {program} again."
    elif is_taken_over:
        advice = "Run the job again, which takes it over, or release it."
    else:
        advice = "Release it, then run the job again, which does not take it over (takeover: operator)."
    return Concern(
        kind="stale",
        subject=f"{_entity(item) or program} {slice_name(item)}",
        why=f"its lock is stale: {lock.stale_reason}",
        since=lock.processing.since,
        advice=advice,
        command=command("release", named),
        action="release",
        item_id=item.item_id,
        run_id=lock.processing.run_id,
        entity=_entity(item),
    )


def concern_of_run(app: App, run: Run, step: NextStep) -> Concern:
    """Return why a run did not succeed, with the targets that it blocked, and what to do about it."""
    entries = list(app.journal.targets(run.run_id))
    failed = [each for each in entries if each["status"] in ("FAILED", "ABORTED")]
    blocked = dict.fromkeys(each["name"] for each in entries if each["status"] == "BLOCKED")
    errors = [each["error"]["message"] for each in failed if each.get("error")]
    mended = _mended(app, entries)
    named = ", ".join(dict.fromkeys(each["name"] for each in failed))
    return Concern(
        kind="run",
        subject=" ".join([run.job, run.phase.lower(), *(f"{k}={v}" for k, v in run.parameters.items())]),
        why=step.refused or mended or (first_line(errors[0]) if errors else f"the run ended {run.status}"),
        more=f"failed: {named}" if named else "",
        since=run.finished or run.started,
        blocked=tuple(blocked),
        advice=_advice_of_run(run, step, is_mended=mended is not None),
        command=step.commands[0],
        action="resume" if is_resumable(run) and not (step.refused or step.left_out) else None,
        run_id=run.run_id,
    )


def concern_of_waiting(entity: str, refused: BackdatedError) -> Concern:
    """Return why a run would refuse the processing time of slices that wait."""
    typed, _ = commands_for_times(refused)
    it, its = ("it", "its") if refused.details["slices"] == 1 else ("them", "their")
    after = _then(typed[1:])
    return Concern(
        kind="waiting",
        subject=entity,
        why=f"a run would refuse its slices that wait: {first_line(refused.message)}",
        since=None,
        advice=f"Build the table again with {it} in {its} place."
        if gives_place(refused)
        else Phrase("Give a later time", after, "."),
        command=typed[0],
        entity=entity,
        code=refused.code,
    )


def concern_of_blocked(entity: str, fault: Fault) -> Concern:
    """Return why a run would process no slice of an entity: the time of one that waits is wrong."""
    why = f"a run would process none of its slices: {first_line(fault.message)}"
    return replace(fault_concern("waiting", entity, fault), why=why, more="", entity=entity)


def fault_concern(kind: str, subject: str, fault: Fault) -> Concern:
    """Return the concern of a fault, with its remedy."""
    return Concern(
        kind=kind,
        subject=subject,
        why=first_line(fault.message),
        more=other_lines(fault.message),
        since=None,
        advice=fault.remedy or "",
        code=fault.code,
    )


def _advice_of_run(run: Run, step: NextStep, *, is_mended: bool) -> str:
    if step.refused is not None:
        after = _then(step.commands[1:])
        first = "Build the table again with the slice in its place"
        return Phrase(first if step.gives_place else "Process the slice with a later time", after, ".")
    if step.caution is not None:
        return Phrase(Phrase(step.caution).capitalized(), ".")
    if step.left_out is not None:
        return f"Mend the cause, then type the command: it also takes {step.left_out}; --resume does not."
    if is_rewind(run):
        return "Mend the cause, then do it again: what is done already is not repeated."
    return "Resume the run." if is_mended else "Mend the cause, then resume the run."


def _mended(app: App, entries: Sequence[Mapping[str, Any]]) -> str | None:
    """Return that somebody has dealt with all slices because of which a run ended; None if not."""
    undone = (each for each in entries if each["status"] in ("FAILED", "ABORTED", "BLOCKED"))
    ids = [each.get(FAILED_ITEMS, ()) for each in undone if each.get("error")]
    items = app.store.read(list(dict.fromkeys(item for listed in ids for item in listed)))
    if not ids or not all(ids) or any(item.failed is not None for item in items.values()):
        return None
    names = first_of([slice_name(item) for item in items.values()], MOST_NAMED)
    return f"{names} failed, and {'was' if len(items) == 1 else 'were'} resolved or skipped since"


def concern_of_tainted(each: TaintedTarget) -> Concern:
    """Return why a target must be built again."""
    named = [" ".join(f"{key}={text}" for key, text in one.items()) for one in each.instances if one]
    return Concern(
        kind="tainted",
        subject=each.target,
        why=each.reason,
        more=f"in {first_of(named, MOST_NAMED)}" if named else "",
        since=None,
        advice=each.advice or _advice_of_tainted(each),
        command=each.commands[0] if each.commands else None,
    )


def _advice_of_tainted(each: TaintedTarget) -> str:
    if each.is_emptied:
        return Phrase("Empty it, then build it", _then(each.commands[1:]), ".")
    others = (Phrase(" Also ", also, ".") for also in each.commands[1:])
    return Phrase("Run the job that builds it.", *others)


def _then(commands: Iterable[Command]) -> Phrase:
    """Return commands that are typed after others, as the end of a sentence."""
    return Phrase(*(part for command in commands for part in (", then ", command)))


def concern_of_warning(warned: Warned) -> Concern:
    """Return what a target warned of in its last run."""
    error, run = warned.entry["error"], warned.run
    return Concern(
        kind="warning",
        subject=f"{warned.subject} in {warned.entry['phase']}",
        why=first_line(error["message"]),
        more=other_lines(error["message"]),
        since=run.finished or run.started,
        advice=remedy_of(error) or "",
        run_id=run.run_id,
        code=error.get("code"),
    )


def concern_of_trigger(each: TriggerStatus) -> Concern:
    """Return why the last run of a trigger failed."""
    name = f"{each.lane.trigger} {each.lane.entity}".strip()
    first, *then = each.commands
    advice = "It is tried again by itself" + ("." if each.holder else " as soon as a server runs.")
    if each.word == "failed":
        advice = "It runs again when the cause is mended."
    if then:
        advice = Phrase("Mend the cause, then type the command", _then(then), ".")
    return Concern(
        kind="trigger",
        subject=f"trigger {name}",
        why=first_line(each.message),
        more=other_lines(each.message),
        since=None,
        advice=advice,
        command=first,
        run_id=each.run_id,
    )


def _entity(item: Item) -> str | None:
    named = item.new.note.get("entity") if item.new is not None else None
    return None if named is None else str(named)


def first_line(message: object) -> str:
    """Return the first line of a message, or that there is none."""
    lines = str(message or "no reason was recorded").splitlines()
    return lines[0] if lines else "no reason was recorded"


def other_lines(message: object) -> str:
    """Return the lines of a message after the first one."""
    return "\n".join(str(message or "").splitlines()[1:])
