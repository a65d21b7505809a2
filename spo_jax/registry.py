"""The parts of a run by name: those that ship, and a user's own as "package.module:NAME".

A mistake before the part is called (in its name, import, constructor or parameters), or in what it
returns, is an `InputError` that names the option. An exception that the part raises during a run is
a bug of the user and keeps its traceback.
"""

import contextlib
import importlib
import inspect
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

from spo_jax.errors import InputError, MissingExtra

T = TypeVar("T")
_objects: dict[str, Any] = {}


class Registry(Mapping[str, T], Generic[T]):
    """All that can be passed in for one option; as a mapping, the parts that ship by their names.

    `registry[name]` takes any other name as well, as "package.module:NAME".

    Args:
        option: As messages name it.
        shipped: Each a part, or the "package.module:NAME" from which it is imported, and made a
            part as any other, once it is asked for.
        own: Makes the part of (name, what was found under it), and raises InputError for what is
            none.
        others: Further names that ship, which are made elsewhere of more than a name.
        call: Whether a class is instantiated.

    Raises:
        InputError: On `registry[name]`, where nothing is found under the name, or what does not
            fit.
    """

    def __init__(
        self,
        option: str,
        shipped: Mapping[str, T | str],
        own: Callable[[str, Any], T],
        others: Sequence[str] = (),
        call: bool = True,
    ):
        self.option, self._shipped, self._own, self._call = option, shipped, own, call
        self._known = ", ".join((*others, *shipped))

    def __getitem__(self, name: str) -> T:
        part = self._shipped.get(name, name)
        return self._own(name, self.found(part)) if isinstance(part, str) else part

    def __contains__(self, name: object) -> bool:
        return name in self._shipped

    def __iter__(self) -> Iterator[str]:
        return iter(self._shipped)

    def __len__(self) -> int:
        return len(self._shipped)

    def found(self, name: str, call: bool | None = None) -> Any:
        """Find what a "package.module:NAME" names, unchecked.

        Args:
            name: The name.
            call: Whether a class is instantiated; by default as the registry does.

        Raises:
            InputError: There is nothing of that name.
        """
        return imported(self.option, name, self._known, self._call if call is None else call)


@contextlib.contextmanager
def known_by(objects: Mapping[str, Any]) -> Iterator[None]:
    """Within the block these names are those of these objects, whatever could be imported.

    Args:
        objects: Each by the name that it is passed under.
    """
    before = dict(_objects)
    _objects.update(objects)
    try:
        yield
    finally:
        _objects.clear()
        _objects.update(before)


def imported(what: str, name: str, known: str, call: bool = True) -> Any:
    """Import the object named "package.module:NAME".

    Args:
        what: The option, for the message.
        name: The name; one of `known_by` goes before what could be imported.
        known: The built-in values of the option, for the message.
        call: Whether a class is instantiated.

    Returns:
        The object.

    Raises:
        InputError: There is none, its module raises on import, or its class when it is made.
        MissingExtra: It needs a package that is not installed, and says so.
    """
    if name in _objects:
        found = _objects[name]
        return found() if isinstance(found, type) else found
    module, _, attribute = name.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), attribute)):
        from spo_jax.config.fields import nearest  # pydantic is slow, and only this needs it

        near = nearest(name.lower(), known.replace(" or ", ", ").split(", "))
        hint = f"; did you mean {near!r}?" if near else ""
        raise InputError(f"unknown {what} {name!r}: use {known}, or 'package.module:NAME'{hint}")
    try:
        found = getattr(importlib.import_module(module), attribute)
        return found() if call and isinstance(found, type) else found
    except (KeyboardInterrupt, MissingExtra):
        raise
    except BaseException as error:  # a user's module may raise anything on import
        absent = isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(
            f"{error.name}."
        )
        hint = "; its folder must be on PYTHONPATH" if absent else _raised_in(error)
        raise InputError(
            f"cannot import {what} {name!r} ({type(error).__name__}: {_message(error)}){hint}"
        ) from error


def require_function(what: str, found: Any, like: Callable[..., Any]) -> None:
    """Check that an object can be called like a function.

    Args:
        what: Its name in messages.
        found: The object.
        like: The function.

    Raises:
        InputError: It cannot.
    """
    if not callable(found):
        raise InputError(f"{what} is of type {type(found).__name__}, not a function")
    require_parameters(what, found, like)


def require_members(what: str, found: Any, protocol: type) -> None:
    """Check that an object has the attributes and methods that a protocol declares.

    Attributes must have the declared type if it is a class; methods must take the parameters.

    Args:
        what: Its name in messages.
        found: The object.
        protocol: The class that declares them.

    Raises:
        InputError: One is missing or differs.
    """
    wider: dict[Any, tuple[type, ...]] = {float: (int, float)}
    for name, kind in protocol.__annotations__.items():
        if not hasattr(found, name):
            raise InputError(f"{what} has no attribute {name}, which {_path(protocol)} requires")
        value = getattr(found, name)
        if isinstance(kind, type) and (
            not isinstance(value, wider.get(kind, kind))
            or (isinstance(value, bool) and kind is not bool)
        ):
            raise InputError(f"{what}: its {name} is {value!r:.80}, not a {kind.__name__}")
    for name, like in vars(protocol).items():
        if name.startswith("_") or not inspect.isfunction(like):
            continue
        if not callable(getattr(found, name, None)):
            raise InputError(f"{what} has no method {name}, which {_path(protocol)} requires")
        require_parameters(f"{what}: its method {name}", getattr(found, name), like)


def require_parameters(what: str, function: Callable[..., Any], like: Callable[..., Any]) -> None:
    """Check that a function takes the parameters of another one.

    Positional parameters are given by position, keyword-only ones by name. `self` does not count.

    Args:
        what: Its name in messages.
        function: The function.
        like: The other one.

    Raises:
        InputError: It does not.
    """
    wanted = [each for each in inspect.signature(like).parameters.values() if each.name != "self"]
    named = [each.name for each in wanted if each.kind is each.KEYWORD_ONLY]
    placed = [each.name for each in wanted if each.kind is not each.KEYWORD_ONLY]
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some built-in functions have no signature
        return
    try:
        signature.bind(*placed, **dict.fromkeys(named))
    except TypeError:
        due = ", ".join([*placed, *(["*", *named] if named else [])])
        has = ", ".join(str(each.replace(annotation=each.empty))
                        for each in signature.parameters.values())  # fmt: skip
        raise InputError(f"{what} must take ({due}); it takes ({has})") from None


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "no message"


def _path(protocol: type) -> str:
    return f"{protocol.__module__}.{protocol.__name__}"


def _raised_in(error: BaseException) -> str:
    """The line of the user's module that raised it, unless the message already says so."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename != __file__]
    frames = [f for f in frames if "importlib" not in f.filename]
    if isinstance(error, SyntaxError) or not frames:
        return ""
    return f" in {frames[-1].filename}, line {frames[-1].lineno}"
