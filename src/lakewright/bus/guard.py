"""A small process that kills the commands of a run if the run itself is killed.

Nothing else would: a command has a process group of its own, and a process that is killed can't pass that on.
The guard reads from a pipe which commands run. The system closes the pipe when the run ends, however it ends.
"""

from __future__ import annotations

import logging
import subprocess
from threading import Lock
from types import TracebackType
from typing import Self

__all__ = ["Guard"]

log = logging.getLogger(__name__)

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
        self._tell(f"start {group}")

    def ended(self, group: int) -> None:
        """Watch no longer over a process group, which has ended."""
        self._tell(f"end {group}")

    def _start(self) -> subprocess.Popen[bytes] | None:
        try:
            return subprocess.Popen([SHELL, "-c", SCRIPT], stdin=subprocess.PIPE, start_new_session=True)
        except OSError as error:
            self._is_missing = True
            log.warning(
                "%s can't be started (%s): if this run is killed, its command goes on", SHELL, error.strerror
            )
            return None

    def _tell(self, line: str) -> None:
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
