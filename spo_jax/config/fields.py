"""What a setting is: a field of a pydantic model with a help, a range and a place among the others.

Checks, flags, files and messages are made from it.
"""

import dataclasses
import difflib
from collections.abc import Iterable, Mapping
from functools import partial
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from spo_jax.constants import FORMER, current
from spo_jax.errors import InputError

# Settings that are no more, with the value that meant none of it.
RETIRED = {"racing": "none", "remeasure": 0, "fresh_instances": False}
RETIRED_AFTER = "0.1.0"


Text = Annotated[str, StringConstraints(pattern=r"^[^\x00]*[^\x00\s][^\x00]*$")]
Own = Annotated[str, StringConstraints(pattern=r"^[^\x00]*:[^\x00]*$")]  # package.module:NAME


def setting(
    default: Any, help: str, low: float | None = None, high: float | None = None, **extra: Any
) -> Any:
    """A field with its help and lawful range.

    A number has both bounds, or one that no use has would overflow somewhere. extra: flat, its flat
    name where that is not the field's; volatile, it may change when a run is resumed; rare, only
    `--help-all` shows it.
    """
    made: dict[str, Any] = {"default_factory" if callable(default) else "default": default}
    return Field(**made, description=help, ge=low, le=high, json_schema_extra=extra)


rare = partial(setting, rare=True)
volatile = partial(setting, volatile=True)
rare_volatile = partial(setting, rare=True, volatile=True)


class Group(BaseModel):
    """Settings that were checked. Raises InputError, one sentence, for values that cannot be."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    def __init__(self, **values: Any) -> None:
        fields = type(self).model_fields
        for name, value in values.items():
            values[name] = current(name, value)
            if isinstance(value, list):  # TOML and JSON have no tuples
                values[name] = tuple(value)
            if value == "none" and name in fields and NoneType in kinds(fields[name].annotation):
                values[name] = None
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise _sentence(fields, values, error) from None


class Setting(NamedTuple):
    """Where a setting is and what it is. group: "" for one that is in none."""

    flat: str
    group: str
    name: str
    info: FieldInfo

    @property
    def help(self) -> str:
        """Its help, what it may be and its default, in one line."""
        default = self.info.get_default(call_default_factory=True)
        default = "all cores" if self.flat == "workers" else default
        shown = "none" if default in ((), {}) or default is None else str(default).lower()
        return f"{self.info.description} [{wanted(self.info)}; default: {shown}]"

    @property
    def rare(self) -> bool:
        return "rare" in _extra(self.info)

    @property
    def volatile(self) -> bool:
        return "volatile" in _extra(self.info)

    @property
    def former(self) -> bool:
        """Whether it could be switched off by --no-NAME, and still can."""
        return self.name in FORMER

    @property
    def place(self) -> str:
        """Where a file has it, in words."""
        return f"in [{self.group}]" if self.group else "above all tables"


def settings_of(group: str, model: type[Group]) -> Iterable[Setting]:
    """The settings of one group."""
    for name, info in model.model_fields.items():
        if info.description is not None:
            yield Setting(_extra(info).get("flat", name), group, name, info)


def _extra(info: FieldInfo) -> dict[str, Any]:
    return info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}


def refuse(wrong: bool, why: str) -> None:
    """Raises InputError with this sentence where something is wrong."""
    if wrong:
        raise InputError(why)


def _sentence(
    fields: dict[str, FieldInfo], values: dict[str, Any], error: ValidationError
) -> InputError:
    """The first thing wrong, in one sentence."""
    first = error.errors(include_url=False)[0]
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, InputError):  # a relation, or a group that was built inside
        return cause
    name = str(first["loc"][0])
    if name not in fields:
        return InputError(f"unknown setting {name!r}{closest(name, fields)}")
    return _refused(_extra(fields[name]).get("flat", name), fields[name], values.get(name))


def _refused(name: str, info: FieldInfo, value: Any) -> InputError:
    return InputError(f"{name} is {value!r:.80}; it must be {wanted(info)}")


def kinds(annotation: Any) -> list[Any]:
    """The types that a type may be: the parts of a union, without what is annotated to them."""
    if get_origin(annotation) is Annotated:
        return kinds(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return [kind for part in get_args(annotation) for kind in kinds(part)]
    return [annotation]


def choices(info: FieldInfo) -> tuple[str, ...]:
    """What a setting is chosen from, "package.module:NAME" among it where one's own is lawful."""
    found = kinds(info.annotation)
    words = tuple(word for kind in found if get_origin(kind) is Literal for word in get_args(kind))
    return (*words, "package.module:NAME") if words and str in found else words


def bounds(info: FieldInfo) -> tuple[Any, Any]:
    """The least and the greatest lawful number, or None and None."""
    low = [each.ge for each in info.metadata if hasattr(each, "ge")]
    high = [each.le for each in info.metadata if hasattr(each, "le")]
    return (low or [None])[0], (high or [None])[0]


_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
_WORDS |= {tuple: "texts", dict: "names with values"}


def wanted(info: FieldInfo) -> str:
    """The lawful values of a setting, in words."""
    found, (low, high) = kinds(info.annotation), bounds(info)
    words = " or ".join(_WORDS.get(get_origin(k) or k, "") for k in found if k is not NoneType)
    if some := choices(info):
        words = "one of " + ", ".join(some)
    elif low is not None:
        words += f" from {low} to {high}"
    return words + (" or none" if NoneType in found else "")


def converted(name: str, info: FieldInfo, value: Any, strict: bool = False) -> Any:
    """A value, or (unless strict) the text of one, in a setting's own type.

    Raises InputError unless lawful; true and false are no numbers.
    """
    known = kinds(info.annotation)
    if NoneType in known and str(value).lower() == "none":
        return None
    if isinstance(value, bool) and bool not in known and {int, float} & {*known}:
        raise _refused(name, info, value)
    try:
        kind: Any = Annotated[info.annotation, "", *info.metadata]
        return TypeAdapter(kind).validate_python(value, strict=strict)
    except ValidationError:
        raise _refused(name, info, value) from None


def with_settings(part: Any, given: Mapping[str, Any], who: str, where: str) -> Any:
    """A dataclass with other values, converted to its annotations, as Annotated[int, Field(ge=1)].

    who: names it in a message. where: the setting that they come from. Raises InputError for a
    field that it has not, and for an unlawful value.
    """
    known: dict[str, Any] = {}
    if dataclasses.is_dataclass(part):
        known = get_type_hints(type(part), include_extras=True)
    changed = {}
    for name, value in given.items():
        if name not in known:
            hint = closest(name, known) if known else ""
            raise InputError(f"{who} has no setting {name!r}{hint}")
        info = FieldInfo.from_annotation(known[name])
        changed[name] = converted(f"{where}: {name}", info, value)
    return dataclasses.replace(part, **changed)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that a misspelt one is nearest to, if it is near."""
    known, name = list(known), str(name)
    near = difflib.get_close_matches(name.replace("-", "_"), known, n=1, cutoff=0.5)
    return next(iter(near or difflib.get_close_matches(name, known, n=1, cutoff=0.3)), None)


def retired(name: str) -> str:
    """The end of a sentence on a setting that is no more; "" for others."""
    name = name.strip("-").replace("-", "_")
    return f"spo-jax {RETIRED_AFTER} was the last version that had it" if name in RETIRED else ""


def closest(name: str, known: Iterable[str]) -> str:
    """A hint at the known name nearest to a misspelt one."""
    if notice := retired(name):
        return f": {notice}"
    near = nearest(name, known)
    return f": did you mean {near!r}?" if near else f" (known: {', '.join(known)})"
