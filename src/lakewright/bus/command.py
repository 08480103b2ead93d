"""Runs a command for one item, in a process group of its own, and reports how it ended.

Nothing of an item reaches a shell: the command is a list of arguments, in which `{item}` is replaced.
"""

from __future__ import annotations

import codecs
import logging
import os
import selectors
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, Self

from lakewright.errors import UsageError
from lakewright.manifest.payload import parse_payload

log = logging.getLogger(__name__)


PLACEHOLDER = "{item}"
TICK = 0.1
"""Seconds between two checks whether the command must stop."""
GRACE = 10.0
"""Seconds that an interrupted command has to end by itself."""
TAIL = 8_192
"""Bytes kept of the end of stderr, before secrets are removed."""
CHUNK = 65_536
MOST_CHUNKS = 16
"""Chunks of stderr that are read after the command has ended: a process outside its group may still write."""
LONGEST_PAYLOAD = 1_000_000
"""Bytes read of a payload's file; what is larger is refused without reading it all."""
KILL = int(signal.SIGKILL)


@dataclass(frozen=True, slots=True)
class Command:
    """A command with the variables that it finds in its environment.

    Attributes:
        arguments: Program and arguments; `{item}` in them is replaced.
        environ: The environment to add to.
    """

    arguments: Sequence[str]
    environ: Mapping[str, str]

    def arguments_for(self, item_id: str) -> list[str]:
        """Return the arguments for an item."""
        return [argument.replace(PLACEHOLDER, item_id) for argument in self.arguments]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended.

    Attributes:
        code: Its exit code, or the negative number of the signal that ended it.
        stopped_by: The signal that it was sent on the way, or None.
        stderr: The end of what it wrote to stderr.
        has_left_processes: Whether it left processes running; they were killed.
        payload_file: Where it may have written its payload.
    """

    code: int
    stopped_by: int | None
    stderr: str
    has_left_processes: bool
    payload_file: Path

    def payload(self) -> dict[str, Any] | None:
        """Return the payload that the command wrote, or None if it wrote none.

        Raises:
            UsageError: The file is no regular file, isn't a JSON object, or is too large.
        """
        try:
            descriptor = os.open(self.payload_file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise UsageError(f"the payload's file can't be read: {error.strerror}") from error
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise UsageError("the payload's file is no regular file")
            text = file.read(LONGEST_PAYLOAD + 1)
        if len(text) > LONGEST_PAYLOAD:
            raise UsageError(f"the payload's file has more than {LONGEST_PAYLOAD:,} bytes")
        return parse_payload(text) if text.strip() else None


@dataclass(frozen=True, slots=True)
class Workplace:
    """What the commands of one run share.

    Attributes:
        folder: Where they write their payloads.
        guard: Kills them if this process is killed.
    """

    folder: Path
    guard: Guard

    @classmethod
    @contextmanager
    def opened(cls) -> Iterator[Workplace]:
        """Yield a workplace, which ends with the `with` block."""
        with tempfile.TemporaryDirectory(prefix="lakewright-run-") as folder, Guard() as guard:
            yield cls(Path(folder), guard)


def run_command(
    command: Command,
    item_id: str,
    variables: Mapping[str, str],
    *,
    workplace: Workplace,
    must_stop: Callable[[], int | None],
    forward: Callable[[str], None],
    use: Callable[[Ended], None],
) -> None:
    """Run a command for an item, and pass how it ended to `use`.

    Args:
        command: The command.
        item_id: The item.
        variables: Further variables of its environment; `LAKEWRIGHT_RECORD` is of this command alone.
        workplace: What it shares with the other commands of the run.
        must_stop: Returns the signal by which the command must end now, or None while it may go on.
        forward: Receives what the command writes to stderr.
        use: Receives how it ended, while the file of its payload still exists.

    Raises:
        UsageError: The command can't be started.
    """
    payload_file = workplace.folder / f"{variables['LAKEWRIGHT_RECORD']}.json"
    environ = {
        **command.environ,
        **variables,
        "LAKEWRIGHT_ITEM": item_id,
        "LAKEWRIGHT_PAYLOAD": str(payload_file),
    }
    workplace.guard.prepare()
    process = _start(command.arguments_for(item_id), environ)
    workplace.guard.started(process.pid)
    running = _Running(process, forward)
    try:
        running.watch(must_stop)
    finally:
        has_left = running.end()
        workplace.guard.ended(process.pid)
    use(Ended(process.returncode, running.stopped_by, running.tail(), has_left, payload_file))
    with suppress(OSError):  # it may be missing, or a folder, which ends with the run
        payload_file.unlink()


def _start(arguments: Sequence[str], environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            arguments,
            env=environ,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            # A group of its own, so that a signal reaches all that the command starts, and nothing else.
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(
            f"the command {arguments[0]!r} can't be started: {reason}",
            remedy="Give the path of a program; for a line of a shell, write sh -c 'LINE'.",
        ) from error


class _Running:
    """A running command: its stderr is read, and it is stopped when it must."""

    def __init__(self, process: subprocess.Popen[bytes], forward: Callable[[str], None]) -> None:
        self.stopped_by: int | None = None
        self._process = process
        self._forward = forward
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._kept = b""
        self._deadline: float | None = None
        self._selector = selectors.DefaultSelector()
        assert process.stderr is not None  # noqa: S101 - it was asked for
        self._stderr = process.stderr.fileno()
        os.set_blocking(self._stderr, False)
        self._selector.register(self._stderr, selectors.EVENT_READ)
        self._ended = self._watch_for_end()

    def _watch_for_end(self) -> int | None:
        """Return a descriptor that becomes readable when the process ends, where the system has one."""
        opened = getattr(os, "pidfd_open", None)
        if opened is None:
            return None
        descriptor: int = opened(self._process.pid)
        self._selector.register(descriptor, selectors.EVENT_READ)
        return descriptor

    def watch(self, must_stop: Callable[[], int | None]) -> None:
        """Read stderr until the process has ended; stop the process when it must."""
        pause = TICK if self._ended is not None else TICK / 20
        while True:
            ready = {key.fd for key, _ in self._selector.select(pause)}
            if self._stderr in ready and self._read() is False:
                self._selector.unregister(self._stderr)
            is_ended = self._ended in ready if self._ended is not None else self._process.poll() is not None
            if is_ended:
                return
            self._stop_if(must_stop())

    def _stop_if(self, wanted: int | None) -> None:
        if wanted is not None and self.stopped_by not in (wanted, KILL):
            self.stopped_by = wanted
            self._deadline = time.monotonic() + GRACE
            self._signal(wanted)
        elif self._deadline is not None and time.monotonic() > self._deadline:
            self._deadline = None
            self._signal(KILL)

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _read(self) -> bool | None:
        """Read what is there of stderr; return False at its end, None if there is nothing now."""
        try:
            chunk = os.read(self._stderr, CHUNK)
        except BlockingIOError:
            return None
        if chunk:
            self._kept = (self._kept + chunk)[-TAIL:]
            self._forward(self._decoder.decode(chunk))
        return bool(chunk)

    def end(self) -> bool:
        """Kill what is left of the process group, and return whether something was left."""
        if self._process.poll() is None:
            self._signal(KILL)  # an exception ended the watch
            self._process.wait()
        has_left = True
        try:
            os.killpg(self._process.pid, KILL)
        except (ProcessLookupError, PermissionError):
            has_left = False
        for _ in range(MOST_CHUNKS):
            if not self._read():
                break
        self._selector.close()
        if self._ended is not None:
            os.close(self._ended)
        if self._process.stderr is not None:
            self._process.stderr.close()
        return has_left

    def tail(self) -> str:
        """Return the end of what was written to stderr."""
        return self._kept.decode(errors="replace").strip()


SHELL = "/bin/sh"
# Only numbers of process groups reach the shell. What interrupts a run must not end its guard first.
SCRIPT = """
trap '' HUP INT QUIT TERM
running=' '
while read -r what group; do
  case $what in
    start) running="$running$group " ;;
    end) running="${running%% $group *} ${running#* $group }" ;;
  esac
done
for group in $running; do
  kill -9 "-$group" 2>/dev/null && echo 'manifest run was killed, and so is its command' >&2
done
exit 0
"""


class Guard:
    """Kills the process groups that are running when this process ends without having waited for them.

    Its process is started by `prepare`, and ends with the `with` block.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._is_missing = False
        self._lock = Lock()

    def prepare(self) -> None:
        """Start the guard's process, before the first command of which it must know at once."""
        with self._lock:
            if self._process is None and not self._is_missing:
                self._process = self._start()

    def started(self, group: int) -> None:
        """Watch over a process group that was started just now."""
        self._send(f"start {group}")

    def ended(self, group: int) -> None:
        """Watch no longer over a process group, which has ended."""
        self._send(f"end {group}")

    def _start(self) -> subprocess.Popen[bytes] | None:
        try:
            return subprocess.Popen([SHELL, "-c", SCRIPT], stdin=subprocess.PIPE, start_new_session=True)
        except OSError as error:
            self._is_missing = True
            log.warning(
                "%s can't be started (%s): if this run is killed, its command goes on", SHELL, error.strerror
            )
            return None

    def _send(self, line: str) -> None:
        with self._lock:
            if self._process is None or self._process.stdin is None:
                return
            try:
                self._process.stdin.write(f"{line}\n".encode())
                self._process.stdin.flush()
            except OSError as error:  # somebody killed the guard
                self._process = None
                log.warning(
                    "the guard of this run is gone (%s): if the run is killed, its command goes on", error
                )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            self._process.wait()
