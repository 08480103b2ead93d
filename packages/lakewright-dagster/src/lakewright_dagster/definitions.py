"""Definitions of Dagster for the jobs of a project."""

# Without `from __future__ import annotations`: Dagster reads the type of `context`.
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import dagster as dg

from lakewright import Project, RunEvent
from lakewright_dagster.documents import Outline, TargetOutcome, chosen_job, outcomes_of, outline_of

Partitions: TypeAlias = Literal["slices"] | dg.PartitionsDefinition[str] | None


def build_definitions(
    project: str | Path,
    *,
    job: str | None = None,
    partitions: Partitions = None,
    profiles: Sequence[str] = (),
) -> dg.Definitions:
    """Return assets, checks and, for slices, a sensor, for a job of a project.

    Each target that makes something is an asset, whose dependencies are the targets that it reads. All assets
    of a run are made by one run of the job. VERIFY of a target, and each target that only checks, is a check.

    Args:
        project: The folder of the project.
        job: The job; it may be left out if the project has only one.
        partitions: `slices` for a partition for each slice of an entity, with a sensor that adds them and
            runs what is due; or values of the job's only parameter, such as `DailyPartitionsDefinition(…)`.
        profiles: Profiles of the project.

    Raises:
        SpecError: The project is wrong.
        ValueError: The project has no such job, or the partitions do not fit its parameters.
    """
    lake = _Lake.of(Path(project), job, tuple(profiles), partitions)
    return dg.Definitions(
        assets=[lake.assets()],
        sensors=[lake.sensor()] if partitions == "slices" else [],
        executor=dg.in_process_executor,
    )


@dataclass(frozen=True)
class _Lake:
    """A job of a project.

    Attributes:
        name: The name of the project.
        parameter: The parameter whose values are the partitions; None if they are slices, or there are none.
    """

    folder: Path
    profiles: tuple[str, ...]
    name: str
    job: str
    outline: Outline
    partitions: Partitions
    parameter: str | None

    @classmethod
    def of(cls, folder: Path, job: str | None, profiles: tuple[str, ...], partitions: Partitions) -> "_Lake":
        """Return a job of the project in a folder."""
        with Project.load(folder, profiles=profiles) as project:
            chosen = chosen_job(project.jobs, job)
            outline = outline_of([each.as_json() for each in project.graph(chosen)])
            parameters = tuple(project.job(chosen).parameters)
            name = project.name
        wanted = 1 if isinstance(partitions, dg.PartitionsDefinition) else 0
        if len(parameters) != wanted:
            raise ValueError(
                f"the job {chosen} has {len(parameters)} parameters ({', '.join(parameters) or 'none'}), "
                f"and partitions give {wanted}. Do: give partitions= for a job with one parameter, "
                "and none or 'slices' for a job without"
            )
        return cls(folder, profiles, name, chosen, outline, partitions, next(iter(parameters), None))

    def key(self, target: str) -> dg.AssetKey:
        """Return the key of the asset of a target."""
        return dg.AssetKey([self.name, target])

    def partitions_of(self, entity: str | None) -> dg.PartitionsDefinition[str] | None:
        """Return the partitions of an asset."""
        if self.partitions != "slices":
            return self.partitions
        return None if entity is None else dg.DynamicPartitionsDefinition(name=f"{self.name}/{entity}")

    def assets(self) -> dg.AssetsDefinition:
        """Return the assets and their checks, of which one run makes any part."""
        specs = [
            dg.AssetSpec(
                self.key(each.target),
                deps=[self.key(name) for name in each.reads],
                group_name=re.sub(r"\W", "_", self.job),
                kinds={"lakewright", each.kind},
                partitions_def=self.partitions_of(each.entity),
            )
            for each in self.outline.assets
        ]
        checks = [
            dg.AssetCheckSpec(
                each.name,
                asset=self.key(each.asset),
                additional_deps=[self.key(name) for name in each.also_reads],
            )
            for each in self.outline.checks
        ]

        @dg.multi_asset(
            name=re.sub(r"\W", "_", f"{self.name}_{self.job}"),
            specs=specs,
            check_specs=checks,
            can_subset=True,
            backfill_policy=dg.BackfillPolicy.single_run(),
        )
        def run(context: dg.AssetExecutionContext) -> Iterator[Any]:
            yield from self.run(context)

        return run

    def run(self, context: dg.AssetExecutionContext) -> Iterator[Any]:
        """Run the job for the selected assets and checks; yield what became of each.

        Raises:
            Failure: A target failed before VERIFY, or the run has no partition and the job has a parameter.
        """
        assets = [
            each for each in self.outline.assets if self.key(each.target) in context.selected_asset_keys
        ]
        selected = {(each.asset_key, each.name) for each in context.selected_asset_check_keys}
        checks = [each for each in self.outline.checks if (self.key(each.asset), each.name) in selected]
        made, checked = [each.target for each in assets], [each.target for each in checks]
        targets = dict.fromkeys((*self.outline.guards, *made, *checked))
        keys = context.partition_keys if context.has_partition_key_range or context.has_partition_key else []

        if self.parameter is not None and not keys:
            raise dg.Failure(
                f"{self.job} needs a value of {self.parameter}. Do: start the run for a partition"
            )

        def log(event: RunEvent) -> None:
            if event.slice is not None:
                context.log.info(str(event.slice))

        with Project.load(self.folder, profiles=self.profiles) as project:
            result = project.run(
                self.job,
                "verify",
                targets=[re.escape(each) for each in targets],
                no_lifecycle=not assets,
                wait=True,
                retry=True,
                on_event=log,
                parameters={} if self.parameter is None else {self.parameter: list(keys)},
            )
        found = outcomes_of(result.as_json())
        failed = [f"{name}: {each.error or each.status}" for name, each in found.items() if not each.is_made]
        for asset in assets:
            outcome = found.get(asset.target)
            if outcome is not None and outcome.is_made:
                self._report_slices(context, asset.target, asset.entity, outcome.slices, keys)
                own = outcome.slices.get(keys[0], {}) if len(keys) == 1 else {}
                yield dg.MaterializeResult(asset_key=self.key(asset.target), metadata=outcome.metadata | own)
        for check in checks:
            outcome = found.get(check.target)
            # In a run that failed, a target without a result in VERIFY was not verified.
            if outcome is not None and outcome.is_made and not (failed and outcome.verified is None):
                yield _check_result(self.key(check.asset), check.name, outcome)
        if failed:
            raise dg.Failure("; ".join(failed), metadata={"run_id": result.run_id}, allow_retries=True)

    def _report_slices(
        self,
        context: dg.AssetExecutionContext,
        target: str,
        entity: str | None,
        slices: Mapping[str, dict[str, Any]],
        keys: Sequence[str],
    ) -> None:
        """Report slices that the run has processed beside those for which it was started."""
        partitions = self.partitions_of(entity)
        if not isinstance(partitions, dg.DynamicPartitionsDefinition):
            return
        context.instance.add_dynamic_partitions(str(partitions.name), list(slices))
        for name, metadata in slices.items():
            if name not in keys:
                context.log_event(
                    dg.AssetMaterialization(self.key(target), partition=name, metadata=metadata)
                )

    def sensor(self) -> dg.SensorDefinition:
        """Return the sensor that adds new slices as partitions, and runs what is built from them."""
        targets = {each.entity: each.target for each in self.outline.assets if each.entity is not None}

        @dg.sensor(
            name=re.sub(r"\W", "_", f"{self.name}_{self.job}_slices"),
            asset_selection=[self.key(each.target) for each in self.outline.assets],
            minimum_interval_seconds=60,
        )
        def slices() -> dg.SensorResult:
            with Project.load(self.folder, profiles=self.profiles) as project:
                ready = [step for step in project.due(*targets).ready if step.slices]
            requests, added = [], []
            for step in ready:
                entity, names = step.subject.name, [each.name for each in step.slices]
                partitions = self.partitions_of(entity)
                if isinstance(partitions, dg.DynamicPartitionsDefinition):
                    added.append(partitions.build_add_request(names))
                built = [self.key(each) for each in self.outline.built_from(targets[entity])]
                run_key = f"{entity}/{names[0]}/{names[-1]}"
                requests.append(dg.RunRequest(run_key, partition_key=names[-1], asset_selection=built))
            return dg.SensorResult(run_requests=requests, dynamic_partitions_requests=added)

        return slices


def _check_result(asset: dg.AssetKey, name: str, outcome: TargetOutcome) -> dg.AssetCheckResult:
    is_warning = outcome.verified == "SUCCESS_WITH_ERRORS"
    return dg.AssetCheckResult(
        asset_key=asset,
        check_name=name,
        passed=outcome.verified in ("SUCCESS", "SKIPPED", None),
        severity=dg.AssetCheckSeverity.WARN if is_warning else dg.AssetCheckSeverity.ERROR,
        description=outcome.error,
        metadata={"status": outcome.verified or "nothing to verify"},
    )
