"""`lakewright test`: run the project's own tests."""

from __future__ import annotations

from collections.abc import Sequence

import click

from lakewright.cli.call import Call
from lakewright.cli.group import command
from lakewright.cli.progress import watching
from lakewright.cli.render.case import case_branch, summary_of
from lakewright.cli.render.plan import plan_page
from lakewright.cli.signals import listening
from lakewright.plan.status import overall

__all__ = ["test"]


@command(
    examples=["lakewright test", "lakewright test prices 'load_*'", "lakewright test prices --dry-run"],
)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("-k", "--keep-going", is_flag=True, help="Check assertions even if something failed before.")
@click.option("--dry-run", is_flag=True, help="Only show what would be built.")
@click.pass_obj
def test(call: Call, /, names: tuple[str, ...], *, keep_going: bool, dry_run: bool) -> int:
    """Run the project's tests, or those with these names; `*` matches anything.

    Each test builds its targets and fixtures in a temporary place, checks its assertions and removes
    everything again. Lake, manifest and history of the project are never touched. Exits with 1 if a test
    fails.
    """
    from lakewright.usecases.run_tests import run_tests, select_tests

    chosen = select_tests(call.app, names)
    if dry_run:
        return _plan(call, chosen)
    with (
        listening(call.output.note) as stopper,
        watching(call.output, call.app) as listener,
    ):
        results = list(
            run_tests(call.app, chosen, listener=listener, interruption=stopper, keep_going=keep_going)
        )
    document = {
        "project": call.app.project.name,
        "status": overall(result.status for result in results).value,
        "tests": [result.as_json() for result in results],
    }
    call.output.result(document, map(case_branch, results))
    call.output.last(summary_of(results))
    if stopper.signal is not None:
        return 128 + stopper.signal
    return 1 if any(result.status.is_failure for result in results) else 0


def _plan(call: Call, names: Sequence[str]) -> int:
    from lakewright.usecases.run_tests import plan_tests

    plans = plan_tests(call.app, names)
    call.output.result(
        {"project": call.app.project.name, "tests": [plan.as_json() for plan in plans]},
        (block for plan in plans for block in plan_page(plan)),
    )
    return 0
