"""Runs a command for each ready item, several at once, each under a lock with a heartbeat.

A command that ends with 0 makes its item processed, any other end makes it failed. An interrupted command's
item is made ready again. A command whose lock is lost is killed with all that it started.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any, Protocol

from lakewright.bus.command import KILL, Ended, Guard, run_command
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
ENDS_BY = {FAILED, LOST, UNRECORDED}
"""What became of an item after which no further one is begun."""

PLACEHOLDER = "{item}"


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


@dataclass(kw_only=True)
class CommandRun:
    """A command that is run for each item of a demand, and what became of the items.

    Attributes:
        demand: What to process.
        arguments: The command; `{item}` is replaced by the item's id.
        environ: The environment of the command.
        redactor: Removes secrets from what is recorded.
        stops: Reports whether a signal asked the run to stop; running commands get that signal.
        forward: Receives what commands write to stderr.
        report: Receives what became of each item.
        jobs: The number of commands that run at once.
        keeps_going: Whether further items are processed after one has failed.
        worked: What became of each item, in the order in which they ended.
        obstacle: Why no later item could be claimed, if items are processed in order.
        error: Why the run ended early.
    """

    manifest: Manifest
    demand: Demand
    arguments: Sequence[str]
    environ: Mapping[str, str]
    redactor: Redactor
    stops: Stops
    forward: Callable[[str], None]
    report: Callable[[Worked], None]
    jobs: int = 1
    keeps_going: bool = False
    worked: list[Worked] = field(default_factory=list, init=False)
    obstacle: LakewrightError | None = field(default=None, init=False)
    error: Exception | None = field(default=None, init=False)
    _is_cut_short: bool = field(default=False, init=False)
    _lock: Lock = field(default_factory=Lock, init=False)

    def run(self) -> None:
        """Run the command for one item after the other, until there is none or the run must stop."""
        worklist = self.manifest.worklist(self.demand)
        with TemporaryDirectory(prefix="lakewright-run-") as folder, Guard() as guard:
            errors = self._work(worklist, Path(folder), guard)
        self.obstacle = worklist.obstacle
        self.error = next((error for error in errors if isinstance(error, Exception)), None)

    def count(self, status: str) -> int:
        """Return the number of items with a status."""
        return sum(each.status == status for each in self.worked)

    def _work(self, worklist: Worklist, folder: Path, guard: Guard) -> list[BaseException]:
        """Let threads work until the list is empty, and return the errors that ended some of them."""
        with ThreadPoolExecutor(self.jobs, thread_name_prefix="lakewright-run") as pool:
            working = [pool.submit(self._work_off, worklist, folder, guard) for _ in range(self.jobs)]
            try:
                # With a timeout, so that this thread can receive signals.
                while wait(working, timeout=0.2).not_done:
                    if any(each.done() and each.exception() is not None for each in working):
                        worklist.stop()
            except BaseException:
                # A second signal: commands are killed, not asked.
                self._is_cut_short = True
                raise
        return [error for each in working if (error := each.exception()) is not None]

    def _work_off(self, worklist: Worklist, folder: Path, guard: Guard) -> None:
        # In order, a failed item holds back all that arrived after it.
        ends_by = {LOST, UNRECORDED} if self.keeps_going and not self.demand.is_in_order else ENDS_BY
        while self.stops.signal is None and not self._is_cut_short:
            claim = worklist.next_claim()
            if claim is None:
                return
            worked = self._process(claim, folder, guard)
            with self._lock:
                self.worked.append(worked)
                self.report(worked)
            if worked.status in ends_by:
                worklist.stop()

    def _process(self, claim: Claim, folder: Path, guard: Guard) -> Worked:
        begin, heartbeat = time.monotonic(), self.manifest.heartbeat
        heartbeat.keep(claim.lease)
        try:
            ended = self._run(claim, folder / f"{claim.record_id}.json", guard)
            status, note = self._record(claim, ended)
        finally:
            heartbeat.drop(claim.lease)
        with suppress(OSError):  # it may be missing, or a folder, which ends with the run
            ended.payload_file.unlink()
        return Worked(claim.item_id, status, time.monotonic() - begin, note, ended.code)

    def _run(self, claim: Claim, payload_file: Path, guard: Guard) -> Ended:
        named = {
            "LAKEWRIGHT_ITEM": claim.item_id,
            "LAKEWRIGHT_RECORD": claim.record_id,
            "LAKEWRIGHT_RUN": claim.run_id,
        }
        try:
            return run_command(
                [argument.replace(PLACEHOLDER, claim.item_id) for argument in self.arguments],
                {**self.environ, **named},
                payload_file,
                guard=guard,
                must_stop=lambda: self._must_stop(claim),
                forward=self.forward,
            )
        except Exception as error:  # it was not started, or was killed
            reason = self.redactor.text(text_of(error))
            is_unstarted = isinstance(error, UsageError)
            why = "the command can't be started" if is_unstarted else f"interrupted by an error: {reason}"
            self.manifest.ledger.give_back(claim, why)
            raise

    def _must_stop(self, claim: Claim) -> int | None:
        if self.manifest.heartbeat.loss(claim.lease) is not None or self._is_cut_short:
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
