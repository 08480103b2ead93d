"""What the API changes: items and watermarks, each with a reason; jobs and slices, as commands."""

from __future__ import annotations

import os
import re
import signal
import socket
from collections.abc import Sequence
from functools import partial
from typing import Any

from lakewright.due.facts import Decision, Grant
from lakewright.errors import LakewrightError
from lakewright.errors.phrase import Command, Phrase
from lakewright.manifest.journal import RUNNING
from lakewright.plan.phase import LIFECYCLES, Phase
from lakewright.run.request import JobRequest
from lakewright.serve.http.commands import BegunCommand
from lakewright.serve.http.endpoint import ApiCall, Endpoint, Part, listed, required, text
from lakewright.serve.http.faults import HttpFault
from lakewright.serve.http.reads import found
from lakewright.usecases.due.decide import decide
from lakewright.usecases.history import find_run, run_as_json
from lakewright.usecases.items import Row, find_item
from lakewright.usecases.operate_items import (
    release_item,
    requeue_items,
    resolve_item,
    skip_item,
    unskip_item,
)
from lakewright.usecases.run_job import check_request
from lakewright.usecases.watermarks import reset_watermark, set_watermark

__all__ = [
    "ACTIONS",
    "begin_apply",
    "begin_job",
    "begin_process",
    "begin_undo",
    "cancel_run",
    "decided",
    "document_for",
    "operate",
    "operated",
    "shown_document",
]

_ARGUMENT = re.compile(r"[A-Za-z_]\w*(:\w+)?=", re.ASCII)
_FLAGS = {"no_lifecycle": "--no-lifecycle", "resume": "--resume", "retry": "--retry", "force": "--force"}
_PHASES = tuple(phase.value.lower() for phase in LIFECYCLES[0])


def operate(call: ApiCall, action: str) -> list[dict[str, Any]]:
    """Do what an operator wants of an item, and return its new verdicts, with what must be known of it."""
    rows, notes = operated(call, action)
    return [{**row.as_json(), "warnings": list(notes)} for row in rows]


def operated(call: ApiCall, action: str) -> tuple[Sequence[Row], Sequence[str]]:
    """Do what an operator wants of an item; return its new verdicts, and what must be known of it."""
    app, body = call.app, call.body
    who = {"author": call.asker.user, "reason": checked_reason(call)}
    if action == "requeue":
        late, cascade = bool(body.get("late")), bool(body.get("cascade"))
        requeued = requeue_items(app, [body["item"]], cascade=cascade, late=late, **who)
        return requeued.rows, requeued.notes
    if action == "resolve":
        return resolve_item(app, body["item"], **who), ()
    if action == "release":
        return release_item(app, body["item"], is_forced=bool(body.get("force")), **who), ()
    act = skip_item if action == "skip" else unskip_item
    done = act(app, body["item"], application=body.get("application"), **who)
    return done.rows, done.notes


def checked_reason(call: ApiCall) -> str:
    """Return the reason of a change.

    Raises:
        HttpFault: There is none.
    """
    if not call.reason.strip():
        raise HttpFault(400, "usage", "the reason is empty", "Say why, in a few words: it is recorded.")
    return call.reason.strip()


def begin_job(call: ApiCall, verb: str) -> BegunCommand:
    """Begin `job` or `plan` for what the body names, once its parameters and targets are checked.

    Raises:
        HttpFault: There is no such job or phase, or a parameter is not NAME=VALUE.
        SpecError: A parameter is missing or unknown, or has a wrong value.
    """
    job, phase = str(call.body["job"]), str(call.body.get("phase", "build")).lower()
    found(call, "job", job)
    if phase not in _PHASES:
        raise HttpFault(
            400,
            "usage",
            f"{phase!r} can't be run over HTTP; {', '.join(_PHASES)} can",
            Phrase("Type it: ", Command("job", job, phase), ".")
            if phase in ("truncate", "destroy")
            else None,
        )
    parameters = [str(each) for each in call.body.get("parameters", ())]
    for each in parameters:
        if not _ARGUMENT.match(each):
            raise HttpFault(400, "usage", f"{each!r} is no parameter", "Give NAME=VALUE.")
    flags = [option for name, option in _FLAGS.items() if call.body.get(name)]
    reason = checked_reason(call) if verb == "job" else "plan"
    targets = tuple(str(each) for each in call.body.get("targets", ()))
    check_request(call.app, JobRequest(job, Phase(phase.upper()), tuple(parameters), targets=targets))
    flags += [f"--target={each}" for each in targets]
    return _begin(call, [verb, *flags, "--", job, phase, *parameters], reason)


def begin_process(call: ApiCall) -> BegunCommand:
    """Begin `process` for an entity, or one of its slices."""
    entity = str(call.body["entity"])
    found(call, "entity", entity)
    names = [entity, *([call.body["slice"]] if call.body.get("slice") else [])]
    return _begin(call, ["process", "--", *names], checked_reason(call))


def begin_undo(call: ApiCall, *, is_preview: bool = False) -> BegunCommand:
    """Begin to undo a slice, or to compare the rows that this would change.

    Raises:
        HttpFault: There is no such entity, or no reason.
        UsageError: The manifest does not know the slice.
    """
    entity, name = str(call.body["entity"]), str(call.body["slice"])
    found(call, "entity", entity)
    find_item(call.app, f"{entity}/{name}")
    flags = ["--requeue"] if call.body.get("requeue") else []
    if is_preview:
        return _begin(call, ["undo", "--dry-run", *flags, "--", entity, name], "preview of an undo")
    reason = checked_reason(call)
    who = [f"--author={call.asker.user}", f"--reason={reason}"]
    return _begin(call, ["undo", "--yes", *flags, *who, "--", entity, name], reason)


def begin_apply(call: ApiCall) -> BegunCommand:
    """Begin to take what is due, of the whole project or of some; return it if it is running already.

    Raises:
        HttpFault: There is no such entity, target or grant, or no reason.
    """
    names = [str(each) for each in call.body.get("names", ())]
    for name in names:
        if name not in call.app.project.targets:
            found(call, "entity", name)
    grants = [str(each) for each in call.body.get("allow", ())]
    known = [grant.value for grant in Grant]
    for grant in grants:
        if grant not in known:
            raise HttpFault(400, "usage", f"there is no grant {grant!r}", f"Known: {', '.join(known)}.")
    reason = checked_reason(call)
    flags = [f"--allow={each}" for each in dict.fromkeys(grants)]
    return _begin(call, ["apply", *flags, f"--author={call.asker.user}", "--", *names], reason, joins=True)


def decided(call: ApiCall) -> Decision:
    """Record a choice that the plan offers, and return the decision.

    Raises:
        HttpFault: There is no reason.
        NotOffered: It is not offered, or not any more.
    """
    reason, body = checked_reason(call), call.body
    with call.site.deciding:  # who presses a button twice has decided once
        return decide(
            call.app,
            str(body["subject"]),
            str(body["choice"]),
            author=call.asker.user,
            reason=reason,
            basis=body.get("basis"),
        )


def _decide(call: ApiCall) -> dict[str, Any]:
    made = decided(call)
    return {"subject": made.subject.text, "choice": made.verb.value, "basis": made.basis}


def shown_document(call: ApiCall, command: BegunCommand) -> Any:
    """Return the document of a command; rows of tables in it are left out unless the server shows rows."""
    return document_for(command.document, allows_data=call.site.allows_data)


def document_for(document: Any, *, allows_data: bool) -> Any:
    """Return a command's document, without its rows of tables unless they may be shown."""
    difference = document.get("difference") if isinstance(document, dict) else None
    if allows_data or not isinstance(difference, dict):
        return document
    hidden: dict[str, list[Any]] = {name: [] for name in difference if name.startswith("sample_")}
    return {**document, "difference": {**difference, **hidden}}


def _begin_discover(call: ApiCall) -> BegunCommand:
    names = [str(each) for each in call.body.get("entities", ())]
    for name in names:
        found(call, "entity", name)
    options = [f"--entity={name}" for name in names]
    return _begin(call, ["manifest", "discover", *options], checked_reason(call))


def _begin(call: ApiCall, arguments: Sequence[str], reason: str, *, joins: bool = False) -> BegunCommand:
    at = list(arguments).index("--") if "--" in arguments else len(arguments)
    despite = ("--despite-faults",) if call.app.project.faults else ()
    whole = (*arguments[:at], *despite, *arguments[at:])
    return call.site.commands.begin(whole, author=call.asker.user, reason=reason, joins=joins)


def _command(call: ApiCall) -> dict[str, Any]:
    command = call.site.commands.find(call.path["command_id"])
    return {**command.as_json(), "log": command.log, "document": shown_document(call, command)}


def cancel_run(call: ApiCall) -> dict[str, Any]:
    """Interrupt a run, as Ctrl-C would: it ends after the present commit, and is resumed later.

    Raises:
        HttpFault: It has ended, or runs where this server can't reach it.
    """
    checked_reason(call)
    try:
        run = find_run(call.app, call.path["run_id"])
    except LakewrightError as error:
        raise HttpFault(404, "unknown", error.message, error.remedy) from error
    if run.status != RUNNING:
        raise HttpFault(409, "ended", f"run {run.run_id} has ended: {run.status}")
    if run.holder.host != socket.gethostname():
        raise HttpFault(409, "elsewhere", f"run {run.run_id} is run by {run.holder}", "Interrupt it there.")
    try:
        os.kill(run.holder.pid, signal.SIGINT)
    except OSError as error:
        why = f"run {run.run_id} can't be interrupted: {error.strerror}"
        raise HttpFault(409, "elsewhere", why) from error
    return run_as_json(run)


def _set(call: ApiCall) -> dict[str, Any]:
    body = call.body
    return set_watermark(
        call.app,
        body["entity"],
        body["column"],
        body["value"],
        kind=body.get("type"),
        author=call.asker.user,
        reason=checked_reason(call),
    ).as_json()


def _reset(call: ApiCall) -> dict[str, Any]:
    body = call.body
    return reset_watermark(
        call.app, body["entity"], body["column"], author=call.asker.user, reason=checked_reason(call)
    ).as_json()


_REASON = required("reason", "Why; it is recorded with the name of the user.")
_ITEM = required("item", "The id of the item, its path, or ENTITY/SLICE.")
_FLAG = {"type": "boolean"}
_FOR = text("application", "For this application only: name, or name:instance.")
_JOB = (
    required("job", "The name of the job."),
    text("phase", f"Up to this phase: {', '.join(_PHASES)}; by default build."),
    listed("parameters", "NAME=VALUE each, as on the command line."),
    listed("targets", "Only these targets, each as after -t on the command line."),
    Part("no_lifecycle", _FLAG, "Run only this phase, none before it."),
)
_RESUME = Part("resume", _FLAG, "Run only what earlier runs of these instances left undone.")
_RETRY = Part("retry", _FLAG, "Add no rows again that failed runs before have added.")
_REQUEUE = Part("requeue", _FLAG, "Process the slice and those after it again, instead of skipping it.")
_FORCE = Part("force", _FLAG, "Run clean targets, too.")


def _post(path: str, summary: str, tag: str, handle: Any, *body: Part, **more: Any) -> Endpoint:
    options = {"changes": True, **more}
    return Endpoint(method="POST", path=path, summary=summary, tag=tag, handle=handle, body=body, **options)


def _item(action: str, summary: str, *body: Part) -> Endpoint:
    handle = partial(operate, action=action)
    return _post(f"/item/{action}", summary, "manifest", handle, _ITEM, _REASON, *body)


_BEGUN: dict[str, Any] = {"form": "lakewright/command/1", "status": 202}

ACTIONS = (
    _item("resolve", "Let a failed item be processed again, with what its slice now holds."),
    _item(
        "release", "Remove a stale lock.", Part("force", _FLAG, "Remove the lock of a living holder, too.")
    ),
    _item("skip", "Skip an item, so that later ones continue; `warnings` say if it was processed.", _FOR),
    _item("unskip", "Undo a skip; `warnings` say if later slices are processed.", _FOR),
    _item(
        "requeue",
        "Let a processed item be processed again; `warnings` say if older rows may become the current ones.",
        Part("cascade", _FLAG, "Process later slices again after it."),
        Part("late", _FLAG, "Apply it although later slices are processed."),
    ),
    _post(
        "/decide",
        "Record a choice that `GET /plan` offers; `/apply` goes by it.",
        "state",
        _decide,
        required("subject", "The subject, as the arguments of the choice name it."),
        required("choice", "The choice."),
        text("basis", "The basis of the choice: it is refused if it is another one by now."),
        _REASON,
        form="lakewright/decide/1",
    ),
    _post(
        "/apply",
        "Begin to take every step that is due and needs nobody.",
        "state",
        lambda call: begin_apply(call).as_json(),
        listed("names", "Only these entities and targets."),
        listed("allow", f"Grants for what needs consent: {', '.join(Grant)}."),
        _REASON,
        **_BEGUN,
    ),
    _post(
        "/watermarks/set",
        "Set a watermark, even to a lower value.",
        "state",
        _set,
        required("entity", "The entity."),
        required("column", "The column."),
        required("value", "The value, as text."),
        text("type", "Its type; needed if there is no watermark yet."),
        _REASON,
        form="lakewright/watermark-set/1",
    ),
    _post(
        "/watermarks/reset",
        "Remove a watermark, as if no slice had set one.",
        "state",
        _reset,
        required("entity", "The entity."),
        required("column", "The column."),
        _REASON,
        form="lakewright/watermark-reset/1",
    ),
    _post(
        "/runs",
        "Begin a run of a job.",
        "runs",
        lambda call: begin_job(call, "job").as_json(),
        *_JOB,
        _RESUME,
        _RETRY,
        _FORCE,
        _REASON,
        **_BEGUN,
    ),
    _post(
        "/plans",
        "Begin a plan of a job: what a run would do, and why. It changes nothing.",
        "runs",
        lambda call: begin_job(call, "plan").as_json(),
        *_JOB,
        _FORCE,
        changes=False,
        **_BEGUN,
    ),
    _post(
        "/process",
        "Begin to process the pending slices of an entity.",
        "runs",
        lambda call: begin_process(call).as_json(),
        required("entity", "The entity."),
        text("slice", "Only this slice."),
        _REASON,
        **_BEGUN,
    ),
    _post(
        "/undo/preview",
        "Begin to compare what undoing a slice would change. It changes nothing.",
        "runs",
        lambda call: begin_undo(call, is_preview=True).as_json(),
        required("entity", "The entity."),
        required("slice", "The slice."),
        _REQUEUE,
        changes=False,
        **_BEGUN,
    ),
    _post(
        "/undo",
        "Begin to undo a slice: the table is as if it had never been processed.",
        "runs",
        lambda call: begin_undo(call).as_json(),
        required("entity", "The entity."),
        required("slice", "The slice."),
        _REQUEUE,
        _REASON,
        **_BEGUN,
    ),
    _post(
        "/discover",
        "Begin to record new slices in bronze.",
        "manifest",
        lambda call: _begin_discover(call).as_json(),
        listed("entities", "Only of these entities."),
        _REASON,
        **_BEGUN,
    ),
    _post(
        "/runs/{run_id}/cancel",
        "Interrupt a run, as Ctrl-C would.",
        "runs",
        cancel_run,
        _REASON,
        form="lakewright/history-show/1",
        status=202,
    ),
    _post(
        "/commands/{command_id}/cancel",
        "Interrupt a command that was begun over HTTP.",
        "runs",
        lambda call: call.site.commands.cancel(call.path["command_id"]).as_json(),
        **_BEGUN,
    ),
    Endpoint(
        method="GET",
        path="/commands",
        summary="The commands that were begun over HTTP since the server's start, newest first.",
        tag="runs",
        handle=lambda call: [each.as_json() for each in call.site.commands.all()],
    ),
    Endpoint(
        method="GET",
        path="/commands/{command_id}",
        summary="A command, with the end of its log and, once it has ended, its document.",
        tag="runs",
        handle=_command,
        form="lakewright/command/1",
    ),
)
