"""Games of two programs: words, names, and that destroy and repair stay as they were."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spo_jax.errors import InputError, Rejection
from spo_jax.program import (
    DESTROY_REPAIR,
    ROLES,
    Argument,
    Game,
    Interface,
    Pair,
    Program,
    Side,
    format_pair,
    parse_answer,
)
from spo_jax.program.pairfile import parse_pair
from spo_jax.runs.manifest import check_game
from spo_jax.search.writing.prompts import Templates, built_in

GAME = Game(
    Side("construct", "construction", "constructions"),
    Side("improve", "improvement"),
    ("tour", "fresh"),
    "iterated local search",
)
ARGUMENTS = (Argument("dist", "matrix", "the square matrix of distances"),)
LEADER = '''LIMIT = 3


def helper(tour):
    return tour[:LIMIT]


def construct(dist, current, steps, rng):
    """Builds."""
    return current, helper(current)
'''
FOLLOWER = '''LIMIT = 5


def helper(tour):
    return tour[:LIMIT]


def improve(dist, tour, fresh, steps, rng):
    """Improves."""
    return helper(tour) + tour[LIMIT:]
'''


def pair_of(game: Game) -> Pair:
    """The pair with the functions of a game."""
    texts = [LEADER, FOLLOWER]
    for own, name in zip(GAME.functions, game.functions, strict=True):
        texts = [text.replace(f"def {own}(", f"def {name}(") for text in texts]
    return Pair(
        *(
            Program.from_source(role, text, function=name)
            for role, text, name in zip(ROLES, texts, game.functions, strict=True)
        )
    )


def test_words_by_hand() -> None:
    assert GAME.words("A destroy and a repair, destroys and repairs; a Repair") == (
        "A construction and an improvement, constructions and improvements; an Improvement"
    )
    assert GAME.words("large neighbourhood search, $destroy repaired") == (
        "iterated local search, $destroy repaired"
    )
    assert GAME.told("repair: the repair: none") == "improvement: the repair: none"
    assert GAME.told("took too long") == DESTROY_REPAIR.told("took too long") == "took too long"
    assert (GAME.named("repair"), GAME.named("pair")) == ("improvement", "pair")


@given(st.text() | st.lists(st.sampled_from(["a", "destroy", "repairs", "$repair", " "])))
def test_destroy_and_repair_have_the_words_that_there_are(text: str | list[str]) -> None:
    written = text if isinstance(text, str) else " ".join(text)
    assert DESTROY_REPAIR.words(written) == written


def test_our_prompts_are_the_files_as_they_are() -> None:
    ours = built_in()
    found = Templates.read()
    assert found.texts.keys() == ours.texts.keys()
    same = {name for name in ours.texts if found.texts[name] == ours.texts[name]}
    assert ours.texts.keys() - same == {"rules.txt"}  # whose kit and matrix are filled in


def test_parameters() -> None:
    ours, other = Interface(ARGUMENTS, "current"), Interface(ARGUMENTS, "current", GAME)
    assert ours.parameters("destroy") == ["dist", "current", "steps", "rng"]
    assert ours.parameters("repair") == ["dist", "rest", "removed", "steps", "rng"]
    assert other.parameters("repair") == ["dist", "tour", "fresh", "steps", "rng"]
    assert [ours.arity(role) for role in ROLES] == [4, 5]
    assert [other.function(role) for role in ROLES] == ["construct", "improve"]
    Interface((Argument("rest", "row"),), game=GAME)  # it hands nothing on of that name
    with pytest.raises(InputError, match="none of steps, rng, tour, fresh"):
        Interface((Argument("tour", "row"),), game=GAME)
    with pytest.raises(InputError, match="takes a Game"):
        Interface(ARGUMENTS, game="construct")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: Side("two words"), "identifier"),
        (lambda: Side("def"), "identifier"),
        (lambda: Side("fine", 3), "texts"),
        (lambda: Side("é"), "in ASCII"),  # the gate refuses these names in programs
        (lambda: Side("__import__"), "in ASCII"),
        (lambda: Side("isinstance"), "Python's own"),
        (lambda: Side("fine", "two\nlines"), "of one line"),
        (lambda: Side("fine", "$5"), "no \\$"),
        (lambda: Game(Side("a"), Side("a"), ("x",)), "both functions are named 'a'"),
        (lambda: Game(Side("a", "c"), Side("b", "c"), ("x",)), "both sides are called 'c'"),
        (lambda: Game(Side("a"), "b", ("x",)), "are Sides"),
        (lambda: Game(Side("a"), Side("b"), ()), "name what the leader hands"),
        (lambda: Game(Side("a"), Side("b"), "x"), "ends with a comma"),
        (lambda: Game(Side("a"), Side("b"), ("x", "x")), "different identifiers"),
        (lambda: Game(Side("a"), Side("b"), ("b",)), "handed names 'b'"),
        (lambda: Game(Side("a"), Side("b"), ("x", "rng")), "handed names 'rng'"),
        (lambda: Game(Side("a"), Side("b"), ("x",), ""), "in words"),
    ],
)
def test_what_is_no_game(make, why: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=why):
        make()


def test_a_run_keeps_its_game() -> None:
    assert DESTROY_REPAIR.to_json() is None
    assert Game.of_json(None) == DESTROY_REPAIR
    assert Game.of_json(json.loads(json.dumps(GAME.to_json()))) == GAME
    for found in ({}, {"sides": [["a"], ["a"]], "handed": ["x"], "search": "s"}, {"sides": 3}):
        with pytest.raises(ValueError, match="game is none"):
            Game.of_json(found)


@pytest.mark.parametrize("game", [GAME, DESTROY_REPAIR])
def test_a_pair_file_is_read_by_its_head(game: Game) -> None:
    """Both programs come back as they do what they did, with helpers of one name kept apart."""
    pair = pair_of(game)
    text = format_pair(pair, interface=Interface(ARGUMENTS, "current", game))
    leads, follows = game.functions
    handed = ", ".join(game.handed)
    assert f"    {handed} = {leads}(dist, current, steps, rng)\n" in text
    assert f"    candidate = {follows}(dist, {handed}, steps, rng)\n" in text
    assert ("Its functions:" in text) == (game == GAME)
    again = parse_pair(text, "here")
    assert (again.destroy.strategy, again.repair.strategy) == ("Builds.", "Improves.")
    module: dict = {}  # type: ignore[type-arg]
    exec(text, module)
    built, fresh = module[leads](None, list("abcdefg"), 0, None)
    assert fresh == list("abc")
    assert module[follows](None, built, fresh, 0, None) == list("abcdefg")
    for program, name in zip((again.destroy, again.repair), game.functions, strict=True):
        apart: dict = {}  # type: ignore[type-arg]
        exec(program.source, apart)
        assert name in apart
        assert not {*game.functions} - {name} & apart.keys()


def test_a_head_with_one_name_for_both() -> None:
    head = '"""Two.\n\nIts functions: build leads, build follows.\n"""'
    text = f"{head}\n\n\ndef build():\n    return 1\n"
    with pytest.raises(InputError, match="by its head build leads and follows"):
        parse_pair(text, "here")


def test_words_with_quotes_stay_in_the_head() -> None:
    odd = Game(*(Side(each) for each in GAME.functions), GAME.handed, 'a """search"""; 1 / 0')
    text = format_pair(pair_of(odd), interface=Interface(ARGUMENTS, "current", odd))
    assert parse_pair(text, "here").repair.strategy == "Improves."


def test_answers_of_a_game() -> None:
    text = f"STRATEGY: It builds.\nCODE:\n```python\n{LEADER}```"
    found = parse_answer("labels", "destroy", text, "construct", form="initialization")
    assert (found.role, found.strategy, found.form) == (
        "destroy", "It builds.", "initialization",
    )  # fmt: skip
    assert "def construct(" in found.source
    newest = LEADER.replace("construct", "construct_v2")
    assert "def construct(" in parse_answer("code", "destroy", newest, "construct").source
    two = "def first():\n    return 1\n\n\ndef second():\n    return 2\n"
    with pytest.raises(Rejection, match="no function named improve"):
        parse_answer("labels", "repair", f"```python\n{two}```", "improve")


def test_a_run_with_another_game_says_what_differs(tmp_path: Path) -> None:
    stored = {"game": GAME.to_json()}
    check_game(stored, GAME, tmp_path)
    leader = GAME.leader
    for now, why in (
        (DESTROY_REPAIR, "construct and improve then, destroy and repair now"),
        (replace(GAME, handed=("tour",)), "tour and fresh then, tour now"),
        (replace(GAME, leader=replace(leader, noun="building")),
         "construction and improvement then, building and improvement now"),
        (replace(GAME, search="search"), "iterated local search then, search now"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=why):
            check_game(stored, now, tmp_path)
