"""Column lineage: the columns of a mapping's inputs from which each of its columns is computed.

The mapping is built over empty inputs whose columns are named after their mapping, and lineage is read from
Spark's analysed plan (docs/decisions/013-column-lineage.md). No Spark job runs.

Spark writes the plan as JSON: a list of nodes, each followed by its children. Expressions are such lists too.
Columns are identified by their expression ids. The name of a leaf's column holds the mapping that it belongs
to, because Spark does not write column metadata into the JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from lakewright.documentation.document import Ref, Source, walk
from lakewright.mappings.mapping import Mapping as MappingModel
from lakewright.spark.engine import jvm_of
from lakewright.spec.models.fields import Field
from lakewright.workspace.workspace import Workspace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


MARK = "\x1f"
"""Separates mapping and column in the name of a leaf's column; names in projects do not contain it."""

Node: TypeAlias = Mapping[str, Any]
Tree: TypeAlias = Sequence[Node]
Columns: TypeAlias = list[tuple[int, str]]
"""The ids and names of the columns of a plan's result."""
Origin: TypeAlias = tuple[str, str]
"""The mapping that a leaf's column belongs to, and the column's name."""


def _sources_of(plan: Tree) -> list[tuple[str, tuple[Origin, ...]]]:
    """Return each column of a plan's result with the leaf columns it is computed from, in their order."""
    reader = _PlanReader()
    columns = reader.plan(plan)
    return [(name, reader.origins(key)) for key, name in columns]


@dataclass(slots=True)
class _PlanReader:
    """Collects the dependencies between the columns of a plan.

    Attributes:
        made_of: The ids of the columns that each column is computed from, by its id.
        leaves: The origins of leaf columns, by their ids.
        cte_columns: The columns of common table expressions, by the expression's id.
    """

    made_of: dict[int, dict[int, None]] = field(default_factory=dict)
    leaves: dict[int, Origin] = field(default_factory=dict)
    cte_columns: dict[int, Columns] = field(default_factory=dict)

    def origins(self, key: int) -> tuple[Origin, ...]:
        """Return the origins of a column, each once."""
        keys = walk([key], lambda at: self.made_of.get(at, {}))
        return tuple(dict.fromkeys(self.leaves[at] for at in keys if at in self.leaves))

    def plan(self, tree: Tree) -> Columns:
        """Read a plan, and return the ids and names of its columns."""
        return self._node(tree, 0)[0]

    def _node(self, tree: Tree, position: int) -> tuple[Columns, int]:
        node = tree[position]
        children: list[Columns] = []
        position += 1
        for _ in range(node["num-children"]):
            columns, position = self._node(tree, position)
            children.append(columns)
        for expression in _expressions(node):
            self._expression(expression)
        return self._columns(node, children), position

    def _columns(self, node: Node, children: list[Columns]) -> Columns:
        kind = str(node["class"]).rpartition(".")[2]
        known = _NODES.get(kind)
        if known is not None:
            return known(self, node, children)
        if isinstance(node.get("output"), list):
            return self._leaf_or_unknown(node, children)
        return children[0] if children else []

    def _leaf_or_unknown(self, node: Node, children: list[Columns]) -> Columns:
        """Return the columns of a leaf or of an unknown node, whose columns depend on all its inputs."""
        columns = _id_and_name(node["output"])
        if not children:
            for key, name in columns:
                origin, is_marked, column = name.partition(MARK)
                if is_marked:
                    self.leaves[key] = (origin, column)
        given = [key for child in children for key, _ in child]
        for key, _ in columns:
            self._add_dependencies(key, given)
        return columns

    def _project(self, node: Node, children: list[Columns]) -> Columns:
        return _id_and_name(node.get("projectList") or node.get("aggregateExpressions") or [])

    def _join(self, node: Node, children: list[Columns]) -> Columns:
        kind = str(node.get("joinType"))
        is_filter = "LeftSemi" in kind or "LeftAnti" in kind
        return children[0] if is_filter else [column for child in children for column in child]

    def _window(self, node: Node, children: list[Columns]) -> Columns:
        return [*children[0], *_id_and_name(node.get("windowExpressions", []))]

    def _generate(self, node: Node, children: list[Columns]) -> Columns:
        made, generator = _id_and_name(node["generatorOutput"]), node["generator"]
        parts = _generated(generator, len(made)) or [generator] * len(made)
        for (key, _), part in zip(made, parts, strict=True):
            self._add_dependencies(key, _attributes(part))
        return [*children[0], *made]

    def _expand(self, node: Node, children: list[Columns]) -> Columns:
        columns = _id_and_name(node["output"])
        for projection in node["projections"]:
            for (key, _), expression in zip(columns, projection, strict=True):
                self._add_dependencies(key, _attributes(expression))
        return columns

    def _union(self, node: Node, children: list[Columns]) -> Columns:
        first, *others = children
        for other in others:
            self._follow(first, other)
        return first

    def _with_ctes(self, node: Node, children: list[Columns]) -> Columns:
        return children[int(node["plan"])]

    def _cte_definition(self, node: Node, children: list[Columns]) -> Columns:
        self.cte_columns[int(node["id"])] = children[0]
        return children[0]

    def _cte_reference(self, node: Node, children: list[Columns]) -> Columns:
        columns = _id_and_name(node["output"])
        self._follow(columns, self.cte_columns.get(int(node["cteId"]), []))
        return columns

    def _expression(self, tree: Tree) -> None:
        """Record the columns that the aliases in an expression are computed from."""
        inner = {
            index: self.plan(node["plan"]) for index, node in enumerate(tree) if _is_plan(node.get("plan"))
        }
        for index, node in enumerate(tree):
            if "exprId" not in node:
                continue
            key = _key(node)
            if node["num-children"]:
                end = _end(tree, index)
                self._add_dependencies(key, _attributes(tree[index + 1 : end]))
                for at, columns in inner.items():
                    if index < at < end:
                        self._add_dependencies(key, (each for each, _ in columns))

    def _follow(self, columns: Columns, others: Columns) -> None:
        """Record that columns have the values of others at the same places."""
        for (key, _), (same, _) in zip(columns, others, strict=False):
            self._add_dependencies(key, [same])

    def _add_dependencies(self, key: int, made_of: Iterable[int]) -> None:
        self.made_of.setdefault(key, {}).update(dict.fromkeys(made_of))


_NODES: Mapping[str, Callable[[_PlanReader, Node, list[Columns]], Columns]] = {
    "Project": _PlanReader._project,
    "Aggregate": _PlanReader._project,
    "Join": _PlanReader._join,
    "Window": _PlanReader._window,
    "Generate": _PlanReader._generate,
    "Expand": _PlanReader._expand,
    "Union": _PlanReader._union,
    "Intersect": _PlanReader._union,
    "WithCTE": _PlanReader._with_ctes,
    "CTERelationDef": _PlanReader._cte_definition,
    "CTERelationRef": _PlanReader._cte_reference,
}


def _expressions(node: Node) -> Iterator[Tree]:
    """Yield the expressions in a node: lists of maps, at any depth of lists."""
    for key, value in node.items():
        if key != "plan" and isinstance(value, list):
            yield from _trees(value)


def _trees(value: Sequence[Any]) -> Iterator[Tree]:
    if value and all(isinstance(each, Mapping) and "num-children" in each for each in value):
        yield value
        return
    for each in value:
        if isinstance(each, list):
            yield from _trees(each)


def _is_plan(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], Mapping)


def _id_and_name(expressions: Sequence[Tree]) -> Columns:
    """Return the id and name of each expression that is a column."""
    return [(_key(tree[0]), str(tree[0].get("name", ""))) for tree in expressions if "exprId" in tree[0]]


def _attributes(tree: Tree) -> Iterator[int]:
    """Yield the ids of the columns in an expression, without those of its subqueries."""
    for node in tree:
        if "exprId" in node and not node["num-children"] and "plan" not in node:
            yield _key(node)


def _key(node: Node) -> int:
    return int(node["exprId"]["id"])


def _generated(generator: Tree, width: int) -> list[list[Node]] | None:
    """Return what each column of a generator is made of; None if that is not known of each by itself.

    Known are `stack(n, a, b, …)`, and `inline` of an array of structs that the query makes.
    """
    kind, values = _class_of(generator[0]), _arguments(generator)
    if kind == "Stack":
        values = values[1:]
    elif kind == "Inline" and values and _class_of(values[0][0]) == "CreateArray":
        structs = list(map(_without_casts, _arguments(values[0])))
        if any(_class_of(each[0]) != "CreateNamedStruct" for each in structs):
            return None
        values = [value for each in structs for value in _arguments(each)[1::2]]
    else:
        return None
    return [[node for value in values[place::width] for node in value] for place in range(width)]


def _without_casts(tree: Tree) -> Tree:
    """Return what is cast: structs whose fields have several types are cast to common ones."""
    while _class_of(tree[0]) == "Cast":
        (tree,) = _arguments(tree)
    return tree


def _class_of(node: Node) -> str:
    return str(node["class"]).rpartition(".")[2]


def _arguments(tree: Tree) -> list[Tree]:
    """Return the arguments of the expression at the root of a tree."""
    found, at = [], 1
    for _ in range(int(tree[0]["num-children"])):
        end = _end(tree, at)
        found.append(tree[at:end])
        at = end
    return found


def _end(tree: Tree, index: int) -> int:
    """Return the position after an expression and its children."""
    left = 1
    while left:
        left += int(tree[index]["num-children"]) - 1
        index += 1
    return index


def column_sources(outline: Workspace, mapping: str) -> dict[str, tuple[Source, ...]] | None:
    """Return the direct sources of each column of a mapping, by its name; None if Spark shows no plan.

    They are columns of other mappings, or of the relation that the mapping reads.

    Args:
        outline: A workspace whose frames have columns and no rows.
        mapping: Name of the mapping.
    """
    model = outline.mapping(mapping)
    assert isinstance(model, MappingModel)  # noqa: S101 - as is every registered kind
    relations = [each.name for each in model.references() if each.category == "relation"]
    if relations and model.kind == "relation":
        ref = Ref("relation", relations[0])
        return {each.name: (Source(ref, each.name),) for each in outline.fields(mapping)}
    traced = _TracedWorkspace(outline, mapping)
    frame = traced.frame(mapping)
    jvm = jvm_of(frame)
    if jvm is None:
        return None
    text = jvm.plan(frame).toJSON()
    return {
        name: tuple(Source(Ref("mapping", origin), column) for origin, column in origins)
        for name, origins in _sources_of(json.loads(text))
    }


class _TracedWorkspace(Workspace):
    """A workspace in which every mapping but one is a leaf with marked column names."""

    def __init__(self, outline: Workspace, subject: str) -> None:
        super().__init__(outline.project, outline.scope, outline.lake, importer=outline, is_outline=True)
        self._outline = outline
        self._subject = subject

    def frame(self, mapping: str) -> DataFrame:
        """Return the frame of the traced mapping unchanged, and any other as a leaf."""
        if mapping == self._subject:
            return super().frame(mapping)
        return _leaf(self._outline.frame(mapping), mapping)

    def fields(self, mapping: str) -> tuple[Field, ...]:
        """Return the columns of a mapping's frame."""
        return self._outline.fields(mapping)


def _leaf(frame: DataFrame, origin: str) -> DataFrame:
    """Return an empty frame with the columns of `frame`, under names that carry their origin in the plan."""
    from pyspark.sql.types import StructField, StructType

    fields = [
        StructField(f"{origin}{MARK}{each.name}", each.dataType, each.nullable) for each in frame.schema
    ]
    return frame.sparkSession.createDataFrame([], StructType(fields)).toDF(*frame.columns)
