"""The base of everything that users declare, and the shapes their fields take.

Scalars arrive as the text that was written, and a field's type reads it: `"4"` where a number is declared
is 4, `NO` where a text is declared is `NO`. Source: the project files' rules, "YAML values keep their text
until a declared type reads them".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self, TypeVar

from pydantic import (
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

from lakewright.spec.suggestions import suggestion

__all__ = [
    "ALSO",
    "KIND_MARK",
    "KindOf",
    "Listed",
    "Model",
    "Named",
    "NamedMap",
    "Reference",
    "SnakeModel",
    "TextMap",
    "Texts",
    "inconsistent",
    "lower",
    "read_settings",
]

T = TypeVar("T")

ALSO = "x-also"
"""Key in a class's JSON schema under which other forms stand that its validators read."""

KIND_MARK = "x-kind-of"
"""Key in a JSON schema under which a category stands, and the kind where none is written."""


class Model(BaseModel):
    """What a user declares: frozen, with no unknown keys; YAML names are the camelCase ones.

    An entry without a value (`description:`) counts as not given. A field that would hide one of pydantic's
    own names (`schema`, `copy`, `json`) gets another name and that one as its alias.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True, protected_namespaces=()
    )

    @model_validator(mode="wrap")
    @classmethod
    def _read(cls, declared: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if isinstance(declared, Mapping):
            declared = {key: value for key, value in declared.items() if value is not None}
        try:
            return handler(declared)
        except ValidationError as error:
            raise _with_suggestions(error, cls.keys()) from None

    @classmethod
    def keys(cls) -> tuple[str, ...]:
        """Return the keys that may be written, as documented."""
        return tuple(field.alias or name for name, field in cls.model_fields.items())


class SnakeModel(Model):
    """What is declared with Datalake Foundation's names."""

    model_config = ConfigDict(alias_generator=None)


def _with_suggestions(error: ValidationError, known: tuple[str, ...]) -> ValidationError:
    details = [
        InitErrorDetails(
            type=_custom(fault["type"], fault["msg"], fault.get("ctx"), fault["loc"], known),
            loc=fault["loc"],
            input=fault["input"],
        )
        for fault in error.errors(include_url=False)
    ]
    return ValidationError.from_exception_data(error.title, details)


def _custom(
    kind: str,
    message: str,
    context: dict[str, Any] | None,
    loc: tuple[int | str, ...],
    known: tuple[str, ...],
) -> PydanticCustomError:
    remedy = (context or {}).get("remedy")
    if kind == "extra_forbidden" and len(loc) == 1:
        kind, message = "unknown_key", f"unknown key {loc[0]!r}"
        remedy = suggestion(str(loc[0]), known)
    return PydanticCustomError(
        kind,
        "{text}",
        {"text": message, "remedy": remedy},
    )


def inconsistent(message: str, *, remedy: str | None = None) -> PydanticCustomError:
    """Return the error for fields that don't go together, which holds before expressions are evaluated too.

    A plain `ValueError` of a whole model counts only once no expression is left in it.
    """
    return PydanticCustomError("inconsistent", "{text}", {"text": message, "remedy": remedy})


@dataclass(frozen=True, slots=True)
class Reference:
    """Another definition that a definition names, checked when the project is loaded.

    Attributes:
        category: Of the definition that must exist, `"relation"` for example.
        name: As written; one that holds an expression is only checked when it is used.
        path: Where in the naming definition it stands.
    """

    category: str
    name: str
    path: tuple[str | int, ...] = ()


class Named(Model):
    """A definition of a kind, with the name under which its section lists it.

    Attributes:
        name: Put in from the section's key, never typed inside.
        deferred: Keys whose expressions are left as written when the definition is resolved, because the
            names in them are only known later (`pattern: "${year}"`, the partition's value); `a.b` is the
            key `b` inside of `a`.
    """

    deferred: ClassVar[frozenset[str]] = frozenset()

    name: str = ""
    kind: str = ""

    def references(self) -> Iterable[Reference]:
        """Return the definitions that this one is made of."""
        return ()

    def links(self) -> Iterable[Reference]:
        """Return the definitions of its own category that it only says to come before or after."""
        return ()

    def mentions(self) -> Iterable[Reference]:
        """Return the definitions that what it tells of itself refers to: it isn't made of them."""
        return ()


def lower(declared: Any) -> Any:
    """Return a text without surrounding space and in lower case; anything else as it is."""
    return declared.strip().lower() if isinstance(declared, str) else declared


def _listed(declared: Any) -> Any:
    if declared is None:
        return ()
    return declared if isinstance(declared, (list, tuple)) else (declared,)


Texts = Annotated[tuple[str, ...], BeforeValidator(_listed)]
"""Texts in order; a single one needs no list."""

Listed = Annotated[tuple[T, ...], BeforeValidator(_listed)]
"""`Listed[Model]`: maps in order; a single one needs no list."""


@dataclass(frozen=True, slots=True)
class KindOf:
    """Marks a field as one more definition, told apart by its `kind`: `Annotated[Named, KindOf("schema")]`.

    The class comes from the registry with which the project is loaded. `default` is the kind where none is
    written; `scalar` the key that a bare text stands for, so that `relation: x` can mean `{name: x}`.
    """

    category: str
    default: str | None = None

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """Return a schema that finds the class by `kind` and lets it read the map."""
        return core_schema.with_info_plain_validator_function(self._read)

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Return a mark in place of which the project's own JSON schema refers to the kinds.

        A reference would be looked up by pydantic, which doesn't know them.
        """
        return {KIND_MARK: [self.category, self.default]}

    def _read(self, declared: Any, info: ValidationInfo) -> Named:
        if isinstance(declared, Named):
            return declared
        if not isinstance(declared, Mapping):
            raise PydanticCustomError("kind_of", "a map with a `kind` is expected here")
        kind = declared.get("kind") or self.default
        if not isinstance(kind, str):
            raise PydanticCustomError("missing", "'kind' is missing")
        registry = (info.context or {}).get("registry")
        if registry is None:
            raise PydanticCustomError("kind_of", "no registry of kinds was given with which to read this")
        model = registry.find_or_none(self.category, kind)
        if model is None:
            raise PydanticCustomError(
                "unknown_kind",
                "{text}",
                {
                    "text": registry.message(self.category, kind),
                    "remedy": registry.remedy(self.category, kind),
                },
            )
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
"""`NamedMap[...]`: a map name -> definition, each of which is given its name."""


def read_settings(declared: Any) -> Any:
    """Return entries given as `key=value` texts, or as a map, as a map.

    Raises:
        ValueError: A text has no `=`, or a key is there twice.
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
            raise ValueError(f"the key {key.strip()!r} is there twice")
        entries[key.strip()] = value.strip()
    return entries


_ENTRIES = {
    "type": "object",
    "additionalProperties": {"type": "string"},
    ALSO: [
        {"type": "array", "items": {"type": "string", "pattern": "="}},
        {"type": "string", "pattern": "="},
    ],
}

TextMap = Annotated[dict[str, str], BeforeValidator(read_settings), WithJsonSchema(_ENTRIES)]
"""Names with texts that may hold expressions; written as a list of `key=value`, or as a map."""
