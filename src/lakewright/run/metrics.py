"""Metrics of a run: collect what targets report, select and name it by the job's board, write it to files.

| metric | category | kind, name | value |
|---|---|---|---|
| `job_runtime` | `job` | `job`, the job's name | milliseconds of a phase of an instance |
| `target_runtime` | `target` | the target's | milliseconds of a target in a phase |
| what targets report | `target` | the target's | as reported |
| what measures report | `measure` | `sql`, the measure's name | as reported, with the labels that it has |

Category, kind and name are labels; all metrics also have the labels `phase`, `project` and `version`.

| configuration | what is written |
|---|---|
| `lakewright.metrics.json` | every metric of the run, with the parameters of its instance |
| `lakewright.metrics.prometheus` | the same in the text format that Prometheus' node exporter reads |
| `lakewright.metrics.pushgateway` | the same, sent to the push gateway at this URL |

A path that is a folder, or ends with a slash, gets a file for each job; a relative path starts at the
project's folder. A failure to write metrics is logged and does not make the run fail.

Source: the project files' rules, jobs' `metrics`; names and labels are Flowman's.
"""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from lakewright.errors import SpecError
from lakewright.lake.files import LocalFiles
from lakewright.manifest.plain_values import document_of, is_number
from lakewright.plan.status import Status
from lakewright.run.hooks.call import HttpCall
from lakewright.run.planning import Contexts
from lakewright.run.result import InstanceResult, RunResult, TargetResult
from lakewright.spec.expressions.scope import Scope
from lakewright.spec.models.job import Job, Metric, MetricBoard
from lakewright.spec.project import Project

log = logging.getLogger(__name__)

_JSON, _PROMETHEUS = "lakewright.metrics.json", "lakewright.metrics.prometheus"
_PUSHGATEWAY = "lakewright.metrics.pushgateway"
_SECONDS_TO_PUSH = 10.0
_NO_NAME = re.compile(r"[^a-zA-Z0-9_:]")
_NO_LABEL = re.compile(r"[^a-zA-Z0-9_]")


@dataclass(frozen=True, slots=True)
class Published:
    """One metric with its labels.

    Attributes:
        status: The status of the phase in which it was measured.
        parameters: The parameters of the instance.
    """

    name: str
    labels: Mapping[str, str]
    value: int | float
    status: Status
    parameters: Mapping[str, str]

    def as_json(self) -> dict[str, Any]:
        """Return the metric as a JSON object."""
        return document_of(self, "name", "labels", "value", "parameters")


def measured(instance: InstanceResult, common: Mapping[str, str], job: str) -> Iterator[Published]:
    """Yield every metric of an instance, in the order of its phases and targets.

    Args:
        instance: The result of the instance.
        common: Labels of every metric.
        job: Name of the job.
    """
    for phase in instance.phases:
        if not phase.targets:
            continue
        labels = {**common, "phase": phase.phase.value}
        of_job = {**labels, "category": "job", "kind": "job", "name": job}
        runtime = round(phase.seconds * 1000)
        yield Published("job_runtime", of_job, runtime, phase.status, instance.parameters)
        for target in phase.targets:
            for name, own, value in _numbers(target):
                yield Published(name, {**labels, **own}, value, phase.status, instance.parameters)


def _numbers(target: TargetResult) -> Iterator[tuple[str, dict[str, str], int | float]]:
    is_measure = target.kind == "measure"
    own = {"category": "target", "kind": target.kind, "name": target.name}
    if target.seconds:
        yield "target_runtime", own, round(target.seconds * 1000)
    for name, found in target.metrics.items():
        taken = {**own, "category": "measure", "kind": "sql"} if is_measure else own
        for each in found if isinstance(found, list) else [{"value": found}]:
            if not isinstance(each, Mapping) or not is_number(each.get("value")):
                continue
            labels = {key: str(text) for key, text in each.get("labels", {}).items()}
            name_of = {"name": labels.pop("measure")} if "measure" in labels else {}
            yield name, {**taken, **name_of, **labels}, each["value"]


def published(board: MetricBoard | None, found: Iterable[Published], scope: Scope) -> Iterator[Published]:
    """Yield the metrics that a board selects, with its names and labels; without a board, all unchanged.

    Raises:
        SpecError: An expression in a label is wrong.
    """
    for metric in found:
        if board is None:
            yield metric
            continue
        for chosen in board.metrics:
            if chosen.selector.selects(metric.name, metric.labels):
                yield _labelled(board, chosen, metric, scope)


def _labelled(board: MetricBoard, chosen: Metric, metric: Published, scope: Scope) -> Published:
    own = {name: text for name, text in metric.labels.items() if name != "project"}
    render = scope.child({**own, "status": metric.status.value}).render
    labels = {name: render(text) for name, text in {**board.labels, **chosen.labels}.items()}
    return Published(chosen.name or metric.name, labels, metric.value, metric.status, metric.parameters)


def as_prometheus(metrics: Iterable[Published]) -> str:
    """Return metrics in Prometheus' text format; if several have the same name and labels, only the last one.

    Example:
        >>> print(as_prometheus([Published("rows", {"name": "a"}, 3, Status.SUCCESS, {})]), end="")
        # TYPE rows gauge
        rows{name="a"} 3
    """
    lines: dict[str, dict[str, str]] = {}
    for metric in metrics:
        name = _identifier(_NO_NAME, metric.name)
        labels = ",".join(
            f'{_identifier(_NO_LABEL, key)}="{_escaped(text)}"' for key, text in sorted(metric.labels.items())
        )
        lines.setdefault(name, {})[f"{{{labels}}}" if labels else ""] = _number_text(metric.value)
    return "".join(
        f"# TYPE {name} gauge\n" + "".join(f"{name}{labels} {value}\n" for labels, value in found.items())
        for name, found in sorted(lines.items())
    )


def _identifier(forbidden: re.Pattern[str], text: str) -> str:
    name = forbidden.sub("_", text)
    return f"_{name}" if name[:1].isdigit() or not name else name


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number_text(value: int | float) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    return repr(value)


def as_json(about: Mapping[str, Any], metrics: Sequence[Published]) -> str:
    """Return the run and its metrics as a JSON document; numbers that JSON cannot express become null."""
    listed = [metric.as_json() for metric in metrics]
    for entry in listed:
        if not math.isfinite(entry["value"]):
            entry["value"] = None
    return json.dumps({**about, "metrics": listed}, indent=1) + "\n"


@dataclass(frozen=True, slots=True)
class Publisher:
    """Publishes the metrics of a job's runs."""

    project: Project
    job: Job
    contexts: Contexts

    def publish(self, result: RunResult) -> tuple[Published, ...]:
        """Write the metrics that the job's board selects to the configured files, and return them."""
        config = self.project.config
        if self.job.metrics is None and not {_JSON, _PROMETHEUS, _PUSHGATEWAY} & config.keys():
            return ()
        try:
            metrics = self._metrics(result)
        except SpecError as error:
            log.warning("the metrics of job %s: %s", self.job.name, error)
            return ()
        about = {"run_id": result.run_id, "project": result.project, "job": result.job}
        status = {"phase": result.phase.value, "status": result.status.value}
        self._write(_JSON, "json", as_json({**about, **status}, metrics))
        self._write(_PROMETHEUS, "prom", as_prometheus(metrics))
        if url := config.get(_PUSHGATEWAY):
            self._push(url, as_prometheus(metrics))
        return metrics

    def _push(self, url: str, text: str) -> None:
        group = f"job/{quote(self.project.name, safe='')}/instance/{quote(self.job.name, safe='')}"
        # PUT replaces the group's metrics of the former run.
        call = HttpCall(f"{url.rstrip('/')}/metrics/{group}", "PUT", {"Content-Type": "text/plain"}, text)
        try:
            call.make(_SECONDS_TO_PUSH)
        except OSError as error:
            log.warning("%s: %s: %s", _PUSHGATEWAY, call.label, error)

    def _metrics(self, result: RunResult) -> tuple[Published, ...]:
        common = {"project": self.project.name, "version": self.project.version or ""}
        found: list[Published] = []
        for index, instance in enumerate(result.instances):
            scope = self.contexts.of(index).workspace.scope
            found += published(self.job.metrics, measured(instance, common, self.job.name), scope)
            self.contexts.release(index)
        return tuple(found)

    def _write(self, key: str, ending: str, text: str) -> None:
        if not (place := self.project.config.get(key)):
            return
        path = self.project.basedir / place
        if place.endswith("/") or path.is_dir():
            path /= f"{self.project.name}-{self.job.name}.{ending}"
        try:
            LocalFiles().write(str(path), text.encode())
        except OSError as error:
            log.warning("%s: %s can't be written: %s", key, path, error)
