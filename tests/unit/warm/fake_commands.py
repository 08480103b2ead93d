"""Commands that a worker host runs in tests, instead of Lakewright's."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

seen: list[str] = []


def preload() -> None:
    """Import nothing."""


def run(arguments: Sequence[str], sessions: object) -> tuple[int, list[Callable[[], object]]]:
    """Do what the first argument names."""
    name, *rest = arguments
    if name == "connect":
        return _connect(sessions), []
    if name == "leave":
        print("answered")
        return 3, [lambda: _leave(*rest)]
    found = {"tell": _tell, "sleep": _sleep, "stop": _stop, "die": _die, "fail": _fail, "touch": _touch}
    return int(found[name](*rest)), []  # type: ignore[operator]


def _connect(sessions: Any) -> int:
    """Have the host start the process for Spark, and ask it for nothing."""
    sessions._connect().close()
    return 0


def _tell() -> int:
    umask = os.umask(0)
    os.umask(umask)
    seen.append("told")
    told = {
        "folder": str(Path.cwd()),
        "umask": umask,
        "variables": sorted(os.environ),
        "secret": os.environ.get("SECRET"),
        "stdin": sys.stdin.read(),
        "seen": seen,
        "encoding": sys.stdout.encoding,
        "is_tty": sys.stdout.isatty(),
        "pid": os.getpid(),
    }
    print(json.dumps(told))
    print("né", file=sys.stderr)
    return 0


def _sleep(seconds: str) -> int:
    print("asleep", flush=True)
    time.sleep(float(seconds))
    return 0


def _stop() -> int:
    """End with the number of the first signal."""
    got: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: got.append(number))
    print("ready", flush=True)
    while not got:
        time.sleep(0.01)
    return 100 + got[0]


def _die() -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def _fail() -> int:
    raise ValueError("as asked")


def _touch(path: str, seconds: str) -> int:
    """Write a file when it begins, and another one when it ends."""
    for name in ("begun", "ended"):
        Path(f"{path}.{name}").write_text(str(time.monotonic()))
        time.sleep(float(seconds) if name == "begun" else 0)
    return 0


def _leave(path: str) -> None:
    """Say that it goes on, and end when its file is gone."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(print, "going on", flush=True).result()
    while Path(path).exists():
        time.sleep(0.01)
    Path(f"{path}.ended").touch()
