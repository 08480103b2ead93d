"""The documentation with Spark: checks run in few passes, columns are traced, pages are written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.contexts import make_context
from tests.projects import make_workspace
from tests.sessions import same

from lakewright.checks.check import CheckResult
from lakewright.documentation.document import Document, Item, Ref
from lakewright.documentation.gathering.gather import DocumentRequest, gather_document
from lakewright.plan.phase import Phase
from lakewright.plan.status import Status
from lakewright.spec.models.documentation import COLLECTORS
from lakewright.targets.target import Target
from lakewright.workspace.workspace import Workspace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHOP = """
relations:
  prices:
    kind: values
    schema:
      fields:
        - {name: item, type: string, description: What is sold}
        - {name: price, type: "decimal(10,2)"}
        - {name: currency, type: string}
    records:
      - [tea, "2.50", EUR]
      - [tea, "3.10", EUR]
      - [null, "200", USD]
      - [water, null, null]
    documentation:
      description: Prices
      columns:
        - name: ITEM
          checks:
            - {kind: notNull}
            - {kind: unique, description: One price an item}
            - {kind: length, minimum: 4}
            - {kind: notNull, filter: currency = 'EUR'}
            - {kind: notNull, filter: "currency IN (SELECT code FROM currencies)"}
        - name: price
          checks:
            - {kind: range, lower: 0, upper: 100}
            - {kind: values, values: ["2.5", "3.1", "200"]}
        - name: currency
          checks: {kind: foreignKey, mapping: currencies, column: code}
        - name: nothing
          checks: {kind: notNull}
      checks:
        - {kind: primaryKey, columns: [item, currency]}
        - {kind: expression, expression: price > 2}
        - {kind: expression, expression: no_such_column > 2}
        - {kind: foreignKey, relation: sold, columns: [item, currency], references: [what, coin]}
        - {kind: sql, query: "SELECT count(*) AS n, count(*) = 4 AS success FROM __THIS__"}
        - kind: sql
          query: SELECT price > 2, count(*) FROM __this__ JOIN currencies ON code = currency GROUP BY 1
        - {kind: sql, query: "SELECT 1, 2, 3"}
        - {kind: expression, expression: "assert_true(price < 100, 'no') IS NULL"}
  sold:
    kind: values
    schema: {fields: [{name: what, type: string}, {name: coin, type: string}]}
    records: [[tea, EUR]]
  gone:
    kind: file
    location: gone
    documentation: {columns: {name: x, checks: {kind: notNull}}}
  built:
    kind: delta
    location: built
    documentation:
      columns: {name: item, checks: {kind: notNull}}
mappings:
  prices: {kind: relation, relation: prices}
  currencies: {kind: values, columns: {code: string}, records: [[EUR]]}
  sums:
    kind: sql
    sql: |
      WITH totals AS (SELECT currency, sum(price) AS total FROM prices GROUP BY currency)
      SELECT p.item, p.price / t.total AS part, (SELECT max(code) FROM currencies) AS code, 1 AS one
      FROM prices p JOIN totals t ON t.currency = p.currency
  both: {kind: union, inputs: [prices, sums]}
  twice: {kind: sql, sql: "SELECT a.item, b.price AS other FROM prices a JOIN prices b ON a.item = b.item"}
  letters:
    kind: sql
    sql: SELECT letter, price FROM prices LATERAL VIEW explode(split(item, '')) AS letter
  ranked:
    kind: sql
    sql: SELECT item, row_number() OVER (PARTITION BY currency ORDER BY price) AS place FROM prices
  stacked:
    kind: stack
    input: prices
    nameColumn: k
    valueColumn: v
    stackColumns: {price: p, currency: c}
    keepColumns: item
  by_sql:
    kind: sql
    sql: |
      SELECT k, v, w FROM prices LATERAL VIEW
      stack(2, 'p', currency, item, 'c', price || '', item) AS k, v, w
  broken: {kind: sql, sql: SELECT nothing FROM prices}
targets:
  build: {kind: relation, mapping: prices, relation: built}
  pages: {kind: document, generators: [{location: pages}, {location: pages, template: json}]}
  quiet: {kind: document, generators: {location: pages}, collectors: [{kind: targets}, {kind: mappings}]}
"""


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Workspace:
    return make_workspace(tmp_path_factory.mktemp("shop"), SHOP, sessions=same(spark))


@pytest.fixture(scope="module")
def told(workspace: Workspace) -> Document:
    return gather_document(make_context(workspace), DocumentRequest(frozenset(COLLECTORS)))


def item(document: Document, category: str, name: str) -> Item:
    (found,) = [each for each in document.items if each.ref == Ref(category, name)]
    return found


def counted(check: CheckResult) -> tuple[str, int | None, int | None]:
    return check.status.value, check.passed, check.failed


EXPECTED: Mapping[str, Any] = {
    "ITEM is not null": ("FAILED", 3, 1),
    "ITEM is unique": ("FAILED", 2, 1),
    "ITEM has at least 4 characters": ("FAILED", 1, 2),
    "ITEM is not null, where currency = 'EUR'": ("SUCCESS", 2, 0),
    "ITEM is not null, where currency IN (SELECT code FROM currencies)": ("SUCCESS", 2, 0),
    "price is between 0 and 100": ("FAILED", 2, 1),
    "price is one of 2.5, 3.1, 200": ("SUCCESS", 3, 0),
    "currency occurs in currencies (code)": ("FAILED", 2, 1),
    "nothing is not null": ("ERROR", None, None),
    "item, currency is a primary key": ("FAILED", 3, 1),
    "price > 2": ("FAILED", 3, 1),
    "no_such_column > 2": ("ERROR", None, None),
    "item, currency occurs in sold (what, coin)": ("SUCCESS", 2, 0),
    "SELECT count(*) AS n, count(*) = 4 AS success FROM __THIS__": ("SUCCESS", None, None),
    "SELECT price > 2, count(*) FROM __this__ JOIN currencies ON code = currency GRO…": ("SUCCESS", 2, 0),
    "SELECT 1, 2, 3": ("ERROR", None, None),
    "assert_true(price < 100, 'no') IS NULL": ("ERROR", None, None),
}


@pytest.mark.nightly
def test_checks_count_rows_and_keys(told: Document) -> None:
    checks = {check.label: check for check in item(told, "relation", "prices").all_checks()}
    assert {label: counted(check) for label, check in checks.items()} == EXPECTED
    assert "no_such_column" in str(checks["no_such_column > 2"].message)
    assert checks["SELECT count(*) AS n, count(*) = 4 AS success FROM __THIS__"].message == "n=4"


def test_failed_checks_show_rows(told: Document) -> None:
    checks = {check.label: check for check in item(told, "relation", "prices").all_checks()}
    shown = {label: (check.sample.columns, check.sample.rows) for label, check in checks.items()}
    assert shown["ITEM is not null"] == (("ITEM", "price", "currency"), ((None, "200.00", "USD"),))
    assert shown["ITEM is unique"] == (("ITEM", "rows"), (("tea", "2"),))
    assert shown["item, currency is a primary key"][1] == (("tea", "EUR", "2"),)
    assert shown["currency occurs in currencies (code)"] == (("currency",), (("USD",),))
    assert shown["price is one of 2.5, 3.1, 200"] == ((), ())


def test_a_check_that_cannot_run_says_why_in_few_words(told: Document) -> None:
    checks = {check.label: check for check in item(told, "relation", "prices").all_checks()}
    assert (
        checks["nothing is not null"].message
        == "there is no column 'nothing'; there are item, price, currency"
    )
    other = str(checks["no_such_column > 2"].message)
    assert other.startswith("Spark rejects it: ")
    assert "SQLSTATE" not in other
    assert checks["assert_true(price < 100, 'no') IS NULL"].message


def test_checks_of_one_relation_take_one_pass(workspace: Workspace, spark: SparkSession) -> None:
    from lakewright.checks.conditions import NotNullCheck
    from lakewright.checks.run import CheckRequest, run_checks

    checks = [CheckRequest(NotNullCheck(kind="notNull"), "code") for _ in range(20)]
    spark.sparkContext.setJobGroup("passes", "")
    run_checks(workspace, lambda: workspace.frame("currencies"), checks)
    jobs = spark.sparkContext.statusTracker().getJobIdsForGroup("passes")
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", "")
    assert len(jobs) <= 2  # Spark may take one for each stage


def test_what_is_not_there_is_said_where_it_is_missed(told: Document) -> None:
    (check,) = item(told, "relation", "gone").all_checks()
    assert (check.status.value, "there is nothing at" in str(check.message)) == ("ERROR", True)
    assert "cannot be resolved" in str(item(told, "mapping", "broken").note)


SOURCES: Mapping[str, Mapping[str, set[str]]] = {
    "prices": {"item": {"prices.item"}, "price": {"prices.price"}, "currency": {"prices.currency"}},
    "sums": {
        "item": {"prices.item"},
        "part": {"prices.price"},
        "code": {"currencies.code"},
        "one": set(),
    },
    "both": {
        "item": {"prices.item", "sums.item"},
        "price": {"prices.price"},
        "currency": {"prices.currency"},
        "part": {"sums.part"},
        "code": {"sums.code"},
        "one": {"sums.one"},
    },
    "twice": {"item": {"prices.item"}, "other": {"prices.price"}},
    "letters": {"letter": {"prices.item"}, "price": {"prices.price"}},
    "stacked": {"item": {"prices.item"}, "k": set(), "v": {"prices.currency", "prices.price"}},
    "by_sql": {"k": set(), "v": {"prices.currency", "prices.price"}, "w": {"prices.item"}},
    "ranked": {"item": {"prices.item"}, "place": {"prices.currency", "prices.price"}},
}


@pytest.mark.parametrize("mapping", SOURCES)
def test_columns_are_traced_to_those_they_are_made_of(told: Document, mapping: str) -> None:
    found = {
        column.name: {f"{source.item.name}.{source.column}" for source in column.sources}
        for column in item(told, "mapping", mapping).columns
    }
    assert found == SOURCES[mapping]


def test_columns_are_traced_to_where_they_begin_and_take_its_description(told: Document) -> None:
    columns = {column.name: column for column in item(told, "mapping", "both").columns}
    prices = Ref("relation", "prices")
    assert [(each.item, each.column) for each in columns["part"].origins] == [(prices, "price")]
    assert columns["item"].description is None
    assert {c.name: c.description for c in item(told, "mapping", "twice").columns}["item"] == "What is sold"


@pytest.mark.nightly
@pytest.mark.nightly
def test_a_failed_check_shows_on_the_page_and_stops_nothing(workspace: Workspace, tmp_path: Path) -> None:
    context = make_context(workspace)
    build = Target.named(workspace, "build")
    for phase in (Phase.CREATE, Phase.BUILD):
        build.execute(context, phase)

    outcome = Target.named(workspace, "pages").execute(context, Phase.VERIFY)

    assert outcome.status is Status.SUCCESS_WITH_ERRORS
    assert outcome.error is not None
    assert "relation built: item is not null: 1 failed" in outcome.error.message
    page = workspace.project_path("pages/index.html").read_text()
    assert "item is not null" in page
    assert "3 passed, 1 failed" in page
    assert workspace.project_path("pages/documentation.json").exists()
    quiet = Target.named(workspace, "quiet").execute(context, Phase.VERIFY)
    assert (quiet.status, quiet.metrics["checks"]) == (Status.SUCCESS, 0)
