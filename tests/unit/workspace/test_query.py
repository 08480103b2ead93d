from __future__ import annotations

import pytest

from lakewright.workspace.query import table_names


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT * FROM people", "people"),
        ("select a.x from People a, `my-mapping` b, c.d", "People my-mapping c.d"),
        ("SELECT 1", ""),
        ("SELECT * FROM a LEFT OUTER JOIN b ON a.id = b.id CROSS JOIN c", "a b c"),
        ("SELECT * FROM a JOIN b USING (id), c WHERE x IN (1, 2), d", "a b c"),
        ("SELECT * FROM (a JOIN b ON a.id = b.id) JOIN c", "a b c"),
        ("SELECT * FROM ((SELECT * FROM a) UNION ALL (SELECT * FROM b)) x, c", "a b c"),
        ("SELECT first FROM a UNION ALL SELECT last FROM b", "a b"),
        ("SELECT (SELECT max(x) FROM a) FROM b WHERE EXISTS (SELECT 1 FROM c)", "a b c"),
        ("SELECT x FROM a WHERE id IN (SELECT id FROM b) AND y NOT IN (SELECT id FROM c)", "a b c"),
        ("SELECT EXTRACT(YEAR FROM ts), trim(BOTH ' ' FROM name), substring(x FROM 2) FROM a", "a"),
        ("SELECT * FROM a WHERE x IS NOT DISTINCT FROM y AND z IS DISTINCT FROM w", "a"),
        ("SELECT DISTINCT x FROM a", "a"),
        ("WITH x AS (SELECT * FROM a) SELECT * FROM x", "a"),
        ("WITH x(c) AS (SELECT * FROM a), y AS (SELECT * FROM x JOIN b) SELECT * FROM X, y, c", "a b c"),
        ("WITH a AS (SELECT * FROM a) SELECT * FROM a", "a"),
        ("WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM t, a) SELECT * FROM t", "a"),
        ("SELECT * FROM (WITH x AS (SELECT * FROM a) SELECT * FROM x) JOIN x", "a x"),
        ("WITH x AS (WITH y AS (SELECT * FROM a) SELECT * FROM y) SELECT * FROM x JOIN y", "a y"),
        ("SELECT * FROM range(10) JOIN a", "a"),
        ("SELECT * FROM a LATERAL VIEW explode(xs) t AS x, y WHERE x > 1", "a"),
        ("SELECT * FROM a, LATERAL (SELECT * FROM b WHERE b.id = a.id) t", "a b"),
        ("SELECT * FROM a JOIN LATERAL explode(xs) t", "a"),
        ("SELECT * FROM VALUES (1, 'x'), (2, 'y') AS t(id, name)", ""),
        ("SELECT * FROM a TABLESAMPLE (10 PERCENT) s JOIN b TIMESTAMP AS OF '2020-01-01'", "a b"),
        ("SELECT * FROM a PIVOT (sum(x) FOR y IN ('p', 'q')) ORDER BY 1, 2", "a"),
        ("FROM a SELECT x, y", "a"),
        ("FROM a |> WHERE x > 1 |> JOIN b ON a.id = b.id |> SELECT x, y", "a b"),
        ("TABLE a", "a"),
        ("SELECT 'FROM b' AS x, \"it's FROM c\" -- FROM d\n FROM a /* , e */", "a"),
        ("SELECT 'it''s' || 'a\\'b FROM c' FROM a", "a"),
        ("SELECT x FROM a GROUP BY x, y HAVING count(*) > 1 ORDER BY x, y LIMIT 3", "a"),
        ("SELECT sum(x) OVER (PARTITION BY a, b ORDER BY c) FROM t", "t"),
        ("SELECT * FROM 2020_sales", "2020_sales"),
        ("SELECT * FROM größe", "größe"),
        ("SELECT *\nFROM\n    a\n,b", "a b"),
        ("SELECT * FROM delta.`/lake/x`", "delta./lake/x"),
        ("SELECT a.FROM FROM a", "a"),
        ("SELECT * FROM a UNION SELECT * FROM a", "a"),
        ("SELECT /*+ BROADCAST(b) */ * FROM a JOIN b", "a b"),
        ("SELECT count(*) FILTER (WHERE x) FROM a", "a"),
        ("SELECT 1.5e3, 1L FROM a", "a"),
    ],
)
def test_tables_are_found_without_spark(sql: str, expected: str) -> None:
    assert " ".join(".".join(name) for name in table_names(sql)) == expected
