"""Programs, digests and the answers of a model."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spo_jax.errors import InputError, Rejection, SpoError
from spo_jax.program import MAX_SOURCE, Pair, Program, normalise, parse_response

CODE = "def destroy(dist, tour, z, rng):\n    return tour[1:], tour[:1]\n"


def answer(code: str, strategy: str = "STRATEGY: remove the first node.") -> str:
    return f"{strategy}\nCODE:\n{code}"


@pytest.mark.parametrize(
    "text",
    [
        answer(CODE),
        answer(f"```python\n{CODE}```"),
        answer(f"```\n{CODE}```\nThis removes one node.\n"),
        answer(f"~~~py\n{CODE}~~~"),
        f"**STRATEGY:** remove the first node.\n\n**CODE:**\n```python\n{CODE}```",
        f"## Strategy: remove the first node.\n## Code:\n```python\n{CODE}```",
        f"<think>STRATEGY: no\nCODE: no</think>STRATEGY: remove the first node.\nCODE:\n{CODE}",
        f"Sure!\nSTRATEGY: remove\nthe first node.\nCODE:\r\n{CODE}".encode(),
    ],
)
def test_answers_are_read_in_every_dress(text: str | bytes) -> None:
    program = parse_response("destroy", text)
    assert program.strategy == "remove the first node."
    assert program.digest == Program.from_source("destroy", CODE).digest


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (answer(""), "no function named destroy, in a fence or without"),
        (answer("x = 1\n"), "no function named destroy, in a fence or without (found: none)"),
        (answer("def f(a):\n  pass\ndef g(a):\n  pass\n"), "found: f, g"),
        (
            answer("def destroy(:\n"),
            "no complete function named destroy, in a fence or without: syn",
        ),
        (answer("def destroy(:\n"), "syntax error in line 1"),
        (answer("```python\n" + CODE[:-20] + "["), "no complete function named destroy"),
        (answer("def destroy(a):\n    return " + "(" * 300 + ")" * 300), "nest"),
        ("", "empty"),
        (b"\xff\xfe", "not UTF-8"),
        ("a\0b", "null character"),
        ("x" * (MAX_SOURCE + 1), "characters"),
    ],
)
def test_every_rejection_has_a_reason(text: str | bytes, reason: str) -> None:
    with pytest.raises(Rejection) as caught:
        parse_response("destroy", text)
    assert reason in caught.value.reason
    assert isinstance(caught.value, SpoError)


def test_a_function_of_another_name_is_taken_if_it_is_the_only_one() -> None:
    program = parse_response("destroy", answer(CODE.replace("destroy", "remove_first")))
    assert "remove_first" in program.source


def test_origin_is_kept() -> None:
    program = parse_response("destroy", answer(CODE), parents=("a",), form="simplification")
    assert (program.parents, program.form) == (("a",), "simplification")


def test_strategy_defaults_to_the_docstring() -> None:
    source = 'def destroy(a):\n    """Remove\n    one."""\n'
    assert Program.from_source("destroy", source).strategy == "Remove one."
    assert Program.from_source("destroy", "def destroy(").strategy == ""


@pytest.mark.parametrize(
    "other",
    [
        CODE.replace("    ", "\t"),
        CODE.replace("    ", " "),
        CODE.replace(", ", ","),
        CODE.replace("\n", "\r\n"),
        "\n\n" + CODE + "\n\n",
        CODE.replace("tour[1:]", "tour [ 1 : ]"),
    ],
)
def test_digests_ignore_white_space(other: str) -> None:
    assert (
        Program.from_source("destroy", other).digest == Program.from_source("destroy", CODE).digest
    )


def test_digests_see_what_white_space_means() -> None:
    inside = "def destroy(a):\n    if a:\n        a = 1\n        a = 2\n"
    outside = "def destroy(a):\n    if a:\n        a = 1\n    a = 2\n"
    assert normalise(inside) != normalise(outside)
    text = "def destroy(a):\n    return 'x  y'\n"
    assert normalise(text) != normalise(text.replace("x  y", "x y"))
    assert Program.from_source("destroy", CODE).digest != Program.from_source("repair", CODE).digest


@given(st.text())
def test_any_text_is_a_program_or_a_rejection(text: str) -> None:
    for read in (parse_response, Program.from_source):
        with contextlib.suppress(Rejection):
            assert len(read("repair", text).digest) == 32


def test_a_pair_is_a_destroy_and_a_repair() -> None:
    destroy = Program.from_source("destroy", CODE)
    with pytest.raises(InputError, match="in that order"):
        Pair(destroy, destroy)
    with pytest.raises(InputError, match="unknown role"):
        Program.from_source("leader", CODE)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    ["f'{{ a }}'", "f'{ a }'", "f'{a = }'", "f'''é{f'{a!r:>{w}}'}\n  {{ é'''", "rF'{a}' 'b'"],
)
def test_an_f_string_keeps_its_spaces_in_digests(text: str) -> None:
    """Python 3.12 and later split it into parts, which are alike for the first two."""
    assert normalise(f"x  =  {text}+ 1 # é") == f"x = {text} + 1 # é \n"
