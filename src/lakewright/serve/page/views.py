"""What each page shows: values for its template, read through the use cases of the command line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from lakewright.errors import LakewrightError
from lakewright.errors.phrase import Command
from lakewright.manifest.item import Item
from lakewright.manifest.journal import ABORTED, RUNNING
from lakewright.manifest.readiness import Group, Reading
from lakewright.manifest.record import Application, Record, parse_instant
from lakewright.manifest.verdict import Verdict
from lakewright.plan.status import Status
from lakewright.serve.http.actions import document_for
from lakewright.serve.http.faults import HttpFault, unknown
from lakewright.serve.page.drawing import draw_bars, draw_rows
from lakewright.serve.page.render import link
from lakewright.slices.application import application_of
from lakewright.slices.discovery import modified_seconds
from lakewright.usecases.declarations import SECTIONS
from lakewright.usecases.entities import (
    EntityOverview,
    metrics_of,
    read_entity,
    read_sample,
    read_standings,
)
from lakewright.usecases.history import (
    REWINDS,
    compare_runs,
    find_run,
    is_of_former_job,
    is_resumable,
    is_superseded,
    list_runs,
    replayed_slices,
    resume_command,
    run_with_targets,
)
from lakewright.usecases.items import ItemHistory, Row, find_item, show_item
from lakewright.usecases.rewinds import Undone, preview_undo

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.serve.http.site import Site
    from lakewright.spec.models.entity import Entity


PAGE_ROWS = 50
PAGE_OF_ALL = 20
"""Rows of a page of the slices of all entities: each entity is asked for that many."""

MOST_RECORDS = 100
SAMPLE_ROWS = 20


class Offer(NamedTuple):
    """An action on a slice: its label, what it does, and for slices with which verdicts it is offered."""

    label: str
    explains: str
    verdicts: frozenset[Verdict]


OFFERS: Mapping[str, Offer] = {
    "resolve": Offer(
        "Resolve",
        "The slice is ready again, with what its files hold now; the next run processes it.",
        frozenset({Verdict.FAILED}),
    ),
    "requeue": Offer(
        "Requeue",
        "The slice is processed again by the next run, after those that are processed already.",
        frozenset({Verdict.PROCESSED, Verdict.INVALID}),
    ),
    "release": Offer(
        "Release the lock",
        "The slice is ready again. Whoever held it can no longer commit.",
        frozenset({Verdict.LOCKED}),
    ),
    "skip": Offer("Skip", "The slice is left out, and those behind it continue.", frozenset({Verdict.READY})),
    "unskip": Offer("Undo the skip", "The slice is ready again.", frozenset({Verdict.SKIPPED})),
}

VERDICTS = tuple(verdict.value for verdict in Verdict if verdict is not Verdict.UNKNOWN)


@dataclass(frozen=True, slots=True)
class View:
    """A request for a page.

    Attributes:
        app: The project as its files declare it now.
        path: The parameters in the path.
        query: The parameters after the `?`, the last value of each.
    """

    site: Site
    app: App
    path: Mapping[str, Any]
    query: Mapping[str, str]

    def given(self, name: str) -> str:
        """Return a parameter, or an empty text."""
        return self.query.get(name, "")

    def offset(self) -> int:
        """Return how many rows come before the page."""
        text = self.given("offset")
        return int(text) if text.isascii() and text.isdigit() and len(text) < 8 else 0


def runs_view(view: View) -> dict[str, Any]:
    """Return a page of runs."""
    job, status, offset = view.given("job") or None, view.given("status") or None, view.offset()
    found = list_runs(view.app, job=job, status=status, limit=offset + PAGE_ROWS + 1)
    return {
        "runs": found[offset : offset + PAGE_ROWS],
        "jobs": list(view.app.project.jobs),
        "statuses": [*(each.value for each in Status), RUNNING],
        "given": {"job": job, "status": status},
        "previous": max(0, offset - PAGE_ROWS) if offset else None,
        "next": offset + PAGE_ROWS if len(found) > offset + PAGE_ROWS else None,
        "now": view.app.store.now(),
    }


def run_values(view: View) -> dict[str, Any]:
    """Return a run with its targets, for the part of its page that follows it."""
    with unknown():
        document = run_with_targets(view.app, view.path["run_id"])
    phases = [phase for instance in document["instances"] for phase in instance["phases"]]
    targets = [{**target, "phase": phase["phase"]} for phase in phases for target in phase["targets"]]
    started, finished = document["started"], document["finished"]
    took = (parse_instant(finished) - parse_instant(started)).total_seconds() if finished else None
    return {
        "run": {**dict.fromkeys(("trigger", "author", "reason", "code")), **document},
        "took": took,
        "is_rewind": document["phase"] in REWINDS,
        "replayed": replayed_slices(document),
        "failures": [each for each in targets if each["status"] == Status.FAILED and each["error"]],
        "longest": max((target.get("seconds") or 0.0 for target in targets), default=0.0) or 1.0,
        "now": view.app.store.now(),
    }


def run_view(view: View) -> dict[str, Any]:
    """Return a run with its targets, and its difference to the one before."""
    values = run_values(view)
    run = find_run(view.app, view.path["run_id"])
    is_former = is_of_former_job(view.app.project, run)
    is_left = not is_former and not is_superseded(view.app, run)
    is_broken = run.status in (Status.FAILED, ABORTED) and is_left
    resume = resume_command(run) if is_broken else None
    difference = None
    with suppress(LakewrightError):
        difference = compare_runs(view.app, run.run_id) if run.status != RUNNING else None
    return {
        **values,
        "difference": difference,
        "resume": resume,
        "may_resume": is_left and is_resumable(run),
    }


def command_values(view: View) -> dict[str, Any]:
    """Return a command that was begun over HTTP, with its log."""
    command = view.site.commands.find(view.path["command_id"])
    document = document_for(command.document, allows_data=view.site.allows_data)
    verb, found = command.arguments[0], document if isinstance(document, dict) else {}
    return {
        "command": command,
        "log": command.request.log,
        "plan": document if verb == "plan" and "instances" in found else None,
        "taken": found.get("taken") if verb == "apply" else None,
        "undo": document if verb == "undo" and isinstance(found.get("difference"), dict) else None,
        "document": None if document is None else json.dumps(document, indent=2, ensure_ascii=False),
        "run_id": found.get("run_id") or _run_of(view, command.author, command.reason),
        "shown": " ".join(each for each in command.arguments if each != "--"),
    }


def _run_of(view: View, author: str, reason: str) -> str | None:
    """Return the running run that a command with this author and reason began."""
    runs = view.app.journal.runs(5, project=view.app.project.name)
    trigger = f"{author}: {reason}"
    return next((run.run_id for run in runs if run.facts.get("trigger") == trigger), None)


def entities_view(view: View) -> dict[str, Any]:
    """Return how all entities stand."""
    standings = read_standings(view.app, with_last_slices=False).entities
    name, state = view.given("name").lower(), view.given("state")
    chosen = [
        each
        for each in standings
        if name in each.name.lower()
        and (not state or each.state == state or any(v == state for v in each.standing.counts))
    ]
    return {
        "entities": chosen,
        "total": len(standings),
        "states": [*VERDICTS, Verdict.UNKNOWN.value],
        "given": {"name": view.given("name"), "state": state},
        "now": view.app.store.now(),
    }


def entity_view(view: View) -> dict[str, Any]:
    """Return an entity with its latest slices, its table and its columns."""
    with unknown():
        found = read_entity(view.app, view.path["name"])
    return {
        "found": found,
        "bars": draw_bars(found.slices),
        "rows": draw_rows(found.row_counts),
        "columns": list(_columns(found)),
        "drift": [each for each in found.slices if each.content.get("drift")][:10],
        "sample": read_sample(view.app, found.entity, SAMPLE_ROWS) if view.site.allows_data else None,
        "made_at": found.now,
    }


def _columns(found: EntityOverview) -> Iterator[dict[str, Any]]:
    types = {column.name.lower(): column.type.ddl for column in (found.table.columns if found.table else ())}
    for column in declared_columns(found.entity):
        yield {**column, "type": types.pop(column["name"].lower(), "")}
    yield from ({"name": name, "type": ddl, "source": "", "roles": []} for name, ddl in types.items())


def declared_columns(entity: Entity) -> list[dict[str, Any]]:
    """Return the columns that an entity declares, each with what it comes from."""
    marks = {mark.column_name.lower() for mark in entity.watermarks}
    return [
        {
            "name": column.silver,
            "source": column.expression or (column.source if column.source != column.silver else ""),
            "roles": [
                *(["business key"] if column.is_business_key else []),
                *(["partition"] if column.is_partition else []),
                *(["watermark"] if {str(column.source).lower(), column.silver.lower()} & marks else []),
            ],
        }
        for column in entity.columns
    ]


def items_view(view: View) -> dict[str, Any]:
    """Return a page of slices, the newest first."""
    entity, state = view.given("entity"), view.given("state")
    arrival, _, item_id = view.given("before").partition(" ")
    beyond = (arrival, item_id) if item_id else None
    size = PAGE_ROWS if entity in view.app.project.entities else PAGE_OF_ALL
    reading = Reading(is_newest_first=True, limit=size + 1, beyond=beyond)
    rows = list(_listed(view, entity, state, reading))
    last = rows[size - 1]["item"] if len(rows) > size else None
    return {
        "rows": rows[:size],
        "entities": list(view.app.project.entities),
        "states": VERDICTS,
        "given": {"entity": entity, "state": state, "before": view.given("before")},
        "next": f"{last.arrival} {last.item_id}" if last is not None else None,
    }


def _listed(view: View, entity: str, state: str, reading: Reading) -> Iterator[dict[str, Any]]:
    app, entities = view.app, view.app.project.entities
    wanted = frozenset({Verdict(state)}) if state in VERDICTS else frozenset[Verdict]()
    own = application_of(app.project.name, entities[entity]) if entity in entities else None
    for item in _newest(app, own, wanted, reading):
        verdicts = list(item.verdicts().items()) if own is None else [(own, item.verdict(own))]
        application, verdict = next((each for each in verdicts if each[1] in wanted), verdicts[0])
        row = Row(item, application, verdict)
        yield {"verdict": verdict.value, "owner": row.owner, "item": item, "name": row.slice}


def _newest(
    app: App, own: Application | None, wanted: frozenset[Verdict], reading: Reading
) -> Iterator[Item]:
    """Yield items of one application or of all, the newest first.

    The newest N items are in the N standings whose last items are the newest: only those are read.
    """
    beyond, limit = reading.beyond, reading.limit or PAGE_ROWS
    lasts = {
        standing: ends.last if beyond is None else min(ends.last, beyond)
        for standing, ends in app.store.arrivals().items()
        if (beyond is None or ends.first < beyond)
        and any(
            (own is None or each.key == own.key) and (not wanted or standing.verdict(each) in wanted)
            for each in standing.concerned
        )
    }
    if len(lasts) > limit and beyond is None:
        lasts = dict(sorted(lasts.items(), key=lambda each: each[1])[-limit:])
    return app.store.select(Group(frozenset(lasts)), reading)


def item_view(view: View) -> dict[str, Any]:
    """Return an item with its verdicts and records."""
    with unknown():
        found = show_item(view.app, view.given("id"))
    rows, item = list(found.rows), found.item
    failed = item.failed.note.get("error") if item.failed is not None else None
    records = found.records[-MOST_RECORDS:]
    verdict = rows[0].verdict if rows else Verdict.UNKNOWN
    return {
        "item": item,
        "name": rows[0].slice if rows else item.item_id,
        "entity": rows[0].entity if rows and rows[0].entity in view.app.project.entities else None,
        "rows": rows,
        "records": records,
        "earlier": len(found.records) - len(records),
        "raw": {each.sequence: json.dumps(each.as_json(), indent=2, ensure_ascii=False) for each in records},
        "failure": {"remedy": None, **failed} if isinstance(failed, Mapping) else None,
        "trace": _trace(found) if item.failed is not None else None,
        "lock": rows[0].lock if rows else None,
        "commands": list(dict.fromkeys(row.next_command for row in rows if row.next_command)),
        "actions": _offered(rows, verdict),
        "offers": OFFERS,
        "may_undo": verdict is Verdict.PROCESSED and rows[0].entity in view.app.project.entities,
        "metrics": {each.sequence: _metrics(each) for each in records},
        "fingerprint": {key: value for key, value in (item.fingerprint or {}).items() if key != "files"},
        "modified": _modified(item),
    }


def _metrics(record: Record) -> dict[str, Any]:
    """Return what processing a slice counted; the version of its commit is shown beside it."""
    return {name: value for name, value in metrics_of(record.content).items() if name != "delta_version"}


def _modified(item: Item) -> datetime | None:
    """Return when the files of a slice were changed last, as its fingerprint says."""
    modified = (item.fingerprint or {}).get("modified")
    try:
        return datetime.fromtimestamp(modified_seconds(modified), UTC) if isinstance(modified, int) else None
    except (OverflowError, ValueError):  # a file may have any time
        return None


def _offered(rows: Sequence[Row], verdict: Verdict) -> tuple[str, ...]:
    failed = rows[0].item.failed if rows else None
    if failed is not None and not failed.note.get("holds_back", True):
        return ("requeue", "skip")  # a late slice is applied late, or left out
    return tuple(action for action, offer in OFFERS.items() if verdict in offer.verdicts)


def _trace(found: ItemHistory) -> str | None:
    traces = (record.content.get("stack_trace") for record in reversed(found.records))
    return next((str(trace) for trace in traces if trace), None)


MOST_HITS = 50
SHORTEST_RUN_ID = 4
"""Characters of the beginning of a run's id for which runs are searched."""


def search_view(view: View) -> dict[str, Any]:
    """Return what has a name that contains a text, or an id that starts with it."""
    text = view.given("q").strip()
    return {"query_text": text, "hits": list(_hits(view.app, text))[:MOST_HITS] if text else []}


def _hits(app: App, text: str) -> Iterator[dict[str, Any]]:
    wanted = text.lower()
    pages: Mapping[str, Callable[[str], str]] = {
        "entity": lambda name: link(f"/entities/{name}"),
        "job": lambda name: link("/runs", job=name),
    }
    for category, section in sorted(SECTIONS.items(), key=lambda each: each[0] != "entity"):
        for name in getattr(app.project, section):
            if wanted in name.lower() and category != "connection":
                made = pages.get(category, lambda name, of=category: link("/lineage", focus=f"{of}:{name}"))
                yield {"category": category, "name": name, "url": made(name)}
    with suppress(LakewrightError):
        item = find_item(app, text)
        yield {"category": "slice", "name": item.item_id, "url": link("/item", id=item.item_id)}
    if len(text) >= SHORTEST_RUN_ID:
        with suppress(LakewrightError):
            run = find_run(app, text)
            name = f"{run.job} {run.phase.lower()} {run.run_id}"
            yield {"category": "run", "name": name, "url": f"/runs/{run.run_id}"}


def undo_view(view: View) -> dict[str, Any]:
    """Return what undoing a slice would do; `requeue` in the query has it processed again."""
    with unknown():
        found = show_item(view.app, view.given("id"))
    row = found.rows[0] if found.rows else None
    if row is None or row.entity is None or row.entity not in view.app.project.entities:
        raise HttpFault(404, "unknown", "the item is no slice of an entity of this project")
    is_requeued = view.given("requeue") == "1"
    undone: Undone | None = None
    refused: LakewrightError | None = None
    try:
        undone = preview_undo(view.app, row.entity, row.slice, is_requeued=is_requeued, with_rows=False)
    except LakewrightError as error:
        refused = error
    return {
        "item": found.item,
        "entity": row.entity,
        "name": row.slice,
        "is_requeued": is_requeued,
        "undone": undone,
        "refused": refused,
        "command": Command("undo", row.entity, row.slice, *(["--requeue"] if is_requeued else [])),
    }
