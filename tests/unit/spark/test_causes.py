"""Errors of Spark as values: of a server, whose nested causes are text, and of a text alone."""

from __future__ import annotations

from pyspark.errors import PySparkException

from lakewright.spark.causes import causes_of, innermost, raised_text, said_of

STACK = """org.apache.spark.SparkException
\tat org.apache.spark.sql.Some.method(Some.scala:1)
Caused by: org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file \
file:/lake/a.csv. SQLSTATE: KD001
\tat org.apache.spark.sql.Some.method(Some.scala:2)
Caused by: java.io.EOFException: Unexpected end of input stream
\tat java.base/java.lang.Thread.run(Thread.java:840)"""


class OfServer(PySparkException):
    """An error of a server of Spark Connect, with the stack trace beside it."""

    _stacktrace = STACK


def test_a_server_gives_the_outermost_condition_and_the_others_are_in_its_stack_trace() -> None:
    error = OfServer("Task failed", errorClass="TASK_WRITE_FAILED", messageParameters={"path": "file:/lake"})
    outermost, read, last = causes_of(error)
    assert (outermost.condition, outermost.parameters) == ("TASK_WRITE_FAILED", {"path": "file:/lake"})
    assert (read.condition, read.parameters) == ("FAILED_READ_FILE.NO_HINT", {"path": "file:/lake/a.csv"})
    assert (last.kind, last.condition) == ("java.io.EOFException", "")
    assert last.message == "Unexpected end of input stream"
    assert innermost((outermost, read, last), "FAILED_READ_FILE") is read
    assert innermost((outermost, read, last), "FAILED_READ") is None
    assert said_of((outermost, read, last)) == (
        "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:/lake/a.csv."
    )


def test_a_condition_that_only_says_where_gives_way_to_why() -> None:
    stack = STACK.replace("[FAILED_READ_FILE.NO_HINT]", "[TASK_WRITE_FAILED]")
    assert said_of(causes_of(RuntimeError(stack))) == "Unexpected end of input stream"


def test_a_text_of_py4j_names_the_call_before_the_error() -> None:
    (cause,) = causes_of(
        RuntimeError("An error occurred while calling o1.save.\n: java.sql.SQLException: no table\n\tat a.B")
    )
    assert (cause.kind, cause.message) == ("java.sql.SQLException", "no table")


def test_what_a_query_raises_itself_is_a_parameter() -> None:
    raised = PySparkException(
        "[USER_RAISED_EXCEPTION] no",
        errorClass="USER_RAISED_EXCEPTION",
        messageParameters={"errorMessage": "no"},
    )
    assert raised_text(causes_of(raised)) == "no"
    assert raised_text(causes_of(ValueError("no"))) == ""
