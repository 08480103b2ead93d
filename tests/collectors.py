"""A collector of OpenLineage events, which listens on this machine."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event
from typing import Any


@dataclass
class Collector:
    """A collector that keeps events, and can refuse them or hang."""

    url: str = ""
    status: int = 200
    events: list[dict[str, Any]] = field(default_factory=list)
    is_let_go: Event = field(default_factory=Event)
    hangs: bool = False

    def told(self) -> list[tuple[str, str]]:
        return [(event["eventType"], event["job"]["name"]) for event in self.events]


@contextmanager
def collecting() -> Iterator[Collector]:
    """Listen on a free port in the `with` block."""
    made = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if made.hangs:
                made.is_let_go.wait(30)
            made.events.append(json.loads(body))
            self.send_response(made.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        made.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.is_let_go.set()
        server.shutdown()
        thread.join()
