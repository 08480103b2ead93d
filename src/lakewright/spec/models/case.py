"""Tests of a project: targets that are built over mocked inputs, and assertions about the result.

Source: the project files' rules, `tests`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import Field

from lakewright.spec.models.base import KindOf, Named, NamedMap, Reference, TextMap, Texts

CASE_SECTIONS = {
    "fixtures": "target",
    "overrideMappings": "mapping",
    "overrideRelations": "relation",
    "assertions": "assertion",
}
"""Sections of a test, with the category of their definitions."""


class Case(Named):
    """One test of a project."""

    description: str | None = Field(default=None, description="What the test checks.")
    extends: Texts = Field(default=(), description="Tests that it inherits from.")
    environment: TextMap = Field(default_factory=dict, description="Names for expressions.")
    targets: Texts = Field(default=(), description="Targets of the project that the test builds.")
    fixtures: NamedMap[Annotated[Named, KindOf("target")]] = Field(
        default_factory=dict, description="Additional targets that only this test builds."
    )
    override_mappings: NamedMap[Annotated[Named, KindOf("mapping")]] = Field(
        default_factory=dict, description="Mappings that replace the project's."
    )
    override_relations: NamedMap[Annotated[Named, KindOf("relation")]] = Field(
        default_factory=dict, description="Relations that replace the project's."
    )
    assertions: NamedMap[Annotated[Named, KindOf("assertion")]] = Field(
        default_factory=dict, description="What must hold after the build."
    )
    metadata: dict[str, Any] = Field(default_factory=dict, description="Labels.")

    def references(self) -> Iterable[Reference]:
        """Return the targets that it builds, and the tests that it extends."""
        for index, target in enumerate(self.targets):
            yield Reference("target", target, ("targets", index))
        for index, parent in enumerate(self.extends):
            yield Reference("test", parent, ("extends", index))

    def extending(self, parents: Iterable[Case]) -> Case:
        """Return the test with what it inherits from its parents. Its own entries override theirs."""
        whole = [*parents, self]
        return self.model_copy(
            update={
                "environment": {name: text for case in whole for name, text in case.environment.items()},
                "targets": tuple(dict.fromkeys(target for case in whole for target in case.targets)),
                **{
                    field: {name: found for case in whole for name, found in getattr(case, field).items()}
                    for field in ("fixtures", "override_mappings", "override_relations", "assertions")
                },
            }
        )
