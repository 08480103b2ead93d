"""A worker: the process that runs one request, as if it had been started by the caller.

It takes over the caller's arguments, environment, working folder, umask and standard streams. It is forked
from the worker host, so that all modules are imported already, and ends with its request.
"""

from __future__ import annotations

import atexit
import locale
import os
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import lakewright_client as client

SECONDS_TO_SEND = 10
LONGEST_MESSAGE = 64 << 20
NESTED = "LAKEWRIGHT_REQUEST"
"""Set in the environment of requests: what they start in turn must not wait for their end."""

FollowUp = Callable[[], object]
"""Work that a request leaves behind, and that its caller does not wait for."""

_replaced: list[Any] = []


@dataclass(frozen=True, slots=True)
class Message:
    """A request as it arrives; its fields are bytes, as the caller's operating system has them.

    Attributes:
        installation: The protocol, the folder of the package, the Python and its flags.
    """

    installation: tuple[str, ...]
    umask: int
    encodings: tuple[str, ...]
    first_path: str
    folder: bytes
    arguments: tuple[str, ...]
    environ: dict[bytes, bytes]

    @classmethod
    def of(cls, body: bytes) -> Message:
        """Return the message in these bytes, as `lakewright_client.ask` writes it."""
        *fields, _ = body.split(b"\0")
        *installation, umask, stdin, stdout, stderr, first_path = map(os.fsdecode, fields[:9])
        count = int(fields[10])
        pairs = (field.partition(b"=") for field in fields[11 + count :])
        return cls(
            tuple(installation),
            int(umask),
            (stdin, stdout, stderr),
            first_path,
            folder=fields[9],
            arguments=tuple(map(os.fsdecode, fields[11 : 11 + count])),
            environ={name: value for name, _, value in pairs},
        )

    def why_not(self) -> str | None:
        """Return why this process can't stand in for the caller's own; None if it can."""
        ours = Message.of(client.ask([], os.environb, b"", umask=0, encodings=["", "", ""])[4:])
        if self.installation[:2] != ours.installation[:2]:
            package = self.installation[1]
            return f"the server runs Lakewright in {ours.installation[1]}, this command is in {package}"
        if self.installation != ours.installation:
            return "the server runs on another Python, or with other flags"
        names = sorted(name for name in self._pythons() ^ ours._pythons())
        return f"the environment differs in {names[0]}" if names else None

    def _pythons(self) -> set[str]:
        return {
            os.fsdecode(name) + "=" + os.fsdecode(value)
            for name, value in self.environ.items()
            if name in (b"PYTHONPATH", b"PYTHONHOME", b"PYTHONWARNINGS")
        }


def read_message(connection: socket.socket) -> tuple[Message, list[int]] | None:
    """Return a request and the descriptors of its streams; None if the caller has gone."""
    connection.settimeout(SECONDS_TO_SEND)
    first, descriptors, _, _ = socket.recv_fds(connection, 1, 3)
    length = int.from_bytes(_exactly(connection, 4), "big")
    if first != b"r" or len(descriptors) != 3 or length > LONGEST_MESSAGE:
        return None
    body = _exactly(connection, length)
    return (Message.of(body), descriptors) if len(body) == length else None


def _exactly(connection: socket.socket, length: int) -> bytes:
    parts = bytearray()
    while len(parts) < length and (part := connection.recv(length - len(parts))):
        parts += part
    return bytes(parts)


def run_request(
    connection: socket.socket,
    wait: Callable[[bool], None],
    run: Callable[[Sequence[str]], tuple[int, Sequence[FollowUp]]],
) -> int:
    """Run the request of a connection in this process, then what it leaves behind; return the exit code.

    Args:
        connection: To the caller.
        wait: Returns when the request may begin; its argument: whether another request waits for this one.
        run: Runs a command line; returns its exit code, and the work that follows the answer.
    """
    follow_ups: Sequence[FollowUp] = ()
    try:
        found = read_message(connection)
        if found is None:
            return 1
        message, descriptors = found
        why = message.why_not() or _moved_to(message.folder)
        if why is not None:
            connection.sendall(client.REFUSED + why.encode() + b"\n")
            return 1
        connection.sendall(client.ACCEPTED)
        if connection.recv(1) != client.GO:
            return 1
        connection.settimeout(None)
    except OSError:  # the caller has gone, or runs the command by itself
        return 1
    log = os.dup(2)
    _adopt(message, descriptors)
    caller = _Caller(connection)
    caller.listen()
    try:
        wait(os.environb.get(NESTED.encode()) is not None)
        os.environ[NESTED] = "1"
        code, follow_ups = run(message.arguments)
    except SystemExit as asked:
        code = asked.code if isinstance(asked.code, int) else 1
    except KeyboardInterrupt:
        code = 128 + signal.SIGINT
    except BaseException:
        traceback.print_exc()
        code = 1
    if not follow_ups:
        return caller.end(_finish(code))
    # Before Python's end, after which no thread pool takes work.
    caller.end(_flushed(code))
    _write_to(log)
    for follow_up in follow_ups:
        follow_up()
    return _finish(code)


def _moved_to(folder: bytes) -> str | None:
    try:
        os.chdir(folder)
    except OSError as error:
        return f"the server can't work in {os.fsdecode(folder)}: {error.strerror}"
    return None


def _adopt(message: Message, descriptors: Sequence[int]) -> None:
    """Make this process look like the caller's."""
    os.umask(message.umask)
    os.environ.clear()
    os.environb.update(message.environ)
    time.tzset()
    with suppress(locale.Error):
        locale.setlocale(locale.LC_CTYPE, "")
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    _replaced.extend((sys.stdin, sys.stdout, sys.stderr))  # closing them would close the descriptors
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        stream = _stream(number, mode, message.encodings[number])
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    sys.argv = ["lakewright", *message.arguments]
    sys.path[0] = message.first_path


def _stream(number: int, mode: str, encoding: str) -> Any:
    name, _, errors = encoding.partition(":")
    is_by_line = mode == "w" and (number == 2 or os.isatty(number))
    stream = open(  # noqa: SIM115 - a standard stream stays open, and has no path
        number, mode, 1 if is_by_line else -1, encoding=name, errors=errors, closefd=False
    )
    if mode == "w" and os.environ.get("PYTHONUNBUFFERED"):
        stream.reconfigure(write_through=True)  # type: ignore[attr-defined]
    return stream


class _Caller:
    """The other end: it sends signals, and waits for the exit code."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._main = threading.main_thread().ident or 0
        self._has_ended = False

    def listen(self) -> None:
        """Receive signals from now on; a caller who has gone is a Ctrl-C."""
        threading.Thread(target=self._listen, name="caller", daemon=True).start()

    def _listen(self) -> None:
        while not self._has_ended:
            try:
                received = self._connection.recv(1)
            except OSError:
                received = b""
            if self._has_ended:
                return
            signal.pthread_kill(self._main, received[0] if received else signal.SIGINT)
            if not received:
                return

    def end(self, code: int) -> int:
        """Send the exit code, and return it."""
        self._has_ended = True
        with suppress(OSError):
            self._connection.sendall(client.ENDED + f"{code}\n".encode())
        return code


def _finish(code: int) -> int:
    """Do what Python does at its end, except for releasing memory; return the exit code."""
    with suppress(KeyboardInterrupt):
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
    return _flushed(code)


def _flushed(code: int) -> int:
    """Write what is buffered for the standard streams; return the exit code."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        return code or 120  # Python's own code for this
    return code


def _write_to(log: int) -> None:
    """Give the caller's streams back, who may wait for their end; output goes to the server's log."""
    null = os.open(os.devnull, os.O_RDONLY)
    for number, descriptor in enumerate((null, log, log)):
        os.dup2(descriptor, number)
