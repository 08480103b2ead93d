"""Arguments and options that several commands share."""

from __future__ import annotations

from typing import Any

import click

from lakewright.cli.completion import complete_arguments, complete_phase, names_of
from lakewright.cli.options import Decorator, stacked
from lakewright.plan.phase import Phase


def slice_named(entity: str, name: str | None) -> tuple[str, str | None]:
    """Return the entity and the slice that were typed as `ENTITY SLICE`, or as `ENTITY/SLICE`.

    Example:
        >>> slice_named("orders/2024-05-01.csv", None), slice_named("orders", None)
        (('orders', '2024-05-01.csv'), ('orders', None))
    """
    before, slash, after = entity.partition("/")
    return (before, after) if name is None and slash and after else (entity, name)


def job_arguments(*, is_required: bool = True) -> Decorator:
    """Return what adds the arguments JOB, PHASE and PARAM=VALUE."""
    job, phase = ("JOB", "PHASE") if is_required else ("[JOB]", "[PHASE]")
    return stacked(
        click.argument("name", metavar=job, required=is_required, shell_complete=names_of("jobs")),
        click.argument(
            "phase", type=Phase.named, metavar=phase, required=is_required, shell_complete=complete_phase
        ),
        click.argument("parameters", nargs=-1, metavar="[PARAM=VALUE]...", shell_complete=complete_arguments),
    )


def rows_option(help: str, default: int = 20) -> Decorator:
    """Return the option that limits how many rows are shown."""
    limits = click.IntRange(min=1)
    return click.option("-n", "--rows", type=limits, default=default, show_default=True, help=help)


def entity_option(*names: str, **settings: Any) -> Decorator:
    """Return the option that chooses the slices of an entity."""
    completed = names_of("entities")
    return click.option(
        "--entity",
        *names,
        metavar="NAME",
        shell_complete=completed,
        help="Only slices of this entity.",
        **settings,
    )


run_options = stacked(
    click.option("-f", "--force", is_flag=True, help="Run clean targets, too."),
    click.option(
        "-t",
        "--targets",
        "--target",
        "targets",
        shell_complete=names_of("targets"),
        multiple=True,
        metavar="REGEX",
        help="Only targets whose name matches; also +NAME, NAME+, tag:…, kind:…, state:failed.",
    ),
    click.option(
        "-d", "--dirty", multiple=True, metavar="REGEX", help="Treat targets whose name matches as dirty."
    ),
    click.option("-nl", "--no-lifecycle", is_flag=True, help="Run only this phase, none before it."),
    click.option("-k", "--keep-going", is_flag=True, help="Run targets that do not depend on a failed one."),
    click.option(
        "--resume", is_flag=True, help="Run only what earlier runs left failed, blocked or not reached."
    ),
    click.option(
        "--retry",
        is_flag=True,
        help="For schedulers: add no rows again that failed runs have added.",
    ),
    click.option("-j", "--jobs", type=click.IntRange(min=1), help="Run this many targets at once."),
    click.option("--wait", is_flag=True, help="Wait for what another run has locked."),
    click.option("--allow-data-loss", is_flag=True, help="Allow migrations to drop data."),
    click.option("--allow-backdated", is_flag=True, help="Allow a processing time earlier than the table's."),
)
"""Adds the options that `job_request` takes."""
