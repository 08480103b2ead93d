"""`lakewright test`: run the project's own tests.

Their result is a tree: targets that did not succeed, and each assertion.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import click

from lakewright.cli.call import Call
from lakewright.cli.group import command
from lakewright.cli.page import Line, Span, line, status
from lakewright.cli.progress import listening_to_run, watching
from lakewright.cli.render.run import details, plan_page
from lakewright.errors.phrase import Phrase
from lakewright.plan.status import Status, overall
from lakewright.run.case import AssertionResult, CaseResult
from lakewright.run.result import TargetResult
from lakewright.spec.words import counted, duration


@command(
    examples=["lakewright test", "lakewright test prices 'load_*'", "lakewright test prices --dry-run"],
)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("-k", "--keep-going", is_flag=True, help="Check assertions even if something failed before.")
@click.option("--dry-run", is_flag=True, help="Only show what would be built.")
def test(call: Call, /, names: tuple[str, ...], *, keep_going: bool, dry_run: bool) -> int:
    """Run the project's tests, or those with these names; `*` matches anything.

    Each test builds its targets and fixtures in a temporary place, checks its assertions and removes
    everything. Exits with 1 if a test fails.
    """
    from lakewright.usecases.run_job import run_tests, select_tests

    chosen = select_tests(call.app, names)
    if dry_run:
        return _plan(call, chosen)
    with (
        listening_to_run(call) as stopper,
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
    from lakewright.usecases.run_job import plan_tests

    plans = plan_tests(call.app, names)
    call.output.result(
        {"project": call.app.project.name, "tests": [plan.as_json() for plan in plans]},
        (block for plan in plans for block in plan_page(plan)),
    )
    return 0


def case_branch(result: CaseResult) -> Line:
    """Return the tree of one test; a successful target gets no line."""
    description = f": {result.description}" if result.description else ""
    head = (status(result.status.value), " ", Span(result.name, "bold"), description, _time(result.seconds))
    return line(*head, below=_inside(result))


def summary_of(results: Sequence[CaseResult]) -> str:
    """Return the last line on the console, easy to find with grep."""
    counts = Counter(result.status.is_failure for result in results)
    length = sum(result.seconds for result in results)
    return f"Tested. PASSED={counts[False]} FAILED={counts[True]} in {length:.1f} s"


def _inside(result: CaseResult) -> Iterator[Line]:
    yield from details({}, result.error)
    targets = list(result.targets())
    if targets:
        quiet = [target for target in targets if target.error is None and not target.status.is_failure]
        built = len({target.name for target in quiet})
        if built:
            yield line(Span(f"{counted(built, 'target')} built and taken away", "dim"))
        yield from (_target(target) for target in targets if target not in quiet)
    yield from map(_assertion, result.assertions)


def _target(target: TargetResult) -> Line:
    reasons = Phrase.joined("; ", target.reasons)
    head = (status(target.status.value), f" {target.phase} {target.name}: ", reasons)
    return line(*head, below=details({}, target.error))


def _assertion(result: AssertionResult) -> Line:
    description = f" ({result.description})" if result.description else ""
    inside = (*map(line, result.failures), *details({}, result.error))
    time = _time(result.seconds) if result.status is not Status.SKIPPED else Span(" not reached", "dim")
    return line(status(result.status.value), f" {result.name}{description}", time, below=inside)


def _time(length: float) -> Span:
    return Span(f" {duration(length)}", "dim")
