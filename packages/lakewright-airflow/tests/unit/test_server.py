"""Answers of a server become documents, or errors that say what to do; without Airflow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from lakewright_airflow.server import Server, ServerRefused, ServerUnavailable

Answer = tuple[int, Any]
ERROR = {"code": "c", "message": "no", "remedy": "mend it", "location": None}
COMMAND = {"schema": "lakewright/command/1", "command_id": "7"}


def answering(monkeypatch: pytest.MonkeyPatch, answer: Callable[[httpx.Request], Answer]) -> Server:
    """Return a server whose answers a function gives."""

    def handle(request: httpx.Request) -> httpx.Response:
        assert request.headers["Authorization"] == "Bearer t"
        status, content = answer(request)
        return httpx.Response(status, json=content)

    monkeypatch.setattr(httpx, "HTTPTransport", lambda **_: httpx.MockTransport(handle))
    return Server("http://lake", "t")


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        ((404, ERROR), ServerRefused, "mend it"),
        ((403, ERROR), ServerRefused, "mend it"),
        ((503, ERROR), ServerUnavailable, "mend it"),
        ((429, ERROR), ServerUnavailable, "mend it"),
        ((502, "<html>"), ServerUnavailable, "lakewright serve"),
        ((200, {**COMMAND, "schema": "lakewright/command/2"}), ServerRefused, "same version"),
        ((200, []), ServerRefused, "same version"),
    ],
)
def test_what_is_wrong_is_refused_with_a_remedy(
    monkeypatch: pytest.MonkeyPatch, answer: Answer, kind: type[Exception], said: str
) -> None:
    server = answering(monkeypatch, lambda _: answer)
    with pytest.raises(kind, match=said):
        server.post("/runs", job="daily")


def test_a_server_that_is_not_there_says_how_to_start_it() -> None:
    with pytest.raises(ServerUnavailable, match="--allow-actions"):
        Server("http://127.0.0.1:1", "t").get("/plan")


def test_a_token_is_not_shown() -> None:
    assert "secret" not in repr(Server("http://lake", "secret"))


@pytest.mark.parametrize(("entity", "verdict"), [("orders", "unknown"), ("order", None)])
def test_a_slice_that_nobody_has_seen_is_unknown_and_an_entity_that_there_is_not_is_refused(
    monkeypatch: pytest.MonkeyPatch, entity: str, verdict: str | None
) -> None:
    known = "/api/v1/definitions/entities/orders"
    server = answering(monkeypatch, lambda asked: (200, {}) if asked.url.path == known else (404, ERROR))
    if verdict is None:
        with pytest.raises(ServerRefused):
            server.verdict(entity, "2024-05-01.csv")
    else:
        assert server.verdict(entity, "2024-05-01.csv") == verdict
