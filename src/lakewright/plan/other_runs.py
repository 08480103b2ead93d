"""The runs that take slices which a run leaves to others, as the commands to type."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lakewright.plan.arguments import argument_text

__all__ = ["MOST_TYPED", "OtherRun", "commands_of"]

MOST_TYPED = 10
"""Slices for which commands are found; what is left after their runs is told then."""


@dataclass(frozen=True, slots=True)
class OtherRun:
    """A run of a job that takes a slice.

    Attributes:
        slice: Name of the slice.
        job: Name of the job.
        parameters: Names and values of the parameters that decide which slices are taken.
        unknown: Names of further parameters without a default, whose values the user must choose.
    """

    slice: str
    job: str
    parameters: tuple[tuple[str, str], ...]
    unknown: tuple[str, ...] = ()


def commands_of(runs: Iterable[OtherRun]) -> tuple[str, ...]:
    """Return the commands that start runs: one for each job, if its runs differ in one parameter only.

    A parameter that the user must choose is `<name>`, which no shell accepts.

    Example:
        >>> days = [OtherRun(f"{day}.csv", "daily", (("day", day),)) for day in ("2024-05-01", "2024-05-02")]
        >>> commands_of(days)
        ('lakewright job daily build day=2024-05-01,2024-05-02',)
    """
    listed: dict[tuple[str, ...], list[str]] = {}
    commands: dict[str, None] = {}
    for run in runs:
        if len(run.parameters) == 1:
            name, value = run.parameters[0]
            values = listed.setdefault((run.job, name, *run.unknown), [])
            values += [] if value in values else [value]
        else:
            given = [(name, (value,)) for name, value in run.parameters]
            commands[_command(run.job, given, run.unknown)] = None
    for (job, name, *unknown), values in listed.items():
        commands[_command(job, [(name, values)], unknown)] = None
    return tuple(commands)


def _command(job: str, parameters: Sequence[tuple[str, Sequence[str]]], unknown: Sequence[str]) -> str:
    given = [shlex.quote(argument_text(name, *values)) for name, values in parameters]
    return " ".join(["lakewright job", shlex.quote(job), "build", *given, *(f"{n}=<{n}>" for n in unknown)])
