"""Measures whole commands in turns, using the operating system's accounting."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.report import Row

_PR_SET_CHILD_SUBREAPER = 36
"""From Linux' `prctl.h`."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One finished command: elapsed seconds, CPU seconds of user and system, peak memory in MiB."""

    seconds: float
    cpu_seconds: float
    memory_mib: float
    output: str


def lakewright(*arguments: str) -> list[str]:
    """Return the command line of Lakewright in this environment."""
    return [str(Path(sys.executable).with_name("lakewright")), *arguments]


def time_command(command: Sequence[str]) -> Measured:
    """Return the measurement of a command.

    Raises:
        RuntimeError: It failed; the message contains its output.
    """
    begin = time.monotonic()
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        output = process.stdout.read() if process.stdout else ""
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}:\n{output}")
    return Measured(
        seconds=time.monotonic() - begin,
        cpu_seconds=usage.ru_utime + usage.ru_stime,
        memory_mib=usage.ru_maxrss / 1024,
        output=output,
    )


def time_with_jvm(command: Sequence[str]) -> Measured:
    """Return the measurement of a command; the CPU seconds include those of a JVM that ends after it.

    `adopt_orphans` is called before, and this process has no other children.
    """
    before = cpu_of_children()
    measured = time_command(command)
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)
    return replace(measured, cpu_seconds=cpu_of_children() - before)


def adopt_orphans() -> None:
    """Become the parent of processes whose parents have ended, so that their processor time counts."""
    if ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError("this system does not let a process adopt orphans")


def cpu_of_children() -> float:
    """Return the CPU seconds of this process' children that have ended."""
    times = os.times()
    return times.children_user + times.children_system


def by_turns(rounds: int, **contestants: Callable[[], Measured]) -> dict[str, list[Measured]]:
    """Return each contestant's measurements; they take turns, so that a slow minute affects all of them."""
    results: dict[str, list[Measured]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, contestant in contestants.items():
            results[name].append(contestant())
    return results


def seconds(measured: Sequence[Measured]) -> float:
    """Return the median of the elapsed seconds."""
    return median(each.seconds for each in measured)


def cpu_seconds(measured: Sequence[Measured]) -> float:
    """Return the median of the CPU seconds, which hardly depend on other load."""
    return median(each.cpu_seconds for each in measured)


def peak_memory(what: str, stream: Callable[[], Iterator[Any]]) -> Row:
    """Return the peak memory of reading 3,000 and 30,000 values of a stream, which should be the same."""
    peaks = []
    for wanted in (3_000, 30_000):
        tracemalloc.start()
        found = sum(1 for _ in islice(stream(), wanted))
        peaks.append(tracemalloc.get_traced_memory()[1] / 2**20)
        tracemalloc.stop()
        if found != wanted:
            raise RuntimeError(f"{what}: there were {found} of {wanted}")
    ratio = peaks[1] / peaks[0]
    return Row(
        f"SQLite: peak memory of {what} of 3,000 and of 30,000 items",
        f"{peaks[0]:.1f} and {peaks[1]:.1f} MiB, ratio {ratio:.2f}",
        "flat",
    )


def load_during(rows: Iterator[Row]) -> list[Row]:
    """Return measurements below the load of the machine meanwhile, by which seconds must be judged."""
    loads = [os.getloadavg()[0]]
    listed = []
    for row in rows:
        listed.append(row)
        loads.append(os.getloadavg()[0])
    told = f"{min(loads):.0f} to {max(loads):.0f}"
    return [Row("load of the machine during the measurement, that of other work included", told), *listed]
