"""Names and texts quoted for Spark SQL, so that nothing in them is read as SQL."""

from __future__ import annotations


def name_sql(*parts: str) -> str:
    """Return the name of a column, or the path of a field, quoted for SQL.

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
