"""What the API reads: the documents that the command line prints with `-o json`."""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse, Response

from lakewright.errors import LakewrightError
from lakewright.serve.http.endpoint import ApiCall, Endpoint, listed, required, text, whole_number
from lakewright.serve.http.faults import HttpFault
from lakewright.usecases.declarations import SECTIONS, list_section, show_definition
from lakewright.usecases.draw_graph import declared_graph, graph_as_json, starting_triggers
from lakewright.usecases.due.status import project_status
from lakewright.usecases.due.take import plan_of_project
from lakewright.usecases.due.words import SCHEMA as PLAN
from lakewright.usecases.due.words import plan_document
from lakewright.usecases.entity_overview import read_entity
from lakewright.usecases.entity_standing import read_standings
from lakewright.usecases.history import compare_runs, list_runs, run_as_json, run_with_targets
from lakewright.usecases.list_items import count_items, list_backlog, list_items, show_item
from lakewright.usecases.triggers import list_triggers
from lakewright.usecases.validate_project import validate_project
from lakewright.usecases.watermarks import list_watermark_changes, list_watermarks

__all__ = ["READS", "found", "found_run"]


def found(call: ApiCall, category: str, name: str) -> dict[str, Any]:
    """Return a definition.

    Raises:
        HttpFault: The project has none of that name.
    """
    try:
        return show_definition(call.app, category, name)
    except LakewrightError as error:
        raise HttpFault(404, "unknown", error.message, error.remedy) from error


def _project(call: ApiCall) -> dict[str, Any]:
    project = call.app.project
    return {
        "project": project.name,
        "version": project.version,
        "description": project.description,
        "counts": {section: len(getattr(project, section)) for section in SECTIONS.values()},
        "warnings": [fault.as_json() for fault in call.app.warnings],
    }


def _session(call: ApiCall) -> dict[str, Any]:
    access = call.site.access
    return {
        "user": call.asker.user,
        "allows_actions": access.allows_actions,
        "allows_data": call.site.allows_data,
        "csrf_token": access.csrf_token(call.asker) if call.asker.session is not None else None,
    }


def _validate(call: ApiCall) -> dict[str, Any]:
    validation = validate_project(call.app, with_spark=False)
    return {
        "project": call.app.project.name,
        "errors": [fault.as_json() for fault in validation.errors],
        "warnings": [fault.as_json() for fault in (*call.app.warnings, *validation.warnings)],
    }


def _section(call: ApiCall) -> list[dict[str, Any]]:
    section = call.path["section"]
    if section not in SECTIONS.values():
        raise HttpFault(404, "unknown", f"there is no section {section!r}", ", ".join(SECTIONS.values()))
    return list_section(call.app, section)


def _definition(call: ApiCall) -> dict[str, Any]:
    categories = {section: category for category, section in SECTIONS.items()}
    _section(call)
    return found(call, categories[call.path["section"]], call.path["name"])


def _standings(call: ApiCall) -> list[dict[str, Any]]:
    return [each.as_json() for each in read_standings(call.app).entities]


def _standing(call: ApiCall) -> dict[str, Any]:
    found(call, "entity", call.path["entity"])
    return read_entity(call.app, call.path["entity"]).as_json()


def _items(call: ApiCall) -> list[dict[str, Any]]:
    rows = list_items(
        call.app,
        call.all_given("state"),
        application=call.given("application"),
        entity=call.given("entity"),
        is_stale=call.given("stale") == "true",
        limit=call.limit(),
    )
    return [row.as_json() for row in rows]


def _item(call: ApiCall) -> dict[str, Any]:
    try:
        return show_item(call.app, str(call.given("id"))).as_json()
    except LakewrightError as error:
        raise HttpFault(404, "unknown", error.message, error.remedy) from error


def _backlog(call: ApiCall) -> list[dict[str, Any]]:
    rows, _ = list_backlog(
        call.app, str(call.given("application")), call.all_given("after"), limit=call.limit()
    )
    return [row.as_json() for row in rows]


def _runs(call: ApiCall) -> list[dict[str, Any]]:
    runs = list_runs(
        call.app,
        job=call.given("job"),
        status=call.given("status"),
        age=call.given("since"),
        limit=call.limit(),
    )
    return [run_as_json(run) for run in runs]


def found_run(call: ApiCall) -> dict[str, Any]:
    """Return the run that the path names, with its targets.

    Raises:
        HttpFault: There is none.
    """
    try:
        return run_with_targets(call.app, call.path["run_id"])
    except LakewrightError as error:
        raise HttpFault(404, "unknown", error.message, error.remedy) from error


def _difference(call: ApiCall) -> dict[str, Any]:
    return compare_runs(call.app, call.path["run_id"], call.given("other")).as_json()


def _watermarks(call: ApiCall) -> list[dict[str, Any]]:
    return [each.as_json() for each in list_watermarks(call.app)]


def _watermark_changes(call: ApiCall) -> list[dict[str, Any]]:
    return [each.as_json() for each in list_watermark_changes(call.app, call.given("entity"))]


def _graph(call: ApiCall) -> dict[str, Any]:
    job = call.path["job"]
    found(call, "job", job)
    targets = declared_graph(call.app, job, with_resources=False)
    return graph_as_json(job, None, targets, starting_triggers(call.app, job, targets))


_LIMIT = whole_number("limit", "The largest number of rows; 100 by default.")
_RUN = "lakewright/history-show/1"


def _get(path: str, summary: str, tag: str, handle: Any, **more: Any) -> Endpoint:
    return Endpoint(method="GET", path=path, summary=summary, tag=tag, handle=handle, **more)


def _link(call: ApiCall) -> Response:
    if call.asker.session is not None:
        raise HttpFault(403, "programs_only", "a link is made for those who know the token of serve.token")
    url = f"{call.base_url}/login/{call.site.access.new_link_token()}"
    # Not redacted: who knows the other token may know this one.
    return JSONResponse({"schema": "lakewright/link/1", "url": url}, 201)


READS = (
    Endpoint(
        method="POST",
        path="/links",
        summary="A link that opens the page once, within 15 minutes.",
        tag="project",
        handle=_link,
        form="lakewright/link/1",
        status=201,
    ),
    _get("/session", "Who asks, and what is allowed.", "project", _session, form="lakewright/session/1"),
    _get("/project", "The project.", "project", _project, form="lakewright/project/1"),
    _get(
        "/validation",
        "The errors and warnings of the project's files.",
        "project",
        _validate,
        form="lakewright/validate/1",
    ),
    _get(
        "/status",
        "What is running, what is due, needs a person or waits, the triggers and the last runs.",
        "state",
        lambda call: project_status(call.app).as_json(),
        form="lakewright/plan/2",
    ),
    _get(
        "/plan",
        "What is due in all entities, what a person must decide, and what was noticed.",
        "state",
        lambda call: plan_document(plan_of_project(call.app)),
        form=PLAN,
    ),
    _get(
        "/triggers",
        "The triggers, with their states and next times.",
        "state",
        lambda call: [each.as_json() for each in list_triggers(call.app)],
    ),
    _get(
        "/standings/{entity}",
        "How an entity stands, with its latest slices and its table.",
        "state",
        _standing,
        form="lakewright/standing/1",
    ),
    _get("/standings", "How each entity stands.", "state", _standings),
    _get("/definitions/{section}", "The definitions of a section.", "project", _section),
    _get(
        "/definitions/{section}/{name}",
        "A definition, without secrets.",
        "project",
        _definition,
        form="lakewright/show/1",
    ),
    _get(
        "/items",
        "Items with their verdicts.",
        "manifest",
        _items,
        query=(
            listed("state", "A verdict or a state, in any case; may be repeated."),
            text("application", "Only for this application: name, or name:instance."),
            text("entity", "Only slices of this entity."),
            text("stale", "`true`: only items with a stale lock."),
            _LIMIT,
        ),
    ),
    _get(
        "/item",
        "An item with its verdicts and records.",
        "manifest",
        _item,
        form="lakewright/manifest-show/1",
        query=(required("id", "The id of the item, its path, or ENTITY/SLICE."),),
    ),
    _get(
        "/counts",
        "The number of items by application and verdict.",
        "manifest",
        lambda call: count_items(call.app),
    ),
    _get(
        "/backlog",
        "What an application has before it.",
        "manifest",
        _backlog,
        query=(
            required("application", "name, or name:instance."),
            listed("after", "An application that must have processed an item first; may be repeated."),
            _LIMIT,
        ),
    ),
    _get(
        "/runs",
        "Runs, newest first.",
        "runs",
        _runs,
        query=(
            text("job", "Only runs of this job."),
            text("status", "Only runs with this status, or RUNNING."),
            text("since", "Only runs that started at most this long ago: 2h, 7d."),
            _LIMIT,
        ),
    ),
    _get("/runs/{run_id}", "A run with its targets.", "runs", found_run, form=_RUN),
    _get(
        "/runs/{run_id}/difference",
        "A run compared with the one before it like it, or with another.",
        "runs",
        _difference,
        form="lakewright/history-diff/1",
        query=(text("other", "The run to compare with."),),
    ),
    _get("/watermarks", "The watermarks of entities.", "state", _watermarks),
    _get(
        "/watermarks/changes",
        "What operators did to watermarks, newest first.",
        "state",
        _watermark_changes,
        query=(text("entity", "Only of this entity."),),
    ),
    _get(
        "/graphs/{job}",
        "The targets of a job, what connects them, and the triggers that start them.",
        "project",
        _graph,
        form="lakewright/graph/1",
    ),
)
