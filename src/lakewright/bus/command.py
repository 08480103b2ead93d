"""Runs a command in a process group of its own, and reports how it ended.

Nothing of an item reaches a shell: the command is a list of arguments.
"""

from __future__ import annotations

import codecs
import logging
import os
import selectors
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, Self

from lakewright.errors import UsageError
from lakewright.manifest.payload import parse_payload

log = logging.getLogger(__name__)


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

    def payload(self) -> Mapping[str, Any] | None:
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


def run_command(
    arguments: Sequence[str],
    environ: Mapping[str, str],
    payload_file: Path,
    *,
    guard: Guard,
    must_stop: Callable[[], int | None],
    forward: Callable[[str], None],
) -> Ended:
    """Run a command, and return how it ended.

    Args:
        arguments: Program and arguments.
        environ: Its environment, to which `LAKEWRIGHT_PAYLOAD` is added.
        payload_file: Where it may write its payload.
        guard: Kills it if this process is killed.
        must_stop: Returns the signal by which the command must end now, or None while it may go on.
        forward: Receives what the command writes to stderr.

    Raises:
        UsageError: The command can't be started.
    """
    process = _start(arguments, {**environ, "LAKEWRIGHT_PAYLOAD": str(payload_file)})
    guard.started(process.pid)
    running = _Running(process, forward)
    try:
        running.watch(must_stop)
    finally:
        has_left = running.end()
        guard.ended(process.pid)
    return Ended(process.returncode, running.stopped_by, running.tail(), has_left, payload_file)


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

    Its process is started with the `with` block, and ends with it.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = Lock()

    def started(self, group: int) -> None:
        """Watch over a process group that was started just now."""
        self._send(f"start {group}")

    def ended(self, group: int) -> None:
        """Watch no longer over a process group, which has ended."""
        self._send(f"end {group}")

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
        try:
            command = [SHELL, "-c", SCRIPT]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
        except OSError as error:
            log.warning(
                "%s can't be started (%s): if this run is killed, its command goes on", SHELL, error.strerror
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            self._process.wait()
