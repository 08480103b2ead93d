"""A proxy before an object store that throttles, refuses or cuts requests, or loses the answers to them."""

from __future__ import annotations

import re
import threading
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

THROTTLED = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"

EXPIRED = b"<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message></Error>"
SKEWED = (
    b"<Error><Code>RequestTimeTooSkewed</Code><Message>The difference between the request time and the "
    b"current time is too large.</Message></Error>"
)


class FaultyProxy:
    """Forwards requests to a store; faults are asked for by the method of the request.

    Attributes:
        lost: How many answers were lost.
        throttled: How many requests were throttled.
        refused: How many requests were refused with the answer that `refuse` gave.
        cut: How many answers broke off in the middle.
        requests: The method and the path of each request.
    """

    def __init__(self, url: str) -> None:
        self.requests: list[str] = []
        self.lost = self.throttled = self.refused = self.cut = 0
        self._refusal: tuple[str, int, bytes] | None = None
        self._is_refusing = False
        self._target = urlsplit(url).netloc
        self._faults: list[tuple[str, str]] = []
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def lose_answers(self, method: str, number: int) -> None:
        """Forward the next requests with a method, and close the connection instead of answering."""
        self._faults += [("lose", method)] * number

    def throttle(self, method: str, number: int) -> None:
        """Answer the next requests with a method by 503."""
        self._faults += [("throttle", method)] * number

    def cut_answers(self, method: str, number: int) -> None:
        """Break off the next answers to a method in the middle, with content."""
        self._faults += [("cut", method)] * number

    def refuse(self, beginning: str, status: int, answer: bytes) -> None:
        """Refuse all requests from the first one on whose `METHOD path` matches the pattern."""
        self._refusal, self._is_refusing = (beginning, status, answer), False

    def accept(self) -> None:
        """Refuse no more requests."""
        self._refusal, self._is_refusing = None, False

    def _refused(self, request: str) -> tuple[int, bytes] | None:
        with self._lock:
            if self._refusal is None:
                return None
            beginning, status, answer = self._refusal
            self._is_refusing = self._is_refusing or re.match(beginning, request) is not None
            self.refused += self._is_refusing
            return (status, answer) if self._is_refusing else None

    def __enter__(self) -> FaultyProxy:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _next_fault(self, method: str) -> str | None:
        with self._lock:
            for fault in self._faults:
                if fault[1] == method:
                    self._faults.remove(fault)
                    return fault[0]
        return None

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_expect_100(self) -> bool:
                return super().handle_expect_100()

            def _forward(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(length)
                proxy.requests.append(f"{self.command} {self.path}")
                if (refused := proxy._refused(f"{self.command} {self.path}")) is not None:
                    self._answer(refused[0], [("Content-Type", "application/xml")], refused[1])
                    return
                fault = proxy._next_fault(self.command)
                if fault == "throttle":
                    proxy.throttled += 1
                    self._answer(503, [("Content-Type", "application/xml")], THROTTLED)
                    return
                upstream = HTTPConnection(proxy._target, timeout=60)
                headers = {key: text for key, text in self.headers.items() if key.lower() != "expect"}
                upstream.request(self.command, self.path, body, headers)
                answer = upstream.getresponse()
                content = answer.read()
                if fault == "lose":
                    proxy.lost += 1
                    self.close_connection = True
                    self.connection.close()
                    return
                if fault == "cut":
                    proxy.cut += 1
                    self.close_connection = True
                    self._answer(answer.status, [], content[: len(content) // 2], str(len(content)))
                    return
                skipped = ("transfer-encoding", "content-length", "connection")
                kept = [(key, text) for key, text in answer.getheaders() if key.lower() not in skipped]
                self._answer(answer.status, kept, content, answer.getheader("Content-Length"))

            def _answer(
                self, status: int, headers: list[tuple[str, str]], content: bytes, length: str | None = None
            ) -> None:
                is_told = self.command == "HEAD" or self.close_connection
                self.send_response_only(status)
                for key, text in headers:
                    self.send_header(key, text)
                self.send_header("Content-Length", length if length and is_told else str(len(content)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(content)

            do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _forward  # noqa: N815 - named by http.server

            def log_message(self, format: str, *args: Any) -> None:
                """Print nothing."""

        return Handler
