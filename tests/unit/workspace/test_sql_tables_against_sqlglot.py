"""The scanner finds the tables that sqlglot's parser finds, for queries that sqlglot can parse.

Why sqlglot isn't used for that: docs/decisions/012-tables-in-queries.md.
"""

from __future__ import annotations

import pytest
import sqlglot
from sqlglot import exp

from lakewright.workspace.sql_tables import table_names

QUERIES = [
    "SELECT * FROM 2020_sales",
    "SELECT * EXCEPT (x) FROM a",
    "SELECT x FROM a QUALIFY row_number() OVER (PARTITION BY y ORDER BY z) = 1",
    "SELECT x, count(*) FROM a GROUP BY ALL",
    "SELECT transform(xs, x -> x + 1) FROM a",
    "SELECT aggregate(xs, 0, (acc, x) -> acc + x) FROM a",
    "SELECT TRANSFORM (a, b) USING 'cat' AS (c, d) FROM t",
    "SELECT * FROM a UNPIVOT (v FOR k IN (x, y))",
    "SELECT * FROM a UNPIVOT INCLUDE NULLS ((v, w) FOR k IN ((x, y) AS p, (z, q) AS r))",
    "SELECT x COLLATE UTF8_LCASE FROM a",
    "SELECT x::int, try_cast(y AS int) FROM a",
    "SELECT f(a => 1, b => 2) FROM t",
    "SELECT * FROM a LEFT ANTI JOIN b ON a.x = b.x LEFT SEMI JOIN c ON a.x = c.x",
    "SELECT * FROM a NATURAL FULL OUTER JOIN b",
    "SELECT x, y FROM a GROUP BY GROUPING SETS ((x), (y), ())",
    "SELECT x, y FROM a GROUP BY x, y WITH CUBE",
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x) FROM a",
    "SELECT sum(x) OVER w FROM a WINDOW w AS (PARTITION BY y ORDER BY z ROWS 1 PRECEDING)",
    "SELECT * FROM a WHERE t > current_timestamp() - INTERVAL '1' DAY",
    "SELECT * FROM a WHERE t > INTERVAL 1 DAY 2 HOURS + x",
    "SELECT INTERVAL '1-2' YEAR TO MONTH FROM a",
    "SELECT * FROM a DISTRIBUTE BY x SORT BY y",
    "SELECT * FROM a CLUSTER BY x",
    "SELECT * FROM a VERSION AS OF 3 JOIN b TIMESTAMP AS OF current_date()",
    "SELECT * FROM a@v3",
    "SELECT * FROM explode(array(1,2)) JOIN a",
    "SELECT * FROM a, LATERAL explode(xs) AS t(x) LEFT JOIN b",
    "SELECT * FROM a LATERAL VIEW OUTER explode(xs) t AS x LATERAL VIEW posexplode(ys) u AS p, y",
    "FROM a |> AGGREGATE sum(x) AS s GROUP BY y |> ORDER BY s |> UNION ALL (SELECT * FROM b)",
    "FROM a |> LEFT JOIN b USING (id) |> WHERE x IN (SELECT y FROM c) |> TABLESAMPLE (10 PERCENT)",
    "FROM a |> PIVOT (sum(x) FOR y IN ('p', 'q'))",
    "WITH x AS (FROM a SELECT *) FROM x",
    "SELECT * FROM (VALUES (1), (2)) t(x) JOIN a",
    "SELECT * FROM IDENTIFIER('a')",
    "SELECT * FROM a WHERE x LIKE ANY ('a', 'b') AND y RLIKE 'z'",
    "SELECT * FROM a WHERE x <=> y AND z ILIKE 'q' ESCAPE '/'",
    "SELECT a.* FROM a JOIN b ON a.x = b.x AND b.y = :p",
    "SELECT CASE WHEN EXISTS (FROM b) THEN 1 END FROM a",
    "SELECT X'1F', 1.0BD, 2S, 3Y, 1e3D, 4.5F FROM a",
    "SELECT r'a\\b' FROM a",
    'SELECT "double" FROM a',
    "SELECT DATE '2020-01-01', TIMESTAMP_NTZ '2020-01-01' FROM a",
    "SELECT map('a', 1)['a'], named_struct('x', 1).x, arr[0] FROM a",
    "SELECT cast(x AS struct<a: int, b: array<map<string, decimal(10,2)>>>) FROM a",
    "SELECT stack(2, 1, 2) FROM a",
    "SELECT inline(xs) AS (p, q) FROM a",
    "SELECT * FROM a MINUS SELECT * FROM b INTERSECT ALL SELECT * FROM c EXCEPT DISTINCT SELECT * FROM d",
    "SELECT * FROM a JOIN (b CROSS JOIN c) ON a.x = b.x",
    "SELECT * FROM ((a))",
    "SELECT * FROM (a) x",
    "SELECT any_value(x) IGNORE NULLS, first(y) RESPECT NULLS FROM a",
    "SELECT overlay(x PLACING 'y' FROM 2 FOR 3), position('a' IN x), trim(LEADING FROM y) FROM a",
    "SELECT timestampadd(MONTH, 1, t), timestampdiff(DAY, t, u), date_diff(HOUR, t, u) FROM a",
    "SELECT * FROM a TABLESAMPLE (BUCKET 3 OUT OF 10) JOIN b TABLESAMPLE (5 ROWS) REPEATABLE (3)",
    "SELECT x FROM a HAVING x > 1",
    "SELECT x div 2, ~y, x ^ y, x << 2, x || y, !z FROM a",
    "SELECT * FROM `a b`.`c.d` JOIN `x``y`",
    "SELECT * FROM a AS `t` (p, q)",
    "SELECT * FROM a b JOIN c d",
    "SELECT * FROM 2020_sales",
    "SELECT * FROM cat.db.tab, csv.`/x/y.csv`, json.`s3a://b/c`",
    "SELECT struct(*), count(DISTINCT x, y) FROM a",
    "SELECT * FROM a ORDER BY x ASC NULLS LAST LIMIT ALL OFFSET 2",
    "SELECT /*+ REPARTITION(3), COALESCE(1) */ /*+ MERGE(b) */ * FROM a, b",
    "SELECT session_window.start, count(*) FROM a GROUP BY session_window(t, '5 minutes')",
    "SELECT * FROM a WHERE (x, y) IN (SELECT p, q FROM b)",
    "SELECT if(x, y, z), x BETWEEN 1 AND 2, NOT x, x IS NOT TRUE FROM a",
    "SELECT date, table, user, current_date, timestamp, year, first, order_ FROM a",
    "SELECT end, start, comment, position, type, row, left_ FROM a",
    "SELECT variant_get(v, '$.a', 'int'), parse_json('{}') FROM a",
    "SELECT x AS (p, q) FROM a",
    "SELECT * FROM a ANTI JOIN b ON a.x = b.x SEMI JOIN c USING (x)",
    "SELECT * FROM range(0, 10, 2, 4) r JOIN sequence",
    "SELECT month, day, hour FROM a WHERE month(x) = 1",
    "SELECT * FROM STREAM a",
    "SELECT * FROM a LIMIT 3;",
    "SELECT listagg(x, ',') WITHIN GROUP (ORDER BY x) FROM a",
    "SELECT sum(x) FROM a TABLESAMPLE (50 PERCENT) AS t WHERE t.x",
    "SELECT t.x.y.z FROM db.a t",
    "SELECT * FROM a FULL JOIN b ON true RIGHT OUTER JOIN c ON false CROSS JOIN d",
    "SELECT DECLARE\n, '-- x' FROM a -- y, z\n, b",
]


@pytest.mark.parametrize("sql", QUERIES)
def test_the_scanner_agrees_with_a_parser(sql: str) -> None:
    assert table_names(sql) == parsed_table_names(sql)


def parsed_table_names(sql: str) -> tuple[tuple[str, ...], ...]:
    found = []
    for table in sqlglot.parse_one(sql, dialect="spark").find_all(exp.Table):
        is_function = not isinstance(table.this, exp.Identifier)
        if not is_function and not table.find_ancestor(exp.Hint) and not is_defined(table):
            found.append((table.parts[0].meta["start"], tuple(part.name for part in table.parts)))
    return tuple(dict.fromkeys(name for _, name in sorted(found)))


def is_defined(table: exp.Table) -> bool:
    """Whether a WITH around the table, or an earlier definition of the WITH it is in, has its name."""
    child: exp.Expr = table
    node = table.parent
    while node is not None:
        clause = node.args.get("with_")
        definitions = [] if clause is None or clause is child else clause.expressions
        if isinstance(node, exp.With):
            position = next(index for index, each in enumerate(node.expressions) if each is child)
            definitions = node.expressions[: position + bool(node.args.get("recursive"))]
        if len(table.parts) == 1 and any(each.alias.lower() == table.name.lower() for each in definitions):
            return True
        child, node = node, node.parent
    return False
