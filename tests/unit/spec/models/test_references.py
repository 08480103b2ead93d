"""The definitions that a definition is built from are those that its marked fields name."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from lakewright.spec.models.base import Listed, Model, Named, Reference, RefersTo, Texts


class Inner(Named):
    source: Annotated[str, RefersTo.ENTITY]


class Part(Model):
    mapping: Annotated[str | None, RefersTo.MAPPING] = None
    label: str = ""


class Outer(Named):
    names: Annotated[Texts, RefersTo.TARGET] = ()
    where: Annotated[Inner | str, RefersTo.RELATION] = ""
    parts: Annotated[Listed[Part], RefersTo.INSIDE] = ()
    by_name: Annotated[dict[str, Inner], RefersTo.INSIDE] = Field(default_factory=dict)
    unmarked: Inner | None = None


INNER = Inner(source="e")


def test_names_are_references_of_the_marked_category_with_their_place() -> None:
    found = Outer(names=("a", "b"), where="r")
    assert list(found.references()) == [
        Reference("target", "a", ("names", 0)),
        Reference("target", "b", ("names", 1)),
        Reference("relation", "r", ("where",)),
    ]


def test_what_is_written_in_place_has_references_of_its_own() -> None:
    found = Outer(
        where=INNER, parts=(Part(label="x"), Part(mapping="m")), by_name={"k": INNER}, unmarked=INNER
    )
    assert list(found.references()) == [
        Reference("entity", "e", ("where", "source")),
        Reference("mapping", "m", ("parts", 1, "mapping")),
        Reference("entity", "e", ("byName", "k", "source")),
    ]
