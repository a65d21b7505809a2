"""Pair files: what is read, what is refused, and that putting programs together changes nothing."""

import ast
import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spo_jax.errors import InputError
from spo_jax.program import ROLES, Pair, Program
from spo_jax.program.pairfile import MAX_FILE, format_pair, load_pair, save_pair

FILE = '''"""An example."""
from heapq import nsmallest
import math, random
import numpy as np

# How much is removed.
SHARE = 0.2  # of the tour
LIMIT, UNUSED = 3, 4
OTHER: int = LIMIT + 1


def helper(x):
    """Uses a constant."""
    # a comment inside
    return math.floor(x * SHARE)
    # and one at the end


def alone():
    return OTHER


def destroy(dist, current_tour, steps_since_improvement, rng):
    """Remove a
    stretch."""
    k = max(1, helper(len(current_tour)))
    return current_tour[k:], current_tour[:k]


# Cheapest place for each node.
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    """Append the nearest first."""
    OTHER = nsmallest(len(removed_nodes), removed_nodes)
    return partial_tour + [int(np.int64(node)) for node in OTHER]


if __name__ == "__main__":
    print("never on import")
'''


def write(folder: Path, text: str | bytes, name: str = "pair.py") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def run(source: str, name: str, *arguments: object) -> object:
    """What the function called `name` returns in a fresh namespace."""
    namespace: dict = {}
    exec(compile(source, "program", "exec"), namespace)
    return namespace[name](*arguments)


# --- reading --------------------------------------------------------------------------------------


def test_each_program_gets_what_it_reaches(tmp_path):
    pair = load_pair(write(tmp_path, FILE))
    assert pair.destroy.strategy == "Remove a stretch."
    assert pair.repair.strategy == "Append the nearest first."
    assert pair.destroy.source == (
        "import math\n\n"
        "# How much is removed.\nSHARE = 0.2  # of the tour\n\n\n"
        'def helper(x):\n    """Uses a constant."""\n    # a comment inside\n'
        "    return math.floor(x * SHARE)\n    # and one at the end\n\n\n"
        "def destroy(dist, current_tour, steps_since_improvement, rng):\n"
        '    """Remove a\n    stretch."""\n'
        "    k = max(1, helper(len(current_tour)))\n"
        "    return current_tour[k:], current_tour[:k]\n"
    )
    # OTHER is a local there, so the constant of that name stays away.
    assert pair.repair.source.startswith(
        "import numpy as np\nfrom heapq import nsmallest\n\n\n# Cheapest place for each node.\n"
    )
    assert "OTHER: int" not in pair.repair.source
    tour = list(range(10))
    assert run(pair.destroy.source, "destroy", None, tour, 0, None) == (tour[2:], tour[:2])
    assert run(pair.repair.source, "repair", None, [0], [2, 1], 0, None) == [0, 1, 2]


def test_line_endings_and_byte_order_mark_do_not_matter(tmp_path):
    plain = load_pair(write(tmp_path, FILE))
    marked = load_pair(write(tmp_path, b"\xef\xbb\xbf" + FILE.replace("\n", "\r\n").encode()))
    assert (plain.destroy, plain.repair) == (marked.destroy, marked.repair)


def test_transitive_constants_and_mutual_recursion(tmp_path):
    text = (
        "A = 1\nB = (A, 2)\nC = 5\n"
        "def even(n): return n == 0 or odd(n - 1)\n"
        "def odd(n): return n != 0 and even(n - 1)\n"
        "def destroy(d, t, z, r):\n    return even(B[1])\n"
        "def repair(d, p, m, z, r, k=C):\n    return k\n"
    )
    pair = load_pair(write(tmp_path, text))
    assert run(pair.destroy.source, "destroy", 0, 0, 0, 0) is True
    assert run(pair.repair.source, "repair", 0, 0, 0, 0, 0) == 5
    assert "C" not in pair.destroy.source
    assert "even" not in pair.repair.source


BAD = {
    "no function": ("x = 1\n", "no function named destroy (found: none)"),
    "no repair": ("def destroy(): pass\ndef other(): pass\n", "no function named repair"),
    "nested": ("def a():\n    def destroy(): pass\ndef repair(): pass\n", "named destroy"),
    "twice": ("def destroy(): pass\n" * 2 + "def repair(): pass\n", "more than one function"),
    "syntax": ("x = 1\ndef destroy(:\n", "syntax error in line 2"),
    "empty": ("", "no function named destroy"),
    "null": ("def destroy(): pass\0", "null"),
    "too deep": ("x = " + "(" * 500 + ")" * 500, ""),
    "deep tree": ("x = " + "-" * 50_000 + "1", "nested too deeply"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_one_sentence(tmp_path, case):
    text, says = BAD[case]
    path = write(tmp_path, text)
    with pytest.raises(InputError) as caught:
        load_pair(path)
    assert str(caught.value).startswith(str(path))
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read(tmp_path):
    cases = {
        tmp_path / "missing.py": "no such file",
        tmp_path: "a folder",
        write(tmp_path, b"\xff\xfe", "binary.py"): "not UTF-8",
        write(tmp_path, "#" * (MAX_FILE + 1), "large.py"): "larger",
        "a\0b": "not a file name",
    }
    for path, says in cases.items():
        with pytest.raises(InputError, match=says):
            load_pair(path)


# --- writing --------------------------------------------------------------------------------------


def pair_of(destroy: str, repair: str, first: str | None = None, second: str | None = None) -> Pair:
    return Pair(
        Program.from_source("destroy", destroy, first),
        Program.from_source("repair", repair, second),
    )


def reload(pair: Pair, folder: Path) -> Pair:
    return load_pair(write(folder, format_pair(pair)))


def test_equal_helpers_are_written_once(tmp_path):
    common = "import math\nK = 2\ndef twice(x):\n    return math.floor(K * x)\n"
    pair = pair_of(
        common + "def destroy(a):\n    return twice(a)\n",
        common.replace("K * x", "K  *  x") + "def repair(a):\n    return twice(a) + 1\n",
    )
    text = format_pair(pair)
    assert text.count("def twice") == text.count("K = 2") == text.count("import math") == 1
    assert run(text, "destroy", 3) == 6
    assert run(text, "repair", 3) == 7


def test_equal_text_of_unequal_meaning_is_kept_apart():
    common = "def twice(x):\n    return K * x\n"
    text = format_pair(
        pair_of(
            "K = 2\n" + common + "def destroy(a):\n    return twice(a)\n",
            "K = 3\n" + common + "def repair(a):\n    K = 9\n    return twice(a), K\n",
        )
    )
    assert run(text, "destroy", 1) == 2
    assert run(text, "repair", 1) == (3, 9)


def test_a_module_name_does_not_hide_the_other_programs_builtin():
    text = format_pair(
        pair_of(
            "def sum(x):\n    return -1\ndef destroy(a):\n    return sum(a)\n",
            "def repair(a):\n    return sum(a)\n",
        )
    )
    assert run(text, "destroy", [1, 2]) == -1
    assert run(text, "repair", [1, 2]) == 3


def test_another_entry_name_and_recursion():
    body = "    return 1 if n < 2 else n * {0}(n - 1)\n"
    pair = pair_of(
        "def shake(n):\n" + body.format("shake"),
        "repair = 2\ndef mend(n):\n    return [repair + each for each in range(n)]\n",
    )
    text = format_pair(pair)
    assert run(text, "destroy", 5) == 120
    assert run(text, "repair", 2) == [2, 3]
    assert "shake" not in text


def test_an_entry_whose_local_has_the_roles_name():
    source = (
        "def shake(n):\n    destroy = 7\n    return destroy if n == 0 else shake(n - 1) + destroy\n"
    )
    text = format_pair(pair_of(source, "def repair(destroy):\n    return destroy\n", "Shake it."))
    assert run(text, "destroy", 2) == 21
    assert run(text, "repair", 4) == 4
    assert ast.get_docstring(functions(text)["destroy"]) == "Shake it."


def test_a_helper_with_the_other_roles_name():
    text = format_pair(
        pair_of(
            "def repair(x):\n    return x + 1\ndef destroy(x):\n    return repair(x)\n",
            "def destroy(x):\n    return x - 1\ndef repair(x):\n    return destroy(x)\n",
        )
    )
    assert run(text, "destroy", 5) == 6
    assert run(text, "repair", 5) == 4


def test_names_inside_f_strings_are_renamed():
    source = (
        "K = {}\ndef {}(x):\n    return f\"{{K}} {{x:>{{K}}}} {{'K'}} {{[K for K in (1,)]}}\"\n"
    )
    pair = pair_of(source.format(3, "destroy"), source.format(5, "repair"))
    text = format_pair(pair)
    assert run(text, "destroy", 1) == "3   1 K [1]"
    assert run(text, "repair", 1) == "5     1 K [1]"


def test_imports_are_sorted_merged_and_renamed():
    text = format_pair(
        pair_of(
            "import math\nfrom heapq import heappush, heappop, nlargest\nimport random as r\n"
            "def destroy(a):\n    import bisect\n"
            "    heappush(a, math.pi); r\n    return heappop(a)\n",
            "from heapq import heappush\nimport numpy as math\n"
            "def repair(a):\n    heappush(a, math.int64(1))\n    return a\n",
        )
    )
    imports = [line for line in text.split("\n") if line.startswith(("import", "from"))]
    assert imports == [
        "import math",
        "import numpy as repair_math",
        "import random as r",
        "from heapq import heappop, heappush",
    ]
    assert "    import bisect" in text
    assert run(text, "repair", []) == [1]


STRATEGIES = [
    "Plain.",
    'Say "this".',
    '"""',
    'ends in a quote"',
    'backslash \\ and \\"',
    "ends in a backslash \\",
    "é ü — nodes\x07",
    "word " * 60,
    "",
]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    "source",
    [
        "def destroy(a):\n    return a\n",
        "def destroy(a): return a\n",
        'def destroy(a):\n    "Old."\n    return a\n',
        'def destroy(a):\n\t"""Old\n\n\tlong."""\n\treturn a\n',
        'def destroy(a): "Old."; return a\n',
        "def destroy(\n    a,  # one\n):\n    # why\n    x = a\n    return x\n",
        'def destroy(a):\n    """Only a docstring."""\n',
        "def destroy(a):\n    def é(x):\n        return x\n    return é(a)\n",
    ],
)
def test_the_strategy_becomes_the_docstring(tmp_path, source, strategy):
    program = Program.from_source("destroy", source, strategy)
    pair = Pair(program, Program.from_source("repair", "def repair(a):\n    return a\n"))
    again = reload(pair, tmp_path)
    if program.strategy:
        assert again.destroy.strategy == program.strategy
    assert format_pair(again) == format_pair(pair)
    assert run(again.destroy.source, "destroy", 3) == run(source, "destroy", 3)
    assert all(len(line) <= 100 for line in format_pair(pair).split("\n"))


def functions(text: str) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}


def test_the_file_runs_alone(tmp_path):
    path = tmp_path / "alone.py"
    save_pair(path, load_pair(write(tmp_path, FILE)), about='Run "a\\b", J = 0.5.')
    code = (
        "import sys, alone; "
        "print(alone.destroy(None, [1, 2, 3], 0, None), 'spo_jax' in sys.modules, alone.__doc__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("([2, 3], [1]) False Run 'a/b', J = 0.5.")


@pytest.mark.parametrize(
    ("calls", "says"),
    [
        ("rng.sample(t, 2)", "a random.Random."),
        ("rng.permutation(3)", "a numpy.random.Generator."),
        ("rng.choice(t, size=2)", "a numpy.random.Generator."),
        ("rng.integers(3), rng.sample(t, 2)", "the methods integers, sample."),
    ],
)
def test_the_head_says_which_generator_is_needed(calls, says):
    pair = pair_of(
        f"def destroy(d, t, z, rng):\n    return {calls}\n", "def repair(d, p, r, z, rng): return p"
    )
    assert says in " ".join(format_pair(pair).split())


def test_save_refuses_to_overwrite_and_leaves_nothing_behind(tmp_path):
    pair = load_pair(write(tmp_path, FILE))
    path = tmp_path / "out.py"
    save_pair(path, pair)
    before = path.read_bytes()
    other = pair_of("def destroy(a): return a", "def repair(a): return a")
    with pytest.raises(InputError, match="exists already"):
        save_pair(path, other)
    assert path.read_bytes() == before
    save_pair(path, other, overwrite=True)
    assert load_pair(path).destroy.strategy == ""
    with pytest.raises(InputError, match="no folder"):
        save_pair(tmp_path / "no" / "out.py", pair)
    with pytest.raises(InputError, match="a folder"):
        save_pair(tmp_path, pair)
    with pytest.raises(InputError, match=r"cannot write /proc/out\.py: "):
        save_pair("/proc/out.py", pair)  # where nobody can make a file
    assert sorted(each.name for each in tmp_path.iterdir()) == ["out.py", "pair.py"]


# --- property: whatever the names, nothing changes its meaning ------------------------------------

NAMES = ["score", "K", "best", "np", "max", "destroy", "repair", "len_", "_x", "repair_K"]
KINDS = {
    "constant": ("{name} = {number}\n", "{name}"),
    "tuple": ("{name} = ({number}, 1)\n", "{name}[0]"),
    "module": ("import math as {name}\n", "{name}.floor({number})"),
    "member": ("from math import {member} as {name}\n", "{name}({number})"),
    "function": ("def {name}(x):\n    {local} = x + {number}\n    return {body}\n", "{name}(2)"),
}


@st.composite
def programs(draw, role):
    """A program whose function returns everything its module's names are worth to it."""
    lines: list[str] = []
    uses: list[str] = []
    kinds = list(KINDS) if draw(st.booleans()) else [k for k in KINDS if k != "function"]
    helpers = False
    names = draw(
        st.lists(st.sampled_from([n for n in NAMES if n != role]), unique=True, max_size=6)
    )
    for name in names:
        kind = draw(st.sampled_from(kinds))
        local = draw(st.sampled_from(NAMES))
        body = " + ".join(
            [local, *[use for use in uses if draw(st.booleans()) and local not in use]]
        )
        definition, use = KINDS[kind]
        values = {
            "name": name,
            "number": draw(st.integers(0, 2)),
            "member": draw(st.sampled_from(["floor", "ceil"])),
            "local": local,
            "body": body,
        }
        helpers |= kind == "function"
        lines.append(definition.format(**values))
        uses.append(use.format(**values))
    entry = role if helpers else draw(st.sampled_from([role, "run", "rescue"]))
    hidden = draw(st.sampled_from([n for n in NAMES if n not in names or n == role]))
    code = [
        f"def {entry}(n):",
        f"    found = [max(1, n), {', '.join(uses)}]",
        "    inner = lambda K: [K for K in range(K)]",
        f"    found += [f'{{{use}}}' for _ in range(1)]"
        if (use := uses[-1] if uses else "n")
        else "",
        f"    def again({hidden}):",
        f"        return {hidden} if {hidden} <= 0 else {entry}({hidden} - 1)"
        if hidden != entry
        else f"        return {hidden}",
        "    return found + [inner(2), again(n)]",
    ]
    return Program.from_source(role, "".join(lines) + "\n".join(code) + "\n", f"It is a {role}.")


def outcome(source: str, name: str) -> object:
    namespace: dict = {}
    exec(compile(source, "program", "exec"), namespace)
    try:
        return namespace[name](random.Random(0).randint(1, 2))
    except (NameError, TypeError, AttributeError, RecursionError) as error:
        return type(error)  # as lawful a behaviour as any other


@pytest.mark.slow
@settings(max_examples=250, deadline=None)
@given(programs("destroy"), programs("repair"))
def test_together_they_do_what_each_did(tmp_path_factory, destroy, repair):
    pair = Pair(destroy, repair)
    text = format_pair(pair)
    again = load_pair(write(tmp_path_factory.mktemp("pairs"), text))
    for role in ROLES:
        program = getattr(pair, role)
        entry = next(
            node.name for node in reversed(ast.parse(program.source).body)
            if isinstance(node, ast.FunctionDef)
        )  # fmt: skip
        expected = outcome(program.source, entry)
        assert outcome(text, role) == expected
        assert outcome(getattr(again, role).source, role) == expected
        assert getattr(again, role).strategy == program.strategy
    assert format_pair(again) == text
