"""The look at targets for a plan, several at once: what it finds, or why it could not look.

An object store answers a request after some hundredths of a second, and a table that is read for the first
time costs about six.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lakewright.errors import LakewrightError, NotInstalled, SpecError, StorageUnavailable
from lakewright.errors.phrase import Phrase
from lakewright.lake.spark_errors import query_failure
from lakewright.lake.storage_errors import DAMAGED, failed_observation, storage_error
from lakewright.plan.observation import Observation
from lakewright.plan.planner import Candidate, Instance

if TYPE_CHECKING:
    from lakewright.targets.context import Context
    from lakewright.targets.target import Target

__all__ = ["AT_ONCE", "LookAhead", "look", "looking_ahead"]

log = logging.getLogger(__name__)


def look(target: Target, context: Context, tell: Callable[[SpecError], None]) -> Observation:
    """Return what a target observes. If it fails, the observation has the reason, and the target runs.

    Args:
        target: The target.
        context: The context of its instance.
        tell: Called with an error of the declaration.
    """
    subject = f"target:{target.name}"
    try:
        return target.observe(context)
    except SpecError as error:
        tell(error)
        found = error.message
    except StorageUnavailable as error:
        found = Phrase(f"{error.message} (", error.remedy or "", ")")
    except LakewrightError as error:
        return failed_observation(subject, error)
    except OSError as error:
        ours = storage_error(error, f"{target.name} can't be observed")
        found = Phrase(f"{ours.message} (", ours.remedy or "", ")")
    except Exception as error:  # a failed observation must not break a plan: the target runs
        told = query_failure(error, f"while {target.label} was observed")
        if told is not None and DAMAGED in told.details:
            return failed_observation(subject, told)
        found = f"{type(error).__name__}: {error}" if told is None else told.message
        if isinstance(told, NotInstalled):
            found = Phrase(found, " (", told.remedy or "", ")")
        log.warning("%s could not be observed: %s", target.name, found)
    return Observation(subject, error=found)


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
