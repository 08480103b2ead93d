"""The record of what a target was last built from, which the build policy `IF_CHANGED` compares."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from lakewright.manifest.journal import BUILT
from lakewright.manifest.store import Put, Write
from lakewright.plan.observation import Observation
from lakewright.plan.phase import Phase
from lakewright.targets.context import Context
from lakewright.targets.target import Target

__all__ = ["fingerprint", "save_fingerprint", "with_fingerprints"]


def with_fingerprints(
    context: Context, target: Target, mapping: str, observation: Observation
) -> Observation:
    """Return the observation with the target's present fingerprint and that of its last build."""
    document = context.ledger.store.document(BUILT, _key(context, target))
    built = None if document is None else dict(document.value)
    return replace(observation, fingerprint=fingerprint(context, target, mapping), built=built)


def save_fingerprint(context: Context, target: Target, taken: dict[str, str] | None) -> None:
    """Save the fingerprint that was taken just before the target was built."""
    context.ledger.store.write(Write(puts=(Put(BUILT, _key(context, target), taken),)))


def fingerprint(context: Context, target: Target, mapping: str) -> dict[str, str] | None:
    """Return a hash of the target's definition and of each mapping and input that it is built from.

    Returns:
        The hashes by name, or None if the state of an input cannot be determined.
    """
    inputs = context.workspace.fingerprint(mapping)
    if inputs is None:
        return None
    parts = {**inputs, f"target {target.name}": target.model_dump_json()}
    return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in parts.items()}


def _key(context: Context, target: Target) -> str:
    """Return the target with what it writes, which differs between the instances of a job."""
    written = target.provides(context.workspace, Phase.BUILD)
    return f"{context.workspace.project.name}/{target.name}/{', '.join(sorted(map(str, written)))}"
