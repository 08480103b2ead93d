"""The page of the search: definitions, slices and runs by a part of their name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from lakewright.errors import LakewrightError
from lakewright.serve.page.render import link
from lakewright.serve.page.views import View
from lakewright.usecases.declarations import SECTIONS
from lakewright.usecases.history import find_run
from lakewright.usecases.items import find_item

if TYPE_CHECKING:
    from lakewright.app import App

__all__ = ["search_view"]

MOST_HITS = 50


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
                yield {"category": category, "name": name, "url": made(name), "note": None}
    for find, category in ((_item_hit, "slice"), (_run_hit, "run")):
        try:
            name, url = find(app, text)
        except (LakewrightError, ValueError):
            continue
        yield {"category": category, "name": name, "url": url, "note": None}


def _item_hit(app: App, text: str) -> tuple[str, str]:
    item = find_item(app, text)
    return item.item_id, link("/item", id=item.item_id)


def _run_hit(app: App, text: str) -> tuple[str, str]:
    if len(text) < 4:
        raise ValueError("too short for the id of a run")
    run = find_run(app, text)
    return f"{run.job} {run.phase.lower()} {run.run_id}", f"/runs/{run.run_id}"
