"""Examples for the embedded model: a prompt as discovery asks it, and an answer of the grammar.

    python experiments/corpus.py --seed 1 --first 0 --count 3      # prints examples
    python experiments/corpus.py --novice                          # of the novice's corpus

Every example is drawn from its own number, so a corpus is never stored, never ends and is the same
whatever it is drawn by. What is deliberate:

- Parents come from lineages: a fresh derivation and some edits, as populations hold them.
- The grammar's repairs ignore the destroy they answer. Here the one of three that suits it best is
  the answer, by a few rules of thumb (`suits`), so that the model has something to condition on.
- Evaluating a pair is what a discovery takes its time over, so programs that cost much and earn
  little more (`costly`, measured on grammar pairs at n = 50) are drawn again.
- A novice's first drafts are plain and its edits add one choice at a time; its parents are of every
  skill, from first drafts to what the whole grammar writes, and its repairs suit no destroy.
- Some parents are rewritten: other names, other layout, no strategy of the grammar's wording. The
  model has to survive programs that it did not write.
"""

import argparse
import ast
import keyword
import random
from dataclasses import dataclass
from functools import cache

from spo_jax.envs.problems import get_problem
from spo_jax.program import ROLES, Program, Prompt, Role, parse_tree
from spo_jax.program.grammar.base import FORMS, INITIALIZATION, MUTATIONS, Choices, Grammar
from spo_jax.program.grammar.pieces import at_most
from spo_jax.search.writing.grammar import answer
from spo_jax.search.writing.prompts import ShowDestroy, built_in, templates_of
from spo_jax.seeding import python_rng

REDRAWS = 30  # attempts at a program that is not costly
CANDIDATES = 3  # repairs of which the most suitable one is the answer
SKILLED = 0.25  # share of a novice's lineages that begin with any program of the grammar
FOREIGN = 0.03  # share of the prompts with parents whose parents are rewritten
STATELESS = 0.1
KIT = 0.5  # share of the examples of runs that offer the kit
SHOWN: dict[ShowDestroy, float] = {"strategy": 0.92, "both": 0.04, "source": 0.04}
FORM_WEIGHTS = {form: 2.0 if form == INITIALIZATION else 1.0 for form in FORMS}


@dataclass(frozen=True)
class Example:
    """choices: the answer's derivation. near: those of its parents, empty for rewritten ones."""

    prompt: Prompt
    answer: str
    choices: Choices
    near: tuple[Choices, ...] = ()


PROBLEMS = ("tsp", "cvrp")


@cache
def get_grammar(problem: str, role: Role, kit: bool = False, novice: bool = False) -> Grammar:
    grammar: Grammar = get_problem(problem).grammar(role, kit)
    return grammar.novice() if novice else grammar


def _has_kit(grammar: Grammar) -> bool:
    return grammar.render is get_grammar(grammar.problem, grammar.role, kit=True).render


def draw(seed: int, number: int, novice: bool = False) -> Example:
    """Example `number` of the corpus that `seed` names, or of the novice's."""
    rng = python_rng(seed, "corpus", number)
    role = rng.choice(ROLES)
    form = rng.choices(list(FORM_WEIGHTS), list(FORM_WEIGHTS.values()))[0]
    state, kit = rng.random() >= STATELESS, rng.random() < KIT
    return example(rng, rng.choice(PROBLEMS), role, form, state, kit, novice)


def example(
    rng: random.Random,
    problem: str,
    role: Role,
    form: str,
    state: bool,
    kit: bool,
    novice: bool = False,
) -> Example:
    """One example of a form for a problem's role. Consumes `rng`."""
    grammar = get_grammar(problem, role, kit, novice)
    derived = [lineage(grammar, rng, state) for _ in range(built_in().form(form).parents[0])]
    parents = [program(grammar, choices) for choices in derived]
    if parents and rng.random() < FOREIGN:
        parents, derived = [rewritten(parent, rng) for parent in parents], []
    destroy, removal = None, None
    if role == "repair":
        leaders = get_grammar(problem, "destroy", kit, novice)
        removal = lineage(leaders, rng, state)
        destroy = program(leaders, removal)
    choices = _child(grammar, form, derived, removal, rng, state)
    shown = rng.choices(list(SHOWN), list(SHOWN.values()))[0]
    prompt = templates_of(problem, kit).render(
        problem, role, form, parents, destroy, state=state, show_destroy=shown
    )
    return Example(prompt, answer(grammar, choices).text, choices, tuple(derived))


def lineage(grammar: Grammar, rng: random.Random, state: bool) -> Choices:
    """A derivation with a past: a fresh one, edited twice on average, a novice's by mutations."""
    if grammar.is_novice:
        return _apprenticeship(grammar, rng, state)
    choices = _edited(grammar, INITIALIZATION, [], rng, state)
    while rng.random() < 2 / 3:
        form = rng.choice([form for form in FORMS if form != INITIALIZATION])
        others = [grammar.sample(rng, state)] if built_in().form(form).parents[0] == 2 else []
        choices = _edited(grammar, form, [choices, *others], rng, state)
    return choices


def _apprenticeship(grammar: Grammar, rng: random.Random, state: bool) -> Choices:
    """A novice's first draft, or any program, and a mean of four mutations."""
    skilled = rng.random() < SKILLED
    first = get_grammar(grammar.problem, grammar.role, _has_kit(grammar)) if skilled else grammar
    choices = _edited(first, INITIALIZATION, [], rng, state)
    while rng.random() < 0.8:
        choices = _edited(grammar, rng.choice(MUTATIONS), [choices], rng, state)
    return choices


def _edited(
    grammar: Grammar, form: str, parents: list[Choices], rng: random.Random, state: bool
) -> Choices:
    """An edit that is not costly, if there is one in `REDRAWS`."""
    for _ in range(REDRAWS):
        choices = grammar.edit(form, parents, rng, state)
        if not costly(grammar, choices):
            break
    return choices


def program(grammar: Grammar, choices: Choices) -> Program:
    strategy, source = grammar.render(choices)
    return Program.from_source(grammar.role, source, strategy)


def _child(
    grammar: Grammar,
    form: str,
    parents: list[Choices],
    removal: Choices | None,
    rng: random.Random,
    state: bool,
) -> Choices:
    if removal is None or grammar.is_novice:
        return _edited(grammar, form, parents, rng, state)
    drafts = [_edited(grammar, form, parents, rng, state) for _ in range(CANDIDATES)]
    return max(drafts, key=lambda draft: suits(removal, draft))


# --- what answers a destroy -----------------------------------------------------------------------


def suits(removal: Choices, repair: Choices) -> int:
    """How many rules of thumb hold between a destroy's derivation and a repair's.

    Separate regions are rebuilt separately; where few nodes leave there is time for many tries,
    where many do regret pays; a removal that follows stagnation is answered by a repair that does.
    """
    size = str(removal.get("size_high", ""))
    many = size == "limit" or size.startswith(("0.2", "0.3", "4 *", "5 *", "80", "100"))
    regions = removal.get("split", "whole") != "whole"
    follows = str(removal.get("size_rule")) in ("shrink", "grow", "cycle", "early", "relax")
    by_regret = repair.get("insert", repair.get("build")) == "regret"
    near = (
        repair.get("scope") == "near"
        or repair.get("group") == "rivals"
        or str(repair.get("near", 0)) != "0"
    )
    stateful = any(
        str(value).startswith(("grow", "shrink", "cycle", "switch", "stagnation"))
        for name, value in repair.items()
        if name.endswith("_rule") or name in ("ties", "turn_by", "moves", "k")
    )
    return (by_regret == many) + (near == regions) + (stateful == follows)


# --- what costs more than it earns ----------------------------------------------------------------

_WHOLE_SHARES = ("0.3 * n", "limit", "4 * math.sqrt(n)", "5 * math.sqrt(n)")
_MANY = {"tsp": ("50", "60", "80", "100", *_WHOLE_SHARES), "cvrp": ("25", "30", "35", "40", "50")}
_AT_LEAST = {"tsp": ("15", "20"), "cvrp": ("12", "15")}
# Tries of a CVRP repair in sequence: at every step, in stagnation, and now and then.
_FEW_TRIES = ("3", "4")
_SOME_TRIES = (*_FEW_TRIES, "6", "8", "12")
_MORE_TRIES = (*_SOME_TRIES, "16", "20", "n // 4", "n // 3")
_LEAST_TRIES = ("1", "2", "3")


def costly(grammar: Grammar, choices: Choices) -> bool:
    """Whether a program takes much longer than others of its role and is hardly better."""
    if _has_kit(grammar):
        return False  # its tries follow a budget
    if grammar.role == "destroy":
        always = choices["size_rule"] == "fixed"
        return choices.get("size_low") in _AT_LEAST[grammar.problem] or (
            always and choices["size_high"] in _MANY[grammar.problem]
        )
    return (_costly_tsp if grammar.problem == "tsp" else _costly_cvrp)(choices)


def _costly_tsp(choices: Choices) -> bool:
    tries, everywhere = at_most(choices, "tries"), choices.get("scope") != "near"
    if choices.get("polish") == "each" or not (everywhere or at_most(choices, "width") <= 8):
        return True
    if choices["insert"] == "ordered":
        return tries > (4 if everywhere else 6 if choices["noise"] else 10)
    return tries > (1 if everywhere else 3)


def _costly_cvrp(choices: Choices) -> bool:
    if choices["retry"] == "once":
        return False
    most, least = str(choices["tries_high"]), str(choices.get("tries_low", "1"))
    rule = choices["tries_rule"]
    if choices["build"] == "regret":
        return rule != "burst" or most not in ("3", "n // 15", "n // 20")
    allowed = {"fixed": _FEW_TRIES, "early": _FEW_TRIES, "burst": _MORE_TRIES}
    return least not in _LEAST_TRIES or most not in allowed.get(str(rule), _SOME_TRIES)


# --- programs that the grammar did not write ------------------------------------------------------

_SPARE = (
    "a b c d i j k m p q r s t u v w x y cur nxt prev cand cands best value values idx pos out res "
    "tmp item items chosen picks pool total score scores gap delta seedling nodes order route_list "
    "first last lo hi num cnt stash data result keep drop gone rest anchor centre nearby ring"
)
_WORDS = tuple(_SPARE.split())


def rewritten(program: Program, rng: random.Random) -> Program:
    """The same program with other local names, laid out anew, under a vaguer strategy."""
    tree = parse_tree(program.source)
    entry = {program.role}
    fixed = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - _bound(tree)
    fixed |= {
        name
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name == program.role
        for name in [argument.arg for argument in node.args.args]
    }
    words = [word for word in _WORDS if word not in fixed and not keyword.iskeyword(word)]
    rng.shuffle(words)
    names: dict[str, str] = {}
    for name in sorted(_bound(tree) - fixed - entry):
        names[name] = words.pop() if words else f"{name}_{len(names)}"
    source = ast.unparse(_Renamed(names).visit(tree))
    clauses = program.strategy.rstrip(".").split(", ")
    strategy = ", ".join(clauses[: rng.randint(1, len(clauses))])
    return Program.from_source(program.role, source + "\n", strategy + ".")


def _bound(tree: ast.AST) -> set[str]:
    """Names that the program itself assigns, defines or takes as parameters."""
    stored = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and not _is_load(n)}
    arguments = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    return stored | arguments | functions


def _is_load(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Load)


class _Renamed(ast.NodeTransformer):
    def __init__(self, names: dict[str, str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        node.id = self.names.get(node.id, node.id)
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.arg = self.names.get(node.arg, node.arg)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.name = self.names.get(node.name, node.name)
        self.generic_visit(node)
        return node


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=1, help="names the corpus")
    parser.add_argument("--first", type=int, default=0, help="number of the first example")
    parser.add_argument("--count", type=int, default=1, help="examples")
    parser.add_argument("--novice", action="store_true", help="of the novice's corpus")
    options = parser.parse_args()
    for number in range(options.first, options.first + options.count):
        shown = draw(options.seed, number, options.novice)
        print(f"{shown.prompt.text}\n--- answer {number} ---\n{shown.answer}")


if __name__ == "__main__":
    main()
