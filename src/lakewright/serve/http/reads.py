"""What the API reads: the documents that the command line prints with `-o json`.

Runs and commands are followed by server-sent events, one whenever something has changed, until the end.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Annotated, Any

from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response, StreamingResponse

from lakewright.due.words import SCHEMA as PLAN
from lakewright.due.words import plan_document
from lakewright.manifest.journal import RUNNING
from lakewright.serve.http.endpoint import (
    After,
    ApiCall,
    ApplicationName,
    Endpoints,
    EntityName,
    ItemName,
    Limit,
    about,
)
from lakewright.serve.http.faults import HttpFault, body_of, unknown
from lakewright.usecases.declarations import SECTIONS, list_section, show_definition
from lakewright.usecases.draw_graph import declared_graph, graph_as_json, starting_triggers
from lakewright.usecases.due.status import project_status
from lakewright.usecases.due.take import plan_of_project
from lakewright.usecases.entities import read_entity, read_standings
from lakewright.usecases.history import compare_runs, list_runs, run_as_json, run_with_targets
from lakewright.usecases.items import count_items, list_backlog, list_items, show_item
from lakewright.usecases.triggers import list_triggers
from lakewright.usecases.validate_project import validate_project
from lakewright.usecases.watermarks import list_watermark_changes, list_watermarks

READS = Endpoints()

Listed = list[dict[str, Any]]


def found(call: ApiCall, category: str, name: str) -> dict[str, Any]:
    """Return a definition.

    Raises:
        HttpFault: The project has none of that name.
    """
    with unknown():
        return show_definition(call.app, category, name)


@READS.post("/links", "project", form="lakewright/link/1", status=201, changes=False)
def _link(call: ApiCall) -> Response:
    """A link that opens the page once, within 15 minutes."""
    if call.asker.session is not None:
        raise HttpFault(403, "programs_only", "a link is made for those who know the token of serve.token")
    url = f"{call.base_url}/login/{call.site.access.new_link_token()}"
    # Not redacted: who knows the other token may know this one.
    return JSONResponse({"schema": "lakewright/link/1", "url": url}, 201)


@READS.get("/session", "project", form="lakewright/session/1")
def _session(call: ApiCall) -> dict[str, Any]:
    """Who asks, and what is allowed."""
    access = call.site.access
    return {
        "user": call.asker.user,
        "allows_actions": access.allows_actions,
        "allows_data": call.site.allows_data,
        "csrf_token": access.csrf_token(call.asker) if call.asker.session is not None else None,
    }


@READS.get("/project", "project", form="lakewright/project/1")
def _project(call: ApiCall) -> dict[str, Any]:
    """The project."""
    project = call.app.project
    return {
        "project": project.name,
        "version": project.version,
        "description": project.description,
        "counts": {section: len(getattr(project, section)) for section in SECTIONS.values()},
        "warnings": [fault.as_json() for fault in call.app.warnings],
    }


@READS.get("/validation", "project", form="lakewright/validate/1")
def _validate(call: ApiCall) -> dict[str, Any]:
    """The errors and warnings of the project's files."""
    validation = validate_project(call.app, with_spark=False)
    return {
        "project": call.app.project.name,
        "errors": [fault.as_json() for fault in validation.errors],
        "warnings": [fault.as_json() for fault in (*call.app.warnings, *validation.warnings)],
    }


@READS.get("/status", "state", form="lakewright/plan/2")
def _status(call: ApiCall) -> Any:
    """What is running, what is due, needs a person or waits, the triggers and the last runs."""
    return project_status(call.app)


@READS.get("/plan", "state", form=PLAN)
def _plan(call: ApiCall) -> dict[str, Any]:
    """What is due in all entities, what a person must decide, and what was noticed."""
    return plan_document(plan_of_project(call.app))


@READS.get("/triggers", "state")
def _triggers(call: ApiCall) -> Any:
    """The triggers, with their states and next times."""
    return list_triggers(call.app)


@READS.get("/standings/{entity}", "state", form="lakewright/standing/1")
def _standing(call: ApiCall, entity: EntityName) -> Any:
    """How an entity stands, with its latest slices and its table."""
    found(call, "entity", entity)
    return read_entity(call.app, entity)


@READS.get("/standings", "state")
def _standings(call: ApiCall) -> Any:
    """How each entity stands."""
    return read_standings(call.app).entities


@READS.get("/definitions/{section}", "project")
def _section(call: ApiCall, section: str) -> Listed:
    """The definitions of a section."""
    if section not in SECTIONS.values():
        raise HttpFault(404, "unknown", f"there is no section {section!r}", ", ".join(SECTIONS.values()))
    return list_section(call.app, section)


@READS.get("/definitions/{section}/{name}", "project", form="lakewright/show/1")
def _definition(call: ApiCall, section: str, name: str) -> dict[str, Any]:
    """A definition, without secrets."""
    _section(call, section)
    return found(call, next(category for category, each in SECTIONS.items() if each == section), name)


@READS.get("/items", "manifest")
def _items(
    call: ApiCall,
    *,
    state: Annotated[Sequence[str], about("A verdict or a state, in any case; may be repeated.")] = (),
    application: Annotated[str | None, about("Only for this application: name, or name:instance.")] = None,
    entity: Annotated[str | None, about("Only slices of this entity.")] = None,
    stale: Annotated[bool, about("Only items with a stale lock.")] = False,
    limit: Limit = 100,
) -> Any:
    """Items with their verdicts."""
    return list_items(call.app, state, application=application, entity=entity, is_stale=stale, limit=limit)


@READS.get("/item", "manifest", form="lakewright/manifest-show/1")
def _item(call: ApiCall, id: ItemName) -> Any:
    """An item with its verdicts and records."""
    with unknown():
        return show_item(call.app, id)


@READS.get("/counts", "manifest")
def _counts(call: ApiCall) -> dict[str, Any]:
    """The number of items by application and verdict."""
    return count_items(call.app)


@READS.get("/backlog", "manifest")
def _backlog(call: ApiCall, application: ApplicationName, *, after: After = (), limit: Limit = 100) -> Any:
    """What an application has before it."""
    rows, _ = list_backlog(call.app, application, after, limit=limit)
    return rows


@READS.get("/runs", "runs")
def _runs(
    call: ApiCall,
    *,
    job: Annotated[str | None, about("Only runs of this job.")] = None,
    status: Annotated[str | None, about("Only runs with this status, or RUNNING.")] = None,
    since: Annotated[str | None, about("Only runs that started at most this long ago: 2h, 7d.")] = None,
    limit: Limit = 100,
) -> Listed:
    """Runs, newest first."""
    return [run_as_json(run) for run in list_runs(call.app, job=job, status=status, age=since, limit=limit)]


@READS.get("/runs/{run_id}", "runs", form="lakewright/history-show/1")
def found_run(call: ApiCall, run_id: str) -> dict[str, Any]:
    """A run with its targets."""
    with unknown():
        return run_with_targets(call.app, run_id)


@READS.get("/runs/{run_id}/difference", "runs", form="lakewright/history-diff/1")
def _difference(
    call: ApiCall, run_id: str, *, other: Annotated[str | None, about("The run to compare with.")] = None
) -> Any:
    """A run compared with the one before it like it, or with another."""
    return compare_runs(call.app, run_id, other)


@READS.get("/watermarks", "state")
def _watermarks(call: ApiCall) -> Any:
    """The watermarks of entities."""
    return [*list_watermarks(call.app)]


@READS.get("/watermarks/changes", "state")
def _watermark_changes(
    call: ApiCall, *, entity: Annotated[str | None, about("Only of this entity.")] = None
) -> Any:
    """What operators did to watermarks, newest first."""
    return list_watermark_changes(call.app, entity)


@READS.get("/graphs/{job}", "project", form="lakewright/graph/1")
def _graph(call: ApiCall, job: str) -> dict[str, Any]:
    """The targets of a job, what connects them, and the triggers that start them."""
    found(call, "job", job)
    targets = declared_graph(call.app, job, with_resources=False)
    return graph_as_json(job, None, targets, starting_triggers(call.app, job, targets))


PAUSE = 0.5
LONGEST_SILENCE = 15.0
MOST_FOLLOWERS = 50

Stream = Callable[[], tuple[Any, bool]]
"""Returns a document as it is now, and whether it is the last one."""

_followers = 0


def stream(read: Stream) -> Response:
    """Return an answer that sends a document whenever it has changed, until it is the last one.

    Raises:
        HttpFault: Too many answers of this kind are open.
    """
    if _followers >= MOST_FOLLOWERS:
        raise HttpFault(429, "too_many_followers", f"{MOST_FOLLOWERS} runs are followed", "Close some pages.")
    return StreamingResponse(_events(read), media_type="text/event-stream")


async def _events(read: Stream) -> AsyncIterator[str]:
    global _followers  # noqa: PLW0603 - the limit is of the process
    _followers += 1
    before, silence = None, 0.0
    try:
        while True:
            document, is_last = await run_in_threadpool(read)
            now = document if isinstance(document, str) else json.dumps(document, default=str)
            if now != before:
                before, silence = now, 0.0
                yield _event("change", now)
            if is_last:
                yield _event("end", "{}")
                return
            await asyncio.sleep(PAUSE)
            silence += PAUSE
            if silence >= LONGEST_SILENCE:
                silence = 0.0
                yield ": still there\n\n"
    except Exception as error:  # the reader gets a notice, and tries again
        yield _event("fault", json.dumps(body_of(error)))
    finally:
        _followers -= 1


def _event(name: str, content: str) -> str:
    lines = "\n".join(f"data: {line}" for line in content.split("\n"))
    return f"event: {name}\n{lines}\n\n"


@READS.get("/runs/{run_id}/events", "runs", media="text/event-stream")
def _run_events(call: ApiCall, run_id: str) -> Response:
    """Follows a run: an event `change` with its document whenever it changes, `end` at its end."""

    def read() -> tuple[Any, bool]:
        document = found_run(call, run_id)
        return call.app.redactor.value(document), document["status"] != RUNNING

    read()  # an unknown run is an error, not an event
    return stream(read)


@READS.get("/commands/{command_id}/events", "runs", media="text/event-stream")
def _command_events(call: ApiCall, command_id: str) -> Response:
    """Follows a command: an event `change` with its log, `end` at its end."""
    command = call.site.commands.find(command_id)

    def read() -> tuple[Any, bool]:
        is_last = not command.is_running
        return call.app.redactor.value({**command.as_json(), "log": command.request.log}), is_last

    return stream(read)
