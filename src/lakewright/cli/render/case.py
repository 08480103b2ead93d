"""The project's tests as a tree: targets that did not succeed, and each assertion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from lakewright.cli.page import Branch, Span, line
from lakewright.cli.render.run import details
from lakewright.cli.render.words import counted, seconds, status
from lakewright.plan.status import Status
from lakewright.run.case_result import AssertionResult, CaseResult
from lakewright.run.result import TargetResult

__all__ = ["case_branch", "summary_of"]


def case_branch(result: CaseResult) -> Branch:
    """Return the tree of one test; a successful target gets no line."""
    told = f": {result.description}" if result.description else ""
    head = line(status(result.status.value), " ", Span(result.name, "bold"), told, _time(result.seconds))
    return Branch(head, tuple(_inside(result)))


def summary_of(results: Sequence[CaseResult]) -> str:
    """Return the last line on the console, easy to find with grep."""
    counts = Counter(result.status.is_failure for result in results)
    length = sum(result.seconds for result in results)
    return f"Tested. PASSED={counts[False]} FAILED={counts[True]} in {length:.1f} s"


def _inside(result: CaseResult) -> Iterator[Branch]:
    if result.error is not None:
        yield from details({}, result.error.as_json())
    targets = list(result.targets())
    if targets:
        quiet = [target for target in targets if target.error is None and not target.status.is_failure]
        built = len({target.name for target in quiet})
        if built:
            yield Branch(line(Span(f"{counted(built, 'target')} built and taken away", "dim")))
        yield from (_target(target) for target in targets if target not in quiet)
    yield from map(_assertion, result.assertions)


def _target(target: TargetResult) -> Branch:
    head = line(status(target.status.value), f" {target.phase} {target.name}: {'; '.join(target.reasons)}")
    error = target.error.as_json() if target.error else None
    return Branch(head, tuple(details({}, error)))


def _assertion(result: AssertionResult) -> Branch:
    told = f" ({result.description})" if result.description else ""
    inside = [Branch(line(failure)) for failure in result.failures]
    if result.error is not None:
        inside += details({}, result.error.as_json())
    time = _time(result.seconds) if result.status is not Status.SKIPPED else Span(" not reached", "dim")
    return Branch(line(status(result.status.value), f" {result.name}{told}", time), tuple(inside))


def _time(length: float) -> Span:
    return Span(f" {seconds(length)}", "dim")
