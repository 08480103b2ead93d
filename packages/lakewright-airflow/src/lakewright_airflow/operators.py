"""Operators that run a job, or apply what is due."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk import BaseOperator
from airflow.sdk.configuration import conf
from airflow.sdk.exceptions import AirflowFailException

from lakewright_airflow.documents import JobFailed, error_text, summary
from lakewright_airflow.links import OperatorPageLink
from lakewright_airflow.places import check_place, failing_tasks, server_of
from lakewright_airflow.triggers import CommandTrigger

if TYPE_CHECKING:
    from airflow.sdk import Context

    from lakewright import Project


class _LakewrightOperator(BaseOperator):
    """Runs a command, on a server or in this process, and returns its summary.

    Args:
        project: The folder of a project on the worker, which runs it in the task's process.
        server: The id of a connection to `lakewright serve --allow-actions`, which runs it.
        profiles: Profiles of the project; those of a server are its own.
        deferrable: Whether the triggerer waits for the server, instead of a worker.
        poll_interval: Seconds between two looks at a command of a server.
    """

    template_fields: Sequence[str] = ("project", "server", "profiles")
    operator_extra_links = (OperatorPageLink(),)
    path: ClassVar[str]

    def __init__(
        self,
        *,
        project: str | None = None,
        server: str | None = None,
        profiles: Sequence[str] = (),
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        poll_interval: float = 5.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_place(project, server)
        self.project = project
        self.server = server
        self.profiles = list(profiles)
        self.deferrable = deferrable
        self.poll_interval = poll_interval
        self.page = ""
        self._command_id: str | None = None

    @abstractmethod
    def body(self) -> dict[str, Any]:
        """Return the body of the request to a server."""

    @abstractmethod
    def run_in(self, project: Project) -> dict[str, Any]:
        """Run the command in this process, and return its document."""

    def execute(self, context: Context) -> dict[str, Any]:
        """Run the command; return what it did."""
        with failing_tasks():
            if self.project is not None:
                # Imported here, because Airflow reads DAG files often.
                from lakewright import Project

                with Project.load(self.project, profiles=self.profiles) as project:
                    return self.result_of(self.run_in(project))
            server = server_of(self.server or "")
            instance = context["ti"]
            reason = f"Airflow: {instance.dag_id}.{instance.task_id}, {instance.run_id}"
            self._command_id = server.post(self.path, **self.body(), reason=reason)["command_id"]
            self._show(f"{server.url}/commands/{self._command_id}", context)
            if self.deferrable:
                self.defer(
                    trigger=CommandTrigger(self.server or "", self._command_id, self.poll_interval),
                    method_name="execute_complete",
                    timeout=self.execution_timeout,
                )
            while server.get(f"/commands/{self._command_id}")["finished"] is None:
                time.sleep(self.poll_interval)
        return self.execute_complete(context, {"command_id": self._command_id})

    def execute_complete(self, context: Context, event: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the command of a server did, once it has ended."""
        with failing_tasks():
            server = server_of(self.server or "")
            command = server.get(f"/commands/{event['command_id']}")
            for line in command["log"].splitlines():
                self.log.info("%s", line)
            document = command["document"] or {}
            if "errors" in document:
                raise JobFailed("; ".join(map(error_text, document["errors"])))
            if not document:
                raise JobFailed(f"the command ended with exit code {command['exit_code']}; its log is above")
            place = (
                f"runs/{document['run_id']}" if "run_id" in document else f"commands/{event['command_id']}"
            )
            self._show(f"{server.url}/{place}", context)
            return self.result_of(document)

    def result_of(self, document: dict[str, Any]) -> dict[str, Any]:
        """Return what the task returns for the document of its command."""
        return summary(document)

    def on_kill(self) -> None:
        """Interrupt the command of the server; it ends after the present commit and can be resumed."""
        if self.server is not None and self._command_id is not None:
            server_of(self.server).post(f"/commands/{self._command_id}/cancel")

    def _show(self, page: str, context: Context) -> None:
        """Link to a page, also while the task is deferred."""
        self.page = page
        context["ti"].xcom_push(key=OperatorPageLink().xcom_key, value=page)


class LakewrightJobOperator(_LakewrightOperator):
    """Runs a job up to a phase, and returns its run, with the status, rows and seconds of each target.

    A task that is tried again adds no rows again that the failed run before it has added.

    Args:
        job: Its name.
        phase: The last phase: `validate`, `create`, `build` or `verify`.
        parameters: The values of its parameters; `day:start`, `day:end` and so on give ranges.
        targets: Only these targets, as after `-t`.
        **kwargs: What every operator of this module and of Airflow takes.
    """

    template_fields = (*_LakewrightOperator.template_fields, "job", "phase", "parameters", "targets")
    path = "/runs"

    def __init__(
        self,
        *,
        job: str,
        phase: str = "verify",
        parameters: Mapping[str, object] | None = None,
        targets: Sequence[str] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.job = job
        self.phase = phase
        self.parameters = dict(parameters or {})
        self.targets = list(targets)

    @property
    def arguments(self) -> list[str]:
        """The parameters, as on the command line."""
        return [f"{name}={value}" for name, value in self.parameters.items()]

    def body(self) -> dict[str, Any]:
        """Return the body of the request to a server."""
        given = {"job": self.job, "phase": self.phase, "parameters": self.arguments, "targets": self.targets}
        return {**given, "retry": True}

    def run_in(self, project: Project) -> dict[str, Any]:
        """Run the job in this process, and return its document."""
        result = project.run(
            self.job, self.phase, *self.arguments, targets=self.targets or None, wait=True, retry=True
        )
        return result.as_json()


class LakewrightApplyOperator(_LakewrightOperator):
    """Takes every step that is due and needs nobody, and returns the steps and what needs a person.

    Args:
        names: Only these entities and targets.
        allow: Grants for what needs consent, such as `replay`.
        fail_if_needed: Whether the task fails, without another try, if something is left that needs a person.
        **kwargs: What every operator of this module and of Airflow takes.
    """

    template_fields = (*_LakewrightOperator.template_fields, "names")
    path = "/apply"

    def __init__(
        self,
        *,
        names: Sequence[str] = (),
        allow: Sequence[str] = (),
        fail_if_needed: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.names = list(names)
        self.allow = list(allow)
        self.fail_if_needed = fail_if_needed

    def body(self) -> dict[str, Any]:
        """Return the body of the request to a server."""
        return {"names": self.names, "allow": self.allow}

    def run_in(self, project: Project) -> dict[str, Any]:
        """Apply in this process, and return what was done."""
        done = project.apply(*self.names, allow=self.allow)
        for each in done.failed:
            self.log.error("%s: %s", each.step.id, each.fault)
        steps = [
            {"subject": {"name": each.subject.name}, "status": each.state.value} for each in done.left.steps
        ]
        return {"taken": [each.as_json() for each in done.taken], "left": {"steps": steps}}

    def result_of(self, document: dict[str, Any]) -> dict[str, Any]:
        """Return what was done.

        Raises:
            AirflowFailException: Something is left that needs a person.
        """
        done = super().result_of(document)
        if done["needs_you"] and self.fail_if_needed:
            raise AirflowFailException(
                f"{', '.join(done['needs_you'])} need a person. Do: `lakewright plan` lists the choices"
            )
        return done
