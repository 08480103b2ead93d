"""A proxy before an object store that throttles requests, or loses the answers to them."""

from __future__ import annotations

import threading
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

__all__ = ["FaultyProxy"]

THROTTLED = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"


class FaultyProxy:
    """Forwards requests to a store; faults are asked for by the method of the request.

    Attributes:
        lost: How many answers were lost.
        throttled: How many requests were throttled.
    """

    def __init__(self, url: str) -> None:
        self.lost = self.throttled = 0
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
                skipped = ("transfer-encoding", "content-length", "connection")
                kept = [(key, text) for key, text in answer.getheaders() if key.lower() not in skipped]
                self._answer(answer.status, kept, content, answer.getheader("Content-Length"))

            def _answer(
                self, status: int, headers: list[tuple[str, str]], content: bytes, length: str | None = None
            ) -> None:
                self.send_response_only(status)
                for key, text in headers:
                    self.send_header(key, text)
                self.send_header(
                    "Content-Length", length if self.command == "HEAD" and length else str(len(content))
                )
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(content)

            do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _forward  # noqa: N815 - named by http.server

            def log_message(self, format: str, *args: Any) -> None:
                """Print nothing."""

        return Handler
