"""A loaded project: its definitions, runs of its jobs, and what the manifest says."""

from __future__ import annotations

from collections import abc
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from lakewright.api.arguments import (
    all_values,
    checked_methods,
    count_of,
    grants_of,
    job_arguments,
    job_request,
    texts_by_name,
    texts_of,
)
from lakewright.api.definitions import Entity, Job, Mapping, Relation
from lakewright.api.open_project import (
    Opened,
    RunEvent,
    Runs,
    Watcher,
    report_end,
    warn,
    warn_of,
    warned,
)
from lakewright.app import App
from lakewright.bus.manifest import Manifest
from lakewright.due.plan import Plan as Due
from lakewright.errors import Fault
from lakewright.plan.step import Plan
from lakewright.run.case import CaseResult
from lakewright.run.request import JobRequest
from lakewright.run.result import RunResult
from lakewright.spark.connect import sessions_like
from lakewright.spark.loggers import quiet_pyspark
from lakewright.stores.process import user_name
from lakewright.threads import shared_property
from lakewright.usecases.draw_graph import DrawnTarget, declared_graph
from lakewright.usecases.due.decide import decide as record_decision
from lakewright.usecases.due.status import ProjectStatus, project_status
from lakewright.usecases.due.take import Applied, apply_plan, plan_of_project
from lakewright.usecases.history import list_runs
from lakewright.usecases.reading import query_frame
from lakewright.usecases.run_job import instance_parameters, plan_job, run_job, run_tests, select_tests

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@checked_methods
class Project:
    """An open project; use it as a context manager, or close it."""

    def __init__(self, app: App, spark: SparkSession | None = None) -> None:
        self._declared = app.project
        self._opened = Opened(app, spark)

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *,
        profiles: str | Iterable[str] = (),
        definitions: abc.Mapping[str, str] | None = None,
        config: abc.Mapping[str, str] | None = None,
        spark: SparkSession | None = None,
        despite_faults: bool = False,
    ) -> Project:
        """Load the project in a folder.

        Args:
            folder: The folder that has `project.yml`.
            profiles: Names of the profiles to use.
            definitions: Values that override environments, as `-D` on the command line.
            config: Configuration that overrides the project's, as `--conf`.
            spark: A session that runs already. The project works in new sessions that share its JVM; its
                settings and temporary views are not used or changed, and it is never stopped. Without it,
                a session that runs in this process is used in the same way; if there is none, one is
                started when it is needed, and stopped when the project is closed.
            despite_faults: Load what no fault of the files touches; `faults` has what is wrong.

        Raises:
            SpecError: The project's files are wrong; the error has every fault. With `despite_faults`, a
                fault concerns the whole project.
            SparkUnavailable: The given session has no Delta Lake, or is stopped.
        """
        sessions = None if spark is None else sessions_like(spark)
        if sessions is not None:
            sessions.check()
        app = App.open(
            Path(folder),
            profiles=texts_of("profiles", profiles),
            definitions=texts_by_name("definitions", definitions),
            config=texts_by_name("config", config),
            sessions=sessions,
            despite_faults=despite_faults,
        )
        warn_of((*app.project.faults, *app.warnings))
        return cls(app, spark)

    @property
    def app(self) -> App:
        """What the use cases work with, until the project is closed."""
        return self._opened.app

    @property
    def name(self) -> str:
        """Its name."""
        return self._declared.name

    @property
    def folder(self) -> Path:
        """The folder of its files."""
        return self._declared.basedir

    @property
    def warnings(self) -> tuple[Fault, ...]:
        """Declarations that are valid but probably a mistake."""
        return self._declared.warnings

    @property
    def faults(self) -> tuple[Fault, ...]:
        """What is wrong in its files, if it was loaded despite that."""
        return tuple(self._declared.faults)

    @property
    def spark(self) -> SparkSession:
        """The session that frames belong to: the given one, or that of this process, started if need be."""
        return self._opened.session

    @property
    def jobs(self) -> abc.Mapping[str, Job]:
        """Its jobs by name."""
        return {name: Job.of(name, job) for name, job in self._declared.jobs.items()}

    @property
    def entities(self) -> abc.Mapping[str, Entity]:
        """Its entities by name."""
        return {name: Entity(entity, self._opened) for name, entity in self._declared.entities.items()}

    @property
    def relations(self) -> abc.Mapping[str, Relation]:
        """Its relations by name."""
        found = self._declared.relations
        return {name: Relation(name, each.kind, self._opened) for name, each in found.items()}

    @property
    def mappings(self) -> abc.Mapping[str, Mapping]:
        """Its mappings by name."""
        found = self._declared.mappings
        return {name: Mapping(name, each.kind, self._opened) for name, each in found.items()}

    def job(self, name: str) -> Job:
        """Return a job.

        Raises:
            SpecError: There is no such job.
        """
        return Job.of(name, self._declared.job(name))

    def entity(self, name: str | int) -> Entity:
        """Return an entity by name or id.

        Raises:
            SpecError: There is no such entity.
        """
        return Entity(self._declared.entity(name), self._opened)

    def relation(self, name: str) -> Relation:
        """Return a relation.

        Raises:
            SpecError: There is no such relation.
        """
        return self._declared.named("relation", name, self.relations)

    def mapping(self, name: str) -> Mapping:
        """Return a mapping; `name:output` is another output than the main one, such as that of a group.

        Raises:
            SpecError: There is no such mapping.
        """
        return replace(self._declared.named("mapping", name.partition(":")[0], self.mappings), name=name)

    def sql(self, query: str, *, as_of: str | date | datetime | None = None) -> DataFrame:
        """Return the rows of a query as a DataFrame of `Project.spark`.

        Args:
            query: A query in Spark's SQL.
            as_of: A time at which tables are read: entities with history as they were valid then, other Delta
                tables in the version of that time. Without an offset it is in the lake's time zone. What
                keeps no past is read as it is now, with a warning.

        Entities, relations and mappings are the tables: `orders`, or `silver.orders`, `gold.orders` and
        `mapping.orders` where several have the name. Only queries are accepted.

        Raises:
            UsageError: Spark rejects the query, a name means several tables, or `as_of` is no time.
            TargetError: The log of a table doesn't reach back so far.
        """
        return self._opened.read(lambda app: query_frame(app, query, as_of=as_of))

    def graph(self, job: str) -> tuple[DrawnTarget, ...]:
        """Return the targets of a job in the order of a run, each with those that it reads.

        It follows from the declarations alone; parameters of the job get a value of their type.

        Raises:
            SpecError: There is no such job, or a definition is wrong.
        """
        return declared_graph(self.app, job, with_resources=False)

    def plan(
        self,
        job: str,
        phase: str = "verify",
        *arguments: str,
        targets: str | Iterable[str] | None = None,
        dirty: str | Iterable[str] | None = None,
        no_lifecycle: bool = False,
        force: bool = False,
        resume: bool = False,
        retry: bool = False,
        keep_going: bool = False,
        wait: bool = False,
        allow_data_loss: bool = False,
        allow_backdated: bool = False,
        preview: bool = False,
        parameters: abc.Mapping[str, object] | None = None,
        **values: object,
    ) -> Plan:
        """Return what running a job up to a phase would do, and why; nothing is written.

        The arguments are those of `run` that decide what it does. With `preview`, the deletes that each
        entity's next slice implies are counted, for which Spark is started.

        Raises:
            SpecError: The job, its arguments or a definition are wrong.
            UsageError: The phase or a value is none.
        """
        request = self._request(
            job,
            phase,
            arguments,
            all_values(parameters, values),
            targets=targets,
            dirty=dirty,
            no_lifecycle=no_lifecycle,
            force=force,
            resume=resume,
            retry=retry,
            keep_going=keep_going,
            wait=wait,
            allow_data_loss=allow_data_loss,
            allow_backdated=allow_backdated,
        )
        with quiet_pyspark(), warned():
            return plan_job(self.app, replace(request, preview=preview))

    def run(
        self,
        job: str,
        phase: str = "verify",
        *arguments: str,
        targets: str | Iterable[str] | None = None,
        dirty: str | Iterable[str] | None = None,
        no_lifecycle: bool = False,
        force: bool = False,
        resume: bool = False,
        retry: bool = False,
        keep_going: bool = False,
        jobs: int | None = None,
        wait: bool = False,
        allow_data_loss: bool = False,
        allow_backdated: bool = False,
        on_event: Callable[[RunEvent], None] | None = None,
        parameters: abc.Mapping[str, object] | None = None,
        **values: object,
    ) -> RunResult:
        """Run a job up to a phase and return how it ended; failures are in the result.

        `project.run("daily", "build", day=date(2024, 5, 1)).check()` raises an error unless all went well.

        Args:
            job: Its name.
            phase: The last phase of its lifecycle.
            *arguments: `p=v`, `p:start=…` and so on, as on the command line.
            targets: Selects targets, as `-t` does.
            dirty: Regular expressions; targets whose name one of them matches run even if they are clean.
            no_lifecycle: Run only this phase, none before it.
            force: Run clean targets too.
            resume: Run only what earlier runs of these instances left undone.
            retry: For schedulers: add no rows again that failed runs have added.
            keep_going: Run targets that do not depend on a failed one.
            jobs: How many targets run at once.
            wait: Wait for what another run has locked.
            allow_data_loss: Let migrations drop data.
            allow_backdated: Allow a processing time that is earlier than the table's.
            on_event: Called when a target starts or finishes and when a slice has ended, one call at a time.
            parameters: Values of the job's parameters, for names that are arguments of this method too.
            **values: Values of the job's parameters: a text, number, boolean, date, datetime or timedelta, a
                list of them, or a `Range`.

        Raises:
            SpecError: The job, its arguments or a definition are wrong; nothing ran.
            UsageError: The phase or a value is none, or the project is running something; nothing ran.
            KeyboardInterrupt: Ctrl-C ended the run, which is recorded.
        """
        request = self._request(
            job,
            phase,
            arguments,
            all_values(parameters, values),
            targets=targets,
            dirty=dirty,
            no_lifecycle=no_lifecycle,
            force=force,
            resume=resume,
            retry=retry,
            keep_going=keep_going,
            jobs=jobs,
            wait=wait,
            allow_data_loss=allow_data_loss,
            allow_backdated=allow_backdated,
        )
        instances = self._instances(request)
        if not instances:
            warn(f"the arguments of {job} expand to no instance, so that nothing runs")
        with self._opened.run():
            result = self._watched_run(request, instances, on_event)
        report_end(job, phase, result)
        return result

    def due(self, *names: str, allow: str | Iterable[str] = ()) -> Due:
        """Return what is due in the project, or in a part of it, and what a person must decide.

        Nothing is written.

        Args:
            *names: Names of entities and targets; all unless given.
            allow: Grants, such as `foreign`: what steps may do that they otherwise wait with.

        Raises:
            SpecError: There is no such entity or target.
            UsageError: There is no such grant.
        """
        return plan_of_project(self.app, names, grants_of(allow))

    def apply(self, *names: str, allow: str | Iterable[str] = ()) -> Applied:
        """Take every step that is due and needs nobody; return what was done, and what is left.

        Failures are in the result. For the arguments see `due`.

        Raises:
            SpecError: There is no such entity or target; nothing ran.
            UsageError: There is no such grant, or the project is running something; nothing ran.
        """
        grants = grants_of(allow)
        with self._opened.run():
            return apply_plan(
                self.app,
                lambda request: self._watched_run(request, self._instances(request)),
                names,
                grants=grants,
                author=user_name(),
            )

    def _instances(self, request: JobRequest) -> tuple[abc.Mapping[str, str], ...]:
        return tuple(map(self.app.journal.hide_secrets, instance_parameters(self.app, request)))

    def _watched_run(
        self,
        request: JobRequest,
        instances: Sequence[abc.Mapping[str, str]],
        on_event: Callable[[RunEvent], None] | None = None,
    ) -> RunResult:
        """Run a job whose progress is logged; an interruption ends it."""
        app = self.app
        watcher = Watcher(app.run_id, instances, on_event, app.redactor.text)
        before, app.on_slice = app.on_slice, watcher.slice_ended
        try:
            return run_job(app, request, listener=watcher, interruption=watcher)
        finally:
            app.on_slice = before

    def decide(self, subject: str, choice: str, *, reason: str = "none given") -> None:
        """Record a choice that `due` offers about an entity, or about `entity/slice`; `apply` goes by it.

        Raises:
            UsageError: The choice is not offered now; nothing is recorded.
        """
        record_decision(self.app, subject, choice, author=user_name(), reason=reason)

    def test(self, *names: str, keep_going: bool = False) -> tuple[CaseResult, ...]:
        """Run the project's own tests, or those with these names, and return how each ended.

        The project's lake, manifest and history are not touched. `*` in a name matches anything.

        Raises:
            UsageError: There is no such test.
        """
        chosen = select_tests(self.app, names)
        with self._opened.run() as run_id:
            watcher = Watcher(run_id)
            return tuple(
                run_tests(self.app, chosen, listener=watcher, interruption=watcher, keep_going=keep_going)
            )

    @shared_property
    def manifest(self) -> Manifest:
        """Its manifest, for items of other programs too; closing the project closes it."""
        return Manifest.of(self.app)

    def status(self) -> ProjectStatus:
        """Return what runs now, what is due, needs a person or waits, and the last runs."""
        return project_status(self.app)

    def history(
        self,
        *,
        job: str | None = None,
        status: str | None = None,
        age: str | None = None,
        limit: int | None = 20,
    ) -> Runs:
        """Return the runs of its jobs, newest first.

        Args:
            job: Only runs of this job.
            status: Only runs with this status, or RUNNING.
            age: Only runs that started at most this long ago: `2h`, `7d`, `P1M`.
            limit: The largest number of runs; None for all.

        Raises:
            UsageError: There is no such job or status, or `age` is not an age.
        """
        return Runs(list_runs(self.app, job=job, status=status, age=age, limit=count_of("limit", limit)))

    def close(self) -> None:
        """Close the manifest, and stop Spark if the project started it."""
        if "manifest" in self.__dict__:
            self.__dict__.pop("manifest").stop_heartbeat()
        self._opened.close()

    def _request(
        self,
        job: str,
        phase: str,
        arguments: Sequence[str],
        values: abc.Mapping[str, object],
        **options: Any,
    ) -> JobRequest:
        declared = self._declared.job(job)
        return job_request(job, phase, job_arguments(declared.parameters, arguments, values), **options)

    def __repr__(self) -> str:
        return f"<Project {self.name} in {self.folder}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
