"""Who may ask the server, and for what: tokens, sessions, hosts and origins.

The server is for its own user, on the same machine. A browser gets a session, as a cookie, for a token that
can be used once; programs send the token of `.lakewright/serve.token`. Behind a proxy, the proxy says who
asks. Whatever changes anything needs proof that the server's own page sent it.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from time import monotonic
from urllib.parse import urlsplit

from lakewright.errors.phrase import Command, Phrase
from lakewright.serve.http.faults import HttpFault

COOKIE = "lakewright_session"
MOST_SESSIONS = 100
SESSION_SECONDS = 12 * 3600
LINK_SECONDS = 15 * 60
MOST_GUESSES, GUESS_SECONDS = 20, 60.0
"""Wrong tokens that are checked within so many seconds; then the right one is refused too."""

LOOPBACK = ("127.0.0.1", "localhost", "::1")
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
            now = self.clock()
            if not self._is_right(token, may_be_link=True):
                raise HttpFault(
                    401,
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
        if name not in LOOPBACK and name not in self.hosts:
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
            with self._lock:
                return Asker(self.user) if self._is_right(given.strip()) else None
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

    def _is_right(self, token: str, *, may_be_link: bool = False) -> bool:
        """Return whether a token is that of programs, or of an open link, which is used up.

        Raises:
            HttpFault: Too many tokens were wrong a moment ago.
        """
        now = self.clock()
        self._wrong = [at for at in self._wrong if at > now - GUESS_SECONDS]
        if len(self._wrong) >= MOST_GUESSES:
            raise HttpFault(429, "too_many_tokens", "too many wrong tokens were sent", "Wait a minute.")
        is_right = hmac.compare_digest(token.encode(), self.token.encode())
        is_right = is_right or (may_be_link and self._links.pop(token, now) > now)
        if not is_right:
            self._wrong.append(now)
        return is_right
