"""MCTS-AHD (Zheng et al. 2025): a search tree of heuristics, which drops none.

Every node is a pair; what is below it was derived from it. The root is no pair, and its children
are designs of their own. An iteration goes down from the root by UCT,

    (Q - q_min) / (q_max - q_min) + lambda_0 (1 - t/T) sqrt(ln(N(parent) + 1) / N),

where Q is the best objective of a node's children (its own while it has none), q_min and q_max are
the extremes over all nodes, N counts visits, and t of T pairs are written. Where
floor(N^alpha) > number of children on the way, the node widens: the root by e1, another by e2. The
node where it ends, which has no children or depth H, is expanded by e2, k times m1, k times m2, s1.

    i1  the first pair                                            initialization
    e1  unlike 2 to 5 pairs, each drawn from a subtree of the root  divergent crossover
    e2  like the node, inspired by one of the elite, by rank       shared-principle crossover
    m1  the node with new mechanisms                               mechanism replacement
    m2  the node with other parameters                             state-control redesign
    s1  from all pairs on the node's path, the weakest first       shared-principle crossover

The forms of SPO on the right are for writers that know no others. They show two parents, so e1 has
two there, and s1 the two best pairs of the path. A writer of prose is asked by the forms mcts-i1 to
mcts-s1, and after a pair has joined the tree, the thought of each of its programs is said anew from
the code, at temperature 0. Without that it is called "MCTS-AHD without thought alignment".

Where the variant differs from the released code (github.com/zz1358m/MCTS-AHD-master): the six
expansions of a node are asked in one batch, which sees the same parents, as only copies among them
could tell; an answer that cannot be read, and a copy, counts as one of the `tries`, where the
release asks once more at no cost; a thought is aligned once its pair has joined the tree, as no
other is ever shown; q_min and q_max are those of the nodes, where the release starts q_min at 0,
which is above each of its objectives; the budget may end within an iteration.
"""

import json
import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated

from pydantic import Field

from spo_jax.config import Settings
from spo_jax.envs.problem import Instance
from spo_jax.envs.run.rollouts import Status
from spo_jax.peers.eoh import DECIMALS, draw
from spo_jax.peers.pairs import (
    Budget,
    Offspring,
    Request,
    describe_operators,
    generate,
    members,
    record,
)
from spo_jax.peers.prose import Prose, tidy
from spo_jax.program import Pair
from spo_jax.search.parts import Parts
from spo_jax.search.payoffs import Table
from spo_jax.search.rounds import Individual, Round, State
from spo_jax.search.writing.prompts import INITIALIZATION
from spo_jax.seeding import python_rng

WITHOUT = "MCTS-AHD without thought alignment"
FORMS = {
    "i1": INITIALIZATION,
    "e1": "divergent-crossover",
    "e2": "shared-principle-crossover",
    "m1": "mechanism-replacement",
    "m2": "state-control-redesign",
    "s1": "shared-principle-crossover",
}
SHOWN = (2, 5)  # how many parents e1 shows, uniformly
NO_NODE = 0  # the place of a pair that did not join the tree; any other is a parent's number
Count = Annotated[int, Field(ge=1, le=10_000)]


@dataclass(frozen=True)
class MctsAhd:
    """initial: children of the root that the search begins with. exploration: lambda_0. widening:
    alpha. depth: H. elite: how many of the best pairs e2 draws from. mutations: k. tries: of an
    expansion that gives no new pair. round: a round of the run ends with the first iteration after
    so many pairs.
    """

    initial: Count = 4
    exploration: Annotated[float, Field(ge=0, le=1000)] = 0.1
    widening: Annotated[float, Field(ge=0, le=1)] = 0.5
    depth: Annotated[int, Field(ge=1, le=100)] = 10
    elite: Count = 10
    mutations: Annotated[int, Field(ge=0, le=100)] = 2
    tries: Annotated[int, Field(ge=1, le=100)] = 3
    round: Count = 50

    @property
    def expansion(self) -> tuple[str, ...]:
        """The operators that expand the node where an iteration ends, in their order."""
        return ("e2", *("m1",) * self.mutations, *("m2",) * self.mutations, "s1")

    def variant(self, prose: bool) -> str:
        name = "MCTS-AHD" if prose else WITHOUT
        aligned = "thoughts are aligned with the code; " if prose else ""
        return (
            f"{name} (Zheng et al. 2025): {self.initial} initial nodes; UCT with lambda_0 = "
            f"{self.exploration:g}, which falls to 0 over the budget; a node widens where "
            f"floor(N^{self.widening:g}) is above its children, and is expanded by e2, "
            f"{self.mutations} m1, {self.mutations} m2 and s1, to depth {self.depth}; "
            f"{aligned}{describe_operators(prose)}"
        )

    def rounds(self, config: Settings) -> int:
        return self._budget(config).rounds

    def one_round(self, parts: Parts, instances: Sequence[Instance], k: int, state: State) -> Round:
        table = Table(parts, instances, state.payoffs)
        budget = self._budget(parts.config)
        spent = json.loads(state.note)["spent"] if state.note else 0
        tree = Tree(self.elite, state.individuals)
        search = Search(self, parts, k, table, tree, budget.total, spent)
        search.run(budget.before(k + 1))
        metrics = {
            **search.prose.metrics,
            "tree_nodes": float(len(tree.nodes) - 1),
            "tree_depth": float(max(node.depth for node in tree.nodes)),
        }
        note = json.dumps({"spent": search.spent})
        best = members(tree.best)
        return record(parts, k, state, table, search.offspring, best, note=note, metrics=metrics)

    def _budget(self, config: Settings) -> Budget:
        return Budget(config.search.nominal_pairs, self.round, self.round)


# --- the tree -------------------------------------------------------------------------------------


@dataclass(eq=False)
class Node:
    """A pair in the tree. born: None at the root. value: Q. below: of a child of the root, all
    nodes of its subtree and itself, in the order of their birth.
    """

    number: int
    born: Individual | None = None
    parent: "Node | None" = None
    value: float = 0.0
    visits: int = 0
    children: list["Node"] = field(default_factory=list)
    below: list["Node"] = field(default_factory=list)

    @property
    def depth(self) -> int:
        return 0 if self.parent is None else 1 + self.parent.depth

    @property
    def individual(self) -> Individual:
        """That of a node which is not the root."""
        assert self.born is not None
        return self.born

    @property
    def path(self) -> list["Node"]:
        """This node and those above it, up to a child of the root."""
        return [] if self.parent is None else [self, *self.parent.path]


class Tree:
    """Nodes in the order of their birth, numbered from 1, the root; the elite, the best first."""

    def __init__(self, elite: int, individuals: Iterable[Individual] = ()):
        """individuals: in the order of their birth. The place of one is its parent's number."""
        self.root = Node(1)
        self.nodes = [self.root]
        self.elite: list[Node] = []
        self._size = elite
        self._lowest, self._highest = math.inf, -math.inf
        for each in individuals:
            if each.place != NO_NODE:
                self.add(each, self.nodes[each.place - 1])

    @property
    def best(self) -> list[Individual]:
        return [node.individual for node in self.elite]

    def add(self, born: Individual, parent: Node) -> Node:
        """A new child, and what is known of it carried up to the root."""
        value = objective(born)
        node = Node(len(self.nodes) + 1, born, parent, value, 1)
        self.nodes.append(node)
        parent.children.append(node)
        self._lowest, self._highest = min(self._lowest, value), max(self._highest, value)
        if parent is self.root:
            node.below.append(node)
        above: Node | None = parent
        while above is not None:
            above.value = max(child.value for child in above.children)
            above.visits += 1
            if above.parent is self.root:
                above.below.append(node)
            above = above.parent
        if value not in [objective(each.individual) for each in self.elite]:
            ranked = sorted((*self.elite, node), key=lambda each: -objective(each.individual))
            self.elite = ranked[: self._size]
        return node

    def uct(self, node: Node, weight: float) -> float:
        """weight: lambda. Raises AssertionError for the root."""
        assert node.parent is not None
        span = self._highest - self._lowest
        worth = (node.value - self._lowest) / span if span else 0.0
        return worth + weight * math.sqrt(math.log(node.parent.visits + 1) / node.visits)

    def chosen(self, node: Node, weight: float) -> Node:
        """The child with the highest UCT, of equals the oldest."""
        return max(node.children, key=lambda child: self.uct(child, weight))


def objective(individual: Individual) -> float:
    """J as the search compares it."""
    return round(individual.utility, DECIMALS)


# --- the search -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """An expansion. pool: the pairs that its parents are drawn from; a copy of one is no result."""

    operator: str
    pool: Sequence[Individual]


class Search:
    """The iterations of round k."""

    def __init__(
        self, rules: MctsAhd, parts: Parts, k: int, table: Table, tree: Tree, total: int, spent: int
    ):
        """total: T. spent: t, which answers that give no pair are counted in."""
        self._rules, self._parts, self._k, self._table = rules, parts, k, table
        self._tree, self._total, self.spent = tree, total, spent
        self._rng = python_rng(parts.config.seed, "round", k, "parents")
        self.prose = Prose(parts, k)
        self.offspring: list[Offspring] = []

    def run(self, until: int) -> None:
        """Go on until so many pairs have been written since the run began."""
        rules, tree = self._rules, self._tree
        while self.spent < until:
            if len(tree.root.children) < rules.initial:
                self._expand(tree.root, ["e1" if tree.root.children else "i1"])
            else:
                self._iterate()

    def _iterate(self) -> None:
        rules, node = self._rules, self._tree.root
        while node.children and node.depth < rules.depth:
            weight = rules.exploration * max(1 - self.spent / self._total, 0)
            following = self._tree.chosen(node, weight)
            if int(node.visits**rules.widening) > len(node.children):
                self._expand(node, ["e1" if node is self._tree.root else "e2"])
            node = following
        self._expand(node, rules.expansion)

    def _expand(self, node: Node, operators: Sequence[str]) -> None:
        """New children of a node, one by each operator; what gives none is tried again."""
        plans = [Plan(operator, self._pool(node, operator)) for operator in operators]
        pending = [plan for plan in plans if _possible(plan, node)]
        for _ in range(self._rules.tries):
            pending = pending[: self._total - self.spent]
            if not pending:
                return
            prose = self.prose.able
            asked = [request(plan, node, n, self._rng, prose) for n, plan in enumerate(pending)]
            stream = ("try", str(len(self.offspring)))
            new = generate(self._parts, self._k, self._table, asked, stream=stream)
            self.spent += len(asked)
            pending = self._grown(node, pending, new)

    def _pool(self, node: Node, operator: str) -> list[Individual]:
        if operator == "e1":
            children = self._tree.root.children
            return [self._rng.choice(child.below).individual for child in children]
        if operator == "s1":
            return reasoned(node)
        return self._tree.best

    def _grown(self, node: Node, plans: Sequence[Plan], new: Offspring) -> list[Plan]:
        """Hang what was written under a node. Returns the plans that are to be tried again."""
        born = {each.place: each for each in new.individuals}
        late = timed_out(new, self._table)
        again: list[Plan] = []
        nodes: list[Node] = []
        dropped: dict[int, Individual] = {}
        for n, plan in enumerate(plans):
            each = born.get(n)
            if each is None:
                again += [] if n in late else [plan]
                continue
            siblings = [] if plan.operator == "s1" else [each.individual for each in nodes]
            if each.pair.digest in {known.pair.digest for known in (*plan.pool, *siblings)}:
                again.append(plan)
            elif node is not self._tree.root or objective(each) not in {
                objective(child.individual) for child in node.children
            }:
                nodes.append(self._tree.add(replace(each, place=node.number), node))
                continue
            dropped[n] = replace(each, place=NO_NODE)
        self._align(nodes)
        kept = iter(nodes)
        individuals = [dropped[n] if n in dropped else next(kept).individual for n in sorted(born)]
        self.offspring.append(replace(new, individuals=tuple(individuals)))
        return again

    def _align(self, nodes: Sequence[Node]) -> None:
        """Have the thoughts of new nodes rewritten, where the writer can."""
        if not self.prose.able:
            return
        pairs = [node.individual.pair for node in nodes]
        programs = [program for pair in pairs for program in (pair.destroy, pair.repair)]
        prompts = [self._parts.prompts.aligned_thought(program) for program in programs]
        texts = self.prose.ask(prompts, "thought", str(len(self.offspring)))
        rewritten = iter([
            replace(program, strategy=tidy(text) or program.strategy)
            for program, text in zip(programs, texts, strict=True)
        ])  # fmt: skip
        for node in nodes:
            node.born = replace(node.individual, pair=Pair(next(rewritten), next(rewritten)))


def _possible(plan: Plan, node: Node) -> bool:
    """Whether there are parents for an expansion."""
    others = [each for each in plan.pool if each is not node.born]
    return bool(others) or plan.operator in ("i1", "m1", "m2")


def reasoned(node: Node) -> list[Individual]:
    """What s1 shows of a node's path: the weakest first, pairs with the same thoughts once."""
    different: dict[tuple[str, str], Individual] = {}
    for each in node.path:
        pair = each.individual.pair
        thoughts = (pair.destroy.strategy, pair.repair.strategy)
        different.setdefault(thoughts, each.individual)
    return sorted(different.values(), key=objective)


def request(plan: Plan, node: Node, place: int, rng: random.Random, prose: bool) -> Request:
    """One try of an expansion. place: its number in the batch."""
    operator, pool = plan.operator, plan.pool
    if operator == "i1":
        shown: Sequence[Individual] = ()
    elif operator == "e1":
        count = rng.randint(*SHOWN)
        shown = rng.choices(pool, k=min(count, len(pool)) if prose else 2)
    elif operator == "e2":
        others = [each for each in pool if each is not node.born]
        shown = [*draw(others, 1, rng), node.individual]
    elif operator == "s1":
        shown = pool if prose else pool[-2:]
    else:
        shown = [node.individual]
    form = f"mcts-{operator}" if prose else FORMS[operator]
    pairs = tuple(each.pair for each in shown)
    return Request(form, pairs, operator, place, reflection=worths(shown))


def worths(shown: Sequence[Individual]) -> str:
    """The objectives of some pairs, as the prompts show them."""
    each = ", ".join(
        f"heuristic {n} {objective(one):.{DECIMALS}f}" for n, one in enumerate(shown, 1)
    )
    return f"Utility, the higher the better: {each}."


def timed_out(new: Offspring, table: Table) -> set[int]:
    """The requests whose pair took too long; each request has one pair."""
    found = set()
    repairs = iter(new.repairs)
    for n, answers in enumerate(new.destroys):
        [destroy] = answers.programs
        if destroy is None:
            continue
        [repair] = next(repairs).programs
        if repair is not None:
            verdict = table.verdict(destroy, repair)
            found |= {n} if verdict.status == Status.TIMEOUT.label else set()
    return found
