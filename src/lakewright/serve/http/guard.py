"""The guard before all routes: hosts, askers, sizes and times of requests, headers of answers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from starlette.responses import JSONResponse, Response

from lakewright.errors.phrase import Command, Phrase
from lakewright.serve.http.access import COOKIE, SAFE, Access
from lakewright.serve.http.faults import HttpFault, body_of, status_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    ErrorPage = Callable[[Scope, int, Exception], Response]

__all__ = ["CSRF_FIELD", "CSRF_HEADER", "HEADERS", "LARGEST_BODY", "Guard"]

log = logging.getLogger(__name__)

LARGEST_BODY = 1_000_000
BODY_SECONDS = 15.0
CSRF_FIELD, CSRF_HEADER = "csrf", "x-csrf-token"

PUBLIC = frozenset({"/healthz", "/readyz", "/login"})
PUBLIC_FOLDERS = ("/static/", "/login/")

HEADERS: Mapping[str, str] = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
"""Headers of every answer: nothing of another site, nothing inline, in no frame."""


class Guard:
    """Lets requests through to an application, with the asker in `scope["asker"]`.

    Args:
        app: The application.
        access: Knows who may ask.
        error_page: Makes the page with which a browser's request is refused.
    """

    def __init__(self, app: ASGIApp, access: Access, error_page: ErrorPage | None = None) -> None:
        self.app = app
        self.access = access
        self.error_page = error_page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or let the application do it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = _headers(message["headers"], scope["path"])
            await send(message)

        try:
            receive = await self._checked(scope, receive)
        except Exception as error:  # every failure gets an answer
            response = await self._refusal(scope, error)
            await response(scope, receive, send_with_headers)
            return
        await self.app(scope, receive, send_with_headers)

    async def _checked(self, scope: Scope, receive: Receive) -> Receive:
        """Return how the application receives a request that is allowed."""
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        method, path = scope["method"], scope["path"]
        self.access.check_host(headers.get("host"))
        self.access.check_change(method, headers)
        asker = self.access.asker(headers, _cookie(headers))
        scope["asker"] = asker  # for the endpoints
        body = b"" if method in SAFE else await _body(receive, headers)
        if path not in PUBLIC and not path.startswith(PUBLIC_FOLDERS):
            if asker is None:
                raise HttpFault(401, "unknown_asker", "the request does not say who sends it", _SIGN_IN)
            if method not in SAFE:
                self.access.check_csrf(asker, headers.get(CSRF_HEADER) or _field(headers, body))
        return receive if method in SAFE else _again(body, receive)

    async def _refusal(self, scope: Scope, error: Exception) -> Response:
        status = status_of(error)
        if status == 500:
            log.error("a request failed", exc_info=error)
        is_page = not scope["path"].startswith("/api/") and _wants_html(scope)
        if is_page and self.error_page is not None:
            return self.error_page(scope, status, error)
        extra = {"www-authenticate": "Bearer"} if status == 401 else {}
        return JSONResponse(body_of(error), status, headers=extra)


_SIGN_IN = Phrase(
    "Open the link that ", Command("serve", "status"), " prints; programs send the token of serve.token."
)


def _headers(own: list[tuple[bytes, bytes]], path: str) -> list[tuple[bytes, bytes]]:
    present = {name.lower() for name, _ in own}
    added = dict(HEADERS)
    if not path.startswith("/static/"):
        added["cache-control"] = "no-store"
    return own + [(k.encode(), v.encode()) for k, v in added.items() if k.encode() not in present]


def _cookie(headers: Mapping[str, str]) -> str | None:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return None
    return None if found is None else found.value


async def _body(receive: Receive, headers: Mapping[str, str]) -> bytes:
    """Return a request's whole body.

    Raises:
        HttpFault: It is too large, or comes too slowly.
    """
    too_large = HttpFault(413, "too_large", f"the body has more than {LARGEST_BODY} bytes")
    if (
        headers.get("content-length", "0").isdigit()
        and int(headers.get("content-length", "0")) > LARGEST_BODY
    ):
        raise too_large
    parts: list[bytes] = []
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise HttpFault(400, "cut_off", "the request ended before its body")
                parts.append(message.get("body", b""))
                if sum(map(len, parts)) > LARGEST_BODY:
                    raise too_large
                if not message.get("more_body", False):
                    return b"".join(parts)
    except TimeoutError:
        raise HttpFault(408, "too_slow", f"the body did not come within {BODY_SECONDS:g} s") from None


def _field(headers: Mapping[str, str], body: bytes) -> str | None:
    if not headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        return None
    found = parse_qs(body.decode("utf-8", "replace")).get(CSRF_FIELD)
    return found[0] if found else None


def _again(body: bytes, receive: Receive) -> Receive:
    """Return a function that gives a body that was read already, and then what else comes."""
    is_given = False

    async def again() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _wants_html(scope: Scope) -> bool:
    accepted = next((value for name, value in scope["headers"] if name == b"accept"), b"")
    return b"text/html" in accepted
