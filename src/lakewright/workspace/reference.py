"""Fields of definitions that hold a relation: its name, or the relation itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, TypeAlias

from pydantic import Discriminator, Tag

from lakewright.spec.models.base import KindOf, Named, Reference
from lakewright.workspace.readable import ReadableRelation

__all__ = ["RelationReference", "referenced"]


def _which(declared: Any) -> str:
    return "name" if isinstance(declared, str) else "relation"


RelationReference: TypeAlias = Annotated[
    Annotated[str, Tag("name")] | Annotated[ReadableRelation, KindOf("relation"), Tag("relation")],
    Discriminator(_which),
]
"""A relation's name, or the relation itself."""


def referenced(relation: str | ReadableRelation, *path: str | int) -> Iterable[Reference]:
    """Return the reference to a relation given by name, or the references of a relation written in place."""
    where = path or ("relation",)
    if isinstance(relation, str):
        return [Reference("relation", relation, where)]
    return relation.references_below(*where) if isinstance(relation, Named) else []
