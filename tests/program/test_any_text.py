"""The parent survives any text: it makes a program of it, or a refusal in one sentence."""

import ast
import re
import warnings
from collections.abc import Callable

import pytest
from deep_texts import DESTROY, NESTS, REPAIR, RETURN, STRANGE, holding, nested, statements
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spo_jax.envs.glns_operators import is_operators, load_operators
from spo_jax.envs.problems import get_problem
from spo_jax.envs.problems.tsp import TSP
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.sandbox.gate.policy import check
from spo_jax.errors import InputError, Rejection, SpoError
from spo_jax.program import Pair, Program, format_pair, load_pair, parse_response, save_pair
from spo_jax.program.answers import _without_thoughts
from spo_jax.program.pairfile import parse_pair
from spo_jax.program.syntax import MAX_BITS, MAX_DEPTH, parse_tree
from spo_jax.search.writing.prompts import INITIALIZATION, templates_of


def programs(text: str) -> list[Program]:
    """The text as programs, as it may have come here: read now, or by an older version."""
    found = []
    for make in (
        lambda: Program("destroy", text, "A \ud800 strategy."),
        lambda: parse_response("destroy", f"STRATEGY: try it.\nCODE:\n{text}"),
        lambda: parse_response("destroy", f"STRATEGY: fence it.\nCODE:\n```python\n{text}\n```\n"),
        lambda: parse_response("destroy", text),
        lambda: Program.from_source("destroy", text),
        lambda: Program.from_source("destroy", text.encode("utf-8", "surrogatepass")),
        lambda: Program.from_source("destroy", text, "Another \ud800 \0 strategy."),
    ):
        try:
            found.append(make())
        except Rejection as error:
            one_sentence(error)
    return found


def one_sentence(error: SpoError) -> None:
    text = str(error)
    assert text, error
    assert "\n" not in text, error
    assert len(text) < 400, error


def attempt(do: Callable[[], object]) -> bool:
    """Whether it was done, and not refused."""
    try:
        do()
    except SpoError as error:
        one_sentence(error)
        return False
    return True


def everything(text: str, folder=None) -> None:
    """All that the parent does to the text of a program or of a file."""
    repair = Program.from_source("repair", REPAIR)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read = programs(text)
        for program in read:
            assert len(program.digest) == len(program.strategy_digest) == 32
        for program in {each.source: each for each in read}.values():
            pair = Pair(program, repair)
            other = Program("repair", text.replace("destroy", "repair"), "Its twin.")
            for each in (pair, Pair(program, other)):
                attempt(lambda each=each: format_pair(each, "\ud800 \0 about").encode())
            shown = templates_of("tsp").render(
                "tsp", "repair", INITIALIZATION, (), program, show_destroy="both"
            )
            assert program.source.strip("\n") in shown.text
            attempt(lambda program=program: check(program.source, "destroy", TSP.interface))
        attempt(lambda: parse_pair(text + "\n" + REPAIR, "f.py"))
        attempt(lambda: parse_pair(text, "f.py"))
        if folder is not None:
            path = folder / "pair.py"
            path.write_bytes((text + "\n" + REPAIR).encode("utf-8", "surrogatepass"))
            attempt(lambda: load_pair(path))
            three = re.compile(r"^(def (?:destroy|repair))\(.*?\)", re.MULTILINE)
            operators = three.sub(r"\1(a, b, c)", f"{text}\n{REPAIR}")
            path.write_bytes(operators.encode("utf-8", "surrogatepass"))
            attempt(lambda: is_operators(path))
            attempt(lambda: load_operators(path, get_problem("tsp")))


@pytest.mark.long
@pytest.mark.parametrize("times", [90, 490, 2500])
@pytest.mark.parametrize("name", NESTS)
def test_nested_expressions(tmp_path, name, times):
    everything(holding(nested([name], times)), tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("times", [30, 490])
@pytest.mark.parametrize("name", statements(1))
def test_deep_and_long_statements(tmp_path, name, times):
    everything(statements(times)[name], tmp_path)


@pytest.mark.parametrize("name", STRANGE)
def test_strange_characters(tmp_path, name):
    everything(STRANGE[name], tmp_path)


@pytest.mark.long
@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from(sorted(NESTS)), min_size=1, max_size=6), st.integers(1, 700))
def test_mixed_nests(names, times):
    everything(holding(nested(names, times)))


PIECES = st.sampled_from(
    [*"()[]{}:,;.=+-*/\\'\"#@ \t\n\r\0\x0c", "\n    ", "def destroy(a):", "def f():", "return ",
     "lambda a: ", "f'{", "}'", "'''", "if a: ", "elif b: ", "for a in b: ", "class A:", "import a",
     "from a import *", "global a", "match a:\n    case b: ", "a", "1", "0x1f", "\ud800", "\ufeff",
     "```", "~~~\n", "<think>", "</think>", "STRATEGY: a", "\nCODE:\n"]
)  # fmt: skip


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(PIECES, max_size=40).map("".join), st.booleans())
def test_arbitrary_texts(text, inside):
    everything(f"{DESTROY}    {text}\n{RETURN}" if inside else text)


@settings(deadline=None, max_examples=100)
@given(st.binary(max_size=60))
def test_arbitrary_bytes(raw):
    for read in (parse_response, Program.from_source):
        attempt(lambda read=read: read("destroy", raw).digest)


# --- the bound ------------------------------------------------------------------------------------


def levels(tree: ast.AST) -> int:
    return 1 + max(map(levels, ast.iter_child_nodes(tree)), default=0)


def deepest(names: list[str]) -> str:
    """The deepest program of its kind that the bound lets pass."""
    texts = [holding(nested(names, times)) for times in range(1, MAX_DEPTH)]
    return [text for text in texts if attempt(lambda text=text: parse_tree(text))][-1]


def at_depth(frames: int, do: Callable[[], object]) -> object:
    return do() if not frames else at_depth(frames - 1, do)


@pytest.mark.parametrize("name", ["sum", "call", "list", "listed", "filter", "star", "dict", "and"])
def test_what_passes_is_borne_by_python_itself(name):
    text = deepest([name])
    tree = parse_tree(text)
    assert MAX_DEPTH - 4 <= levels(tree) <= MAX_DEPTH
    for what in (ast.dump, ast.unparse, ast.NodeTransformer().visit, ast.fix_missing_locations):
        at_depth(200, lambda what=what: what(ast.parse(text)))
    if name not in ("listed", "filter"):  # Python 3.12 and 3.13 crash on nested comprehensions
        at_depth(200, lambda: compile(text, "text", "exec"))


@pytest.mark.parametrize("names", [["sum"], ["call"], ["else"], ["sum", "call", "list"]])
def test_the_deepest_pairs_are_written_wherever_the_caller_stands(names):
    # In 3.11 names inside of f-strings cannot be edited in the text: the tree is written anew.
    for line, frames in (("", 600), ("    x = f'{K}'\n", 150)):
        text = f"K = 1\n{deepest(names)}".replace(RETURN, line + RETURN)
        pair = Pair(
            Program.from_source("destroy", text, "One."),
            Program.from_source("repair", f"K = 2\n{REPAIR}    return K\n", "Two."),
        )
        written = at_depth(frames, lambda pair=pair: format_pair(pair))
        again = at_depth(frames, lambda written=written: parse_pair(written, "f.py"))
        assert format_pair(again) == written


def test_too_deep_says_so():
    text = holding("+".join(["1"] * 490))
    assert len(text) < 1200
    reason = f"nested too deeply (at most {MAX_DEPTH} levels of syntax)"
    for do in (
        lambda: parse_response("destroy", f"STRATEGY: a.\nCODE:\n{text}"),
        lambda: check(text, "destroy", TSP.interface),
    ):
        with pytest.raises(Rejection, match=re.escape(reason)):
            do()
    pair = Pair(Program("destroy", text), Program("repair", REPAIR))
    with pytest.raises(InputError, match="the destroy program cannot be written: nested too deep"):
        format_pair(pair)
    with pytest.raises(InputError, match=r"f\.py: nested too deeply"):
        parse_pair(text + REPAIR, "f.py")


def test_numbers_that_python_will_not_print():
    assert parse_tree(f"x = {2**MAX_BITS - 1}")
    for text in (f"x = {2**MAX_BITS}", "x = 0x1" + "f" * 20_000, "x = " + "1" * 5000):
        with pytest.raises(Rejection, match=r"an integer of more than|integer string conversion"):
            parse_tree(text)


# --- what a text becomes --------------------------------------------------------------------------


def test_a_docstring_that_no_file_can_hold_becomes_one_that_it_can(tmp_path):
    text = STRANGE["escaped surrogate"]
    program = Program.from_source("destroy", text)
    assert program.strategy == "Say \\ud800 and \\udfff."
    for strategy in (None, "Another."):
        pair = Pair(Program.from_source("destroy", text, strategy), Program("repair", REPAIR, "R"))
        path = save_pair(tmp_path / f"{strategy}.py", pair, "run \ud800")
        assert load_pair(path).destroy.strategy == pair.destroy.strategy
        namespace: dict = {}
        exec(path.read_text("utf-8"), namespace)  # a file of our own making
        assert namespace["destroy"](0, list(range(5)), 0, None) == ([3, 4], [0, 1, 2])


def test_statements_whose_text_cannot_be_cut_are_written_anew():
    text = STRANGE["decorator below its sign"] + "# kept\nA = 1\n" + REPAIR
    pair = parse_pair(text.replace("return partial_tour", "return A or partial_tour"), "f.py")
    tree = ast.parse(pair.destroy.source)
    assert [ast.unparse(each) for each in tree.body[-1].decorator_list] == ["f"]
    assert "# kept\nA = 1" in pair.repair.source


def test_a_long_chain_of_helpers_is_written_in_an_order_that_runs():
    n = 1500
    chain = "".join(f"A{k} = lambda: A{k + 1}()\n" for k in reversed(range(n)))
    source = f"{chain}A{n} = lambda: 7\n{DESTROY}    return A{n - 5}(), []\n"
    assert len(source) < 65_536
    pair = Pair(Program("destroy", source, "Chain."), Program("repair", REPAIR, "Append."))
    namespace: dict = {}
    exec(format_pair(pair), namespace)
    assert namespace["destroy"](0, [], 0, None) == (7, [])


FENCES = st.sampled_from(["```", "```py", "~~~", "\n", "\n", " ", "x", "<think>", "</think>", "`"])


@settings(deadline=None, max_examples=300)
@given(st.lists(FENCES, max_size=16).map("".join))
def test_thoughts_are_those_of_the_plain_expression(text):
    thoughts = re.compile(r"<think>.*?</think>", re.DOTALL)
    assert _without_thoughts(text) == re.sub("</?think>", "", thoughts.sub("", text))


@pytest.mark.long
def test_the_compiler_works_within_the_memory_of_a_program():
    """Sums of texts are added up as they are compiled, each sum of sums kept until the end."""
    sums = "+".join(["'a'*4096"] * 90)
    lines = "".join(f"    x{k} = {sums}\n" for k in range(30))  # 0.5 GB of sums, from 25 kB
    texts = [DESTROY + lines + RETURN, DESTROY + RETURN]
    programs = [Program.from_source("destroy", text) for text in texts]
    with LocalEvaluator(TSP(), memory_mb=64) as evaluator:
        large, plain = evaluator.check(programs)
    assert str(large) == "too large to compile"
    assert plain is None
