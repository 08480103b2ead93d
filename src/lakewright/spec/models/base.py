"""Base classes of everything that users declare, and the types of their fields.

Scalars arrive as the text that the user wrote, and the field's type converts them: `4` in a number field is
4, and `NO` in a text field is `NO`.

Source: the project files' rules, "YAML values keep their text until a declared type reads them".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import InitErrorDetails, PydanticCustomError, core_schema

from lakewright.spec.expressions.expression import has_expression
from lakewright.spec.suggestions import meant, suggestion
from lakewright.spec.words import counted

T = TypeVar("T")

ALSO = "x-also"
"""Key in a model's JSON schema that lists the other forms its validators accept."""

KIND_MARK = "x-kind-of"
"""Key in a JSON schema that holds a category and its default kind."""


class Model(BaseModel):
    """Base of all models: frozen, without unknown keys, with camelCase keys in YAML.

    A key without a value (`description:`) counts as not given. A field whose key is also a name of pydantic's
    (`schema`, `copy`, `json`) has another name, and the key as its alias.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True, protected_namespaces=()
    )

    @model_validator(mode="wrap")
    @classmethod
    def _read(cls, declared: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if isinstance(declared, Mapping) and None in declared.values():
            # An unknown key is refused even without a value: a comma may have cut a text in two.
            known = {name for key, field in cls.model_fields.items() for name in (key, field.alias)}
            is_open = cls.model_config.get("extra") == "allow"
            declared = {
                key: value
                for key, value in declared.items()
                if value is not None or not (is_open or key in known)
            }
        try:
            return handler(declared)
        except ValidationError as error:
            raise _with_suggestions(error, cls.keys()) from None

    @classmethod
    def keys(cls) -> tuple[str, ...]:
        """Return the keys that a user may write, as documented."""
        return tuple(field.alias or name for name, field in cls.model_fields.items())


class SnakeModel(Model):
    """Base of models whose keys are Datalake Foundation's, in snake_case."""

    model_config = ConfigDict(alias_generator=None)


def _with_suggestions(error: ValidationError, known: tuple[str, ...]) -> ValidationError:
    details = [
        InitErrorDetails(type=_custom(fault, known), loc=fault["loc"], input=fault["input"])
        for fault in error.errors(include_url=False)
    ]
    return ValidationError.from_exception_data(error.title, details)


def _custom(fault: Any, known: tuple[str, ...]) -> PydanticCustomError:
    kind, context, loc = fault["type"], fault.get("ctx") or {}, fault["loc"]
    if "text" in context:  # an inner model has written it
        message, remedy = context["text"], context.get("remedy")
    elif kind == "missing":
        message, remedy = fault["msg"], None
    else:
        message, remedy = message_of(kind, fault["msg"], context, fault["input"])
        remedy = context.get("remedy", remedy)
    if kind == "extra_forbidden" and len(loc) == 1:
        kind, message = "unknown_key", f"unknown key {loc[0]!r}"
        remedy = suggestion(str(loc[0]), known)
    return PydanticCustomError(kind, "{text}", {"text": message, "remedy": remedy})


# The words of errors about values: pydantic's own are for programmers, not for authors of projects. Values
# are shown only where they choose one of a few words or are a number: others may be secret.
_LONGEST_SHOWN = 60


def message_of(kind: str, message: str, context: Mapping[str, Any], value: Any) -> tuple[str, str | None]:
    """Return the message and the remedy of an error of pydantic's.

    Args:
        kind: The type of the error, such as `literal_error`.
        message: Pydantic's message, for types of errors that have no words of our own.
        context: What pydantic reports about the error.
        value: The value that was given.

    Example:
        >>> message_of("int_parsing", "", {}, "many")
        ("must be a whole number, not 'many'", None)
    """
    if kind in ("literal_error", "enum"):
        return _not_one_of(re.findall(r"'([^']*)'", str(context.get("expected", ""))), value)
    if kind in ("too_short", "string_too_short"):
        least = context.get("min_length", 1)
        return "must not be empty" if least == 1 else f"needs at least {counted(least, 'entry')}", None
    limit = next(iter(context.values()), "")
    for pattern, text in _WRITTEN:
        if re.fullmatch(pattern, kind):
            return text.format(limit=limit, given=_given(value), kind=_kind(value)), None
    if isinstance(raised := context.get("error"), Exception):
        return str(raised), None
    return re.sub(r"^Input should be", "must be", message), None


def _not_one_of(known: list[str], value: Any) -> tuple[str, str | None]:
    *others, last = [repr(word) for word in known] or ["a known word"]
    listed = f"{', '.join(others)} or {last}" if others else last
    return f"must be {listed}, not {_given(value)}", meant(value, known) if isinstance(value, str) else None


def _shown(value: Any) -> str:
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 3]}..."


def _given(value: Any) -> str:
    return _shown(value) if isinstance(value, str | int | float) else _kind(value)


def _kind(value: Any) -> str:
    if isinstance(value, Mapping):
        return "a map"
    if isinstance(value, list | tuple):
        return "a list"
    return "a single value"


_WRITTEN = (
    (r"string_pattern_mismatch", "{given} does not match {limit}"),
    (r"greater_than", "must be greater than {limit}, not {given}"),
    (r"greater_than_equal", "must be at least {limit}, not {given}"),
    (r"less_than", "must be less than {limit}, not {given}"),
    (r"less_than_equal", "must be at most {limit}, not {given}"),
    (r"string_(type|sub_type|unicode)", "must be a text, not {kind}"),
    (r"int_(type|parsing|parsing_size|from_float)", "must be a whole number, not {given}"),
    (r"(float|decimal)_(type|parsing)|finite_number", "must be a number, not {given}"),
    (r"bool_(type|parsing)", "must be true or false, not {given}"),
    (r"(list|tuple|set|frozen_set|iterable)_type", "must be a list, not {kind}"),
    (r"(dict|mapping|model|model_attributes)_type", "must be a map, not {kind}"),
    (r"date_.*", "must be a date such as 2022-11-01, not {given}"),
    (r"datetime_.*", "must be a date and time such as 2022-11-01T06:00:00, not {given}"),
    (r"time_delta_(type|parsing)", "must be a duration such as PT15M, not {given}"),
)
"""Patterns of types of errors, with the message; `limit` is what the field demands."""


def inconsistent(message: str, *, remedy: str | None = None) -> PydanticCustomError:
    """Return an error for fields that contradict each other, whatever their expressions evaluate to.

    A plain `ValueError` of a model validator counts only if the model contains no expressions.
    """
    return PydanticCustomError("inconsistent", "{text}", {"text": message, "remedy": remedy})


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference to another definition, which the loader checks.

    Attributes:
        category: Category of the definition that must exist, such as `"relation"`.
        name: Its name as written. A name with an expression is checked only when it is used.
        path: Position of the reference inside the referring definition.
    """

    category: str
    name: str
    path: tuple[str | int, ...] = ()


class Named(Model):
    """Base of definitions, which have a kind, and a name under which their section lists them.

    Attributes:
        name: The key in the section. Users do not write it inside the definition.
        kind: The kind as written, or as its default.
        deferred: Keys whose expressions stay unevaluated when the definition is resolved, because their
            names are known only later (`pattern: "${year}"`, the value of a partition). `a.b` is the key `b`
            inside of `a`.
    """

    deferred: ClassVar[frozenset[str]] = frozenset()

    name: str = ""
    kind: str = ""

    def references(self) -> Iterable[Reference]:
        """Return the definitions that this one is built from: those that its marked fields name."""
        return marked_references(self)

    def references_below(self, *place: str | int) -> list[Reference]:
        """Return its references with their places in a definition that contains it below these keys."""
        return [replace(each, path=(*place, *each.path)) for each in self.references()]

    def links(self) -> Iterable[Reference]:
        """Return the definitions of its category that only order it: those in `before` and `after`."""
        return ()

    def mentions(self) -> Iterable[Reference]:
        """Return the definitions that its documentation refers to. It is not built from them."""
        documentation = getattr(self, "documentation", None)
        return marked_references(documentation, "documentation") if documentation is not None else ()


class RefersTo(StrEnum):
    """The category of the definitions that a field names, which a field is marked with by annotation.

    A definition that is written there in place refers to what its own fields name, and so does one in a field
    that is marked with `INSIDE`.
    """

    CONNECTION = "connection"
    ENTITY = "entity"
    INSIDE = ""
    JOB = "job"
    MAPPING = "mapping"
    RELATION = "relation"
    TARGET = "target"
    TEST = "test"


def marked_references(model: Model, *place: str | int) -> Iterator[Reference]:
    """Yield the references of the marked fields of a model, which is at this place in its definition."""
    for name, field in type(model).model_fields.items():
        mark = next((each for each in field.metadata if isinstance(each, RefersTo)), None)
        if mark is not None:
            yield from _references(getattr(model, name), mark, (*place, field.alias or name))


def _references(value: Any, mark: RefersTo, place: tuple[str | int, ...]) -> Iterator[Reference]:
    if isinstance(value, str) and mark is not RefersTo.INSIDE:
        yield Reference(mark.value, value, place)
    elif isinstance(value, Named):
        yield from value.references_below(*place)
    elif isinstance(value, Model):
        yield from marked_references(value, *place)
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from _references(each, mark, (*place, key))
    elif isinstance(value, list | tuple):
        for index, each in enumerate(value):
            yield from _references(each, mark, (*place, index))


def lower(declared: Any) -> Any:
    """Return a text without surrounding space and in lower case; anything else unchanged."""
    return declared.strip().lower() if isinstance(declared, str) else declared


def upper(declared: Any) -> Any:
    """Return a text without surrounding space and in upper case; anything else unchanged."""
    return declared.strip().upper() if isinstance(declared, str) else declared


Lower = Annotated[T, BeforeValidator(lower)]
"""`Lower[Literal["a", "b"]]`: a word in any case."""

Upper = Annotated[T, BeforeValidator(upper)]
"""The same for words in upper case."""


def from_text(read: Callable[[str], Any]) -> BeforeValidator:
    """Return a validator that reads a text with `read` and returns anything else unchanged."""
    return BeforeValidator(lambda declared: read(declared) if isinstance(declared, str) else declared)


def listed(declared: Any) -> Any:
    """Return what is declared as a list: a single value is one of one, and none is empty."""
    if declared is None:
        return ()
    return declared if isinstance(declared, (list, tuple)) else (declared,)


Texts = Annotated[tuple[str, ...], BeforeValidator(listed)]
"""A list of texts. A single text needs no list."""

Listed = Annotated[tuple[T, ...], BeforeValidator(listed)]
"""`Listed[Model]`: a list of maps. A single map needs no list."""


def _compiled(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        if not has_expression(pattern):
            raise ValueError(f"{pattern!r} is not a regular expression: {error}") from None
    return pattern


Patterns = Listed[Annotated[str, AfterValidator(_compiled)]]
"""A list of regular expressions. A single one needs no list."""


NO_KIND: Final = "'kind' has no value: without quotes, YAML reads null and ~ as none"
"""Says that a kind is written as null; a kind of this name needs quotes."""


@dataclass(frozen=True, slots=True)
class KindOf:
    """Marks a field as a nested definition with a `kind`: `Annotated[Named, KindOf("schema")]`.

    The registry of the project provides the class of the kind.

    Attributes:
        category: Category of the nested definition.
        default: The kind if none is written, or None if a kind is required.
        is_short: Whether the kind alone may be written as a text: `notNull` for `{kind: notNull}`.
    """

    category: str
    default: str | None = None
    is_short: bool = False

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """Return a schema that validates a map with the class of its `kind`."""
        return core_schema.with_info_plain_validator_function(self._read)

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Return a mark that `json_schema` replaces with a reference to the kinds.

        A reference is not possible here, because pydantic would look it up and does not know the kinds.
        """
        return {KIND_MARK: [self.category, self.default, self.is_short]}

    def _read(self, declared: Any, info: ValidationInfo) -> Named:
        if isinstance(declared, Named):
            return declared
        if self.is_short and isinstance(declared, str):
            declared = {"kind": declared.strip()}
        if not isinstance(declared, Mapping):
            raise PydanticCustomError("kind_of", "must be a map with a `kind`")
        kind = declared.get("kind") or self.default
        if "kind" in declared and declared["kind"] is None:
            raise PydanticCustomError("kind_of", NO_KIND)
        if not isinstance(kind, str):
            raise PydanticCustomError("missing", "'kind' is missing")
        registry = (info.context or {}).get("registry")
        if registry is None:
            raise PydanticCustomError("kind_of", "cannot be read without a registry of kinds")
        model = registry.find_or_none(self.category, kind)
        if model is None:
            fault = registry.fault(self.category, kind)
            given = {"text": fault.message, "remedy": fault.remedy}
            raise PydanticCustomError("unknown_kind", "{text}", given)
        found: Named = model.model_validate({**declared, "kind": kind}, context=info.context)
        return found


def _with_names(declared: Any) -> Any:
    if not isinstance(declared, Mapping):
        return declared
    return {
        name: {**inner, "name": name} if isinstance(inner, Mapping) else inner
        for name, inner in declared.items()
    }


NamedMap = Annotated[dict[str, T], BeforeValidator(_with_names)]
"""`NamedMap[...]`: a map from name to definition. Each definition receives its name."""


def _as_row(declared: Any) -> Any:
    return declared if isinstance(declared, (list, tuple, Mapping)) else [declared]


Rows = list[
    Annotated[
        list[Any] | dict[str, Any],
        BeforeValidator(_as_row),
        WithJsonSchema({"type": ["array", "object", "string", "number", "boolean", "null"]}),
    ]
]
"""Rows: lists of values, maps of column to value, or single values for rows with one column."""


def read_settings(declared: Any) -> Any:
    """Return entries, given as `key=value` texts or as a map, as a map.

    Raises:
        ValueError: A text has no `=`, or a key occurs twice.
    """
    if declared is None:
        return {}
    if isinstance(declared, Mapping):
        return {key: "" if value is None else value for key, value in declared.items()}
    entries: dict[str, Any] = {}
    for line in [declared] if isinstance(declared, str) else declared:
        key, separator, value = line.partition("=") if isinstance(line, str) else ("", "", "")
        if not separator or not key.strip():
            raise ValueError(f"{line!r} is not key=value")
        if key.strip() in entries:
            raise ValueError(f"the key {key.strip()!r} occurs twice")
        entries[key.strip()] = value.strip()
    return entries


ENTRIES = {
    "type": "object",
    "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
    ALSO: [
        {"type": "array", "items": {"type": "string", "pattern": "="}},
        {"type": "string", "pattern": "="},
    ],
}

TextMap = Annotated[dict[str, str], BeforeValidator(read_settings), WithJsonSchema(ENTRIES)]
"""Texts by name, which may contain expressions; written as a list of `key=value` or as a map."""
