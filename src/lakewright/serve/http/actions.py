"""What the API changes: items and watermarks, each with a reason; jobs and slices, as commands."""

from __future__ import annotations

import logging
import os
import signal
import socket
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StringConstraints

from lakewright.errors.phrase import Phrase
from lakewright.manifest.journal import RUNNING
from lakewright.plan.phase import Phase
from lakewright.run.request import JobRequest
from lakewright.serve.http.endpoint import ApiCall, Endpoints, EntityName, ItemName, Name, about
from lakewright.serve.http.faults import HttpFault, unknown
from lakewright.serve.http.reads import found
from lakewright.serve.http.site import BegunCommand
from lakewright.spec.grants import Grant
from lakewright.usecases.due.decide import decide
from lakewright.usecases.history import find_run, is_resumable, resume_command, run_as_json
from lakewright.usecases.items import find_item
from lakewright.usecases.operate_items import ACTIONS as ITEM_ACTIONS
from lakewright.usecases.run_job import check_request
from lakewright.usecases.watermarks import reset_watermark, set_watermark
from lakewright.warm.requests import with_options

Reason = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1),
    about("Why, in a few words: it is recorded with the name of the user."),
]
SliceName = Annotated[Name, about("The slice.")]
ColumnName = Annotated[Name, about("The column.")]
Whom = Annotated[str | None, about("For this application only: name, or name:instance.")]
JobName = Annotated[Name, about("The name of the job.")]
PhaseName = Annotated[
    Literal["validate", "create", "build", "verify"],
    BeforeValidator(lambda text: text.lower() if isinstance(text, str) else text),
    about("Up to this phase; by default build. Those that remove tables are left to the command line."),
]
Parameters = Annotated[
    Sequence[Annotated[str, Field(pattern="^[A-Za-z_][A-Za-z0-9_]*(:[A-Za-z0-9_]+)?=")]],
    about("NAME=VALUE each, as on the command line."),
]
Targets = Annotated[Sequence[str], about("Only these targets, each as after -t on the command line.")]
Alone = Annotated[bool, about("Run only this phase, none before it.")]
Force = Annotated[bool, about("Run clean targets, too.")]
Requeue = Annotated[bool, about("Process the slice and those after it again, instead of skipping it.")]

log = logging.getLogger(__name__)

ACTIONS = Endpoints()
_BEGUN: dict[str, Any] = {"form": "lakewright/command/1", "status": 202}


def _operated(call: ApiCall, action: str, item: str, reason: str, **options: Any) -> list[dict[str, Any]]:
    """Do what an operator wants of an item; return its new verdicts, and what must be known of it."""
    named: Any = [item] if action == "requeue" else item
    done = ITEM_ACTIONS[action].act(call.app, named, **_who(call, reason), **options)
    return [{**row.as_json(), "warnings": list(done.notes)} for row in done.rows]


@ACTIONS.post("/item/resolve", "manifest")
def _resolve(call: ApiCall, item: ItemName, reason: Reason) -> Any:
    """Let a failed item be processed again, with what its slice now holds."""
    return _operated(call, "resolve", item, reason)


@ACTIONS.post("/item/release", "manifest")
def _release(
    call: ApiCall,
    item: ItemName,
    reason: Reason,
    *,
    force: Annotated[bool, about("Remove the lock of a living holder, too.")] = False,
) -> Any:
    """Remove a stale lock."""
    return _operated(call, "release", item, reason, is_forced=force)


@ACTIONS.post("/item/skip", "manifest")
def _skip(call: ApiCall, item: ItemName, reason: Reason, *, application: Whom = None) -> Any:
    """Skip an item, so that later ones continue; `warnings` say if it was processed."""
    return _operated(call, "skip", item, reason, application=application)


@ACTIONS.post("/item/unskip", "manifest")
def _unskip(call: ApiCall, item: ItemName, reason: Reason, *, application: Whom = None) -> Any:
    """Undo a skip; `warnings` say if later slices are processed."""
    return _operated(call, "unskip", item, reason, application=application)


@ACTIONS.post("/item/requeue", "manifest")
def _requeue(
    call: ApiCall,
    item: ItemName,
    reason: Reason,
    *,
    cascade: Annotated[bool, about("Process later slices again after it.")] = False,
    late: Annotated[bool, about("Apply it although later slices are processed.")] = False,
) -> Any:
    """Let a processed item be processed again; `warnings` say if older rows may become the current ones."""
    return _operated(call, "requeue", item, reason, cascade=cascade, late=late)


@ACTIONS.post("/decide", "state", form="lakewright/decide/1")
def _decide(
    call: ApiCall,
    subject: Annotated[Name, about("The subject, as the arguments of the choice name it.")],
    choice: Annotated[Name, about("The choice.")],
    reason: Reason,
    *,
    basis: Annotated[
        str | None, about("The basis of the choice: it is refused if it is another one by now.")
    ] = None,
) -> Any:
    """Record a choice that `GET /plan` offers; `/apply` goes by it."""
    with call.site.deciding:  # who presses a button twice has decided once
        made = decide(call.app, subject, choice, basis=basis, **_who(call, reason))
    return {"subject": made.subject.text, "choice": made.verb.value, "basis": made.basis}


@ACTIONS.post("/apply", "state", **_BEGUN)
def _begin_apply(
    call: ApiCall,
    reason: Reason,
    *,
    names: Annotated[Sequence[str], about("Only these entities and targets.")] = (),
    allow: Annotated[Sequence[str], about(f"Grants for what needs consent: {', '.join(Grant)}.")] = (),
) -> BegunCommand:
    """Begin to take every step that is due and needs nobody.

    The same command of the same author is returned if it is running already.

    Raises:
        HttpFault: There is no such entity, target or grant, or no reason.
    """
    for name in names:
        if name not in call.app.project.targets:
            found(call, "entity", name)
    known = [grant.value for grant in Grant]
    for grant in allow:
        if grant not in known:
            raise HttpFault(400, "usage", f"there is no grant {grant!r}", f"Known: {', '.join(known)}.")
    flags = [*(f"--allow={each}" for each in dict.fromkeys(allow)), f"--author={call.asker.user}"]
    return _begin(call, ["apply", *flags, "--", *names], reason, joins=True)


@ACTIONS.post("/watermarks/set", "state", form="lakewright/watermark-set/1")
def _set(
    call: ApiCall,
    entity: EntityName,
    column: ColumnName,
    value: Annotated[Name, about("The value, as text.")],
    reason: Reason,
    *,
    type: Annotated[str | None, about("Its type; needed if there is no watermark yet.")] = None,
) -> Any:
    """Set a watermark, even to a lower value."""
    return set_watermark(call.app, entity, column, value, kind=type, **_who(call, reason))


@ACTIONS.post("/watermarks/reset", "state", form="lakewright/watermark-reset/1")
def _reset(call: ApiCall, entity: EntityName, column: ColumnName, reason: Reason) -> Any:
    """Remove a watermark, as if no slice had set one."""
    return reset_watermark(call.app, entity, column, **_who(call, reason))


def _begin_job(call: ApiCall, verb: Literal["job", "plan"], reason: str, request: JobRequest) -> BegunCommand:
    """Begin `job` or `plan`, once its parameters and targets are checked.

    Raises:
        HttpFault: There is no such job.
        SpecError: A parameter is missing or unknown, or has a wrong value.
    """
    found(call, "job", request.job)
    check_request(call.app, request)
    flags = {
        "--no-lifecycle": request.is_alone,
        "--resume": request.resume,
        "--retry": request.retry,
        "--force": request.force,
    }
    options = [flag for flag, is_given in flags.items() if is_given]
    options += [f"--target={each}" for each in request.targets]
    named = (request.job, request.phase.lower(), *request.arguments)
    return _begin(call, [verb, *options, "--", *named], reason)


@ACTIONS.post("/runs", "runs", **_BEGUN)
def _begin_run(
    call: ApiCall,
    job: JobName,
    reason: Reason,
    *,
    phase: PhaseName = "build",
    parameters: Parameters = (),
    targets: Targets = (),
    no_lifecycle: Alone = False,
    resume: Annotated[bool, about("Run only what earlier runs of these instances left undone.")] = False,
    retry: Annotated[bool, about("Add no rows again that failed runs before have added.")] = False,
    force: Force = False,
) -> BegunCommand:
    """Begin a run of a job."""
    named = JobRequest(job, Phase(phase.upper()), tuple(parameters), no_lifecycle, tuple(targets))
    return _begin_job(call, "job", reason, replace(named, resume=resume, retry=retry, force=force))


@ACTIONS.post("/runs/{run_id}/resume", "runs", **_BEGUN)
def _resume_run(call: ApiCall, run_id: str, reason: Reason) -> BegunCommand:
    """Begin to resume a run, with the choices that it had.

    Raises:
        HttpFault: There is no such run, or it is not resumed.
    """
    with unknown():
        run = find_run(call.app, run_id)
    if not is_resumable(run):
        message = f"run {run.run_id} is not resumed: it removes rows"
        raise HttpFault(409, "not_resumed", message, Phrase("Type ", resume_command(run), "."))
    is_alone, targets = bool(run.facts.get("no_lifecycle")), tuple(run.facts.get("targets") or ())
    request = JobRequest(run.job, Phase(run.phase), run.arguments, is_alone, targets, resume=True)
    return _begin_job(call, "job", reason, request)


@ACTIONS.post("/plans", "runs", changes=False, **_BEGUN)
def _begin_plan(
    call: ApiCall,
    job: JobName,
    *,
    phase: PhaseName = "build",
    parameters: Parameters = (),
    targets: Targets = (),
    no_lifecycle: Alone = False,
    force: Force = False,
) -> BegunCommand:
    """Begin a plan of a job: what a run would do, and why. It changes nothing."""
    named = JobRequest(job, Phase(phase.upper()), tuple(parameters), no_lifecycle, tuple(targets))
    return _begin_job(call, "plan", "plan", replace(named, force=force))


@ACTIONS.post("/process", "runs", **_BEGUN)
def _begin_process(
    call: ApiCall,
    entity: EntityName,
    reason: Reason,
    *,
    slice: Annotated[str | None, about("Only this slice.")] = None,
) -> BegunCommand:
    """Begin to process the pending slices of an entity."""
    found(call, "entity", entity)
    return _begin(call, ["process", "--", entity, *([slice] if slice else [])], reason)


@ACTIONS.post("/examine", "runs", **_BEGUN)
def _begin_doctor(call: ApiCall, entity: EntityName) -> BegunCommand:
    """Begin to examine the table of an entity."""
    found(call, "entity", entity)
    return _begin(call, ["doctor", "--", entity], "examine")


@ACTIONS.post("/undo/preview", "runs", changes=False, **_BEGUN)
def _preview_undo(
    call: ApiCall, entity: EntityName, slice: SliceName, *, requeue: Requeue = False
) -> BegunCommand:
    """Begin to compare what undoing a slice would change. It changes nothing."""
    return _begin_undo(call, entity, slice, "preview of an undo", "--dry-run", is_requeued=requeue)


@ACTIONS.post("/undo", "runs", **_BEGUN)
def _undo(
    call: ApiCall, entity: EntityName, slice: SliceName, reason: Reason, *, requeue: Requeue = False
) -> BegunCommand:
    """Begin to undo a slice: the table is as if it had never been processed."""
    who = (f"--author={call.asker.user}", f"--reason={reason}")
    return _begin_undo(call, entity, slice, reason, "--yes", *who, is_requeued=requeue)


def _begin_undo(
    call: ApiCall, entity: str, name: str, reason: str, how: str, *who: str, is_requeued: bool
) -> BegunCommand:
    """Begin `undo` with these options.

    Raises:
        HttpFault: There is no such entity.
        UsageError: The manifest does not know the slice.
    """
    found(call, "entity", entity)
    find_item(call.app, f"{entity}/{name}")
    flags = ["--requeue"] if is_requeued else []
    return _begin(call, ["undo", how, *flags, *who, "--", entity, name], reason)


@ACTIONS.post("/discover", "manifest", **_BEGUN)
def _discover(
    call: ApiCall,
    reason: Reason,
    *,
    entities: Annotated[Sequence[str], about("Only of these entities.")] = (),
) -> BegunCommand:
    """Begin to record new slices in bronze."""
    for name in entities:
        found(call, "entity", name)
    return _begin(call, ["manifest", "discover", *(f"--entity={name}" for name in entities)], reason)


@ACTIONS.post("/runs/{run_id}/cancel", "runs", form="lakewright/history-show/1", status=202)
def _cancel_run(call: ApiCall, run_id: str, reason: Reason) -> dict[str, Any]:
    """Interrupt a run, as Ctrl-C would.

    It ends after the present commit, and can be resumed later.

    Raises:
        HttpFault: It has ended, or runs where this server can't reach it.
    """
    with unknown():
        run = find_run(call.app, run_id)
    if run.status != RUNNING:
        raise HttpFault(409, "ended", f"run {run.run_id} has ended: {run.status}")
    if run.holder.host != socket.gethostname():
        raise HttpFault(409, "elsewhere", f"run {run.run_id} is run by {run.holder}", "Interrupt it there.")
    try:
        os.kill(run.holder.pid, signal.SIGINT)
    except OSError as error:
        why = f"run {run.run_id} can't be interrupted: {error.strerror}"
        raise HttpFault(409, "elsewhere", why) from error
    log.info("run %s is interrupted by %s: %s", run.run_id, call.asker.user, reason)
    return run_as_json(run)


@ACTIONS.post("/commands/{command_id}/cancel", "runs", **_BEGUN)
def _cancel_command(call: ApiCall, command_id: str) -> BegunCommand:
    """Interrupt a command that was begun over HTTP."""
    return call.site.commands.cancel(command_id)


@ACTIONS.get("/commands", "runs")
def _commands(call: ApiCall) -> list[BegunCommand]:
    """The commands that were begun over HTTP since the server's start, newest first."""
    return call.site.commands.all()


@ACTIONS.get("/commands/{command_id}", "runs", form="lakewright/command/1")
def _command(call: ApiCall, command_id: str) -> dict[str, Any]:
    """A command, with the end of its log and, once it has ended, its document."""
    command = call.site.commands.find(command_id)
    document = document_for(command.document, allows_data=call.site.allows_data)
    return {**command.as_json(), "log": command.request.log, "document": document}


def document_for(document: Any, *, allows_data: bool) -> Any:
    """Return a command's document, without its rows of tables unless they may be shown."""
    difference = document.get("difference") if isinstance(document, dict) else None
    if allows_data or not isinstance(difference, dict):
        return document
    hidden: dict[str, list[Any]] = {name: [] for name in difference if name.startswith("sample_")}
    return {**document, "difference": {**difference, **hidden}}


def _who(call: ApiCall, reason: str) -> dict[str, str]:
    return {"author": call.asker.user, "reason": reason}


def _begin(call: ApiCall, arguments: Sequence[str], reason: str, *, joins: bool = False) -> BegunCommand:
    whole = with_options(arguments, *(["--despite-faults"] if call.app.project.faults else []))
    return call.site.commands.begin(whole, author=call.asker.user, reason=reason, joins=joins)
