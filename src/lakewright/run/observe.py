"""Asking every target of every instance what it finds, without changing anything.

Source: `lifecycles-and-phases.md`, "Jobs & Lifecycles" (each target is checked for being dirty).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from lakewright.errors import LakewrightError, SpecError
from lakewright.plan.build import Candidate, Instance
from lakewright.plan.graph import Node
from lakewright.plan.observation import Observation
from lakewright.plan.phase import Phase
from lakewright.targets.context import Context
from lakewright.targets.target import Target

__all__ = ["observe"]

log = logging.getLogger(__name__)


def observe(
    targets: Sequence[str],
    contexts: Iterable[tuple[Mapping[str, str], Context]],
    leftover: Callable[[str, Mapping[str, str]], Mapping[Phase, str]],
) -> tuple[Instance, ...]:
    """Return each instance with its targets as they are found.

    Args:
        targets: Names in the order written.
        contexts: For each instance its parameters, as text, and the context of its targets.
        leftover: For a target and parameters, the phases in which an earlier run left it undone, and why.

    Raises:
        SpecError: A definition is wrong once its expressions have values. All such faults come together.
    """
    instances: list[Instance] = []
    faults: list[SpecError] = []
    for parameters, context in contexts:
        candidates: list[Candidate] = []
        for name in targets:
            try:
                candidate = _candidate(name, context, partial(leftover, name, parameters))
            except SpecError as error:
                faults.append(error)
                continue
            if candidate is not None:
                candidates.append(candidate)
        instances.append(Instance(parameters, tuple(candidates)))
    if faults:
        raise SpecError(dict.fromkeys(fault for error in faults for fault in error.faults))
    return tuple(instances)


def _candidate(name: str, context: Context, leftover: Callable[[], Mapping[Phase, str]]) -> Candidate | None:
    target = Target.named(context.workspace, name)
    if not target.enabled:
        return None
    nodes = {phase: _node(target, context, phase) for phase in sorted(target.phases())}
    return Candidate(
        name=name,
        kind=target.kind,
        nodes=nodes,
        observation=_observation(target, context),
        dirty=lambda phase, found: target.dirty(phase, found, context.settings),
        leftover=leftover(),
        labels=_labels(target),
    )


def _labels(target: Target) -> frozenset[str]:
    labels = (target.metadata or {}).get("labels") or {}
    return frozenset(text for key, value in labels.items() for text in (key, f"{key}={value}"))


def _node(target: Target, context: Context, phase: Phase) -> Node:
    return Node(
        target.name,
        before=target.before,
        after=target.after,
        requires=target.requires(context.workspace, phase),
        provides=target.provides(context.workspace, phase),
    )


def _observation(target: Target, context: Context) -> Observation:
    try:
        return target.observe(context)
    except SpecError:
        raise
    except LakewrightError as error:
        return Observation(f"target:{target.name}", error=error.message)
    except Exception as error:  # asking must not break a plan: what is unknown runs, and says why
        log.warning("%s could not be observed: %s", target.name, error)
        return Observation(f"target:{target.name}", error=f"{type(error).__name__}: {error}")
