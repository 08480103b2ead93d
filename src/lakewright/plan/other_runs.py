"""The run of a job that takes a slice."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["OtherRun"]


@dataclass(frozen=True, slots=True)
class OtherRun:
    """A run of a job that takes a slice.

    Attributes:
        job: Name of the job.
        parameters: Names and values of the parameters that decide which slices are taken.
        unknown: Names of further parameters without a default, whose values the user must choose.
    """

    job: str
    parameters: tuple[tuple[str, str], ...]
    unknown: tuple[str, ...] = ()
