"""The pattern of a file relation: where each partition's files are, if not in a folder of its name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from lakewright.lake.partition import Partition, typed_partition
from lakewright.spec.expressions.expression import Name, Node, names_in, parse_template
from lakewright.spec.expressions.scope import Scope
from lakewright.spec.expressions.values import render_value
from lakewright.spec.models.fields import PartitionField

__all__ = ["Pattern"]


@dataclass(frozen=True, slots=True)
class Pattern:
    """A text with expressions for the values of partition columns, such as `${year}/${month}/*.csv`.

    Attributes:
        columns: The relation's partition columns.
        scope: The scope of the instance, for other names in the pattern.
    """

    text: str
    columns: tuple[PartitionField, ...]
    scope: Scope

    def path(self, partition: Partition) -> str:
        """Return the path of a partition below the location, with `*` for columns that it does not fix."""
        scope = self.scope.child(typed_partition(self.columns, partition))
        return "".join(
            part
            if isinstance(part, str)
            else render_value(scope.evaluate_node(part))
            if self._used(part) <= set(partition)
            else "*"
            for part in self._parts()
        )

    def found_in_path(self) -> tuple[str, dict[str, int]]:
        """Return a regular expression for the end of a file's path, and the group of each column in it.

        Only columns whose value appears unchanged in the path, as in `${year}`, have a group.
        """
        groups: dict[str, int] = {}
        expression = "/"
        for part in self._parts():
            if isinstance(part, str):
                expression += _glob_expression(part)
            elif isinstance(part, Name) and self._used(part) and part.name not in groups:
                groups[part.name] = len(groups) + 1
                expression += "([^/]*)"
            elif self._used(part):
                expression += "[^/]*"
            else:
                expression += re.escape(render_value(self.scope.evaluate_node(part)))
        return expression + "(?:/[^/]*)?$", groups

    def _parts(self) -> Sequence[str | Node]:
        return parse_template(self.text).parts

    def _used(self, node: Node) -> frozenset[str]:
        return names_in(node) & {column.name for column in self.columns}


def _glob_expression(text: str) -> str:
    return "".join({"*": "[^/]*", "?": "[^/]"}.get(character, re.escape(character)) for character in text)
