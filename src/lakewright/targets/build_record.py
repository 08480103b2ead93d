"""What a target was last built from, kept in the store, for the build policy `IF_CHANGED`."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

from lakewright.manifest.journal import BUILT
from lakewright.manifest.store import Put, Write
from lakewright.plan.observation import Observation
from lakewright.plan.phase import Phase
from lakewright.targets.context import Context

if TYPE_CHECKING:
    from lakewright.targets.writing import WritingTarget

__all__ = ["BUILT", "fingerprint", "record_built", "with_fingerprints"]


def with_fingerprints(context: Context, target: WritingTarget, observation: Observation) -> Observation:
    """Return the observation with what the target is made of now, and was when it was last built."""
    document = context.ledger.store.document(BUILT, _key(context, target))
    built = None if document is None else dict(document.value)
    return replace(observation, fingerprint=fingerprint(context, target), built=built)


def record_built(context: Context, target: WritingTarget, made_of: dict[str, str] | None) -> None:
    """Put down what the target has just been built from, as it was before the build."""
    context.ledger.store.write(Write(puts=(Put(BUILT, _key(context, target), made_of),)))


def fingerprint(context: Context, target: WritingTarget) -> dict[str, str] | None:
    """Return what the target is made of: its own definition, its mappings' and the state of all they read.

    None where the state of an input can't be told.
    """
    inputs = context.workspace.fingerprint(target.mapping or "")
    if inputs is None:
        return None
    parts = {**inputs, f"target {target.name}": target.model_dump_json()}
    return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in parts.items()}


def _key(context: Context, target: WritingTarget) -> str:
    """The target and what it writes, which differs from instance to instance."""
    written = target.provides(context.workspace, Phase.BUILD)
    return f"{context.workspace.project.name}/{target.name}/{', '.join(sorted(map(str, written)))}"
