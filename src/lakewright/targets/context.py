"""The context that targets work in: workspace, manifest, leases, options of the run, and defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

from lakewright.errors import SpecError
from lakewright.manifest.ledger import Takeover
from lakewright.plan.dirtiness import BuildPolicy, read_build_policy
from lakewright.plan.permissions import Permissions
from lakewright.relations.relation import OutputMode, read_mode
from lakewright.spec.suggestions import one_of

if TYPE_CHECKING:
    from lakewright.manifest.lease import Leases
    from lakewright.manifest.ledger import Ledger
    from lakewright.slices.result import SliceReport
    from lakewright.workspace.workspace import Workspace


T = TypeVar("T")


class VerifyPolicy(StrEnum):
    """Whether VERIFY accepts an empty relation; a missing one always fails."""

    EMPTY_AS_FAILURE = "EMPTY_AS_FAILURE"
    EMPTY_AS_SUCCESS = "EMPTY_AS_SUCCESS"
    EMPTY_AS_SUCCESS_WITH_ERRORS = "EMPTY_AS_SUCCESS_WITH_ERRORS"


read_verify_policy = one_of(VerifyPolicy, "verify policy")


@dataclass(frozen=True, slots=True)
class TargetDefaults:
    """Default values for what targets do not declare.

    Attributes:
        parallelism: Largest number of files of one write; None leaves it to Spark.
        rebalance: Whether rows are distributed evenly over those files.
    """

    build_policy: BuildPolicy = BuildPolicy.COMPAT
    output_mode: OutputMode = OutputMode.OVERWRITE
    verify_policy: VerifyPolicy = VerifyPolicy.EMPTY_AS_FAILURE
    parallelism: int | None = None
    rebalance: bool = False

    @classmethod
    def of(cls, config: Mapping[str, str]) -> TargetDefaults:
        """Return the defaults that a project's configuration declares.

        Raises:
            SpecError: A key has an invalid value.
        """
        return cls(
            build_policy=_read(config, "buildPolicy", read_build_policy, BuildPolicy.COMPAT),
            output_mode=_read(config, "outputMode", read_mode, OutputMode.OVERWRITE),
            verify_policy=_read(config, "verifyPolicy", read_verify_policy, VerifyPolicy.EMPTY_AS_FAILURE),
            parallelism=_read(config, "parallelism", int, None),
            rebalance=config.get("lakewright.default.target.rebalance", "false").lower() == "true",
        )


def _read(config: Mapping[str, str], name: str, parse: Callable[[str], T], default: T) -> T:
    key = f"lakewright.default.target.{name}"
    try:
        return parse(config[key]) if key in config else default
    except ValueError as error:
        raise SpecError.of(f"configuration {key}: {error}") from error


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of a run.

    Attributes:
        permissions: Actions that the run may take although they are refused by default.
        wait: Whether to wait for leases and locks of other runs.
        preview: Whether observing counts the deletes that the next slice implies.
    """

    permissions: Permissions = field(default_factory=Permissions)
    wait: bool = False
    preview: bool = False


@dataclass(frozen=True, slots=True)
class Context:
    """What the targets of one instance share.

    Attributes:
        clock: Returns the present instant, with a time zone.
        say: Prints a line of a target's output.
        defaults: Values for what a target does not declare.
        warn: Shows a warning, and records it with the result of the step.
        show: Shows a warning that the result of the step has by itself, such as one of a slice.
        report: Reports the end of a slice.
        redact: Replaces the project's secrets in a text.
        maintain_later: Receives each entity whose table slices made due for maintenance; without it, the run
            maintains tables itself.
        takeover: Who may take over a stale lock.
        append_id: The identity of the append of the step that runs; None if it has none.
        is_stopping: Returns whether the run was asked to stop; work in progress is finished, none is started.
        is_cut_off: Returns whether work in progress was cancelled; its errors then do not count as failures.
    """

    workspace: Workspace
    ledger: Ledger
    leases: Leases
    clock: Callable[[], datetime]
    run_id: str
    say: Callable[[str], None]
    options: RunOptions = field(default_factory=RunOptions)
    defaults: TargetDefaults = field(default_factory=TargetDefaults)
    warn: Callable[[str], None] = lambda _: None
    show: Callable[[str], None] = lambda _: None
    report: Callable[[SliceReport], None] = lambda _: None
    redact: Callable[[str], str] = str
    maintain_later: Callable[[str], None] | None = None
    takeover: Takeover = Takeover.AUTO
    append_id: str | None = None
    is_stopping: Callable[[], bool] = lambda: False
    is_cut_off: Callable[[], bool] = lambda: False
