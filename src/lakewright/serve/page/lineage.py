"""The page of the lineage: what is made from what, how fresh it is, and why it is dirty."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from lakewright.documentation.document import Ref
from lakewright.due.facts import Kind
from lakewright.errors import LakewrightError
from lakewright.manifest.record import format_instant
from lakewright.manifest.verdict import Verdict
from lakewright.serve.http.faults import HttpFault
from lakewright.serve.page.drawing import FlowDrawing, draw_flows, focus_link
from lakewright.serve.page.views import View, declared_columns
from lakewright.usecases.data_flow import Flows, read_column_flow, read_flows
from lakewright.usecases.declarations import show_definition
from lakewright.usecases.entities import EntityStanding, read_standings

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.due.plan import Plan


CATEGORIES = ("relation", "mapping", "entity", "target")
RECENT = 20
MOST_LISTED = 200


class Tone(NamedTuple):
    """How an item stands: a class for its colour, a word, and a sentence."""

    tone: str = ""
    word: str = "clean"
    text: str = ""


@dataclass(slots=True)
class LineagePage:
    """Draws the lineage; the drawing is kept until the project is loaded again.

    Attributes:
        plan: Returns what is due, as far as somebody has looked.
    """

    plan: Callable[[View], Plan | None] = lambda _: None
    _kept: tuple[App, Flows, FlowDrawing] | None = field(default=None)
    _lock: Lock = field(default_factory=Lock)

    def view(self, view: View) -> dict[str, Any]:
        """Return the lineage, of all items or around one."""
        flows, drawing = self._drawn(view)
        focus = _focus(view.given("focus"), flows)
        if focus is not None:
            flows = flows.around(focus)
            drawing = draw_flows(flows)
        states = _states(view.app, flows.nodes, flows.writers, self.plan(view))
        definition = _definition(view.app, focus)
        entity = view.app.project.entities.get(focus.name) if focus and focus.category == "entity" else None
        return {
            "drawing": drawing,
            "focus_link": focus_link,
            "names": flows.nodes,
            "listed": flows.nodes[:MOST_LISTED],
            "focus": focus,
            "focus_text": f"{focus.category}:{focus.name}" if focus else "",
            "states": states,
            "definition": definition.get("text"),
            "location": definition.get("location"),
            "columns": declared_columns(entity) if entity is not None else [],
            "flow": read_column_flow(view.app, focus)
            if focus is not None and focus.category in ("relation", "mapping")
            else None,
        }

    def _drawn(self, view: View) -> tuple[Flows, FlowDrawing]:
        with self._lock:
            if self._kept is None or self._kept[0] is not view.app:
                flows = read_flows(view.app)
                self._kept = (view.app, flows, draw_flows(flows))
            return self._kept[1], self._kept[2]


def _focus(text: str, flows: Flows) -> Ref | None:
    if not text:
        return None
    category, _, name = text.partition(":")
    named = [ref for ref in flows.nodes if (ref.category, ref.name) == (category, name) or ref.name == text]
    if not named:
        if category == "target" and (found := [e for e, t in flows.writers.items() if t == name]):
            return Ref("entity", found[0])
        raise HttpFault(404, "unknown", f"there is no item {text!r}", "Names are CATEGORY:NAME.")
    return named[0]


def _definition(app: App, focus: Ref | None) -> Mapping[str, Any]:
    if focus is None:
        return {}
    try:
        shown = show_definition(app, focus.category, focus.name)
    except LakewrightError:
        return {}
    text = json.dumps(shown["definition"], indent=2, ensure_ascii=False, default=str)
    return {"text": text, "location": shown["location"]}


def _states(app: App, nodes: Iterable[Ref], writers: Mapping[str, str], plan: Plan | None) -> dict[Ref, Tone]:
    standings = {each.name: each for each in read_standings(app, with_last_slices=False).entities}
    steps = [] if plan is None else [each for each in plan.steps if each.subject.kind is Kind.TARGET]
    stale = {each.subject.name: each.reason.text for each in reversed(steps)}
    endings = _endings(app)
    found = {}
    for ref in nodes:
        if ref.category == "entity":
            standing = standings.get(ref.name)
            why = stale.get(writers.get(ref.name, ""))
            found[ref] = Tone() if standing is None else _entity_tone(standing, why)
        else:
            ending = endings.get(ref.name, Tone())
            found[ref] = Tone("dirty", "dirty", stale[ref.name]) if ref.name in stale else ending
    return found


def _entity_tone(each: EntityStanding, stale: str | None) -> Tone:
    standing = each.standing
    broken = standing.count(Verdict.FAILED) + standing.count(Verdict.INVALID)
    ready = standing.count(Verdict.READY)
    fresh = (
        f"fresh until {format_instant(standing.fresh_until)[:19]}Z" if standing.fresh_until else "no rows yet"
    )
    if broken:
        return Tone("failed", "held back", f"{broken} failed, {ready} behind; {fresh}")
    if ready or stale:
        why = f"{ready} to process" if ready else str(stale)
        return Tone("dirty", "dirty", f"{why}; {fresh}")
    return Tone("clean", "clean", fresh)


def _endings(app: App) -> dict[str, Tone]:
    """Return how each target ended in the last run of its job, with its reasons."""
    last = {run.job: run for run in reversed([*app.journal.runs(RECENT, project=app.project.name)])}
    found: dict[str, Tone] = {}
    for run in sorted(last.values(), key=lambda run: run.started):  # the latest run of a target counts
        for entry in app.journal.targets(run.run_id):
            name, status = entry["name"], entry["status"]
            said = entry["error"]["message"] if entry.get("error") else "; ".join(entry["reasons"])
            if status != "SKIPPED" or name not in found:
                tone = "failed" if status in ("FAILED", "BLOCKED", "ABORTED") else "clean"
                text = f"{entry['phase'].lower()} {status.lower()}: {said}"
                found[name] = Tone(tone, status.lower(), text)
    return found
