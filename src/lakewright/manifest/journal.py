"""The journal: the history of runs, the results of their targets, over any back end.

A run takes two writes, and one more for each target that did any work, or two if it appends rows.

Source: `lifecycles-and-phases.md`, "Jobs & Lifecycles". Storing it with the manifest is Lakewright's
    addition.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice, takewhile
from typing import Any

from lakewright.errors import LakewrightError
from lakewright.manifest.lease import Holder, IsDead, assume_alive
from lakewright.manifest.payload import bounded
from lakewright.manifest.plain_values import document_of, of_json
from lakewright.manifest.record import format_instant
from lakewright.manifest.redaction import Redactor
from lakewright.manifest.store import Document, Put, Store, Write, batched

RUN, RUN_KEY, RUN_TARGET = "run", "run_key", "run_target"

TAINT = "taint"
"""The kind of the documents by which earlier versions recorded what was to be built again."""

BUILT = "built"
"""The kind of the documents by which earlier versions recorded what targets were last built from."""

BUILD = "build"
"""The kind of the documents that record the last build of each instance of a target."""

CHECK = "check"
"""The kind of the documents that record the last verdict of VERIFY on each instance of a target."""

WANT = "want"
"""The kind of the documents that record the steps that are left of an instance of a job."""

SETTLED = "settled"
"""The kind of the documents that say of a target that all its builds were found to be current, and when.

Whatever records a build empties that of its target: see `unsettled`.
"""

CALM = "calm"
"""The kind of the documents that say of an entity that all its slices were in its table, and when."""

UNFIT = "unfit"
"""The kind of the documents that record which slices a replay could not apply."""

DECISION = "decision"
"""The kind of the documents that record what people have decided."""

RUNNING = "RUNNING"
ABORTED = "ABORTED"

_CHOICE = ("targets", "no_lifecycle", "resume")
"""Facts of a run that left out steps."""

_USES = {"SUCCESS": ("good", "done"), "SUCCESS_WITH_ERRORS": ("done",)}
"""What a run is kept for, by its status, besides being the last of its kind."""


def unsettled(project: str, target: str) -> Put:
    """Return the put that goes with each build of a target that is recorded.

    Source: Lakewright's own.
    """
    return Put(SETTLED, f"{project}/{target}", {})


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a job.

    Attributes:
        parameters: As given: the text after the `=` of each argument, by what is before it, such as
            `day:start`. Secrets are hidden.
        status: `RUNNING` until it is finished; `ABORTED` is also reported for a run whose process has ended.
        finished: None while it runs.
        facts: Further JSON values: versions, author, exit code; the `targets` that it was restricted to,
            `no_lifecycle` if it ran no phase before its own, and `resume` if only what a run had left undone.
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
    def arguments(self) -> tuple[str, ...]:
        """The arguments as they were given, such as `day=2024-05-04,2024-05-05`, with secrets hidden."""
        return tuple(f"{name}={text}" for name, text in self.parameters.items())

    @property
    def key(self) -> str:
        """The key of its document; keys sort by the start of the run."""
        return f"{format_instant(self.started)} {self.run_id}"

    def as_json(self) -> dict[str, Any]:
        """Return the JSON form of the run."""
        return document_of(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Run:
        """Return the run of a value that `as_json` returned."""
        return of_json(cls, value)


@dataclass(frozen=True, slots=True)
class Journal:
    """The history of runs in a store.

    Attributes:
        redactor: Removes secrets from what is saved.
        is_dead: Returns whether a holder is a process of this host that has ended.
        ended: Runs of this process whose end could not be saved, by id. It is saved with the next start of a
            run, or when runs are read.
    """

    store: Store
    redactor: Redactor = field(default_factory=Redactor)
    is_dead: IsDead = assume_alive
    ended: dict[str, Run] = field(default_factory=dict, compare=False)

    def start_run(self, run: Run, puts: Sequence[Put] = ()) -> Run:
        """Save the start of a run, with what it is to build, and return the saved run."""
        self.save_ends()
        run = replace(run, parameters=self.hide_secrets(run.parameters), facts=self._bounded(run.facts))
        pointer = Put(RUN_KEY, run.run_id, {"key": run.key})
        self.store.write(Write(puts=(Put(RUN, run.key, run.as_json()), pointer, *puts)))
        return run

    def finish_run(self, run: Run, status: str, *, finished: datetime, **facts: Any) -> Run:
        """Save the end of a run, and return the saved run; if that fails, it is remembered."""
        run = replace(run, status=status, finished=finished, facts={**run.facts, **self._bounded(facts)})
        self.ended[run.run_id] = run
        self.store.write(Write(puts=(Put(RUN, run.key, run.as_json()),)))
        self.ended.pop(run.run_id, None)
        return run

    def abort_run(self, run: Run) -> None:
        """Save that a run has ended, without knowing what it left undone; if that fails, it is remembered."""
        self.ended[run.run_id] = replace(run, status=ABORTED)
        self.save_ends()

    def save_ends(self) -> None:
        """Save the ends of runs that are remembered, if the store answers."""
        for run in tuple(self.ended.values()):
            with suppress(LakewrightError):
                self.store.write(Write(puts=(Put(RUN, run.key, run.as_json()),)))
                self.ended.pop(run.run_id, None)

    def record_targets(
        self, run: Run, results: Mapping[int, Mapping[str, Any]], puts: Sequence[Put] = ()
    ) -> None:
        """Save the results of targets, in one write with their builds.

        Args:
            run: The run.
            results: A JSON value for each target, in which `instance` holds its parameters; the numbers are
                the order in which results are shown.
            puts: The documents of their builds.
        """
        entries = [
            Put(RUN_TARGET, f"{run.run_id}/{number:08d}", self._bounded({**result, **self._instance(result)}))
            for number, result in results.items()
        ]
        self.store.write(Write(puts=(*entries, *puts)))

    def hide_secrets(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return parameters in the form in which they are saved, with secrets hidden.

        Instances that differ only in secrets have the same saved parameters.
        """
        return self.redactor.entries(parameters)

    def _instance(self, result: Mapping[str, Any]) -> dict[str, Any]:
        return {"instance": self.hide_secrets(result["instance"])} if "instance" in result else {}

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
        since: datetime | None = None,
    ) -> Iterator[Run]:
        """Yield runs, newest first; an argument that is not given does not restrict."""
        self.save_ends()
        wanted = {"project": project, "job": job, "status": status}
        given = {name: value for name, value in wanted.items() if value is not None}
        runs: Iterator[Run] = map(self._run, self.store.documents(RUN, is_newest_first=True))
        if since is not None:
            runs = takewhile(lambda run: run.started >= since, runs)
        return islice((r for r in runs if all(getattr(r, n) == v for n, v in given.items())), limit)

    def targets(self, run_id: str) -> Iterator[Mapping[str, Any]]:
        """Yield the results of a run's targets, in order."""
        return (document.value for document in self.store.documents(RUN_TARGET, prefix=f"{run_id}/"))

    def old_runs(self, before: datetime) -> Iterator[Run]:
        """Yield the runs that began before an instant and may be deleted, newest first.

        For each job, phase, parameters and choice of targets, the last run and the last successful run are
        kept, and the last one that succeeded with errors after that. Running ones are kept too.
        """
        kept: set[tuple[object, ...]] = set()
        for run in self.runs():
            kind = (
                run.project,
                run.job,
                run.phase,
                json.dumps(dict(run.parameters), sort_keys=True, default=str),
                json.dumps([run.facts.get("targets"), *(bool(run.facts.get(name)) for name in _CHOICE)]),
            )
            uses = {(*kind, "last"), *((*kind, use) for use in _USES.get(run.status, ()))}
            if run.status != RUNNING and uses <= kept and run.started < before:
                yield run
            kept |= uses

    def delete(self, run: Run) -> None:
        """Delete a run and the results of its targets.

        The run's own document is deleted last, so that an interrupted deletion can be repeated.
        """
        results = list(self.store.documents(RUN_TARGET, prefix=f"{run.run_id}/"))
        for page in batched(Put(RUN_TARGET, each.key, None) for each in results):
            self.store.write(Write(puts=tuple(page)))
        self.store.write(Write(puts=(Put(RUN_KEY, run.run_id, None), Put(RUN, run.key, None))))

    def _run(self, document: Document) -> Run:
        run = Run.from_json(document.value)
        run = self.ended.get(run.run_id, run)
        is_aborted = run.status == RUNNING and self.is_dead(run.holder)
        return replace(run, status=ABORTED) if is_aborted else run

    def _bounded(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return bounded(self.redactor.value(values))
