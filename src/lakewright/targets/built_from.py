"""What a target was last built from: the state of its inputs, and what was declared of its mappings.

The build policy `IF_CHANGED` compares it, and other policies tell what was declared anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace

from lakewright.errors import LakewrightError
from lakewright.manifest.journal import BUILT
from lakewright.manifest.store import Put, Write
from lakewright.plan.observation import Observation
from lakewright.plan.phase import Phase
from lakewright.targets.context import Context
from lakewright.targets.target import Target
from lakewright.workspace.imported_parts import unqualified

__all__ = ["declared", "fingerprint", "redefined", "save_fingerprint", "with_fingerprints"]

_DECLARED = "declaration of"


def with_fingerprints(
    context: Context, target: Target, inputs: Mapping[str, str] | None, observation: Observation
) -> Observation:
    """Return the observation with the target's present fingerprint and that of its last build."""
    document = context.ledger.store.document(BUILT, _key(context, target))
    built = None if document is None else dict(document.value)
    return replace(observation, fingerprint=fingerprint(target, inputs), built=built)


def declared(context: Context, *mappings: str) -> dict[str, str]:
    """Return a hash of what is declared of each mapping that a target is built from, by its name in words."""
    parts = {name: text for each in mappings for name, text in context.workspace.declarations(each).items()}
    return {f"{_DECLARED} {name}": hashlib.sha256(text.encode()).hexdigest() for name, text in parts.items()}


def redefined(context: Context, target: Target, *mappings: str) -> tuple[str, ...]:
    """Return the mappings that have been declared anew since a target was built; none if that is unknown."""
    document = context.ledger.store.document(BUILT, _key(context, target))
    built = {} if document is None else dict(document.value)
    try:
        now = declared(context, *mappings) if any(name.startswith(_DECLARED) for name in built) else {}
    except LakewrightError:
        return ()  # the run or `validate` tells what is wrong with it
    # Earlier versions saved what an imported project declares without its name.
    changed = (name for name in now if now[name] not in (built.get(name), built.get(unqualified(name))))
    return tuple(sorted(name.removeprefix(f"{_DECLARED} ") for name in changed))


def save_fingerprint(context: Context, target: Target, taken: dict[str, str] | None) -> None:
    """Save the fingerprint that was taken just before the target was built; None forgets it."""
    context.ledger.store.write(Write(puts=(Put(BUILT, _key(context, target), taken),)))


def fingerprint(target: Target, inputs: Mapping[str, str] | None) -> dict[str, str] | None:
    """Return a hash of the target's definition and of each mapping and input that it is built from.

    Args:
        target: The target.
        inputs: Texts that change with its inputs, by name; None if the state of one can't be determined.

    Returns:
        The hashes by name, or None as `inputs`.
    """
    if inputs is None:
        return None
    parts = {**inputs, f"target {target.name}": target.model_dump_json()}
    return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in parts.items()}


def _key(context: Context, target: Target) -> str:
    """Return the target with what it writes, which differs between the instances of a job."""
    written = target.provides(context.workspace, Phase.BUILD)
    return f"{context.workspace.project.name}/{target.name}/{', '.join(sorted(map(str, written)))}"
