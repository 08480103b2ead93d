"""What Spark tells of a query that failed is an error with the cause and what to do."""

from __future__ import annotations

import pytest
from pyspark.errors import PythonException

from lakewright.lake.spark_errors import query_failure

TRACEBACK = """
  An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "/project/functions.py", line 7, in shout
    import helpers
{error}
"""


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (
            "ModuleNotFoundError: No module named 'helpers'",
            "Spark's Python processes import installed packages",
        ),
        ("ValueError: no text", "Correct the function or its input"),
    ],
)
def test_a_python_function_that_failed_is_told_with_its_line_and_a_remedy(error: str, remedy: str) -> None:
    found = query_failure(PythonException(message=TRACEBACK.format(error=error)), "in a test")
    assert found is not None
    assert found.message == f"a Python function failed: {error} (/project/functions.py, line 7, in shout)"
    assert str(found.remedy).startswith(remedy)
