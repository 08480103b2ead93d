"""Ways to harm a run: killed or stopped at a moment, at a place in the code, as files appear; a full disk."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from tests.acceptance.command import BIN, PATH, Done
from tests.chaos.lake import CANARY, LEASE, ChaosLake
from tests.chaos.served import Server, arrivals, victim_of, wait_until_all_is_processed

FAILPOINTS = ["after_lock", "after_read", "before_commit", "after_commit", "before_processed"]
SYSCALLS = {
    "rename": "?rename,?renameat,?renameat2",
    "fdatasync": "fdatasync",
    "unlink": "?unlink,?unlinkat",
    "mkdir": "?mkdir,?mkdirat",
    "ftruncate": "ftruncate",
}
"""System calls, with their names on this or that processor."""

GRACE = 300.0
"""Seconds in which a run must have ended, whatever was done to it; a tenth of it where nothing else runs."""

LOOK = 0.001


@dataclass(frozen=True)
class Strike:
    """What is done to one run.

    Attributes:
        kind: One of `KINDS`.
        moment: A part of the time that a run takes, 0 to 1.
        count: Of the file or system call at which it is killed.
        place: The failpoint or system call.
        targets: The entities that the run is about.
    """

    kind: str
    moment: float = 0.5
    count: int = 1
    place: str = ""
    targets: str = ".*"

    @classmethod
    def chosen(cls, chance: random.Random, kinds: Sequence[str]) -> Strike:
        """Return a strike that a seeded generator chooses."""
        kind = chance.choice(kinds)
        places = list(SYSCALLS) if kind in ("syscall", "refused") else FAILPOINTS
        targets = chance.choice(["customers", "prices", "countries", ".*", ".*", "prices|countries"])
        # A number is drawn for each, whatever the kind: what comes after doesn't depend on the kinds allowed.
        moment, count, place = chance.random(), chance.randint(1, 24), chance.choice(places)
        if kind in ("syscall", "refused"):
            count = 1 + count % 3  # it is counted for each thread
        return cls(kind, moment, count, place, targets)

    def __str__(self) -> str:
        about = {
            "arriving": f" at {self.moment:.3f} of its time, {('the server', 'all')[self.count % 2]}",
            "failpoint": f" at {self.place}",
            "file": f" as file {self.count} appears",
            "refused": f" by {self.place} {self.count}",
            "served": f" at {self.moment:.3f} of its time, {victim_of(self.count)}",
            "syscall": f" at {self.place} {self.count}",
        }.get(self.kind, f" at {self.moment:.3f} of its time")
        return f"{self.kind}{about}, of {self.targets}"


@dataclass
class _Run:
    """A run in a process group of its own."""

    process: subprocess.Popen[str]
    begun: float = field(default_factory=time.monotonic)

    @property
    def is_over(self) -> bool:
        return self.process.poll() is not None

    def wait_until(self, is_so: Callable[[], bool]) -> bool:
        """Return whether it became so before the run was over."""
        while not self.is_over:
            if is_so():
                return True
            time.sleep(LOOK)
        return False

    def passed(self, seconds: float) -> Callable[[], bool]:
        return lambda: time.monotonic() - self.begun >= seconds

    def send(self, number: int) -> None:
        """Send a signal to the run and to all that it has started."""
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            return

    def ended(self) -> Done:
        try:
            out, err = self.process.communicate(timeout=GRACE)
        except subprocess.TimeoutExpired:
            self.send(signal.SIGKILL)
            raise AssertionError(f"the run didn't end within {GRACE:.0f} s") from None
        return Done(self.process.returncode, out, err, time.monotonic() - self.begun)


def job(lake: ChaosLake, targets: str = ".*", *, before: tuple[str, ...] = (), **environ: str) -> _Run:
    """Return a run of the lake's job that has been started."""
    command = [*before, str(BIN / "lakewright"), "job", "daily", "build", "-v", "--wait", "-t", targets]
    process = subprocess.Popen(
        command,
        cwd=lake.folder,
        env={**os.environ, "PATH": PATH, "CHAOS_PASSWORD": CANARY, **environ},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    return _Run(process)


def strike(lake: ChaosLake, how: Strike, horizon: float) -> list[Done]:
    """Return how the runs ended: the one that was struck, then one that came in its way if there was one.

    Args:
        lake: Where it runs.
        how: What is done to it.
        horizon: Seconds that an unharmed run takes.
    """
    if how.kind == "failpoint":
        return [job(lake, how.targets, LAKEWRIGHT_FAILPOINT=f"{how.place}:kill").ended()]
    if how.kind == "syscall":
        return [job(lake, how.targets, before=killed_at(how.place, how.count)).ended()]
    if how.kind == "refused":
        return [job(lake, how.targets, before=refused_at(how.place, how.count)).ended()]
    if how.kind in _WHOLE:
        return [_WHOLE[how.kind](lake, how, horizon)]
    run = job(lake, how.targets)
    if not run.wait_until(run.passed(how.moment * horizon)):
        return [run.ended()]
    return list(_AT_MOMENTS[how.kind](lake, how, run))


def _kill_all(_lake: ChaosLake, _how: Strike, run: _Run) -> Iterator[Done]:
    run.send(signal.SIGKILL)
    yield run.ended()


def _kill_python(_lake: ChaosLake, _how: Strike, run: _Run) -> Iterator[Done]:
    """The JVM finds out by itself, in its own time."""
    run.process.kill()
    run.process.wait()
    for pipe in (run.process.stdout, run.process.stderr):
        if pipe is not None:
            pipe.close()
    yield Done(run.process.returncode, "", "", time.monotonic() - run.begun)


def _kill_jvm(_lake: ChaosLake, _how: Strike, run: _Run) -> Iterator[Done]:
    for pid in _children(run.process.pid):
        os.kill(pid, signal.SIGKILL)
    yield run.ended()


def _terminate(_lake: ChaosLake, _how: Strike, run: _Run) -> Iterator[Done]:
    run.process.terminate()
    yield run.ended()


def _stop(lake: ChaosLake, how: Strike, run: _Run) -> Iterator[Done]:
    """It stands still for longer than its leases last; another run does its work; then it goes on."""
    run.send(signal.SIGSTOP)
    time.sleep(LEASE + 0.5)
    other = job(lake, how.targets).ended()
    run.send(signal.SIGCONT)
    yield run.ended()
    yield other


def _served(lake: ChaosLake, how: Strike, horizon: float) -> Done:
    """It works in a server, one of whose processes is killed; all of them end by themselves afterwards."""
    server = Server.start(lake.folder)
    run = job(lake, how.targets)
    is_running = run.wait_until(run.passed(how.moment * horizon))
    # Before the strike: nobody finds the children of a process that is gone.
    processes = server.processes()
    if is_running:
        server.kill(victim_of(how.count), run.process.pid)
    try:
        return run.ended()
    finally:
        server.end(processes)


def _arriving(lake: ChaosLake, how: Strike, horizon: float) -> Done:
    """A server processes what arrives; it is killed, alone or with all its processes, and another goes on."""
    begun = time.monotonic()
    with arrivals(lake.folder):
        server = Server.start(lake.folder)
        time.sleep(how.moment * horizon)
        processes = server.processes()
        for each in processes if how.count % 2 else processes[:1]:
            with suppress(psutil.NoSuchProcess):
                each.kill()
        # What outlives the server goes on to its end beside the next one.
        again = Server.start(lake.folder)
        try:
            wait_until_all_is_processed(lake.folder)
        finally:
            again.end([*processes, *again.processes()])
    return Done(-signal.SIGKILL, "", "", time.monotonic() - begun)


def _at_file(lake: ChaosLake, how: Strike, _horizon: float) -> Done:
    """Kill it as soon as the silver tables have some more files: data, logs, and those in between."""
    silver = lake.folder / "lake" / "silver"
    seen = set(_names(silver))

    def is_there() -> bool:
        seen.update(_names(silver))
        return len(seen) >= before + how.count

    before = len(seen)
    run = job(lake, how.targets)
    if run.wait_until(is_there):
        run.send(signal.SIGKILL)
    return run.ended()


def _names(folder: Path) -> Iterator[str]:
    for place, _, names in os.walk(folder):
        for name in names:
            yield f"{place}/{name}"


def killed_at(place: str, count: int) -> tuple[str, ...]:
    """Return what to write before a command to have it killed as one of its threads makes a system call.

    The call isn't made any more.
    """
    calls = SYSCALLS[place]
    inject = f"inject={calls}:signal=SIGKILL:when={count}"
    # With --seccomp-bpf, which would be quicker, strace 6.1 sends no signal.
    return ("strace", "-f", "-qqq", "-o", "/dev/null", "-e", f"trace={calls}", "-e", inject)


def refused_at(place: str, count: int) -> tuple[str, ...]:
    """Return what to write before a command to have a full disk refuse a system call of each thread."""
    calls = SYSCALLS[place]
    tracing = ("strace", "-f", "--seccomp-bpf", "-qqq", "-o", "/dev/null")
    return (*tracing, "-e", f"trace={calls}", "-e", f"inject={calls}:error=ENOSPC:when={count}")


def _children(pid: int) -> list[int]:
    """Return the processes that a process has started, and those that these have."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            direct = [int(child) for child in task.read_text().split()]
        except OSError:
            continue
        found += [each for child in direct for each in (child, *_children(child))]
    return found


_AT_MOMENTS: Mapping[str, Callable[[ChaosLake, Strike, _Run], Iterator[Done]]] = {
    "all": _kill_all,
    "python": _kill_python,
    "jvm": _kill_jvm,
    "term": _terminate,
    "stop": _stop,
}

_WHOLE: Mapping[str, Callable[[ChaosLake, Strike, float], Done]] = {
    "arriving": _arriving,
    "file": _at_file,
    "served": _served,
}

KINDS = [
    *_AT_MOMENTS,
    *_WHOLE,
    "failpoint",
    *(["syscall", "refused"] if shutil.which("strace") else []),
]
"""Kinds of strikes that this machine allows."""
