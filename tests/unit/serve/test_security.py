"""Who gets in, and what gets out: rules of `serve`, HTTP (security), each rule by itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.serve.sites import BASE, MODEL, PROJECT, Served, browser, csrf_of, served, write_project
from tests.unit.serve.slices import discover, fail

from lakewright.errors import UsageError
from lakewright.serve.http.access import Access, Asker
from lakewright.serve.http.application import LARGEST_BODY
from lakewright.serve.http.faults import HttpFault
from lakewright.serve.service import ServeOptions

PAGES = (
    "/",
    "/runs",
    "/entities",
    "/entities/orders",
    "/items",
    "/lineage",
    "/search?q=o",
    "/item?id=orders/1",
)
EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Served]:
    """A project with a failed slice; actions are allowed."""
    write_project(tmp_path)
    with served(tmp_path, allows_actions=True) as found:
        fail(found.app, discover(found.app, "orders", ["1", "2"])[0])
        yield found


@pytest.mark.parametrize("path", [*PAGES, "/metrics", "/api/v1/status", "/api/v1/openapi.json", "/none"])
def test_nobody_sees_anything_without_a_token(shop: Served, path: str) -> None:
    shop.client.headers.pop("authorization")
    answer = shop.client.get(path)
    assert answer.status_code == 401
    assert "orders" not in answer.text
    wrong = shop.client.get(path, headers={"authorization": "Bearer wrong"})
    assert wrong.status_code == 401


def test_a_link_opens_one_session_once_and_its_cookie_stays_with_the_browser(shop: Served) -> None:
    shop.client.headers.pop("authorization")
    token = shop.site.access.new_link_token()
    answer = shop.client.get(f"/login/{token}", headers={"accept": "text/html"})
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert token not in cookie
    assert shop.client.get("/").status_code == 200
    shop.client.cookies.clear()
    again = shop.client.get(f"/login/{token}", headers={"accept": "text/html"})
    assert again.status_code == 401
    assert "set-cookie" not in again.headers


def test_the_token_of_programs_signs_in_too_but_not_after_many_wrong_ones(shop: Served) -> None:
    shop.client.headers.pop("authorization")
    form = {"token": shop.site.access.token}
    assert "set-cookie" in shop.client.post("/login", data=form).headers
    for _ in range(20):
        assert shop.client.post("/login", data={"token": "guess"}).status_code == 401
    shop.client.cookies.clear()
    assert shop.client.post("/login", data=form).status_code == 429


def test_links_and_sessions_end_after_their_time() -> None:
    now = [0.0]
    access = Access("ann", clock=lambda: now[0])
    old, session = access.new_link_token(), access.open_session(access.new_link_token())
    assert access.asker({}, session) == Asker("ann", session)
    now[0] += 16 * 60
    with pytest.raises(HttpFault, match="too old"):
        access.open_session(old)
    now[0] += 12 * 3600
    assert access.asker({}, session) is None


def test_signing_out_ends_the_session(shop: Served) -> None:
    client = browser(shop)
    client.post("/logout", data={"csrf": csrf_of(client)})
    assert client.get("/").status_code == 401


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost@evil.example", "", "10.0.0.1"]
)
def test_a_request_that_names_another_host_is_refused(shop: Served, host: str) -> None:
    answer = shop.client.get("/api/v1/status", headers={"host": host})
    assert (answer.status_code, answer.json()["code"]) == (421, "wrong_host")


@pytest.mark.parametrize("host", ["127.0.0.1:1", "localhost:8377", "[::1]:8377", "LOCALHOST"])
def test_names_of_the_loopback_address_are_its_own(shop: Served, host: str) -> None:
    assert shop.client.get("/api/v1/session", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:1"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_a_change_from_another_site_is_refused_even_with_the_token(
    shop: Served, headers: dict[str, str]
) -> None:
    body = {"item": "orders/1", "reason": "x"}
    for client in (shop.client, browser(shop)):
        client.headers.pop("origin", None)
        answer = client.post("/api/v1/item/resolve", json=body, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (403, "wrong_origin")
    assert len(shop.app.store.records(shop.get("/item?id=orders/1")["item_id"])) == 3


def test_a_browsers_change_needs_the_token_of_its_session(shop: Served) -> None:
    client, other = browser(shop), browser(shop)
    form = {"item": "orders/1", "reason": "mended"}
    for csrf in (None, "", "0" * 64, csrf_of(other)):
        given = form if csrf is None else {**form, "csrf": csrf}
        assert client.post("/do/item/resolve", data=given).status_code == 403
        header = {} if csrf is None else {"x-csrf-token": csrf}
        assert client.post("/api/v1/item/resolve", json=form, headers=header).status_code == 403
    assert client.post("/do/item/resolve", data={**form, "csrf": csrf_of(client)}).status_code == 303
    record = shop.app.store.records(shop.get("/item?id=orders/1")["item_id"])[-1]
    assert (record.author.agent.name, record.content["reason"]) == ("ann", "mended")


def test_a_form_goes_back_only_to_a_page_of_this_server(shop: Served) -> None:
    client = browser(shop)
    form = {"item": "orders/1", "reason": "x", "csrf": csrf_of(client)}
    for action, referer, path in (
        ("resolve", "http://evil.example//evil.example/x", "/?done=resolve"),
        ("skip", f"{BASE}/item?id=orders%2F1&done=%3Cb%3E", "/item?id=orders%2F1&done=skip"),
    ):
        answer = client.post(f"/do/item/{action}", data=form, headers={"referer": referer})
        assert answer.headers["location"] == path


@pytest.mark.parametrize("path", [*PAGES, "/static/page.js", "/healthz", "/none"])
def test_every_answer_forbids_what_is_not_of_this_server(shop: Served, path: str) -> None:
    headers = shop.client.get(path, headers={"accept": "text/html"}).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert "access-control-allow-origin" not in headers


def test_pages_have_nothing_inline_and_nothing_of_another_site(shop: Served) -> None:
    client = browser(shop)
    for path in PAGES:
        text = client.get(path).text
        assert not re.search(r"<script(?![^>]*\bsrc=)", text), path
        assert not re.search(r"\son\w+=|\sstyle=|<style|javascript:", text), path
        assert not re.search(r"""(src|href|action)=["'](https?:)?//""", text), path


@pytest.mark.parametrize("method", ["post", "put"])
def test_a_body_that_is_too_large_is_refused(shop: Served, method: str) -> None:
    body = b" " * (LARGEST_BODY + 1)
    answer = getattr(shop.client, method)("/api/v1/item/resolve", content=body)
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")

    def parts() -> Iterator[bytes]:
        yield from [b" " * 100_000] * 11

    assert shop.client.post("/api/v1/item/resolve", content=parts()).status_code == 413


@pytest.mark.parametrize(
    "path",
    [
        "/static/..%2frender.py",
        "/static/%2e%2e/render.py",
        "/static/../routes.py",
        "/static//etc/passwd",
        "/static/page.css%00",
    ],
)
def test_only_the_pages_own_files_are_served(shop: Served, path: str) -> None:
    answer = shop.client.get(path)
    assert answer.status_code == 404
    assert "import" not in answer.text


@pytest.mark.parametrize("place", ["/../../etc/passwd", "file:///etc/passwd", "orders/../../../etc/passwd"])
def test_an_item_is_looked_up_in_the_manifest_only(shop: Served, place: str) -> None:
    answer = shop.client.get("/item", params={"id": place}, headers={"accept": "text/html"})
    assert answer.status_code == 404
    assert "root:" not in answer.text


def test_names_payloads_and_files_are_only_text_on_the_page(tmp_path: Path) -> None:
    model = MODEL.replace("people:", f"{EVIL!r}:" if "'" not in EVIL else '"<img src=x onerror=alert(2)>":')
    model = model.replace("entity: people", "entity: '<img src=x onerror=alert(2)>'")
    write_project(tmp_path, model.replace("daily:", "'<b>daily</b>':"))
    with served(tmp_path) as shop:
        items = discover(shop.app, "orders", [EVIL, "x"])
        fail(shop.app, items[0], EVIL)
        client = browser(shop)
        paths = (*PAGES[:-1], f"/search?q={EVIL}", "/runs?job=<b>daily</b>")
        texts = {path: client.get(path).text for path in paths}
        texts["item"] = client.get("/item", params={"id": items[0].item_id}).text
        texts["missing"] = client.get("/entities/<img src=x onerror=alert(2)>x").text
    for path, text in texts.items():
        assert "<img" not in text, path
        assert "<script>alert" not in text, path
        assert "<b>daily" not in text, path
    assert "&lt;script&gt;alert(1)" in texts["item"]


def test_secrets_are_on_no_page_in_no_metric_and_in_no_answer(tmp_path: Path) -> None:
    write_project(tmp_path, MODEL, PROJECT)
    environ = {"DB_PASSWORD": "hunter2secret"}
    with served(tmp_path, environ=environ) as shop:
        items = discover(shop.app, "orders", ["1", "hunter2secret"])
        fail(shop.app, items[0], "can't connect with hunter2secret to jdbc:x://me:hunter2secret@db")
        client = browser(shop)
        for path in (*PAGES, "/api/v1/status", "/api/v1/items", "/metrics"):
            answer = client.get(path, headers={"accept": "text/html"})
            assert answer.status_code == 200
            assert "hunter2secret" not in answer.text, path
        broken = MODEL.replace("merge", "hunter2secret")
        (tmp_path / "model.yml").write_text(broken)
        for path in ("/", "/api/v1/status"):
            assert "hunter2secret" not in client.get(path).text


def test_behind_a_proxy_its_header_names_the_user_and_nothing_else_does(tmp_path: Path) -> None:
    write_project(tmp_path)
    with served(tmp_path, proxy_header="X-Forwarded-User", allows_actions=True) as shop:
        fail(shop.app, discover(shop.app, "orders", ["1"])[0])
        client = shop.client
        assert client.get("/api/v1/session").status_code == 401  # the token is for the machine itself
        bob = {"x-forwarded-user": "bob", "host": "lake.example", "origin": "http://lake.example"}
        session = client.get("/api/v1/session", headers=bob).json()
        assert session["user"] == "bob"
        body = {"item": "orders/1", "reason": "x"}
        assert client.post("/api/v1/item/resolve", json=body, headers=bob).status_code == 403
        token = {"x-csrf-token": session["csrf_token"]}
        eve = {**bob, "x-forwarded-user": "eve"}
        assert client.post("/api/v1/item/resolve", json=body, headers={**eve, **token}).status_code == 403
        assert client.post("/api/v1/item/resolve", json=body, headers={**bob, **token}).status_code == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.2", "::", "lake.example"])
def test_other_machines_reach_the_server_only_through_a_proxy(host: str) -> None:
    with pytest.raises(UsageError, match="not a loopback"):
        ServeOptions(host=host).check()
    ServeOptions(host=host, behind_proxy="X-User").check()


def test_the_page_is_small(shop: Served) -> None:
    client = browser(shop)
    files = re.findall(r'(?:src|href)="(/static/[^"]+)"', client.get("/").text)
    assert len(files) == 4
    sizes = [len(client.get(path).content) for path in (*files, "/")]
    assert sum(sizes) < 150_000
