"""A relay before a server of a database, which can be cut off for a while."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress


class Relay:
    """Forwards connections on a port of its own to a port of this machine."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._open: list[socket.socket] = []
        self._listener = self._listening(0)
        self.port: int = self._listener.getsockname()[1]

    def cut(self) -> None:
        """Close all connections, and refuse new ones."""
        # Only a shutdown wakes the thread that accepts.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for each in self._open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        self._open.clear()

    def mend(self) -> None:
        """Take connections again, on the same port."""
        self._listener = self._listening(self.port)

    def _listening(self, port: int) -> socket.socket:
        listener = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        return listener

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                near, _ = listener.accept()
                far = socket.create_connection(("127.0.0.1", self._target))
                self._open += [near, far]
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=_copy, args=(one, other), daemon=True).start()


def _copy(one: socket.socket, other: socket.socket) -> None:
    with suppress(OSError):
        while received := one.recv(65536):
            other.sendall(received)
        other.shutdown(socket.SHUT_WR)
