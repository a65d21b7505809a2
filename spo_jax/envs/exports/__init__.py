"""What `spo export --for` adds to a pair file: the pair as operators of the library alns, or as a
function of an instance.

The text of a purpose is the same for all problems. What it needs of a problem is in
`Problem.export`, a text of four functions.
"""

import ast
from importlib.resources import files
from string import Template

from spo_jax.envs.problem import Problem
from spo_jax.envs.run.sandbox.layout import choose_layout
from spo_jax.envs.run.states import HIDDEN_STATE, STAGNATION
from spo_jax.errors import InputError
from spo_jax.program import DESTROY_REPAIR, ROLES, Pair
from spo_jax.program.pairtext import drawn_from
from spo_jax.program.scopes import split
from spo_jax.program.syntax import parse_tree
from spo_jax.program.types import entry_function

PURPOSES = ("alns", "function")
NEEDED = ("instance_of", "construct", "complete", "cost_of")  # of `Problem.export`

_ROWS = '''def seen(array):
    """The numbers as the programs take them: tuples, which are faster than an array here."""
    return tuple(map(tuple, array.tolist())) if array.ndim == 2 else tuple(array.tolist())
'''
_ARRAY = '''def seen(array):
    """The numbers as the programs take them: an array, which none can change."""
    array.setflags(write=False)
    return array
'''
# By what programs draw from: what makes one of a seed, and what makes one of NumPy's generator.
_GENERATORS = {
    "a random.Random": ("random.Random", "random.Random(int(rng.integers(1 << 62)))"),
    "a numpy.random.Generator": ("np.random.default_rng", "rng"),
}


def tail(problem: Problem, pair: Pair, purpose: str, state: str = STAGNATION) -> str:
    """The code behind the pair, a module whose docstring says how it is used.

    state: what the programs are shown, a name of STATES. Raises InputError for a problem without
    `export` or one that lacks a function, for a pair that draws random numbers as the standard
    library does and as NumPy does, for a state that such a file cannot make, and for another game
    than destroy and repair.
    """
    if problem.interface.game != DESTROY_REPAIR:
        raise InputError(
            f"--for writes a search by destroy and repair, and the pairs of {problem.name} are "
            f"{' and '.join(problem.interface.game.functions)}: leave out --for"
        )
    if state not in (STAGNATION, HIDDEN_STATE):
        raise InputError(
            f"this pair is shown the state {state}, and --for gives the steps since improvement: "
            "leave out --for"
        )
    own = problem.export()
    what = f"problem {problem.name}: its export"
    try:
        functions = [each for each in ast.parse(own).body if isinstance(each, ast.FunctionDef)]
    except SyntaxError as error:
        raise InputError(f"{what} is no Python ({error})") from None
    if missing := [name for name in NEEDED if name not in {each.name for each in functions}]:
        raise InputError(f"{what} has no function {' and no '.join(missing)}")
    statements = [each for role in ROLES for each in split(getattr(pair, role).source)[1]]
    drawn = drawn_from(statements)
    if drawn not in _GENERATORS:
        raise InputError(
            f"this pair needs an rng that is {drawn}, which neither random.Random nor NumPy has: "
            "leave out --for, and give it such an object"
        )
    generator, made = _GENERATORS[drawn]
    layouts = set()
    for role in ROLES:
        tree = parse_tree(getattr(pair, role).source)
        layouts.add(choose_layout(tree, entry_function(tree, role), problem.interface))
    entry = next(each for each in functions if each.name == "instance_of")
    values = {
        "given": ", ".join(each.arg for each in entry.args.args),
        "generator": generator,
        "drawn": made,
        "sign": "-" if problem.maximise else "",
        "negative": ", negative: alns minimises" if problem.maximise else "",
        "seen": (_ROWS if layouts == {"rows"} else _ARRAY).rstrip("\n"),
    }
    texts = [
        (files(__package__) / f"{name}.txt").read_text("utf-8") for name in (purpose, "common")
    ]
    first, last = (Template(text).substitute(values) for text in texts)
    return "\n\n".join([first, own, last])
