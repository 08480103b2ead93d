"""`lakewright test`: the project's own tests."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from lakewright.cli.call import Call
from lakewright.cli.group import command
from lakewright.cli.progress import watching
from lakewright.cli.render.case import case_branch, summary_of
from lakewright.cli.render.plan import plan_page
from lakewright.cli.signals import listening
from lakewright.errors import LakewrightError, UsageError
from lakewright.plan.status import overall
from lakewright.spec.suggestions import suggestion

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.run.case_result import CaseResult
    from lakewright.run.execute import Interruption, Listener

__all__ = ["test"]


@command(
    examples=["lakewright test", "lakewright test prices 'load_*'", "lakewright test prices --dry-run"],
)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("-k", "--keep-going", is_flag=True, help="Check assertions though something broke off.")
@click.option("--dry-run", is_flag=True, help="Only show what would be built.")
@click.pass_obj
def test(call: Call, /, names: tuple[str, ...], *, keep_going: bool, dry_run: bool) -> int:
    """Run the project's tests, or those of these names; `*` stands for anything.

    Each builds its targets and fixtures in a throw-away place, checks its assertions and takes all away
    again. Lake, manifest and history of the project are never touched. Ends with 1 if a test failed.
    """
    chosen = _chosen(call.app, names)
    if dry_run:
        return _planned(call, chosen)
    with (
        listening(call.output.note) as stopper,
        watching(call.output, call.app) as listener,
    ):
        results = list(_results(call.app, chosen, listener, stopper, keep_going=keep_going))
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


def _chosen(app: App, names: Sequence[str]) -> list[str]:
    known = list(app.project.tests)
    for name in names:
        if not fnmatch.filter(known, name):
            raise UsageError(f"there is no test {name!r}", remedy=suggestion(name, known))
    if not names:
        # One that only others extend is no test of its own.
        return [name for name in known if not _is_part(app, name)]
    return [name for name in known if any(fnmatch.fnmatchcase(name, each) for each in names)]


def _is_part(app: App, name: str) -> bool:
    raw = app.project.tests[name].raw
    return not any(raw.get(key) for key in ("targets", "fixtures", "assertions", "extends"))


def _results(
    app: App, names: Sequence[str], listener: Listener, interruption: Interruption, *, keep_going: bool
) -> Iterator[CaseResult]:
    from lakewright.run.case_result import CaseResult
    from lakewright.stores.process import this_process

    holder = this_process(app.run_id)
    with app.rehearsing(interruption, keep_going=keep_going) as ready:
        for name in names:
            if interruption.signal is not None:
                return
            try:
                yield ready(name).run(holder, listener, interruption)
            except LakewrightError as error:
                yield CaseResult(name, error=error.as_fault())


def _planned(call: Call, names: Sequence[str]) -> int:
    with call.app.rehearsing() as ready:
        plans = [ready(name).plan() for name in names]
    call.output.result(
        {"project": call.app.project.name, "tests": [plan.as_json() for plan in plans]},
        (block for plan in plans for block in plan_page(plan)),
    )
    return 0
