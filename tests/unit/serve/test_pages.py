"""The operator's page: what each screen says. Rules of `serve`, the page."""

from __future__ import annotations

import html
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from starlette.testclient import TestClient
from tests.unit.serve.sites import BASE, MODEL, Served, browser, csrf_of, served, write_project
from tests.unit.serve.slices import claim, discover, fail, land, process

from lakewright.lake.commit import Token
from lakewright.manifest.journal import Run
from lakewright.manifest.store import Put, Write
from lakewright.plan.phase import Phase
from lakewright.run.wants import Want
from lakewright.serve.http.application import make_application
from lakewright.serve.page.routes import Pages


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Served]:
    """A project with a failed slice, two behind it, a lock that is stale and a run that failed."""
    write_project(tmp_path)
    with served(tmp_path, allows_actions=True) as found:
        app = found.app
        items = discover(app, "orders", ["2022-01-01", "2022-01-02", "2022-01-03", "2022-01-04"])
        land(app, "orders", ["2022-01-03", "2022-01-04"])
        process(app, items[0], drift=["new column 'colour'"])
        fail(app, items[1], "column 'amount' is text\nrow 3: 'x'")
        held = claim(app, discover(app, "people", ["a"])[0])
        app.store.write(Write(puts=(Put("lease", held.item_id, None),)))
        now = app.store.now()
        run = Run("run-1", "shop", "daily", "BUILD", {"day": "1,2"}, now - timedelta(hours=1), app.holder)
        left = Want("shop", "daily", {"day": "1"}, {(Phase.BUILD, "orders_target"): "run-1"})
        run = app.journal.start_run(run, (left.put,))
        error = {"code": "slice", "message": "column 'amount' is text", "remedy": None, "location": None}
        base = {"instance": {}, "kind": "entity", "phase": "BUILD", "metrics": {}, "seconds": 2.0}
        app.journal.record_targets(
            run,
            {
                0: {
                    **base,
                    "name": "orders_target",
                    "status": "FAILED",
                    "reasons": ["3 slices"],
                    "error": error,
                    "failed_items": [items[1].item_id],
                },
                1: {**base, "name": "people_target", "status": "BLOCKED", "reasons": ["x"], "error": None},
            },
        )
        app.journal.finish_run(run, "FAILED", finished=now)
        yield found


def read(shop: Served, path: str, status: int = 200) -> str:
    """Return the words of a page."""
    answer = shop.client.get(path, headers={"accept": "text/html"})
    assert answer.status_code == status, answer.text
    return words(answer.text)


def words(text: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


def test_without_actions_the_page_has_no_button_but_the_command(tmp_path: Path) -> None:
    write_project(tmp_path)
    with served(tmp_path) as shop:
        fail(shop.app, discover(shop.app, "orders", ["1"])[0])
        for path in ("/", "/item?id=orders/1", "/entities/orders", "/runs"):
            page = shop.client.get(path, headers={"accept": "text/html"}).text
            assert '<form method="post"' not in page
        assert "lakewright manifest resolve" in read(shop, "/item?id=orders/1")


def test_an_entity_shows_its_slices_backlog_drift_and_columns(shop: Served) -> None:
    text = read(shop, "/entities/orders")
    assert "Backlog 2 slices" in text
    assert "100 B 10 6 3 1 1.5 s" in text
    assert "column 'amount' is text" in text
    assert "new column 'colour'" in text
    assert "business key" in text
    page = shop.client.get("/entities/orders").text
    assert page.count('class="in"') == 1
    assert "Examine" in text
    shutil.rmtree(str(shop.app.project.entity("orders").places(shop.app.project.lake).silver.location))
    assert (
        "there is no table, although 1 slice of it was processed: lakewright doctor orders examines it"
    ) in read(shop, "/entities/orders")
    assert "there is no table yet: the first slice creates it" in read(shop, "/entities/people")
    assert "in the project's files" not in read(shop, "/entities/none", status=404)


@pytest.mark.parametrize(
    ("counts", "row", "height"),
    [
        # A slice of 10 rows lacks 5 that the table has.
        ({"deleted": 1, "inferredDeletes": 5}, "10 6 3 6", 6 / 15),
        ({"strategy": "historic", "deleted": 5, "inferredDeletes": 5, "closed": 1}, "10 6 3 6", 6 / 15),
    ],
    ids=["merge", "historic"],
)
def test_deleted_rows_are_counted_once_whether_they_arrived_or_were_missing(
    tmp_path: Path, counts: Mapping[str, Any], row: str, height: float
) -> None:
    write_project(tmp_path)
    with served(tmp_path) as found:
        process(found.app, discover(found.app, "orders", ["2022-01-01"])[0], counts)
        text = read(found, "/entities/orders")
        bars = re.findall(
            r'class="(in|up|del)" x="\S+" y="\S+" width="10" height="(\S+)"',
            found.client.get("/entities/orders").text,
        )
    assert f"100 B {row} 1.5 s" in text
    drawn = {kind: float(each) for kind, each in bars}
    assert drawn["del"] / sum(drawn.values()) == pytest.approx(height, rel=0.01)


def test_the_page_says_that_what_was_processed_is_due_again(shop: Served) -> None:
    land(shop.app, "orders", ["2022-01-01"])
    client = browser(shop)
    form = {"csrf": csrf_of(client), "item": "orders/2022-01-01", "late": "1", "reason": "corrected"}
    for action, done in (("requeue", "requeue"), ("skip", "noted")):
        answer = client.post(f"/do/item/{action}", data=form, follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (303, f"/?done={done}")
    assert "the inbox shows what is due now" in read(shop, "/?done=noted")


def test_an_item_shows_each_record_with_who_and_why(shop: Served) -> None:
    text = read(shop, "/item?id=orders/2022-01-02")
    assert "new processing failed" in text
    assert "by lakewright" in text
    assert "Size 101 B" in text
    client = browser(shop)
    form = {"csrf": csrf_of(client), "item": "orders/2022-01-02", "reason": "the source is mended"}
    assert client.post("/do/item/resolve", data=form).status_code == 303
    text = read(shop, "/item?id=orders/2022-01-02&done=resolve")
    assert "Resolved: the slice is ready again." in text
    assert "by ann" in text
    assert "Reason: the source is mended" in text


def test_an_item_shows_counts_in_words_and_when_its_files_were_changed(tmp_path: Path) -> None:
    write_project(tmp_path)
    with served(tmp_path) as found:
        for name, modified in (("1", 1_700_000_000_000_000_000), ("2", 2**70)):
            item = discover(found.app, "orders", [name], modified=modified)[0]
            process(found.app, item, {"inferredDeletes": 4})
        text, odd = (read(found, f"/item?id=orders/{name}") for name in "12")
    assert "records in slice 10 inserted 6 updated 3 deleted 1 inferred deletes 4 seconds 1.5 s" in text
    assert text.count("version 1") == 1
    assert "Modified 2023-11-14 22:13:20 UTC" in text
    assert f"Modified {2**70}" in odd


def test_a_job_is_begun_with_parameters_as_the_command_line_reads_them(shop: Served) -> None:
    """A value with a blank became two parameters, and its quotes became part of it."""
    client = browser(shop)
    form = {"csrf": csrf_of(client), "job": "daily", "phase": "build", "reason": "x"}
    given = "day=1,2 name='two words' other=\"a\""
    begun = client.post("/do/runs", data={**form, "parameters": given})
    assert begun.headers["location"].startswith("/commands/")
    arguments = list(shop.requests.begun[-1].arguments)
    assert arguments[arguments.index("build") + 1 :] == ["day=1,2", "name=two words", "other=a"]
    wrong = client.post("/do/runs", data={**form, "parameters": "name='two"})
    assert (wrong.status_code, "has a quote that is not closed" in words(wrong.text)) == (400, True)
    lacking = client.post("/do/runs", data={**form, "job": "dated"})
    assert (lacking.status_code, "parameter day" in words(lacking.text)) == (422, True)


def test_a_run_shows_its_targets_with_reasons_and_how_to_resume_it(shop: Served) -> None:
    text = read(shop, "/runs/run-1")
    failure = "orders_target failed in build: column 'amount' is text"
    assert failure in text
    assert text.index(failure) < text.index("build 2 targets")
    assert "lakewright job daily build day=1,2 --resume" in text
    client = browser(shop)
    begun = client.post("/do/runs/run-1/resume", data={"csrf": csrf_of(client), "reason": "again"})
    assert begun.headers["location"].startswith("/commands/")
    assert list(shop.requests.begun[-1].arguments) == [
        "job",
        "--resume",
        "-o",
        "json",
        "--",
        "daily",
        "build",
        "day=1,2",
    ]
    assert "again" in words(client.get(begun.headers["location"]).text)
    live = client.get("/runs/run-1/live").text
    assert live.startswith("event: change\ndata:")
    assert "event: end" in live
    assert "failed" in read(shop, "/runs?status=FAILED&job=daily")


def test_a_run_is_resumed_with_the_choices_that_it_had(shop: Served) -> None:
    """The button resumed all targets and phases, not what `status` prints."""
    run = shop.app.journal.run("run-1")
    assert run is not None
    chosen = {"targets": ["orders_target"], "no_lifecycle": True}
    shop.app.journal.finish_run(replace(run, facts=chosen), "FAILED", finished=shop.app.store.now())
    assert "lakewright job daily build -nl -t orders_target day=1,2 --resume" in read(shop, "/runs/run-1")
    client = browser(shop)
    client.post("/do/runs/run-1/resume", data={"csrf": csrf_of(client), "reason": "again"})
    assert list(shop.requests.begun[-1].arguments) == [
        *("job", "--no-lifecycle", "--resume", "--target=orders_target", "-o", "json"),
        *("--", "daily", "build", "day=1,2"),
    ]


def test_the_page_of_a_replay_says_who_did_it_and_why_and_names_its_slices(shop: Served) -> None:
    run = shop.app.journal.run("run-1")
    assert run is not None
    facts = {"author": "ada", "reason": "apply", "code": "changed_slice", "slices": ["s1", "s2"]}
    replay = replace(run, run_id="run-9", job="replay people", phase="REPLAY", parameters={}, facts=facts)
    shop.app.journal.finish_run(shop.app.journal.start_run(replay), "SUCCESS", finished=shop.app.store.now())
    text = read(shop, "/runs/run-9")
    assert "By ada Reason apply (changed_slice) Slices s1, s2" in text
    assert "No target has ended yet" not in text


def test_a_long_list_is_read_page_by_page(shop: Served) -> None:
    discover(shop.app, "people", [f"b{number:03d}" for number in range(120)])
    seen: list[str] = []
    path = "/items?entity=people"
    for _ in range(5):
        page = shop.client.get(path).text
        seen += re.findall(r">(b\d{3})</a>", page)
        found = re.search(r'rel="next" href="([^"]+)"', page)
        if found is None:
            break
        path = html.unescape(found[1])
    assert seen == [f"b{number:03d}" for number in range(119, -1, -1)]


def test_the_lineage_shows_why_an_item_is_dirty_and_what_surrounds_it(shop: Served, tmp_path: Path) -> None:
    relations = """
relations:
  all_orders: {kind: entity, entity: orders}
  report: {kind: delta, location: lake/report}
mappings:
  orders_read: {kind: relation, relation: all_orders}
"""
    report = "  report_target: {kind: relation, mapping: orders_read, relation: report}\n"
    model = (MODEL + relations).replace("targets:\n", f"targets:\n{report}")
    (tmp_path / "model.yml").write_text(model.replace("[orders_target", "[report_target, orders_target"))
    text = read(shop, "/lineage?focus=entity:orders")
    assert "1 failed, 2 behind" in text
    page = shop.client.get("/lineage?focus=relation:report").text
    for name in ("entity:orders", "relation:all_orders", "mapping:orders_read", "relation:report"):
        assert f'data-name="{name}"' in page
    assert 'data-name="entity:people"' not in page
    assert shop.client.get("/lineage?focus=entity:none").status_code == 404


def test_search_finds_definitions_slices_and_runs(shop: Served) -> None:
    assert "orders_target" in read(shop, "/search?q=ORDERS")
    assert "2022-01-03" in read(shop, "/search?q=orders/2022-01-03")
    assert "daily build run-1" in read(shop, "/search?q=run-1")
    assert "0 matches" in read(shop, "/search?q=nothing-like-it")


def test_a_broken_project_is_said_on_every_page_and_shown_again_when_mended(
    shop: Served, tmp_path: Path
) -> None:
    (tmp_path / "model.yml").write_text(MODEL.replace("merge", "merged") + "lke: {}\n")
    for path in ("/", "/entities", "/lineage"):
        answer = shop.client.get(path, headers={"accept": "text/html"})
        assert answer.status_code == 422
        assert "The project has errors" in answer.text
        assert "model.yml:7" in answer.text
    (tmp_path / "model.yml").write_text(MODEL)
    assert "The project has errors" not in read(shop, "/")


def test_times_are_in_utc_until_the_viewers_zone_is_known(shop: Served) -> None:
    page = shop.client.get("/runs/run-1").text
    found = re.search(r'<time datetime="([^"]+)" title="([^"]+) UTC">([^<]+) UTC</time>', page)
    assert found is not None
    assert found[1].startswith(found[2].replace(" ", "T"))
    assert found[2] == found[3]


def test_rows_of_a_table_are_shown_only_where_the_server_allows_it(tmp_path: Path) -> None:
    write_project(tmp_path)
    with served(tmp_path) as shop:
        silver = shop.app.project.entity("orders").places(shop.app.project.lake).silver.location
        rows = pa.table({"id": [1, 2], "amount": ["<b>3.20</b>", None]})
        write_deltalake(str(silver), rows)
        assert "3.20" not in read(shop, "/entities/orders")
        open_site = replace(shop.site, allows_data=True)
        client = TestClient(
            make_application(open_site, Pages), base_url=BASE, headers=dict(shop.client.headers)
        )
        page = client.get("/entities/orders").text
        assert "&lt;b&gt;3.20&lt;/b&gt;" in page
        assert '<span class="null">null</span>' in page
        assert "version 0" in words(page)
        assert "the table can't be read here" in words(client.get("/entities/people").text)


def applied(shop: Served, name: str, rows: pa.Table) -> None:
    """Process a slice with a commit that carries its token, as runs do, but without Spark."""
    app = shop.app
    entity = app.project.entity("orders")
    bronze, silver = (getattr(entity.places(app.project.lake), place) for place in ("bronze", "silver"))
    Path(bronze).mkdir(parents=True, exist_ok=True)
    (Path(bronze) / name).write_text("1")
    (item,) = discover(app, "orders", [name])
    held = claim(app, item)
    content = {
        "item": item.item_id,
        "strategy": "merge",
        "processingTime": "2024-05-01T00:00:00+00:00",
        "metrics": {"strategy": "merge", "inserted": len(rows), "deleted": 1, "inferredDeletes": 3},
    }
    token = Token(str(held.application), held.token, content)
    version = write_deltalake_version(str(silver.location), rows, token)
    app.ledger.processed(held, {"metrics": {"inserted": len(rows), "records_in_slice": len(rows)}, **version})


def write_deltalake_version(path: str, rows: pa.Table, token: Token) -> dict[str, int]:
    told = CommitProperties(
        custom_metadata={"userMetadata": token.text},
        app_transactions=[Transaction(token.app_id, token.number)],
    )
    write_deltalake(path, rows, mode="append", commit_properties=told)
    return {"delta_version": DeltaTable(path).version()}


def test_an_item_leads_to_what_undo_would_do_before_it_is_done(tmp_path: Path) -> None:
    write_project(tmp_path)
    with served(tmp_path, allows_actions=True) as shop:
        for name, ids in (("1", [1, 2]), ("2", [3]), ("3", [4, 5])):
            applied(shop, name, pa.table({"id": ids}))
        page = shop.client.get("/item?id=orders/3", headers={"accept": "text/html"}).text
        (address,) = re.findall(r'href="(/undo\?[^"]+)"', page)
        text = read(shop, html.unescape(address))
        assert "Nothing has been written yet" in text
        assert "The table goes from version 2 back to version 1." in text
        assert "3 is skipped." in text
        assert "Rows of the slice: inserted 2, deleted 4." in text
        assert "lakewright undo orders 3" in text
        first = read(shop, "/undo?id=orders/1")
        assert "The table is built again from 2 slices: 2, 3." in first
        again = read(shop, "/undo?id=orders/2&requeue=1")
        assert "back to version 0." in again
        assert "2, 3 are ready for the next run." in again
        assert "lakewright undo orders 2 --requeue" in again
        client = browser(shop)
        form = {"csrf": csrf_of(client), "entity": "orders", "slice": "2"}
        assert client.post("/do/undo/preview", data={**form, "requeue": "1"}).status_code == 303
        assert client.post("/do/undo", data=form).status_code == 400
        assert client.post("/do/undo", data={**form, "reason": "broken"}).status_code == 303
        previewed, undone = (list(each.arguments) for each in shop.requests.begun)
        assert previewed == ["undo", "--dry-run", "--requeue", "-o", "json", "--", "orders", "2"]
        assert undone[:4] == ["undo", "--yes", "--author=ann", "--reason=broken"]
        entity = read(shop, "/entities/orders")
        assert "Rows of the table" in entity
        assert [each["rows"] for each in shop.get("/standings/orders")["row_counts"]] == [2, 3, 5]


def test_an_undo_that_is_refused_says_why_and_offers_nothing(shop: Served) -> None:
    text = read(shop, "/undo?id=orders/2022-01-01")
    assert "the log of orders does not show the commit of 2022-01-01" in text
    assert "Undo the slice" not in text
    assert shop.client.get("/undo?id=orders/none").status_code == 404


def test_the_lineage_shows_the_columns_of_a_mapping_or_why_they_are_not_known(tmp_path: Path) -> None:
    more = """
relations:
  orders: {kind: entity, entity: orders}
mappings:
  orders: {kind: relation, relation: orders}
  totals: {kind: sql, sql: "SELECT amount * 2 AS doubled FROM orders"}
"""
    write_project(tmp_path, MODEL + more)
    with served(tmp_path) as shop:
        text = read(shop, "/lineage?focus=mapping:totals")
        assert "The columns of the relation orders are not known without Spark. lakewright docs" in text
        silver = shop.app.project.entity("orders").places(shop.app.project.lake).silver.location
        write_deltalake(str(silver), pa.table({"id": [1], "amount": [2]}))
        assert "doubled orders .amount" in read(shop, "/lineage?focus=mapping:totals")


def test_an_undo_that_failed_is_done_again_by_its_own_command(tmp_path: Path) -> None:
    write_project(tmp_path)
    with served(tmp_path, allows_actions=True) as shop:
        app = shop.app
        app.make_store()
        asked: dict[str, dict[str, Any]] = {
            "undo orders": {"slice": "a slice", "requeue": True},
            "rebuild people": {"from": "1"},
        }
        for at, (name, facts) in enumerate(asked.items()):
            phase = name.partition(" ")[0].upper()
            run = Run(f"run-{at}", "shop", name, phase, {}, app.store.now(), app.holder, facts=facts)
            app.journal.finish_run(app.journal.start_run(run), "FAILED", finished=app.store.now())
        page = shop.client.get("/runs/run-0", headers={"accept": "text/html"}).text
        assert "lakewright undo orders 'a slice' --requeue" in html.unescape(page)
        assert '/resume"' not in page
        assert "lakewright rebuild people --from=1" in read(shop, "/runs/run-1")
