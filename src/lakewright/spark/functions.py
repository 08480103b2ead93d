"""PySpark's functions of columns, which are imported when the first is used: many commands need no Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import functions
else:

    class _Functions:
        """The module `pyspark.sql.functions`."""

        def __getattr__(self, name: str) -> Any:
            from pyspark.sql import functions as module

            return getattr(module, name)

    functions = _Functions()

__all__ = ["functions"]
