import pytest

from lakewright.transform.expression_safety import _unsafe_part_without_jvm as unsafe_part


@pytest.mark.parametrize(
    "expression",
    [
        "a + 1",
        "upper(a.b)",
        "cast(a as date)",
        "transform(a, x -> x + 1)",
        "case when a then b end",
        "a['k']",
    ],
)
def test_expressions_that_compute_with_columns_are_safe(expression: str) -> None:
    assert unsafe_part(expression) is None


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("(select 1)", "contains a subquery"),
        ("exists(select 1)", "contains a subquery"),
        ("a in (select b from t)", "contains a subquery"),
        ("a, b", "is no single expression"),
        ("1 union select 2", "is no single expression"),
        ("a; drop table t", "is no single expression"),
        ("reflect('java.lang.System', 'exit', 1)", "calls reflect, which is not allowed"),
        ("upper(input_file_name())", "calls input_file_name, which is not allowed"),
        ("current_user", "calls current_user, which is not allowed"),
        ("default.f(a)", "calls default.f(a), which is not allowed"),
    ],
)
def test_others_are_refused_with_the_reason(expression: str, why: str) -> None:
    assert unsafe_part(expression) == why


def test_what_can_not_be_parsed_is_refused() -> None:
    assert str(unsafe_part("a +")).startswith("can't be parsed")
