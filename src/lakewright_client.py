"""The client of a project's server: sends a command line to it, and waits for the exit code.

It imports nothing of the package, so that a command that runs in the server starts at once. What the command
needs of its caller travels with it: arguments, environment, working folder, umask and the three standard
streams themselves, as file descriptors. `lakewright.warm.worker` is the other end.
"""

import _signal  # type: ignore[import-not-found]
import _socket
import os
import sys

PROTOCOL = "1"
ACCEPTED, GO, REFUSED, ENDED = b"a", b"g", b"n", b"x"
NO_SERVE = "LAKEWRIGHT_NO_SERVE"
PROJECT_FILES = ("project.yml", "project.yaml")
SOCKET = ".lakewright/serve.sock"
LONGEST_PATH = 100
"""Bytes of a socket's path; an operating system takes 104 to 108."""
SECONDS_TO_ACCEPT = 10
"""Seconds after which a command whose request nobody accepts runs without the server."""

ALL = frozenset(("*",))
WARM = {
    "apply": ALL,
    "decide": ALL,
    "docs": ALL,
    "doctor": ALL,
    "graph": ALL,
    "history": ALL,
    "job": ALL,
    "ls": ALL,
    "maintain": ALL,
    "manifest": frozenset(
        (
            "ls",
            "show",
            "stats",
            "discover",
            "accept",
            "resolve",
            "release",
            "skip",
            "unskip",
            "requeue",
            "fsck",
        )
    ),
    "plan": ALL,
    "process": ALL,
    "rebuild": ALL,
    "show": ALL,
    "sql": ALL,
    "status": ALL,
    "test": ALL,
    "undo": ALL,
    "validate": ALL,
    "watermark": ALL,
}
"""Commands that run in the server, with those of their subcommands that do. What waits for long, runs other
programs or takes no project runs by itself."""
WITH_VALUE = frozenset(("--project", "-P", "--profile", "-D", "--conf", "-o", "--output", "--log-format"))
ALONE = frozenset(("-h", "--help", "--version", "--no-serve"))
FORWARDED = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")


class Refused(Exception):
    """The server does not run this command; its text says why, or is empty if there is no server."""


def run(arguments: list[str]) -> int:
    """Run a command line in the project's server and return its exit code.

    Raises:
        Refused: It must run without the server; nothing has been done.
    """
    if os.environ.get(NO_SERVE) or "_LAKEWRIGHT_COMPLETE" in os.environ or not _is_warm(arguments):
        raise Refused
    path = find_socket(arguments)
    if path is None:
        raise Refused
    streams = (sys.stdin, sys.stdout, sys.stderr)
    if any(stream is None for stream in streams):
        raise Refused("a standard stream is closed")
    for stream in streams[1:]:
        stream.flush()
    encodings = [f"{stream.encoding}:{stream.errors}" for stream in streams]
    message = ask(arguments, os.environb, os.getcwdb(), umask=current_umask(), encodings=encodings)
    connection = begin(path, message, (0, 1, 2))
    return _forwarding(connection)


def _is_warm(arguments: list[str]) -> bool:
    """Return whether the server runs this command."""
    words: list[str] = []
    is_value = False
    for argument in arguments:
        if is_value:
            is_value = False
        elif argument in ALONE:
            return False
        elif argument.startswith("-"):
            is_value = argument in WITH_VALUE
        else:
            words.append(argument)
    known = WARM.get(words[0]) if words else None
    return known is not None and (known is ALL or (len(words) > 1 and words[1] in known))


def find_socket(arguments: list[str]) -> str | None:
    """Return the socket of the server of the project that arguments, or the working folder, name."""
    place = None
    for argument, following in zip(arguments, [*arguments[1:], None], strict=True):
        if argument == "--project":
            place = following
        elif argument.startswith("--project="):
            place = argument[len("--project=") :]
    if place is not None:
        folder = os.path.dirname(place) if os.path.isfile(place) else place
        path = os.path.join(os.path.abspath(folder), SOCKET)
        return path if os.path.exists(path) else None
    folder = os.getcwd()
    while True:
        if any(os.path.isfile(os.path.join(folder, name)) for name in PROJECT_FILES):
            path = os.path.join(folder, SOCKET)
            return path if os.path.exists(path) else None
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above


def ask(
    arguments: list[str],
    environ: "os._Environ[bytes] | dict[bytes, bytes]",
    folder: bytes,
    *,
    umask: int,
    encodings: list[str],
) -> bytes:
    """Return the message for a command line: its length, then fields that end with a NUL."""
    flags = sys.flags
    fields = [
        PROTOCOL,
        os.path.dirname(os.path.realpath(__file__)),
        f"{sys.prefix} {sys.version}",
        f"{flags.optimize} {flags.dev_mode} {flags.utf8_mode} {flags.isolated} {sys.warnoptions}",
        str(umask),
        *encodings,
        sys.path[0],
    ]
    packed = [
        *(os.fsencode(field) for field in fields),
        folder,
        str(len(arguments)).encode(),
        *(os.fsencode(argument) for argument in arguments),
        *(name + b"=" + value for name, value in environ.items()),
    ]
    body = b"".join(field + b"\0" for field in packed)
    return len(body).to_bytes(4, "big") + body


def begin(path: str, message: bytes, streams: tuple[int, int, int]) -> _socket.socket:
    """Send a request, and return the connection once the server has accepted it and begun.

    Raises:
        Refused: The server does not answer, belongs to somebody else, or refuses.
    """
    connection = _connected(path)
    try:
        connection.settimeout(SECONDS_TO_ACCEPT)
        # One byte carries the streams, so that they arrive however the message is cut.
        packed = b"".join(number.to_bytes(4, sys.byteorder) for number in streams)
        connection.sendmsg([b"r"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, packed)])
        connection.sendall(message)
        answer = connection.recv(1)
        if answer == REFUSED:
            raise Refused(_rest(connection))
        if answer != ACCEPTED:
            raise Refused("the server ended")
        connection.sendall(GO)
        connection.settimeout(None)
    except OSError as error:
        connection.close()
        raise Refused(f"the server does not answer: {error}") from None
    except BaseException:
        connection.close()
        raise
    return connection


class short_path:  # noqa: N801 - contextlib takes longer to import than the rest
    """Gives a path of a socket that an operating system takes, in a `with` block."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.folder: int | None = None

    def __enter__(self) -> str:
        if len(os.fsencode(self.path)) <= LONGEST_PATH:
            return self.path
        self.folder = os.open(os.path.dirname(self.path), os.O_RDONLY)
        return f"/proc/self/fd/{self.folder}/{os.path.basename(self.path)}"

    def __exit__(self, *_: object) -> None:
        if self.folder is not None:
            os.close(self.folder)


def _connected(path: str) -> _socket.socket:
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.settimeout(SECONDS_TO_ACCEPT)
        with short_path(path) as short:
            connection.connect(short)
        if peer(connection, path) != os.geteuid():
            raise Refused("the server belongs to another user")
    except OSError as error:
        connection.close()
        raise Refused(f"no server answers: {error}") from None
    except Refused:
        connection.close()
        raise
    return connection


def peer(connection: _socket.socket, path: str) -> int:
    """Return the user at the other end of a connection; where that can't be asked, the socket's owner."""
    option = getattr(_socket, "SO_PEERCRED", None)
    if option is None:
        return os.stat(path).st_uid
    credentials = connection.getsockopt(_socket.SOL_SOCKET, option, 12)
    return int.from_bytes(credentials[4:8], sys.byteorder)


def result(connection: _socket.socket) -> int | None:
    """Wait for the end of a request and return its exit code, or None if the server has ended before."""
    try:
        kind = connection.recv(1)
        text = _rest(connection) if kind == ENDED else ""
    except ConnectionError:
        return None
    return int(text) if text else None


def _rest(connection: _socket.socket) -> str:
    parts = []
    while True:
        part = connection.recv(1024)
        parts.append(part)
        if not part or part.endswith(b"\n"):
            return b"".join(parts).decode(errors="replace").strip()


def _forwarding(connection: _socket.socket) -> int:
    """Wait for the exit code; signals of this process are sent to the one that runs the command."""
    for name in FORWARDED:
        number = getattr(_signal, name)
        # A command by itself answers to these two even if its caller ignores them.
        if name in ("SIGINT", "SIGTERM") or _signal.getsignal(number) != _signal.SIG_IGN:
            _signal.signal(number, lambda number, _: _send(connection, number))
    code = result(connection)
    if code is None:
        os.write(
            2,
            b"error: the server ended before the command did; it may have succeeded\n"
            b"  do: `lakewright status` shows what was done, and what is due.\n",
        )
        return 1
    return code


def _send(connection: _socket.socket, number: int) -> None:
    try:
        connection.send(bytes((number,)))
    except OSError:  # the request has just ended
        return


def current_umask() -> int:
    """Return this process's umask, which can only be read by setting it for a moment."""
    umask = os.umask(0o077)
    os.umask(umask)
    return umask
