"""The ASGI application of a server: the guard before all routes, health, metrics, the JSON API."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from prometheus_client import generate_latest
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, Router

from lakewright.errors.phrase import Command, Phrase
from lakewright.serve.http.access import COOKIE, SAFE
from lakewright.serve.http.actions import ACTIONS
from lakewright.serve.http.bus import BUS
from lakewright.serve.http.endpoint import PREFIX, ApiCall, Endpoint, openapi_document
from lakewright.serve.http.faults import HttpFault, body_of, status_of
from lakewright.serve.http.metrics import metrics_of
from lakewright.serve.http.reads import READS

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from lakewright.serve.http.site import MakePages, Site, SitePages


log = logging.getLogger(__name__)

ENDPOINTS: tuple[Endpoint, ...] = (*READS, *ACTIONS, *BUS)

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"

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

FAILURE_HEADERS: Mapping[int, Mapping[str, str]] = {
    401: {"www-authenticate": "Bearer"},
    429: {"retry-after": "5"},
    503: {"retry-after": "5"},
}
"""Headers of the answers to programs whose requests fail with a status."""


def make_application(site: Site, make_pages: MakePages) -> ASGIApp:
    """Return the application that answers for a site, with its pages for people."""
    pages = make_pages(site)
    document = openapi_document(ENDPOINTS)
    metrics = metrics_of(site)
    routes = [
        Route("/healthz", _health),
        Route("/readyz", lambda _: _readiness(site)),
        Route("/metrics", lambda _: Response(generate_latest(metrics), media_type=PROMETHEUS)),
        Route(f"{PREFIX}/openapi.json", lambda _: JSONResponse(document)),
        *(
            Route(f"{PREFIX}{each.path}", partial(_answer, site, each), methods=[each.method])
            for each in ENDPOINTS
        ),
        *pages.routes(),
    ]
    return Guard(Router(routes), site, pages)


async def _health(_: Request) -> Response:
    return JSONResponse({"status": "ok"})


def _readiness(site: Site) -> Response:
    try:
        site.app().store.document("run", "")
    except Exception as error:  # whatever it is, nothing works
        log.warning("not ready: %s", error)
        # The cause is for those who may ask: it names places.
        return JSONResponse({"status": "not ready"}, 503)
    return JSONResponse({"status": "ready"})


def _answer(site: Site, endpoint: Endpoint, request: Request) -> Response:
    """Return the answer of an endpoint of the API."""
    if endpoint.changes:
        site.access.check_actions()
    call = ApiCall(site, site.app(), request.scope["asker"], str(request.base_url).rstrip("/"))
    found = endpoint.handle(call, **request.path_params, **endpoint.arguments(request))
    if isinstance(found, Response):
        return found
    found = call.app.redactor.value(_document(found))
    return _Json(found if endpoint.form is None else {"schema": endpoint.form, **found}, endpoint.status)


def _document(found: Any) -> Any:
    if isinstance(found, list | tuple):
        return [_document(each) for each in found]
    return found.as_json() if hasattr(found, "as_json") else found


class _Json(JSONResponse):
    """A JSON document whose values may be anything that has a text."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, ensure_ascii=False, allow_nan=False, default=str).encode()


class Guard:
    """Lets requests through to the routes of a site, and answers for those that fail.

    What a route gets of a request is in its scope: `asker`, who sent it, and `body`, if it may change
    something.

    Args:
        routes: The routes.
        site: The site, whose access says who may ask.
        pages: Make the pages for people whose requests fail.
    """

    def __init__(self, routes: ASGIApp, site: Site, pages: SitePages) -> None:
        self.routes = routes
        self.site = site
        self.pages = pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; every failure gets an answer."""
        if scope["type"] != "http":
            await self.routes(scope, receive, send)
            return
        has_begun = False

        async def send_with_headers(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                _add_headers(MutableHeaders(scope=message), scope["path"])
            await send(message)

        scope["app"] = self  # a path that there is not is then an error, not an answer
        request = Request(scope, receive)
        try:
            await self._check(request)
            await self.routes(scope, receive, send_with_headers)
        except Exception as error:
            if has_begun:
                raise
            response = await run_in_threadpool(self._failure, request, error)
            await response(scope, receive, send_with_headers)

    async def _check(self, request: Request) -> None:
        """Put who asks and the body into the scope of a request, if it is allowed."""
        access, path, is_safe = self.site.access, request.url.path, request.method in SAFE
        access.check_host(request.headers.get("host"))
        headers = dict(request.headers.items())  # of several with one name, a proxy adds the last
        access.check_change(request.method, headers)
        asker = request.scope["asker"] = access.asker(headers, request.cookies.get(COOKIE))
        is_public = path in PUBLIC or path.startswith(PUBLIC_FOLDERS)
        if asker is None and not is_public:
            raise HttpFault(401, "unknown_asker", "the request does not say who sends it", _SIGN_IN)
        body = request.scope["body"] = b"" if is_safe else await _body(request)
        if asker is not None and not is_public and not is_safe:
            access.check_csrf(asker, request.headers.get(CSRF_HEADER) or _csrf_field(request, body))

    def _failure(self, request: Request, error: Exception) -> Response:
        if isinstance(error, HTTPException):
            error = _no_route(request, error.status_code)
        status = status_of(error)
        if status == 500:
            log.error("a request failed", exc_info=error)
        wants_page = "text/html" in request.headers.get("accept", "")
        if wants_page and not request.url.path.startswith("/api/"):
            return self.pages.error_page(request, status, error)
        body = body_of(error)
        if not isinstance(error, HttpFault):  # its texts are the server's own
            body = self.site.redactor().value(body)
        return _Json(body, status, FAILURE_HEADERS.get(status))


_SIGN_IN = Phrase(
    "Open the link that ", Command("serve", "status"), " prints; programs send the token of serve.token."
)


def _no_route(request: Request, status: int) -> HttpFault:
    if status == 405:
        return HttpFault(status, "wrong_method", f"the path does not take {request.method}")
    return HttpFault(status, "unknown", "there is no such page or path")


def _add_headers(headers: MutableHeaders, path: str) -> None:
    for name, value in HEADERS.items():
        headers.setdefault(name, value)
    if not path.startswith("/static/"):
        headers.setdefault("cache-control", "no-store")


async def _body(request: Request) -> bytes:
    """Return a request's whole body.

    Raises:
        HttpFault: It is too large, or comes too slowly.
    """
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for part in request.stream():
                body += part
                if len(body) > LARGEST_BODY:
                    raise HttpFault(413, "too_large", f"the body has more than {LARGEST_BODY} bytes")
    except ClientDisconnect:
        raise HttpFault(400, "cut_off", "the request ended before its body") from None
    except TimeoutError:
        raise HttpFault(408, "too_slow", f"the body did not come within {BODY_SECONDS:g} s") from None
    return bytes(body)


def _csrf_field(request: Request, body: bytes) -> str | None:
    if not request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        return None
    found = parse_qs(body.decode("utf-8", "replace")).get(CSRF_FIELD)
    return found[0] if found else None
