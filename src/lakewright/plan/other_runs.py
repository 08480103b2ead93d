"""The runs that take slices which a run leaves to others, as the commands to type."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lakewright.errors.phrase import Command, Placeholder
from lakewright.plan.phase import Phase
from lakewright.spec.arguments import argument_text

__all__ = ["MOST_TYPED", "OtherRun", "commands_of"]

MOST_TYPED = 10
"""Slices for which commands are found; what is left after their runs is told then."""


_REMOVING = (Phase.TRUNCATE, Phase.DESTROY)


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


def commands_of(
    runs: Iterable[OtherRun],
    *,
    phase: Phase = Phase.BUILD,
    options: Sequence[str] = (),
) -> tuple[Command, ...]:
    """Return the commands that start runs: one for each job, if its runs differ in one parameter only.

    A parameter that the user must choose is `<name>`, which no shell accepts.

    Args:
        runs: The runs.
        phase: The phase up to which they run; a command that removes rows does not ask.
        options: Options of the commands, such as `-t`, `NAME`.

    Example:
        >>> days = [OtherRun(f"{day}.csv", "daily", (("day", day),)) for day in ("2024-05-01", "2024-05-02")]
        >>> commands_of(days)
        ('lakewright job daily build day=2024-05-01,2024-05-02',)
    """
    form = _Form(phase, tuple(options))
    listed: dict[tuple[str, ...], list[str]] = {}
    commands: dict[Command, None] = {}
    for run in runs:
        if len(run.parameters) == 1:
            name, value = run.parameters[0]
            values = listed.setdefault((run.job, name, *run.unknown), [])
            values += [] if value in values else [value]
        else:
            given = [(name, (value,)) for name, value in run.parameters]
            commands[form.command(run.job, given, run.unknown)] = None
    for (job, name, *unknown), values in listed.items():
        commands[form.command(job, [(name, values)], unknown)] = None
    return tuple(commands)


@dataclass(frozen=True, slots=True)
class _Form:
    """What the commands have in common: the phase, and options."""

    phase: Phase
    options: tuple[str, ...]

    def command(
        self, job: str, parameters: Sequence[tuple[str, Sequence[str]]], unknown: Sequence[str]
    ) -> Command:
        return Command(
            *("job", job, self.phase.value.lower()),
            *self.options,
            *(argument_text(name, *values) for name, values in parameters),
            *(Placeholder(f"{name}=<{name}>") for name in unknown),
            *(["--yes"] if self.phase in _REMOVING else []),
        )
