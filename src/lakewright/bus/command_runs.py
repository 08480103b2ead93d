"""Runs a command for each ready item, several at once, each under a lock with a heartbeat.

A command that ends with 0 makes its item processed, any other end makes it failed. An interrupted command's
item is made ready again. A command whose lock is lost is killed with all that it started.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Protocol

from lakewright.bus.command import KILL, Command, Ended, Workplace, run_command
from lakewright.bus.manifest import Manifest
from lakewright.bus.worklist import Demand, Worklist
from lakewright.errors import CommandFailed, LakewrightError, LeaseLost, StoreUnavailable, UsageError
from lakewright.manifest.claim import Claim
from lakewright.manifest.payload import failure, text_of
from lakewright.manifest.plain_values import document_of
from lakewright.manifest.redaction import Redactor

LONGEST_STDERR = 2_000
"""Characters of the end of stderr that a FAILED record keeps."""

LONGEST_LINE = 300

PROCESSED, FAILED, RELEASED = "processed", "failed", "released"
LOST, UNRECORDED = "lost", "unrecorded"


class Stops(Protocol):
    """Reports whether a signal asked the run to stop."""

    signal: int | None


@dataclass(frozen=True, slots=True)
class Worked:
    """What became of one item.

    Attributes:
        status: `processed`, `failed`, `released` after an interruption, `lost` if the lock was
            lost, `unrecorded` if the store didn't answer.
        note: Why, if it wasn't processed; else what is worth to know.
    """

    item_id: str
    status: str
    seconds: float
    note: str | None = None
    exit_code: int | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the entry that `manifest run -o json` prints."""
        return document_of(self, seconds=round(self.seconds, 3))


@dataclass(slots=True)
class CommandRun:
    """The run of a command over items.

    Attributes:
        worked: What became of each item, in the order in which they ended.
        obstacle: Why no later item could be claimed, if items are processed in order.
        error: Why the run ended early.
    """

    worked: list[Worked] = field(default_factory=list)
    obstacle: LakewrightError | None = None
    error: Exception | None = None

    def count(self, status: str) -> int:
        """Return the number of items with a status."""
        return sum(each.status == status for each in self.worked)


@dataclass(slots=True)
class _Crew:
    """The threads that work on one list."""

    manifest: Manifest
    command: Command
    workplace: Workplace
    worklist: Worklist
    stops: Stops
    forward: Callable[[str], None]
    report: Callable[[Worked], None]
    redactor: Redactor
    keeps_going: bool
    run: CommandRun = field(default_factory=CommandRun)
    is_cut_short: bool = False
    lock: Lock = field(default_factory=Lock)

    def work(self) -> None:
        """Process one item after the other until there is none, or the run must stop."""
        while self.stops.signal is None and not self.is_cut_short:
            claim = self.worklist.next_claim()
            if claim is None:
                return
            self._end(self._process(claim))

    def _end(self, worked: Worked) -> None:
        with self.lock:
            self.run.worked.append(worked)
            self.report(worked)
        if worked.status in (LOST, UNRECORDED) or (worked.status == FAILED and not self.keeps_going):
            self.worklist.stop()

    def _process(self, claim: Claim) -> Worked:
        begin = time.monotonic()
        heartbeat = self.manifest.heartbeat
        heartbeat.keep(claim.lease)
        ends: list[Ended] = []
        outcome: list[tuple[str, str | None]] = []

        def use(ended: Ended) -> None:
            ends.append(ended)
            outcome.append(self._record(claim, ended))

        try:
            run_command(
                self.command,
                claim.item_id,
                {"LAKEWRIGHT_RECORD": claim.record_id, "LAKEWRIGHT_RUN": claim.run_id},
                workplace=self.workplace,
                must_stop=lambda: self._must_stop(claim),
                forward=self.forward,
                use=use,
            )
        except Exception as error:
            if not ends:  # it was not started, or was killed
                reason = self.redactor.text(text_of(error))
                is_unstarted = isinstance(error, UsageError)
                why = "the command can't be started" if is_unstarted else f"interrupted by an error: {reason}"
                self.manifest.ledger.give_back(claim, why)
            raise
        finally:
            heartbeat.drop(claim.lease)
        status, note = outcome[0]
        return Worked(claim.item_id, status, time.monotonic() - begin, note, ends[0].code)

    def _must_stop(self, claim: Claim) -> int | None:
        if self.manifest.heartbeat.loss(claim.lease) is not None or self.is_cut_short:
            return KILL
        return self.stops.signal

    def _record(self, claim: Claim, ended: Ended) -> tuple[str, str | None]:
        """Record how a command ended; return what became of the item, and why."""
        lost = self.manifest.heartbeat.loss(claim.lease)
        if lost is not None:
            return LOST, f"{lost.message}; its command was killed"
        try:
            return self._record_end(claim, ended)
        except LeaseLost as error:
            return LOST, error.message
        except StoreUnavailable as error:
            code = f"the command ended with exit code {ended.code}, which could not be recorded"
            return UNRECORDED, f"{code}: {error.message}; the item stays locked"

    def _record_end(self, claim: Claim, ended: Ended) -> tuple[str, str | None]:
        ledger = self.manifest.ledger
        failed: LakewrightError
        try:
            if ended.code == 0:
                payload = ended.payload()
                ledger.processed_by_other(claim, payload)
                left = "it left processes running, which were killed" if ended.has_left_processes else None
                return PROCESSED, left
            if ended.stopped_by is not None:
                ledger.give_back(claim, f"interrupted by {signal.Signals(ended.stopped_by).name}")
                return RELEASED, "interrupted; it is ready again"
            failed = self._failed(ended)
        except UsageError as error:
            failed = error
        stderr = self.redactor.text(ended.stderr)[-LONGEST_STDERR:]
        ledger.failed(claim, failure(failed, exit_code=ended.code, stderr=stderr))
        return FAILED, failed.message

    def _failed(self, ended: Ended) -> CommandFailed:
        last = ended.stderr.rstrip().rpartition("\n")[2][-LONGEST_LINE:]
        said = f": {self.redactor.text(last)}" if last else ""
        if ended.code < 0:
            name = signal.Signals(-ended.code).name
            return CommandFailed(f"the command was ended by {name}{said}", details={"signal": name})
        return CommandFailed(
            f"the command ended with exit code {ended.code}{said}", details={"exit_code": ended.code}
        )


def run_commands(
    manifest: Manifest,
    demand: Demand,
    arguments: tuple[str, ...],
    *,
    environ: Mapping[str, str],
    redactor: Redactor,
    stops: Stops,
    forward: Callable[[str], None],
    report: Callable[[Worked], None],
    jobs: int = 1,
    keeps_going: bool = False,
) -> CommandRun:
    """Run a command for each item of a demand, and return what became of the items.

    Args:
        manifest: The manifest.
        demand: What to process.
        arguments: The command; `{item}` is replaced by the item's id.
        environ: The environment of the command.
        redactor: Removes secrets from what is recorded.
        stops: Reports whether a signal asked the run to stop; running commands get that signal.
        forward: Receives what commands write to stderr.
        report: Receives what became of each item.
        jobs: The number of commands that run at once.
        keeps_going: Whether further items are processed after one has failed.
    """
    worklist = manifest.worklist(demand)
    with Workplace.opened() as workplace:
        crew = _Crew(
            manifest,
            Command(arguments, environ),
            workplace,
            worklist,
            stops,
            forward,
            report,
            redactor,
            # In order, a failed item holds back all that arrived after it.
            keeps_going=keeps_going and not demand.is_in_order,
        )
        errors = _work(crew, jobs)
    crew.run.obstacle = worklist.obstacle
    crew.run.error = next((error for error in errors if isinstance(error, Exception)), None)
    return crew.run


def _work(crew: _Crew, jobs: int) -> list[BaseException]:
    """Let threads work until the list is empty, and return the errors that ended some of them."""
    with ThreadPoolExecutor(jobs, thread_name_prefix="lakewright-run") as pool:
        working = [pool.submit(crew.work) for _ in range(jobs)]
        try:
            # With a timeout, so that this thread can receive signals.
            while wait(working, timeout=0.2).not_done:
                if any(each.done() and each.exception() is not None for each in working):
                    crew.worklist.stop()
        except BaseException:
            # A second signal: commands are killed, not asked.
            crew.is_cut_short = True
            raise
    return [error for each in working if (error := each.exception()) is not None]
