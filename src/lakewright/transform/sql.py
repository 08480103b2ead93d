"""Names and texts inside Spark SQL, quoted so that whatever they hold stays data."""

from __future__ import annotations

__all__ = ["name_sql", "text_sql"]


def name_sql(*parts: str) -> str:
    """Return a column's name, or the path to a field, as SQL.

    Example:
        >>> name_sql("s", "net `price`")
        '`s`.`net ``price```'
    """
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def text_sql(text: str) -> str:
    r"""Return a text as a literal of Spark SQL.

    Example:
        >>> text_sql("it's a \\")
        "'it\\'s a \\\\'"
    """
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
