"""The look at a target for a plan: what it finds, or why it could not look."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from lakewright.errors import LakewrightError, NotInstalled, SpecError, StorageUnavailable
from lakewright.errors.phrase import Phrase
from lakewright.lake.spark_errors import query_failure
from lakewright.lake.storage_errors import DAMAGED, failed_observation, storage_error
from lakewright.plan.observation import Observation

if TYPE_CHECKING:
    from lakewright.targets.context import Context
    from lakewright.targets.target import Target

__all__ = ["look"]

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
