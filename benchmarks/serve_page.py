"""How long the operator's page and the metrics take, over a manifest like that of a large lake.

    python -m benchmarks.serve_page [--entities 300] [--items 100000]

Each screen is asked some times without a socket; the median of the processor time counts. It fails if a
screen takes longer than 100 ms or the metrics longer than 50 ms, times `--slack`.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import timedelta
from itertools import islice
from pathlib import Path

from starlette.testclient import TestClient

from lakewright.app import App
from lakewright.manifest.journal import Run
from lakewright.manifest.record import Application, Author, Draft, State
from lakewright.manifest.store import Append, Write
from lakewright.serve.http.access import Access
from lakewright.serve.http.application import make_application
from lakewright.serve.http.site import Commands, Site
from lakewright.serve.page.routes import Pages
from lakewright.serve.watched_project import WatchedProject
from lakewright.slices.application import application_of
from lakewright.slices.discovery import item_id
from lakewright.warm.requests import Requests

LIMITS = {"metrics": 0.05}
LIMIT = 0.1
TIMES = 7
METRICS = {"records_in_slice": 20, "inserted": 12, "updated": 7, "deleted": 1, "seconds": 1.2}


def write_project(folder: Path, entities: int) -> None:
    (folder / "project.yml").write_text("name: bench\nmodules: [model.yml]\nlake: {root_folder: lake}\n")
    names = [f"entity_{number:03d}" for number in range(entities)]
    lines = ["connections: {web: {}}", "entities:"]
    lines += [f"  {n}: {{id: {i}, connection: web, processtype: full}}" for i, n in enumerate(names, 1)]
    lines += ["targets:", *(f"  {n}_t: {{kind: entity, entity: {n}}}" for n in names)]
    lines += ["relations:", *(f"  {n}_r: {{kind: entity, entity: {n}}}" for n in names)]
    lines += ["jobs:", f"  daily: {{targets: [{', '.join(f'{n}_t' for n in names)}]}}"]
    (folder / "model.yml").write_text("\n".join(lines) + "\n")


def fill(app: App, items: int) -> None:
    """Fill the manifest: nine tenths of the slices are processed; one of each 20th entity has failed."""
    app.make_store()
    author = Author.named("lakewright", "1.0")
    writes = _writes(app, author, items)
    while batch := list(islice(writes, 2000)):
        list(app.store.write_many(batch))
    now = app.store.now()
    for number in range(300):
        started = now - timedelta(hours=number)
        run = Run(f"run-{number:04d}", "bench", "daily", "BUILD", {}, started, app.holder)
        run = app.journal.start_run(run)
        if number == 5:
            results: dict[int, dict[str, object]] = {
                at: {
                    "instance": {}, "name": f"{name}_t", "kind": "entity", "phase": "BUILD",
                    "status": "SUCCESS", "reasons": ["1 slice processed: x"], "seconds": 1.0, "metrics": {},
                    "error": None,
                }
                for at, name in enumerate(app.project.entities)
            }  # fmt: skip
            app.journal.record_targets(run, results)
        app.journal.finish_run(run, "SUCCESS", finished=started + timedelta(minutes=10))


def _writes(app: App, author: Author, items: int) -> Iterator[Write]:
    each = items // len(app.project.entities)
    for at, (name, entity) in enumerate(app.project.entities.items()):
        who = (application_of("bench", entity), author)
        bronze = entity.places(app.project.lake).bronze
        for number in range(each):
            place = item_id(f"{bronze}/{number:06d}")
            new = _draft("n", place, who, {"entity": name, "slice": f"{number:06d}"})
            drafts = [new]
            is_failed = at % 20 == 0 and number == each * 9 // 10
            if number < each * 9 // 10 or is_failed:
                drafts.append(_draft("p", place, who, {"token": number}, "n"))
            if number < each * 9 // 10:
                drafts.append(_draft("d", place, who, {"metrics": METRICS}, "p"))
            elif is_failed:
                error = {"code": "slice", "message": "a column is text", "remedy": "Correct the file."}
                drafts.append(_draft("f", place, who, {"error": error}, "p"))
            yield Write((Append(place, tuple(drafts), 0),))


def _draft(
    kind: str,
    place: str,
    who: tuple[Application, Author],
    content: dict[str, object],
    previous: str | None = None,
) -> Draft:
    state = {"n": State.NEW, "p": State.PROCESSING, "d": State.PROCESSED, "f": State.FAILED}[kind]
    return Draft(
        record_id=f"{kind} {place}",
        item_id=place,
        state=state,
        application=who[0],
        author=who[1],
        run_id="run-0001" if state is not State.NEW else None,
        previous_record_id=None if previous is None else f"{previous} {place}",
        payload={"schema": f"lakewright/{state.lower()}/1", "data": content},
    )


def measure(folder: Path) -> dict[str, float]:
    site = Site(
        WatchedProject(lambda on_read: App.open(folder, environ={}, on_read=on_read)),
        Access("bench"),
        Commands(Requests(folder / "none", {}, folder)),
    )
    headers = {"authorization": f"Bearer {site.access.token}", "accept": "text/html"}
    entity = "entity_000"
    paths = {
        "inbox": "/",
        "runs": "/runs",
        "run": "/runs/run-0005",
        "entities": "/entities",
        "entity": f"/entities/{entity}",
        "items": "/items",
        "items of an entity": f"/items?entity={entity}",
        "item": f"/item?id={entity}/000001",
        "lineage": "/lineage",
        "search": "/search?q=entity_1",
        "metrics": "/metrics",
    }
    found = {}
    made: list[Pages] = []

    def make_pages(site: Site) -> Pages:
        made.append(Pages(site))
        return made[0]

    with TestClient(
        make_application(site, make_pages), base_url="http://127.0.0.1", headers=headers
    ) as client:
        for name, path in paths.items():
            assert client.get(path).status_code == 200, path
            # The inbox looks at bronze beside the screens; that is not what a screen takes.
            made[0].observer.wait(600)
            times = []
            for _ in range(TIMES):
                begin = time.process_time()
                client.get(path)
                times.append(time.process_time() - begin)
            found[name] = statistics.median(times)
    site.project.close()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--entities", type=int, default=300)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--slack", type=float, default=1.0, help="a busy machine gets more time")
    parser.add_argument("--folder", type=Path, help="a lake of an earlier call")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        if not (folder / "project.yml").exists():
            folder.mkdir(exist_ok=True)
            write_project(folder, given.entities)
            app = App.open(folder, environ={})
            fill(app, given.items)
            app.close()
        found = measure(folder)
    slow = 0
    for name, seconds in found.items():
        limit = LIMITS.get(name, LIMIT) * given.slack
        slow += seconds > limit
        print(
            f"{name:20} {seconds * 1000:6.0f} ms, at most {limit * 1000:.0f}",
            "TOO SLOW" if seconds > limit else "",
        )
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
