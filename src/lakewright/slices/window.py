"""Where delete inference's window begins, by what the manifest holds of an entity's watermarks.

Source: `processing-strategies.md`, "Delete Inference".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.errors import SpecError
from lakewright.manifest.watermark import Value
from lakewright.spec.expressions.function import EvaluationContext
from lakewright.spec.models.entity import Entity
from lakewright.spec.models.watermark import Watermark

if TYPE_CHECKING:
    from lakewright.slices.bench import Bench

__all__ = ["lower_end", "lower_ends"]


def lower_ends(bench: Bench, entity: Entity) -> dict[str, object]:
    """Return each watermark column's expression over its last value; those without one are left out.

    Raises:
        SpecError: An expression can't be computed for its last value.
    """
    last = bench.ledger.watermarks.last(bench.application)
    context = EvaluationContext(clock=bench.clock)
    return {
        mark.column_name: lower_end(entity, mark, last[mark.column_name].python, context)
        for mark in entity.watermarks
        if mark.column_name in last
    }


def lower_end(entity: Entity, mark: Watermark, last_value: Value, context: EvaluationContext) -> object:
    """Return the lower end of the window that follows the last value of an entity's watermark.

    Raises:
        SpecError: The expression can't be computed for that value.
    """
    try:
        return mark.lower_end(last_value, context)
    except SpecError as error:
        raise SpecError.of(
            f"entity {entity.name!r}: the expression {mark.expression} of the watermark {mark.column_name!r} "
            f"can't be computed for the last value {last_value}: {error.message}",
            remedy="Mend the expression, which has to suit the column's type; then resolve the item.",
        ) from error
