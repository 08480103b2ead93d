"""The paths of partitions by a pattern, such as `${year}/${month}/*.csv`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lakewright.errors import SpecError
from lakewright.lake.partition import Partition, typed_partition
from lakewright.spec.expressions.expression import Name, Node, names_in, parse_template
from lakewright.spec.expressions.scope import Scope
from lakewright.spec.expressions.values import render_value
from lakewright.spec.models.fields import PartitionField

__all__ = ["Pattern"]

_SIGNS = re.compile(r"[/*?\[{\\]")
"""Characters that make a folder, or by which a path stands for others, here or in Hadoop."""


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
        """Return the path of a partition below the location, with `*` for columns that it does not fix.

        Raises:
            SpecError: A value does not name one file or folder, so that its rows would not be found again.
        """
        return self._path(partition, self._parts())

    def check(self, partition: Partition) -> None:
        """Raise the `SpecError` of `path`, whether or not other names in the pattern are known."""
        parts = self._parts()
        self._path(partition, [part if isinstance(part, str) or self._used(part) else "*" for part in parts])

    def _path(self, partition: Partition, parts: Iterable[str | Node]) -> str:
        scope = self.scope.child(typed_partition(self.columns, partition))
        path = ""
        for part in parts:
            if isinstance(part, str):
                path += part
            elif (used := self._used(part)) <= set(partition):
                text = render_value(scope.evaluate_node(part))
                self._check({name: partition[name] for name in sorted(used)}, text, path)
                path += text
            else:
                path += "*"
        return path

    def _check(self, values: Partition, text: str, before: str) -> None:
        """Check that values of columns do not change the folders of a path, given the path before them.

        An expression may make folders of a value that has none, as `${day.format('yyyy/MM')}` does.
        """
        for sign in _SIGNS.findall(text):
            for name, value in values.items():
                if sign in value:
                    effect = "makes another folder" if sign == "/" else "stands for other names"
                    raise SpecError.of(
                        f"{_told(values)} has a `{sign}`, which {effect} in the pattern {self.text!r}",
                        remedy="Give another value, or replace the character in the pattern: "
                        f"${{{name}.replace('{sign}', '_')}}.",
                    )
        if values and text.startswith(".") and before[-1:] in ("", "/"):
            raise SpecError.of(
                f"{_told(values)} begins with a full stop, so that its files are hidden or outside of its "
                f"folder in the pattern {self.text!r}",
                remedy="Give another value, or begin the name with another character in the pattern.",
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


def _told(values: Partition) -> str:
    columns, texts = ", ".join(values), ", ".join(map(repr, values.values()))
    return f"partition column {columns}: the value {texts}"
