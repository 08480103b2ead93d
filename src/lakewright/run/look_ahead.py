"""Observations that begin before the planner asks for them, several at once.

An object store answers a request after some hundredths of a second, and a table that is read for the first
time costs about six.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace

from lakewright.plan.observation import Observation
from lakewright.plan.planner import Candidate, Instance

__all__ = ["AT_ONCE", "LookAhead", "looking_ahead"]

AT_ONCE = 8
"""Targets that are observed at the same time."""


@dataclass(frozen=True, slots=True)
class LookAhead:
    """Observes the targets of instances in threads.

    Attributes:
        threads: The threads.
        names: The targets that may take part; None means all.
    """

    threads: ThreadPoolExecutor
    names: frozenset[str] | None

    def over(self, instances: Iterable[Instance]) -> Iterator[Instance]:
        """Yield each instance, whose targets are being observed from then on, until the next is requested."""
        for instance in instances:
            begun: list[Future[Observation]] = []
            candidates = tuple(self._begun(each, begun) for each in instance.candidates)
            yield replace(instance, candidates=candidates)
            for each in begun:
                each.cancel()
            wait(each for each in begun if not each.cancelled())

    def _begun(self, candidate: Candidate, begun: list[Future[Observation]]) -> Candidate:
        if self.names is not None and candidate.name not in self.names:
            return candidate
        begun.append(self.threads.submit(candidate.observe))
        return replace(candidate, observe=begun[-1].result)


@contextmanager
def looking_ahead(names: frozenset[str] | None) -> Iterator[LookAhead]:
    """Yield threads that observe targets; those not yet observed at the end of the block are left."""
    threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="observing")
    try:
        yield LookAhead(threads, names)
    finally:
        threads.shutdown(cancel_futures=True)
