"""Default values for targets, from the project's configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from lakewright.errors import SpecError
from lakewright.plan.dirtiness import BuildPolicy
from lakewright.relations.relation import OutputMode
from lakewright.spec.suggestions import hint, member_named

__all__ = ["TargetDefaults", "VerifyPolicy"]

T = TypeVar("T")


class VerifyPolicy(StrEnum):
    """Whether VERIFY accepts an empty relation; a missing one always fails."""

    EMPTY_AS_FAILURE = "EMPTY_AS_FAILURE"
    EMPTY_AS_SUCCESS = "EMPTY_AS_SUCCESS"
    EMPTY_AS_SUCCESS_WITH_ERRORS = "EMPTY_AS_SUCCESS_WITH_ERRORS"

    @classmethod
    def parse(cls, text: str) -> VerifyPolicy:
        """Return the policy of that name; case and underscores are ignored.

        Raises:
            ValueError: No policy has that name.
        """
        if (policy := member_named(cls, text)) is None:
            raise ValueError(f"no verify policy {text!r}; {hint(text, cls)}")
        return policy


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
            build_policy=_read(config, "buildPolicy", BuildPolicy.parse, BuildPolicy.COMPAT),
            output_mode=_read(config, "outputMode", OutputMode.parse, OutputMode.OVERWRITE),
            verify_policy=_read(config, "verifyPolicy", VerifyPolicy.parse, VerifyPolicy.EMPTY_AS_FAILURE),
            parallelism=_read(config, "parallelism", int, None),
            rebalance=config.get("lakewright.default.target.rebalance", "false").lower() == "true",
        )


def _read(config: Mapping[str, str], name: str, parse: Callable[[str], T], default: T) -> T:
    key = f"lakewright.default.target.{name}"
    try:
        return parse(config[key]) if key in config else default
    except ValueError as error:
        raise SpecError.of(f"configuration {key}: {error}") from error
