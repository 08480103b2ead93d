"""Trees of Spark's planner, which PySpark does not show."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakewright.spark.engine import Jvm


def analyzed_plans(jvm: Jvm, frame: DataFrame) -> list[Any]:
    """Return the analyzed plan of a frame, and those of its subqueries."""
    plan = jvm.plan(frame)
    return [plan, *elements(plan.subqueriesAll())]


def nodes_of(tree: Any) -> Iterator[Any]:
    """Yield the nodes of a tree, except for those of a plan's subqueries."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += elements(node.children())


def kind_of(node: Any) -> str:
    """Return the name of an object's class, without its package."""
    return str(node.getClass().getSimpleName())


def elements(sequence: Any) -> Iterator[Any]:
    """Yield the elements of a sequence of Scala."""
    return (sequence.apply(number) for number in range(sequence.size()))
