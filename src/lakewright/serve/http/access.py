"""Who may ask the server, and for what: tokens, sessions, hosts and origins, and the guard before all routes.

The server is for its own user, on the same machine. A browser gets a session, as a cookie, for a token that
can be used once; programs send the token of `.lakewright/serve.token`. Behind a proxy, the proxy says who
asks. Whatever changes anything needs proof that the server's own page sent it.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from starlette.responses import JSONResponse, Response

from lakewright.errors.phrase import Command, Phrase
from lakewright.serve.http.faults import HttpFault, body_of, status_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    ErrorPage = Callable[[Scope, int, Exception], Response]


COOKIE = "lakewright_session"
MOST_SESSIONS = 100
SESSION_SECONDS = 12 * 3600
LINK_SECONDS = 15 * 60
MOST_GUESSES, GUESS_SECONDS = 20, 60.0
"""Wrong tokens that are checked within so many seconds; then the right one is refused too."""

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True, slots=True)
class Asker:
    """Who sent a request.

    Attributes:
        user: The name that is recorded as author.
        session: What identifies the browser; None for a program, which sends its token each time.
    """

    user: str
    session: str | None = None


@dataclass(slots=True)
class Access:
    """The tokens and sessions of one server.

    Attributes:
        user: The user who runs the server.
        hosts: Names under which the server is reached, besides those of the loopback address.
        proxy_header: The header in which a proxy names the user; None without a proxy.
        allows_actions: Whether anything may be changed.
        clock: Returns seconds that only grow.
    """

    user: str
    hosts: frozenset[str] = frozenset()
    proxy_header: str | None = None
    allows_actions: bool = False
    clock: Callable[[], float] = monotonic
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    _key: bytes = field(init=False, default_factory=lambda: secrets.token_bytes(32))
    _links: dict[str, float] = field(init=False, default_factory=dict)
    _sessions: dict[str, float] = field(init=False, default_factory=dict)
    _wrong: list[float] = field(init=False, default_factory=list)
    _lock: Lock = field(init=False, default_factory=Lock)

    def new_link_token(self) -> str:
        """Return a token that opens one session, within a quarter of an hour."""
        token = secrets.token_urlsafe(24)
        with self._lock:
            self._links = {each: end for each, end in self._links.items() if end > self.clock()}
            self._links[token] = self.clock() + LINK_SECONDS
        return token

    def open_session(self, token: str) -> str:
        """Return a new session for a token: of a link, which is used up, or that of programs.

        Raises:
            HttpFault: The token is wrong, used or too old.
        """
        with self._lock:
            self._check_guesses()
            now = self.clock()
            is_known = hmac.compare_digest(token.encode(), self.token.encode())
            if not is_known and self._links.pop(token, now) <= now:
                self._wrong.append(now)
                raise HttpFault(
                    403,
                    "wrong_token",
                    "the link was used already, is too old, or is of another server",
                    Phrase(Command("serve", "status"), " prints a new one."),
                )
            session = secrets.token_urlsafe(32)
            alive = sorted(self._sessions.items(), key=lambda each: each[1])[-MOST_SESSIONS + 1 :]
            self._sessions = {name: end for name, end in alive if end > now}
            self._sessions[session] = now + SESSION_SECONDS
            return session

    def close_session(self, session: str) -> None:
        """Forget a session."""
        with self._lock:
            self._sessions.pop(session, None)

    def check_host(self, host: str | None) -> None:
        """Raise an error unless the request names this server.

        A page of another site, whose name somebody made point to this machine, sends that name.
        """
        if self.proxy_header is not None:
            return
        name = (urlsplit(f"//{host}").hostname or "") if host and "@" not in host else ""
        named = f"[{name}]" if ":" in name else name
        if named not in LOOPBACK and named not in self.hosts:
            raise HttpFault(
                421, "wrong_host", f"this server is not {host or 'without a name'}", f"Use {LOOPBACK[0]}."
            )

    def asker(self, headers: Mapping[str, str], cookie: str | None) -> Asker | None:
        """Return who sent a request; None if it does not say, or says something wrong."""
        if self.proxy_header is not None:
            user = headers.get(self.proxy_header.lower(), "").strip()
            return Asker(user[:200], f"user {user}") if user else None
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            return Asker(self.user) if self._is_token(given.strip()) else None
        with self._lock:
            is_open = cookie is not None and self._sessions.get(cookie, 0.0) > self.clock()
        return Asker(self.user, cookie) if is_open else None

    def check_change(self, method: str, headers: Mapping[str, str]) -> None:
        """Raise an error if another site's page sent a request that changes something."""
        if method in SAFE:
            return
        origin, host = headers.get("origin"), headers.get("host", "")
        is_foreign = origin is not None and urlsplit(origin).netloc.lower() != host.lower()
        if is_foreign or headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            raise HttpFault(403, "wrong_origin", f"a page of {origin or 'another site'} sent the request")

    def csrf_token(self, asker: Asker) -> str:
        """Return the token that a page of this session sends with each change."""
        named = (asker.session or "").encode()
        return hmac.new(self._key, b"csrf " + named, hashlib.sha256).hexdigest()

    def check_csrf(self, asker: Asker, given: str | None) -> None:
        """Raise an error unless a browser's change comes with the token of its session."""
        if asker.session is None:
            return
        if not hmac.compare_digest((given or "").encode(), self.csrf_token(asker).encode()):
            raise HttpFault(
                403,
                "wrong_csrf",
                "the request lacks the token of the page's session",
                "Load the page again.",
            )

    def check_actions(self) -> None:
        """Raise an error if the server may only read."""
        if not self.allows_actions:
            raise HttpFault(
                403,
                "read_only",
                "this server shows, and changes nothing",
                "Start it with --allow-actions, or type the command.",
            )

    def _is_token(self, given: str) -> bool:
        with self._lock:
            self._check_guesses()
            if hmac.compare_digest(given.encode(), self.token.encode()):
                return True
            self._wrong.append(self.clock())
            return False

    def _check_guesses(self) -> None:
        self._wrong = [at for at in self._wrong if at > self.clock() - GUESS_SECONDS]
        if len(self._wrong) >= MOST_GUESSES:
            raise HttpFault(429, "too_many_tokens", "too many wrong tokens were sent", "Wait a minute.")


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
