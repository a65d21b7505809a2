"""Answers in other methods' formats, and versions of functions as FunSearch shows them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spo_jax.errors import Rejection
from spo_jax.program import parse_answer
from spo_jax.program.versions import header, newest, version

CODE = "def destroy(dist, tour, steps, rng):\n    k = 1\n    return tour[k:], tour[:k]\n"
THREE = """import math

def destroy_v0(a, b):
    '''First.'''
    return a

def destroy_v2(a, b):
    if a:
        return destroy_v2(b, a)
    return "destroy_v2"  # not a call

def destroy_v1(a, b):
    return b
"""


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (f"{{Remove one node there.}}\n```python\n{CODE}```", "Remove one node there."),
        (f"<think>{{no, not this one}}</think>{{Remove\nthe first.}}\n{CODE}", "Remove the first."),
        (f"Backbone: locality.\n{{Remove the first node}}\n```\n{CODE}```\nDone {{again here}}.",
         "Remove the first node"),
        # Without braces all text before the code is the thought, as in the released parser.
        (f"I remove one node.\n```python\n{CODE}```", "I remove one node."),
        # Braces of a few characters are no sentence, and those of the code are not before it.
        (f"With {{i}}.\n```python\n{CODE}    # {{a set of things}}\n```", "With {i}."),
    ],
)  # fmt: skip
def test_braces(answer, sentence):
    program = parse_answer("braces", "destroy", answer, form="eoh-e1", parents=("x",))
    assert program.strategy == sentence
    assert program.source.startswith(CODE.rstrip("\n"))
    assert (program.form, program.parents) == ("eoh-e1", ("x",))


@pytest.mark.parametrize(
    ("how", "answer", "reason"),
    [
        ("braces", "{A sentence of words.}", "no function named destroy, in a fence or without"),
        ("code", "no idea", "no function named destroy, in a fence or without"),
        ("code", "```python\n\n```", "no function named destroy, in a fence or without"),
        ("code", "```python\nx = 1\n```", "no function named destroy"),
        ("code", "def destroy(a:\n", "no complete function named destroy.*syntax error in line 1"),
        ("labels", CODE.replace("1\n", "(\n"), "no complete function named destroy.*syntax error"),
    ],
)
def test_the_reason_says_what_was_looked_for(how, answer, reason):
    with pytest.raises(Rejection, match=reason):
        parse_answer(how, "destroy", answer)


@pytest.mark.parametrize(
    "answer",
    [
        CODE,
        f"```python\n{CODE}```",
        f"Sure!\n{CODE}\nThis removes one node.\n",
        f"```\n{CODE.replace('destroy', 'destroy_v2')}```",
        CODE.replace("destroy", "destroy_v7"),
    ],
)
def test_code_alone(answer):
    assert parse_answer("code", "destroy", answer).source.strip() == CODE.strip()


def test_a_docstring_is_the_strategy_of_code_alone():
    code = "def repair(a):\n    '''Insert by regret.'''\n    return a\n"
    assert parse_answer("code", "repair", code).strategy == "Insert by regret."
    # But not the docstring that came with the head of the next version.
    head = header(code, "repair", 2)
    assert parse_answer("code", "repair", f"{head}    return a\n").strategy == ""


def test_the_newest_version_counts_and_stands_alone():
    assert newest(THREE, "destroy") == (
        "import math\n\n\n\n\n\ndef destroy(a, b):\n    if a:\n        return destroy(b, a)\n"
        '    return "destroy_v2"  # not a call\n'
    )
    assert newest(CODE, "destroy") == CODE
    assert newest(THREE, "repair") == THREE
    with pytest.raises(Rejection, match="destroy_v1 calls destroy_v0, an earlier version"):
        newest("def destroy_v1(a):\n    return destroy_v0(a)\n", "destroy")


def test_versions_are_numbered_and_say_what_they_improve():
    source = "def destroy(a, *, b=2):\n    '''Old\n    words.'''\n    return destroy(a)\n"
    assert version(source, "destroy", 0) == source.replace("destroy(", "destroy_v0(")
    assert version(source, "destroy", 1) == (
        'def destroy_v1(a, *, b=2):\n    """Improved version of `destroy_v0`."""\n'
        "    return destroy_v1(a)\n"
    )
    assert header(source, "destroy", 2) == (
        'def destroy_v2(a, *, b=2):\n    """Improved version of `destroy_v1`."""\n'
    )
    tabs = "def destroy(a):\n\t'x'; return a\n"
    assert version(tabs, "destroy", 1) == (
        'def destroy_v1(a):\n\t"""Improved version of `destroy_v0`."""\n\t\'x\'; return a\n'
    )
    line = "def destroy(a): return a\n"  # no line of its own for a docstring
    assert version(line, "destroy", 1) == "def destroy_v1(a): return a\n"


@given(st.integers(0, 9), st.sampled_from([CODE, THREE.split("\n\n")[1].replace("_v0", "")]))
def test_a_version_is_read_as_the_program_it_shows(number, source):
    if number == 0:
        assert newest(version(source, "destroy", 0), "destroy").strip() == source.strip()
    read = newest(version(source, "destroy", number), "destroy")
    assert f"_v{number}" not in read.replace("`destroy_v", "")
    compile(read, "read", "exec")


@given(st.text(max_size=200), st.sampled_from(["braces", "code"]))
def test_any_text_is_a_program_or_a_rejection(text, how):
    try:
        program = parse_answer(how, "destroy", text)
    except Rejection:
        return
    assert program.source.strip()
