"""The inbox of the page shows the plan of what is due, and offers its choices. Rules of `serve`, the page."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from starlette.testclient import TestClient
from tests.commands import InProcess
from tests.unit.cli.test_triggers import NIGHTLY, failed
from tests.unit.serve.sites import BASE, MODEL, Served, browser, csrf_of, served, write_project
from tests.unit.serve.slices import claim, discover, fail, land
from tests.unit.serve.test_api_changes import wait_for_end
from tests.unit.serve.test_pages import applied, words
from tests.unit.usecases.test_unwritable import lock

from lakewright.app import App
from lakewright.due.facts import Kind, Slice, Subject, Verb
from lakewright.due.plan import Action, Code, Finding, Plan, Reason, State, Step, choices_of
from lakewright.manifest.journal import Run
from lakewright.manifest.store import Put, Write
from lakewright.serve.http.application import make_application
from lakewright.serve.page.inbox import BackgroundObserver
from lakewright.serve.page.routes import Pages
from lakewright.spec.grants import Grant
from lakewright.triggers.state import Result
from lakewright.usecases.due.decisions import read_decisions
from lakewright.usecases.items import discover_slices, find_item

LATE, HELD, BROKEN, AFTER = "2022-01-01", "2022-01-03", "2022-01-04", "2022-01-05"
MESSAGE = "column 'amount' is text"


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Served]:
    """A project with a late slice, a failed one, one behind it, and one that is due; actions are allowed."""
    write_project(tmp_path)
    with served(tmp_path, allows_actions=True) as found:
        fill(found)
        yield found


def fill(shop: Served) -> None:
    applied(shop, HELD, pa.table({"id": [1]}))
    land(shop.app, "orders", [LATE, BROKEN, AFTER])
    land(shop.app, "people", ["a"])
    discover_slices(shop.app)
    fail(shop.app, find_item(shop.app, f"orders/{BROKEN}"), MESSAGE)


class Inbox:
    """The inbox of a site as a browser shows it once the lake was looked at."""

    def __init__(self, shop: Served) -> None:
        self.pages = Pages(shop.site)
        application = make_application(shop.site, lambda _: self.pages)
        self.client = TestClient(application, base_url=BASE, headers=dict(shop.client.headers))
        self.read()
        self.pages.observer.wait(20)

    def read(self) -> str:
        answer = self.client.get("/", headers={"accept": "text/html"})
        assert answer.status_code == 200, answer.text
        return answer.text

    def part(self, name: str) -> str:
        """Return the words of a section."""
        found = re.search(
            rf'<section class="part" aria-labelledby="h-{name}">(.*?)</section>', self.read(), re.S
        )
        return "" if found is None else words(found[1])


def asked(page: str) -> list[str]:
    """Return the subjects that a person is asked about, from the page."""
    articles = re.findall(r'<article class="concern needs-decision"[^>]*>(.*?)</article>', page, re.S)
    return [words(re.findall(r"<h2[^>]*>(.*?)</h2>", each, re.S)[0]) for each in articles]


def offered(page: str) -> set[tuple[str, str, str]]:
    """Return the subject, choice and basis of each form that decides."""
    forms = re.findall(r'<form method="post" action="/do/decide">(.*?)</form>', page, re.S)
    fields = [dict(re.findall(r'name="(\w+)" value="([^"]*)"', each)) for each in forms]
    return {(each["subject"], each["choice"], html.unescape(each["basis"])) for each in fields}


def choices(plan: dict[str, Any]) -> set[tuple[str, str, str]]:
    """Return the same of a plan as the API answers it."""
    found = [choice for step in plan["steps"] for choice in step["choices"]]
    return {(each["argv"][1], each["decision"], each["basis"]) for each in found}


def test_the_page_and_the_api_show_the_same_plan(shop: Served) -> None:
    plan = shop.get("/plan")
    assert plan["schema"] == "lakewright/plan/2"
    inbox = Inbox(shop)
    page = inbox.read()
    assert asked(page) == [f"orders/{LATE}", f"orders/{BROKEN}"]
    assert offered(page) == choices(plan)
    assert len(offered(page)) == 5
    ready = [step["subject"]["name"] for step in plan["steps"] if step["status"] == "ready"]
    listed = inbox.part("due")
    assert all(f"{name} " in listed for name in ready)
    assert AFTER in inbox.part("waits")
    assert page.count('action="/do/apply"') == 1
    assert MESSAGE in words(page)


def test_without_actions_the_inbox_has_the_commands_and_no_button(tmp_path: Path) -> None:
    write_project(tmp_path)
    with served(tmp_path) as shop:
        fill(shop)
        page = Inbox(shop).read()
        assert 'method="post"' not in page
        for subject, choice, _ in choices(shop.get("/plan")):
            assert f"lakewright decide {subject} {choice}" in page


def test_a_choice_is_a_decision_of_the_user_and_the_page_shows_the_plan_after_it(shop: Served) -> None:
    client = browser(shop)
    client.get("/")
    form = {"csrf": csrf_of(client), "reason": "it was lost on the way"}
    subject, choice, basis = min(each for each in offered_of(client) if each[0].endswith(LATE))
    wrong = client.post("/do/decide", data={**form, "subject": subject, "choice": choice, "reason": " "})
    assert wrong.status_code == 400
    given = {**form, "subject": subject, "choice": choice, "basis": basis}
    answer = client.post("/do/decide", data=given)
    assert (answer.status_code, answer.headers["location"]) == (303, "/?done=decide")
    assert asked(client.get("/").text) == [f"orders/{BROKEN}"]
    (document,) = shop.app.store.documents("decision", prefix="shop/")
    assert document.value["by"] == "ann"
    assert document.value["reason"] == "it was lost on the way"


def offered_of(client: TestClient) -> set[tuple[str, str, str]]:
    """Return what the inbox offers once the lake was looked at."""
    for _ in range(100):
        found = offered(client.get("/").text)
        if found:
            return found
    raise AssertionError("the inbox offers nothing")


def test_a_button_that_is_pressed_twice_decides_once(shop: Served) -> None:
    client = browser(shop)
    csrf = csrf_of(client)
    choice = {"subject": f"orders/{LATE}", "choice": "end", "reason": "x"}
    basis = next(each[2] for each in choices(shop.get("/plan")) if each[0] == choice["subject"])

    def press(_: int) -> int:
        return client.post("/do/decide", data={**choice, "basis": basis, "csrf": csrf}).status_code

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(press, range(4))) == [303] * 4
    assert [each.verb.value for each in read_decisions(shop.app)] == ["end"]


def test_what_is_due_is_applied_once_however_often_the_button_is_pressed(shop: Served) -> None:
    client = browser(shop)
    form = {"csrf": csrf_of(client), "reason": "now"}
    first = client.post("/do/apply", data=form)
    (command,) = shop.site.commands.all()
    command.finished = None
    again = client.post("/do/apply", data=form)
    assert first.headers["location"] == again.headers["location"] == f"/commands/{command.command_id}"
    (request,) = shop.requests.begun
    assert list(request.arguments) == ["apply", "--author=ann", "-o", "json", "--"]
    assert request.trigger == "ann: now"


def test_the_page_of_an_apply_shows_the_steps_that_it_took(shop: Served) -> None:
    error = {"code": "target_failed", "message": "its files are gone", "remedy": "Bring them back."}
    taken = [
        {"id": "forward people", "is_done": True, "error": None},
        {"id": "replay orders", "is_done": False, "error": error},
    ]
    shop.requests.out = json.dumps({"taken": taken, "left": {"steps": [], "findings": []}}).encode()
    client = browser(shop)
    begun = client.post("/do/apply", data={"csrf": csrf_of(client), "reason": "now"})
    (command,) = shop.site.commands.all()
    wait_for_end(shop, command.command_id)
    page = words(client.get(begun.headers["location"]).text)
    assert "success forward people failed replay orders its files are gone Bring them back." in page


@pytest.mark.parametrize("action", ["decide", "apply"])
def test_nothing_is_done_without_the_token_of_the_session_nor_by_a_server_that_only_reads(
    shop: Served, tmp_path: Path, action: str
) -> None:
    form = {"subject": f"orders/{LATE}", "choice": "skip", "reason": "x"}
    client = browser(shop)
    assert client.post(f"/do/{action}", data=form).status_code == 403
    assert client.post(f"/do/{action}", data={**form, "csrf": csrf_of(browser(shop))}).status_code == 403
    assert client.post(f"/api/v1/{action}", json=form).status_code == 403
    with served(tmp_path) as reads:
        client = browser(reads)
        assert client.post(f"/do/{action}", data={**form, "csrf": csrf_of(client)}).status_code == 403
        assert not reads.requests.begun
    assert not shop.requests.begun
    assert list(read_decisions(shop.app)) == []


def test_a_step_that_needs_consent_is_applied_with_its_grants(shop: Served) -> None:
    inbox = Inbox(shop)
    step = Step(
        "replay orders",
        Action.REPLAY,
        Subject("orders"),
        Reason(Code.FOREIGN_ROWS, {"version": 3}),
        State.NEEDS_CONSENT,
        needs=frozenset({Grant.FOREIGN, Grant.REPLAY}),
    )
    inbox.pages.observer = BackgroundObserver(lambda _: Plan((step,)))
    inbox.read()
    inbox.pages.observer.wait(20)
    page = inbox.read()
    assert "lakewright apply orders --allow foreign --allow replay" in page
    (form,) = re.findall(r'<form method="post" action="/do/apply">(.*?)</form>', page, re.S)
    fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', form))
    client = browser(shop)
    given = {**fields, "csrf": csrf_of(client), "reason": "they are wrong"}
    assert client.post("/do/apply", data=given).status_code == 303
    assert list(shop.requests.begun[-1].arguments) == [
        *("apply", "--allow=foreign", "--allow=replay", "--author=ann", "-o", "json", "--", "orders")
    ]


def test_a_target_that_is_due_leads_to_its_lineage(shop: Served) -> None:
    relation = "relations: {sales: {kind: delta, location: lake/sales}}\n"
    relation += "mappings: {read: {kind: relation, relation: sales}}\n"
    model = MODEL.replace(
        "targets:\n  orders", "targets:\n  sold: {kind: relation, mapping: read, relation: sales}\n  orders"
    )
    (shop.app.project.basedir / "model.yml").write_text(model + relation)
    subject = Subject("sold", "day=2022-01-01", Kind.TARGET)
    step = Step("build sold", Action.BUILD, subject, Reason(Code.NO_BUILD))
    inbox = Inbox(shop)
    inbox.pages.observer = BackgroundObserver(lambda _: Plan((step,)))
    inbox.read()
    inbox.pages.observer.wait(20)
    (place,) = re.findall(r'href="(/lineage\?[^"]+)">sold/day=2022-01-01<', inbox.read())
    assert shop.client.get(html.unescape(place)).status_code == 200


def test_what_a_plan_names_is_only_text_on_the_page(shop: Served) -> None:
    evil = "<script>alert(1)</script>"
    subject, reason = Subject("orders", evil), Reason(Code.UNKNOWN, {"why": evil})
    offered = choices_of(subject, evil, (Verb.SKIP,), reason.code)
    steps = (
        Step("1", Action.HOLD, subject, reason, State.NEEDS_DECISION, choices=offered),
        Step("2", Action.FORWARD, subject, reason, slices=(Slice(evil, ""),)),
        Step("3", Action.HOLD, subject, reason, State.WAITS),
    )
    inbox = Inbox(shop)
    inbox.pages.observer = BackgroundObserver(lambda _: Plan(steps, (Finding(reason, subject, offered),)))
    inbox.read()
    inbox.pages.observer.wait(20)
    page = inbox.read()
    assert "<script>alert" not in page
    assert page.count("&lt;script&gt;alert(1)") > 8


def test_a_calm_project_says_so_even_when_it_is_empty(tmp_path: Path) -> None:
    write_project(tmp_path, "jobs: {}\n")
    with served(tmp_path) as shop:
        inbox = Inbox(shop)
        assert "Nothing needs you" in words(inbox.read())
        assert "No job has run yet" in words(inbox.read())
        for path in ("/entities", "/runs", "/items", "/lineage"):
            assert shop.client.get(path).status_code == 200


def test_what_goes_on_stays_beside_the_plan(shop: Served) -> None:
    app = shop.app
    run = Run("run-1", "shop", "daily", "BUILD", {}, app.store.now(), app.holder)
    app.journal.start_run(run)
    held = claim(app, discover(app, "people", ["b"])[0])
    app.store.write(Write(puts=(Put("lease", held.item_id, None),)))
    page = Inbox(shop).read()
    assert page.count('href="/runs/run-1"') == 2  # it runs, and is among the last ones
    assert "stale lock people/b" in words(page)
    assert 'href="/items?state=failed"' in page
    assert re.search(r'<a href="/entities/orders">orders</a> <span class="quiet">2 ready', page)


def test_how_many_slices_wait_for_one_is_shown(shop: Served) -> None:
    """One slice waits until both the late and the failed one are decided about."""
    page = words(Inbox(shop).read())
    assert page.count("1 slice waits for it.") == 2


def test_a_trigger_that_failed_needs_a_person(tmp_path: Path) -> None:
    triggers = 'triggers:\n  nightly: {job: daily, phase: build, cron: "15 3 * * *"}\n'
    write_project(tmp_path, MODEL + triggers)
    with served(tmp_path) as shop:
        page = words(Inbox(shop).read())
        assert "Nothing needs you" in page
        assert "nightly job daily build, 15 3 * * * UTC; next" in page
        failed(InProcess(tmp_path), Result.FAILED, NIGHTLY)
        page = words(Inbox(shop).read())
        assert "failed trigger nightly the disk is full lakewright triggers run nightly" in page


def test_a_fault_is_the_first_thing_that_needs_a_person_and_the_pages_show_what_it_does_not_touch(
    shop: Served, tmp_path: Path
) -> None:
    triggers = (
        "triggers:\n"
        "  arrivals: {entities: [orders, people], on: arrival}\n"
        "  nightly: {job: daily, phase: build, cron: '@daily'}\n"
    )
    (tmp_path / "model.yml").write_text(MODEL.replace("merge", "merged") + triggers)
    page = words(Inbox(shop).read())
    assert "1 thing needs you" in page
    first = page.index("model.yml:7")
    assert first < page.index(
        "Triggers that wait until it is mended: arrivals (orders), nightly (orders_target)."
    )
    assert first < page.index("people process 1 slice: a")
    for path in ("/entities", "/lineage", "/runs", "/entities/people"):
        text = words(shop.client.get(path).text)
        assert "1 fault in the project's files : what it touches is not shown" in text
    assert shop.client.get("/entities/orders").status_code in (404, 422)
    (tmp_path / "model.yml").write_text(MODEL + triggers)
    assert len(asked(Inbox(shop).read())) == 2
    assert "in the project's files" not in words(shop.client.get("/entities").text)


def test_a_manifest_that_can_only_be_read_needs_a_person(
    shop: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "unwritable" not in Inbox(shop).read()
    (manifest,) = (tmp_path / ".lakewright").glob("manifest*.db")
    lock(monkeypatch, manifest)
    assert '<article class="concern unwritable">' in Inbox(shop).read()


def test_a_look_at_the_lake_neither_delays_the_inbox_nor_repeats_at_once(shop: Served) -> None:
    looks: list[float] = []
    now = [0.0]

    def look(_: App) -> Plan:
        looks.append(now[0])
        return Plan()

    observer = BackgroundObserver(look, lambda: now[0])
    assert observer.latest(shop.app) is None
    observer.wait(20)
    for at in (1.0, 29.0, 31.0):
        now[0] = at
        assert observer.latest(shop.app) is not None
        observer.wait(20)
    assert looks == [0.0, 31.0]


def test_a_change_through_the_page_is_seen_at_once_and_not_again(shop: Served) -> None:
    looks: list[int] = []

    def look(_: App) -> Plan:
        looks.append(len(looks))
        return Plan()

    observer = BackgroundObserver(look, lambda: 0.0)
    for changes in (0, 1, 1, 2, 2):
        found = observer.latest(shop.app, changes)
        observer.wait(20)
        assert changes == 0 or (found is not None and found.changes == changes)
    assert looks == [0, 1, 2]


def test_a_lake_that_can_not_be_looked_at_is_no_calm_inbox(shop: Served) -> None:
    def look(_: App) -> Plan:
        raise OSError("the disk is gone")

    inbox = Inbox(shop)
    inbox.pages.observer = BackgroundObserver(look)
    assert "The lake is being looked at" in words(inbox.read())
    inbox.pages.observer.wait(20)
    page = inbox.read()
    assert '<article class="concern unseen">' in page
    assert "1 thing needs you" in words(page)
    found = inbox.pages.observer.latest(shop.app)
    assert found is not None
    assert (found.plan, found.fault and found.fault.code) == (None, "unexpected")
    assert found.at <= datetime.now(UTC)


def test_a_refresh_of_the_inbox_does_not_look_at_the_lake_again(
    shop: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox = Inbox(shop)
    inbox.read()

    def fails(*_: object) -> None:
        raise AssertionError("the lake is looked at for each refresh")

    monkeypatch.setattr("lakewright.usecases.due.observe.list_bronze", fails)
    for _ in range(3):
        assert len(asked(inbox.read())) == 2
