"""Settings as flags of a command: --repairs-per-destroy 30, --halving or --no-halving."""

import argparse
import contextlib
import tomllib
from collections.abc import Iterable
from typing import Any, get_origin

from spo_jax.config import FIELDS, GROUPS
from spo_jax.config.fields import Setting, converted, kinds
from spo_jax.errors import InputError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A flag for each setting but `problem`, by section; --help-all shows the rare ones too."""
    parser.add_argument(
        "--help-all", action=_HelpAll, nargs=0, help="show the rare settings too and exit"
    )
    for group in ("", *GROUPS):
        about = (
            None if group else "defaults are the paper's; a preset (quick by default) sets others"
        )
        section = parser.add_argument_group(f"{group or 'run'} settings", about)
        names = [n for n, each in FIELDS.items() if each.group == group and n != "problem"]
        add_settings(section, names, argparse.SUPPRESS, hide_rare=True)


def add_settings(
    parser: Any, names: Iterable[str], default: Any = None, hide_rare: bool = False
) -> None:
    """Flags of some settings. default: what the namespace holds where one is not given.

    hide_rare: whether the help leaves out those that --help-all shows.
    """
    for each in map(FIELDS.__getitem__, names):
        flag = each.flat.replace("_", "-")
        if get_origin(kinds(each.info.annotation)[0]) is dict:  # one at a time
            flag = flag.removesuffix("s")
        action = parser.add_argument(f"--{flag}", dest=each.flat, default=default, **_options(each))
        if each.former:
            off = {"action": "store_const", "const": False, "help": argparse.SUPPRESS}
            parser.add_argument(f"--no-{flag}", dest=each.flat, default=default, **off)
        if each.rare and hide_rare:
            action.full_help, action.help = action.help, argparse.SUPPRESS


def given(namespace: argparse.Namespace) -> dict[str, Any]:
    """The settings on the command line, by their flat names and in their own types."""
    return {n: v for n, v in vars(namespace).items() if n in FIELDS and n != "problem"}


def _options(each: Setting) -> dict[str, Any]:
    """What argparse has to know of a setting."""
    help, kind = each.help.replace("%", "%%"), kinds(each.info.annotation)[0]
    if kind is bool:
        return {"action": argparse.BooleanOptionalAction, "help": help}
    if get_origin(kind) is dict:
        return {"action": _Pair, "metavar": "NAME=VALUE", "help": f"{help}; may be repeated"}
    if get_origin(kind) is tuple:
        return {"metavar": "SPEC", "help": help, "nargs": "+", "action": "extend"}
    return {"action": _Value, "metavar": {int: "N", float: "X"}.get(kind, "TEXT"), "help": help}


class _Value(argparse.Action):
    """What is wrong with a value is an InputError, and not the parser's to say."""

    def __call__(self, parser: Any, namespace: Any, text: Any, option: Any = None) -> None:
        setattr(namespace, self.dest, converted(self.dest, FIELDS[self.dest].info, text))


class _Pair(argparse.Action):
    """NAME=VALUE, whose value is what TOML takes it for, or else a text."""

    def __call__(self, parser: Any, namespace: Any, text: Any, option: Any = None) -> None:
        name, _, value = (part.strip() for part in text.partition("="))
        if not name or not value:
            raise InputError(f"{option} is {text!r:.80}; write it as NAME=VALUE")
        with contextlib.suppress(ValueError):
            value = tomllib.loads(f"value = {value}")["value"]
        setattr(namespace, self.dest, (getattr(namespace, self.dest, None) or {}) | {name: value})


class _HelpAll(argparse.Action):
    def __call__(self, parser: Any, *_: Any) -> None:
        for action in parser._actions:
            action.help = getattr(action, "full_help", action.help)
        parser.print_help()
        parser.exit()
