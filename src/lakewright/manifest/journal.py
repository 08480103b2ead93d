"""The journal: what ran, how each target ended, and what was left undone, over any back end.

A run is two writes, and one more for each target that did something.

Source: `lifecycles-and-phases.md`, "Jobs & Lifecycles"; keeping it beside the manifest is Lakewright's own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from itertools import islice, takewhile
from typing import Any

from lakewright.manifest.lease import Holder
from lakewright.manifest.lock import IsDead, knows_of_no_death
from lakewright.manifest.payload import bounded
from lakewright.manifest.record import format_instant, parse_instant
from lakewright.manifest.redact import Redactor
from lakewright.manifest.store import Document, Put, Store, Write

__all__ = ["ABORTED", "RUNNING", "Journal", "Place", "Run", "Taint"]

RUN, RUN_KEY, RUN_TARGET, TAINT = "run", "run_key", "run_target", "taint"

BUILT = "built"
"""The kind of the documents that hold what targets were last built from."""

BATCH = 500
"""Documents removed in one write."""

RUNNING = "RUNNING"
ABORTED = "ABORTED"


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a job.

    Attributes:
        parameters: As given, secrets hidden.
        status: `RUNNING` until it is finished; `ABORTED` is also told of one whose process has ended.
        finished: None while it runs.
        facts: Whatever else is to be kept: versions, author, exit code. JSON-able.
    """

    run_id: str
    project: str
    job: str
    phase: str
    parameters: Mapping[str, Any]
    started: datetime
    holder: Holder
    status: str = RUNNING
    finished: datetime | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The key of its document: runs sort by their start."""
        return f"{format_instant(self.started)} {self.run_id}"

    def as_json(self) -> dict[str, Any]:
        """Return the run as JSON holds it."""
        return {
            **asdict(self),
            "started": format_instant(self.started),
            "finished": format_instant(self.finished) if self.finished else None,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Run:
        """Return the run that `as_json` wrote."""
        finished = value["finished"]
        return cls(
            **{
                **value,
                "started": parse_instant(value["started"]),
                "finished": parse_instant(finished) if finished else None,
                "holder": Holder(**value["holder"]),
            }
        )


@dataclass(frozen=True, slots=True)
class Place:
    """A target in one phase, for one set of parameters: what can be tainted."""

    project: str
    target: str
    phase: str
    parameters: Mapping[str, str]

    @property
    def key(self) -> str:
        """The key of the document about it."""
        named = json.dumps([self.target, self.phase, sorted(self.parameters.items())])
        return f"{self.project}/{hashlib.sha256(named.encode()).hexdigest()}"

    def tainted(self, reason: str) -> Put:
        """Return the put that makes the next run do this, whatever it finds."""
        return Put(TAINT, self.key, {"place": asdict(self), "reason": reason})

    def untainted(self) -> Put:
        """Return the put that lets the next run decide by what it finds."""
        return Put(TAINT, self.key, None)


@dataclass(frozen=True, slots=True)
class Taint:
    """A place that stays dirty, and why."""

    place: Place
    reason: str


@dataclass(frozen=True, slots=True)
class Journal:
    """The history of runs in a store.

    Attributes:
        redactor: Takes secrets out of what is kept.
        is_dead: Tells whether a holder is a process of this host that has ended.
    """

    store: Store
    redactor: Redactor = field(default_factory=Redactor)
    is_dead: IsDead = knows_of_no_death

    def start_run(self, run: Run, puts: Sequence[Put] = ()) -> Run:
        """Put down that a run has begun, with taints, and return it as it is kept."""
        run = replace(run, parameters=self.hidden(run.parameters), facts=self._kept(run.facts))
        pointer = Put(RUN_KEY, run.run_id, {"key": run.key})
        self.store.write(Write(puts=(Put(RUN, run.key, run.as_json()), pointer, *map(self._taint, puts))))
        return run

    def finish_run(self, run: Run, status: str, *, finished: datetime, **facts: Any) -> Run:
        """Put down how a run ended, and return it as it is kept."""
        run = replace(run, status=status, finished=finished, facts={**run.facts, **self._kept(facts)})
        self.store.write(Write(puts=(Put(RUN, run.key, run.as_json()),)))
        return run

    def targets_done(
        self, run: Run, results: Mapping[int, Mapping[str, Any]], puts: Sequence[Put] = ()
    ) -> None:
        """Put down how targets ended, in one write with what follows from it.

        Args:
            run: The run.
            results: What is to be kept of each, JSON-able, `instance` being its parameters; numbers are the
                order in which they are shown.
            puts: Taints, as `Place` makes them.
        """
        entries = [
            Put(RUN_TARGET, f"{run.run_id}/{number:08d}", self._kept({**result, **self._instance(result)}))
            for number, result in results.items()
        ]
        self.store.write(Write(puts=(*entries, *map(self._taint, puts))))

    def note(self, *puts: Put) -> None:
        """Put down taints outside of a run."""
        self.store.write(Write(puts=tuple(map(self._taint, puts))))

    def hidden(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return parameters as they are kept: secrets hidden, so that they tell instances apart no more."""
        return self.redactor.entries(parameters)

    def _taint(self, put: Put) -> Put:
        if put.kind != TAINT or put.value is None:
            return put
        place = put.value["place"]
        place = {**place, "parameters": self.hidden(place["parameters"])}
        return replace(put, value={**put.value, "place": place})

    def _instance(self, result: Mapping[str, Any]) -> dict[str, Any]:
        return {"instance": self.hidden(result["instance"])} if "instance" in result else {}

    def run(self, run_id: str) -> Run | None:
        """Return the run with that id, or None."""
        pointer = self.store.document(RUN_KEY, run_id)
        document = None if pointer is None else self.store.document(RUN, pointer.value["key"])
        return None if document is None else self._run(document)

    def runs(
        self,
        limit: int | None = None,
        *,
        project: str | None = None,
        job: str | None = None,
        status: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        since: datetime | None = None,
    ) -> Iterator[Run]:
        """Yield runs, the newest first; what isn't given doesn't restrict."""
        hidden = None if parameters is None else self.hidden(parameters)
        wanted = {"project": project, "job": job, "status": status, "parameters": hidden}
        given = {name: value for name, value in wanted.items() if value is not None}
        runs: Iterator[Run] = map(self._run, self.store.documents(RUN, is_newest_first=True))
        if since is not None:
            runs = takewhile(lambda run: run.started >= since, runs)
        return islice((r for r in runs if all(getattr(r, n) == v for n, v in given.items())), limit)

    def targets(self, run_id: str) -> Iterator[Mapping[str, Any]]:
        """Yield what was put down of a run's targets, in order."""
        return (document.value for document in self.store.documents(RUN_TARGET, prefix=f"{run_id}/"))

    def old_runs(self, before: datetime) -> Iterator[Run]:
        """Yield the runs that began before an instant and that nothing depends on, the newest first.

        The last run of a job with its phase and parameters stays, and the last that succeeded: what is to be
        resumed follows from them. So does whatever runs.
        """
        kept: set[tuple[object, ...]] = set()
        for run in self.runs():
            kind = (
                run.project,
                run.job,
                run.phase,
                json.dumps(dict(run.parameters), sort_keys=True, default=str),
            )
            uses = {(*kind, "last"), *([(*kind, "good")] if run.status == "SUCCESS" else [])}
            if run.status != RUNNING and uses <= kept and run.started < before:
                yield run
            kept |= uses

    def forget(self, run: Run) -> None:
        """Remove a run and what was put down of its targets; the run itself last, so that nothing is left."""
        keys = [document.key for document in self.store.documents(RUN_TARGET, prefix=f"{run.run_id}/")]
        for start in range(0, len(keys), BATCH):
            gone = (Put(RUN_TARGET, key, None) for key in keys[start : start + BATCH])
            self.store.write(Write(puts=tuple(gone)))
        self.store.write(Write(puts=(Put(RUN_KEY, run.run_id, None), Put(RUN, run.key, None))))

    def taints(self, project: str) -> Iterator[Taint]:
        """Yield the places of a project that stay dirty."""
        for document in self.store.documents(TAINT, prefix=f"{project}/"):
            taint = Taint(Place(**document.value["place"]), document.value["reason"])
            if taint.place.project == project:
                yield taint

    def _run(self, document: Document) -> Run:
        run = Run.from_json(document.value)
        is_aborted = run.status == RUNNING and self.is_dead(run.holder)
        return replace(run, status=ABORTED) if is_aborted else run

    def _kept(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return bounded(self.redactor.value(values))
