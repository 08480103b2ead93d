"""`lakewright history`: list, show, compare and prune runs."""

from __future__ import annotations

import click

from lakewright.cli.call import Call
from lakewright.cli.commands.arguments import slice_named
from lakewright.cli.group import LazyGroup
from lakewright.cli.options import settings_of
from lakewright.cli.page import Block, line
from lakewright.cli.progress import working
from lakewright.cli.render.history import diff_page, run_page, runs_table
from lakewright.cli.render.words import counted
from lakewright.manifest.journal import RUNNING
from lakewright.plan.status import Status

__all__ = ["history"]

STATUSES = [status.lower() for status in (*Status, RUNNING) if status is not Status.BLOCKED]
"""Statuses of runs; a blocked target makes its run fail."""


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    examples=[
        "lakewright history",
        "lakewright history --job monthly --status failed",
        "lakewright history --since 7d",
        "lakewright history show RUN",
        "lakewright history diff RUN OTHER",
        "lakewright history row regions 302811",
    ],
)
@click.option("--job", metavar="NAME", help="Only runs of this job.")
@click.option(
    "--status",
    type=click.Choice(STATUSES, case_sensitive=False),
    help="Only runs with this status.",
)
@click.option("--since", "age", metavar="AGE", help="Only runs started at most this long ago: 2h, 7d, P1M.")
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="The largest number of runs.",
)
@click.pass_context
def history(
    context: click.Context, /, *, job: str | None, status: str | None, age: str | None, limit: int
) -> None:
    """List the runs of jobs, newest first."""
    call = context.find_object(Call)
    if context.invoked_subcommand is not None or call is None:
        return
    from lakewright.usecases import history as use_case

    with call.configured(settings_of(context)):
        call.accept_faults()
        runs = use_case.list_runs(call.app, job=job, status=status and status.upper(), age=age, limit=limit)
        if runs:
            page: Block = runs_table(runs, call.app.store.now())
        else:
            has_run = use_case.jobs_that_ran(call.app)
            page = line("no run matches" if has_run else "nothing has run yet")
        call.output.answer([use_case.run_as_json(run) for run in runs], [page])


@history.add(name="show", examples=["lakewright history show RUN", "lakewright history show RUN -o json"])
@click.argument("run")
@click.pass_obj
def show_run(call: Call, /, run: str) -> None:
    """Show how each target of one run ended; the start of its id is enough if it is unique."""
    from lakewright.usecases.history import run_with_targets

    call.accept_faults()
    document = run_with_targets(call.app, run)
    call.output.answer(document, run_page(document))


@history.add(
    name="diff",
    examples=[
        "lakewright history diff RUN OTHER",
        "lakewright history diff RUN",
        "lakewright history diff regions 2022-02-01.parquet",
    ],
)
@click.argument("run", metavar="RUN|ENTITY")
@click.argument("other", metavar="[OTHER|SLICE]", required=False)
@click.option("--all", "is_all", is_flag=True, help="Show targets that differ only in their time, too.")
@click.option(
    "-n",
    "--rows",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="Of a slice: the largest number of records.",
)
@click.pass_obj
def diff(call: Call, /, run: str, other: str | None, *, is_all: bool, rows: int) -> None:
    """Compare two runs target by target, or show what one slice changed in an entity's table.

    Without OTHER, RUN is compared with the previous run of the same job, phase and parameters. The first such
    run has none; that is said, and is no error.

    With the name of an entity and of a slice, the records before and after the slice's commit are compared:
    inserted, updated (only the values that changed) and deleted.
    """
    call.accept_faults()
    named = slice_named(run, other)
    run, other = named if named[0] in call.app.project.entities else (run, other)
    if other is not None and run in call.app.project.entities:
        from lakewright.cli.render.look_back import changes_page
        from lakewright.usecases.look_back import slice_changes

        with working(call.output, f"comparing the table before and after {other}"):
            changes = slice_changes(call.app, run, other, limit=rows)
        call.output.answer(changes.as_json(), changes_page(changes))
        return
    from lakewright.usecases.history import compare_runs

    compared = compare_runs(call.app, run, other)
    call.output.answer(compared.as_json(), diff_page(compared, is_all=is_all))


@history.add(
    name="row",
    examples=["lakewright history row regions 302811", "lakewright history row prices NL 2022-02 -o json"],
)
@click.argument("entity")
@click.argument("key", nargs=-1, required=True)
@click.pass_obj
def row(call: Call, /, entity: str, key: tuple[str, ...]) -> None:
    """Show the life of one record: each version, by which slice, in which run.

    KEY is the value of the business key, or its values in the order of the declaration. An entity with
    history tells its whole past; of another one, the table's versions are read, as far back as their files
    are there.
    """
    from lakewright.cli.render.look_back import life_page
    from lakewright.usecases.look_back import record_life

    call.accept_faults()
    with working(call.output, "reading the table's versions"):
        life = record_life(call.app, entity, key)
    call.output.answer(life.as_json(), life_page(life))


@history.add(name="prune", examples=["lakewright history prune --older-than 90d"])
@click.option(
    "--older-than", "age", metavar="AGE", help="90d, 12h, P3M; by default the manifest's retention."
)
@click.option("--dry-run", is_flag=True, help="Only list them.")
@click.pass_obj
def prune(call: Call, /, *, age: str | None, dry_run: bool) -> None:
    """Remove old runs from the history.

    Of each job, phase, parameters and choice of targets, the last run is kept, and the last one that
    succeeded, with and without errors. So are runs that are going on, and all records of slices.
    """
    from lakewright.usecases.history import prune_runs

    call.accept_faults()
    old = prune_runs(call.app, age, is_dry=dry_run)
    document = {"removed": [run.run_id for run in old], "dry_run": dry_run}
    does = "would be removed" if dry_run else "removed"
    call.output.result(document, [line(f"{counted(len(old), 'run')} {does}")])
