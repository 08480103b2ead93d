"""Asking every target of every instance what it finds, without changing anything.

Source: `lifecycles-and-phases.md`, "Jobs & Lifecycles" (each target is checked for being dirty).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from lakewright.errors import Fault, LakewrightError, SpecError
from lakewright.plan.candidate import Candidate, Instance
from lakewright.plan.graph import Node
from lakewright.plan.observation import Observation
from lakewright.plan.phase import Phase
from lakewright.run.contexts import Contexts
from lakewright.targets.context import Context
from lakewright.targets.target import Target
from lakewright.workspace.workspace import Workspace

__all__ = ["Observer", "node_of"]

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Observer:
    """Looks at the targets of instances, and gathers what is wrong with them.

    Attributes:
        targets: Names in the order written.
        leftover: For a target and parameters, the phases in which an earlier run left it undone, and why.
        faults: What turned out to be wrong once expressions had values.
    """

    contexts: Contexts
    targets: Sequence[str]
    leftover: Callable[[str, Mapping[str, str]], Mapping[Phase, str]]
    faults: dict[Fault, None] = field(default_factory=dict)

    def instances(self) -> Iterator[Instance]:
        """Yield each instance; what is kept for one is let go when the next one is asked for.

        Targets are observed when the plan asks for it.
        """
        for index in range(len(self.contexts)):
            yield self.instance(index)
            if len(self.contexts) > 1:
                self.contexts.release(index)

    def instance(self, index: int) -> Instance:
        """Return one instance."""
        parameters = self.contexts.parameters[index]
        context = self.contexts.of(index)
        found = (self._candidate(name, context, parameters) for name in self.targets)
        return Instance(parameters, tuple(each for each in found if each is not None))

    def refuse_faults(self) -> None:
        """Return where nothing was wrong.

        Raises:
            SpecError: Definitions are wrong; all faults come together.
        """
        if self.faults:
            raise SpecError(self.faults)

    def _candidate(self, name: str, context: Context, parameters: Mapping[str, str]) -> Candidate | None:
        try:
            target = Target.named(context.workspace, name)
            if not target.enabled:
                return None
            phases = sorted(target.phases_in(context.workspace))
            nodes = {phase: node_of(target, context.workspace, phase) for phase in phases}
        except SpecError as error:
            self.faults.update(dict.fromkeys(error.faults))
            return None
        return Candidate(
            name=name,
            kind=target.kind,
            nodes=nodes,
            observe=partial(self._look, target, context),
            dirtiness=lambda phase, found: target.dirtiness(phase, found, context.defaults),
            unfinished=self.leftover(name, parameters),
            labels=target.labels(context.workspace),
        )

    def _look(self, target: Target, context: Context) -> Observation:
        try:
            return target.observe(context)
        except SpecError as error:
            self.faults.update(dict.fromkeys(error.faults))
            return Observation(f"target:{target.name}", error=error.message)
        except LakewrightError as error:
            return Observation(f"target:{target.name}", error=error.message)
        except Exception as error:  # asking must not break a plan: what is unknown runs, and says why
            log.warning("%s could not be observed: %s", target.name, error)
            return Observation(f"target:{target.name}", error=f"{type(error).__name__}: {error}")


def node_of(target: Target, workspace: Workspace, phase: Phase) -> Node:
    """Return a target's place in a phase.

    Raises:
        SpecError: Its definition, or one that it uses, is wrong.
    """
    return Node(
        target.name,
        before=target.before,
        after=target.after,
        requires=target.requires(workspace, phase),
        provides=target.provides(workspace, phase),
    )
