"""MCTS-AHD's search, against numbers worked out by hand and the loop of the released code."""

import json
import math
from collections import Counter
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from method_fakes import Writer, individual, rng, run
from spo_fakes import Evaluator, Generator, default_verdict, number, number_in

from spo_jax.envs.run.rollouts import Status
from spo_jax.errors import InputError
from spo_jax.peers.mcts_ahd import FORMS, WITHOUT, MctsAhd, Plan, Tree, reasoned, request
from spo_jax.program import Completion, Pair
from spo_jax.search.writing.prompts import INITIALIZATION


def grown(*born, elite=10):
    """A tree; born: the place of the parent among the nodes, 0 is the root, and the objective."""
    return Tree(elite, [individual(n, u, place=place + 1) for n, (place, u) in enumerate(born, 1)])


# --- the tree -------------------------------------------------------------------------------------


def test_published_numbers():
    rules = MctsAhd()
    assert (rules.initial, rules.exploration, rules.widening) == (4, 0.1, 0.5)
    assert (rules.depth, rules.elite, rules.tries) == (10, 10, 3)
    assert Counter(rules.expansion) == {"e2": 1, "m1": 2, "m2": 2, "s1": 1}  # [0, 1, k, k, 1]
    assert rules.expansion == ("e2", "m1", "m1", "m2", "m2", "s1")


def test_uct_by_hand():
    # Objectives 0.5 (node 1), 0.3 (node 2), and 0.4 below node 2, whose Q is then 0.4. The root was
    # visited three times, node 2 twice.
    tree = grown((0, 0.5), (0, 0.3), (2, 0.4))
    _, one, two, three = tree.nodes
    assert [node.visits for node in tree.nodes] == [3, 1, 2, 1]
    assert [node.value for node in tree.nodes] == [0.5, 0.5, 0.4, 0.4]
    assert tree.uct(one, 0.1) == pytest.approx(1.0 + 0.1 * math.sqrt(math.log(4)))
    assert tree.uct(two, 0.1) == pytest.approx(0.5 + 0.1 * math.sqrt(math.log(4) / 2))
    assert tree.uct(three, 0.05) == pytest.approx(0.5 + 0.05 * math.sqrt(math.log(3)))
    assert tree.chosen(tree.root, 0.1) is one
    assert tree.chosen(tree.root, 100) is one
    # Q of a node with children is that of the best child, be it lower than its own.
    lower = grown((0, 0.5), (0, 0.3), (1, 0.2))
    assert lower.nodes[1].value == 0.2
    assert lower.chosen(lower.root, 0) is lower.nodes[2]
    # Where all objectives are equal, visits decide, and of equals the oldest.
    equal = grown((0, 0.5), (0, 0.5), (1, 0.5))
    assert equal.chosen(equal.root, 1) is equal.nodes[2]
    assert equal.chosen(equal.root, 0) is equal.nodes[1]


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 9)), min_size=1, max_size=30))
def test_what_a_tree_knows_of_its_nodes(drawn):
    """By definition, from the list of parents alone."""
    parents = [place % (n + 1) for n, (place, _) in enumerate(drawn)]
    worth = [u / 10 for _, u in drawn]
    tree = grown(*zip(parents, worth, strict=True), elite=3)
    above = {0: []} | {n: [] for n in range(1, len(parents) + 1)}
    for n, parent in enumerate(parents, 1):
        above[n] = [parent, *above[parent]]
    for node in tree.nodes[1:]:
        place = tree.nodes.index(node)
        assert node.number == place + 1
        below = [n for n in above if place in above[n]]
        assert node.visits == 1 + len(below)
        leaves = [n for n in below if n not in parents]
        assert node.value == (max(worth[n - 1] for n in leaves) if below else worth[place - 1])
        assert node.depth == len(above[place])
        if node.parent is tree.root:
            assert [each.number - 1 for each in node.below] == sorted([place, *below])
    assert tree.root.visits == len(parents)
    # The best of different objectives, of equal ones the first.
    first = {u: n for n, u in reversed(list(enumerate(worth, 1)))}
    assert [node.number - 1 for node in tree.elite] == [first[u] for u in sorted(first)[::-1][:3]]


def test_pairs_that_joined_no_tree_are_passed_over():
    tree = Tree(10, [individual(n, 1 / n, place=n % 2) for n in (1, 2, 3)])
    assert [number_in(each.pair.destroy) for each in tree.best] == [1, 3]
    near = [individual(1, 0.123451, place=1), individual(2, 0.123449, place=2)]
    assert len(Tree(10, near).elite) == 1  # equal to five decimals


# --- what an expansion asks -----------------------------------------------------------------------


def shown(asked):
    return [number_in(pair.destroy) for pair in asked.parents]


def test_e1_shows_two_to_five_drawn_with_replacement():
    pool = [individual(n, n / 10) for n in range(1, 7)]
    tree, stream = grown((0, 0.5)), rng()
    counts, first = Counter(), Counter()
    for _ in range(6000):
        found = shown(request(Plan("e1", pool), tree.root, 0, stream, True))
        counts[len(found)] += 1
        first[found[-1]] += 1
    assert set(counts) == {2, 3, 4, 5}
    assert all(each / 6000 == pytest.approx(1 / 4, abs=0.03) for each in counts.values())
    assert all(each / 6000 == pytest.approx(1 / 6, abs=0.03) for each in first.values())
    few = [len(shown(request(Plan("e1", pool[:3]), tree.root, 0, stream, True))) for _ in range(99)]
    assert set(few) == {2, 3}
    plain = request(Plan("e1", pool[:1]), tree.root, 0, stream, False)
    assert (plain.form, shown(plain)) == ("divergent-crossover", [1, 1])


def test_e2_shows_one_of_the_elite_by_rank_and_then_the_node():
    tree = grown((0, 0.9), (0, 0.8), (0, 0.7), (0, 0.6))
    node, stream = tree.nodes[2], rng()
    drawn = Counter()
    for _ in range(20_000):
        other, last = shown(request(Plan("e2", tree.best), node, 0, stream, True))
        assert last == 2
        drawn[other] += 1
    # Without the node there are three: 1/4, 1/5, 1/6, together 37/60.
    for place, weight in ((1, 15 / 37), (3, 12 / 37), (4, 10 / 37)):
        assert drawn[place] / 20_000 == pytest.approx(weight, abs=0.012)


def test_s1_shows_the_path_from_the_weakest_on():
    tree = grown((0, 0.5), (1, 0.9), (2, 0.7), (1, 0.1))
    path = reasoned(tree.nodes[3])
    assert [number_in(each.pair.destroy) for each in path] == [3]  # of equal thoughts the lowest
    for node in tree.nodes[1:4]:
        pair = node.born.pair
        destroy = replace(pair.destroy, strategy=f"Idea {node.number}.")
        node.born = replace(node.born, pair=Pair(destroy, pair.repair))
    path = reasoned(tree.nodes[3])
    assert [number_in(each.pair.destroy) for each in path] == [1, 3, 2]
    asked = request(Plan("s1", path), tree.nodes[3], 0, rng(), True)
    assert (asked.form, shown(asked)) == ("mcts-s1", [1, 3, 2])
    assert "heuristic 1 0.50000, heuristic 2 0.70000, heuristic 3 0.90000" in asked.reflection
    plain = request(Plan("s1", path), tree.nodes[3], 0, rng(), False)
    assert (plain.form, shown(plain)) == ("shared-principle-crossover", [3, 2])


@pytest.mark.parametrize("operator", ["m1", "m2"])
def test_mutations_show_the_node(operator):
    tree = grown((0, 0.5), (0, 0.4))
    asked = request(Plan(operator, tree.best), tree.nodes[2], 3, rng(), True)
    assert (asked.form, shown(asked), asked.place) == (f"mcts-{operator}", [2], 3)
    assert request(Plan(operator, ()), tree.nodes[2], 0, rng(), False).form == FORMS[operator]


# --- the search -----------------------------------------------------------------------------------


def fine(pair, levels=1024):
    draw = number("u", pair.destroy.digest, pair.repair.digest)
    return Status.OK, round(levels * draw) / levels / 2


def released(total, rules):
    """The loop of the released code on lists: yields a node and operators, is sent objectives.

    Its Q is the negated objective, which is J here. Of the node's expansions by e1 only such join
    whose objective none of the root's children has.
    """
    parent, q, visits, children, own = {}, {0: 0.0}, {0: 0}, {0: []}, {}
    t = 0

    def hang(node, objectives):
        for objective in objectives:
            if node == 0 and objective in [own[c] for c in children[0]]:
                continue
            new = len(q)
            parent[new], visits[new], children[new] = node, 1, []
            q[new] = own[new] = objective
            children[node].append(new)
            at = node
            while True:
                q[at] = max(q[c] for c in children[at])
                visits[at] += 1
                if at == 0:
                    break
                at = parent[at]

    while len(children[0]) < rules.initial:
        objectives = yield 0, ["e1" if children[0] else "i1"]
        t += 1
        hang(0, objectives)
    while t < total:
        node, depth = 0, 0
        while children[node] and depth < 10:
            low, high = min(own.values()), max(own.values())
            scores = [
                (q[c] - low) / (high - low)
                + 0.1 * max(1 - t / total, 0) * math.sqrt(math.log(visits[node] + 1) / visits[c])
                for c in children[node]
            ]
            place = scores.index(max(scores))
            if int(visits[node] ** 0.5) > len(children[node]):
                objectives = yield node, ["e2" if node else "e1"]
                t += 1
                hang(node, objectives)
            node, depth = children[node][place], depth + 1
        names = ["e2", "m1", "m1", "m2", "m2", "s1"]
        if parent[node] == 0:
            names.pop()  # a path of one
        objectives = yield node, names
        t += len(names)
        hang(node, objectives)


def next_of(loop, objectives):
    try:
        return loop.send(objectives)
    except StopIteration:
        return 0, []


class Thinker(Writer):
    """No two of its thoughts are equal."""

    def sample(self, prompt, rng):
        if prompt.form == "mcts-thought":
            return Completion(f"Thought {rng.random()}, in\nmcts-thought")
        return super().sample(prompt, rng)


def batches_of(writer):
    """The requests for pairs, as they were asked together."""
    return [
        prompts
        for prompts, _, _ in writer.calls
        if prompts[0].role == "destroy" and prompts[0].form != "mcts-thought"
    ]


@pytest.mark.long
@pytest.mark.parametrize(("prose", "levels"), [(True, 1024), (False, 1024), (True, 16)])
def test_a_run_is_the_loop_of_the_released_code(prose, levels):
    """Where objectives have few levels, some of e1 are those of other children of the root."""
    writer = (Thinker if prose else Generator)(numbers=100_000, broken=0)
    evaluator = Evaluator(partial(fine, levels=levels), refuse=lambda n: False)
    rounds, end, parts = run("mcts-ahd", generator=writer, evaluator=evaluator, rounds=1, pairs=400)
    batches = batches_of(writer)
    born = iter(end.individuals)
    loop = released(400, MctsAhd())
    node, names = next(loop)
    widened = Counter()
    for prompts in batches:
        found = [next(born) for _ in prompts]
        cut = names[: len(found)]  # where the budget ends
        assert [each.operator for each in found] == cut
        assert {each.place for each in found} <= {node + 1, 0}
        if prose:
            assert [prompt.form for prompt in prompts] == [f"mcts-{name}" for name in cut]
        widened[node == 0, tuple(names)] += 1
        objectives = [round(each.utility, 5) for each in found]
        node, names = next_of(loop, objectives)
    assert next(born, None) is None
    assert names == []
    assert sum(len(prompts) for prompts in batches) == 400
    assert widened[True, ("e1",)] > 3  # the root widened, besides its three first
    assert widened[False, ("e2",)] > 3
    assert rounds[-1].metrics["tree_depth"] > 2
    dropped = sum(each.place == 0 for each in end.individuals)
    assert rounds[-1].metrics["tree_nodes"] == 400 - dropped
    assert dropped > 3 or levels > 16
    assert [done.counts.destroy_answers for done in rounds[:2]] != [0, 0]
    assert len(rounds) == 8 == MctsAhd().rounds(parts.config)


@pytest.mark.long
def test_parents_are_the_nodes_own():
    writer = Thinker(numbers=100_000, broken=0)
    _, end, _ = run(
        "mcts-ahd", generator=writer, evaluator=Evaluator(fine, refuse=lambda n: False), pairs=200
    )
    nodes = [each for each in end.individuals if each.place]
    numbered = dict(enumerate(nodes, 2))

    def path(place):
        return [place, *path(numbered[place].place)] if place > 1 else []

    for each in end.individuals:
        digests = each.pair.destroy.parents
        at = numbered.get(each.place)
        if each.operator in ("m1", "m2"):
            assert digests == (at.pair.destroy.digest,)
        elif each.operator == "e2":
            assert digests[1] == at.pair.destroy.digest
        elif each.operator == "s1":
            assert set(digests) == {numbered[n].pair.destroy.digest for n in path(each.place)}
        elif each.operator == "e1" and each.place == 1:
            assert 1 <= len(digests) <= 5
    # e1 draws from one pair of each subtree of the root, which may be any in it.
    place_of = {node.pair.destroy.digest: place for place, node in numbered.items()}
    deep = 0
    for each in (e for e in end.individuals if e.operator == "e1"):
        drawn = [path(place_of[digest]) for digest in each.pair.destroy.parents]
        assert len({p[-1] for p in drawn}) == len({p[0] for p in drawn})
        deep += sum(len(p) > 1 for p in drawn)
    assert deep > 3


@pytest.mark.parametrize("depth", [1, 2])
def test_no_node_below_the_depth_is_expanded(depth):
    rounds, end, _ = run(
        "mcts-ahd", generator=Thinker(numbers=100_000, broken=0), pairs=150,
        evaluator=Evaluator(fine, refuse=lambda n: False),
        method_settings={"depth": depth, "initial": 1, "exploration": 0},
    )  # fmt: skip
    # What is expanded at `depth` has its children one below.
    assert max(done.metrics["tree_depth"] for done in rounds) == depth + 1
    # The record's populations are the ten best of different objectives.
    best: dict[float, object] = {}
    for each in end.individuals:
        if each.place:
            best.setdefault(round(each.utility, 5), each.pair.destroy)
    assert [m.program.digest for m in rounds[-1].destroys] == [
        best[value].digest for value in sorted(best, reverse=True)[:10]
    ]


def failing(status):
    """Every pair fails but the first: those by m1 with a status, the others by a crash."""

    def verdict(pair):
        if pair.destroy.form == "mcts-i1":
            return fine(pair)
        return (status if pair.destroy.form == "mcts-m1" else Status.CRASH), None

    return verdict


@pytest.mark.parametrize(
    ("status", "sizes"), [(Status.CRASH, [4, 4, 4]), (Status.TIMEOUT, [4, 2, 2])]
)
def test_an_expansion_is_tried_three_times_but_not_after_a_timeout(status, sizes):
    """A node alone: no other pair is there for e2, and its path has no second one for s1."""
    writer = Writer(numbers=100_000, broken=0)
    evaluator = Evaluator(failing(status), refuse=lambda n: False)
    pairs = 1 + 2 * sum(sizes)  # the first, and then m1 and m2 twice each, two iterations
    _, end, _ = run(
        "mcts-ahd", generator=writer, evaluator=evaluator, pairs=pairs,
        method_settings={"initial": 1},
    )  # fmt: skip
    assert [len(prompts) for prompts in batches_of(writer)] == [1, *sizes, *sizes]
    assert len(end.individuals) == 1


def test_copies_and_unread_answers_are_tried_again_and_counted():
    writer = Writer(numbers=2, broken=0.3)
    rounds, end, _ = run(
        "mcts-ahd", generator=writer, evaluator=Evaluator(fine, refuse=lambda n: False), pairs=80,
        method_settings={"initial": 2},
    )  # fmt: skip
    assert sum(done.counts.destroy_answers for done in rounds) == 80
    assert {each.place for each in end.individuals} >= {0, 1}
    assert json.loads(end.note) == {"spent": 80}
    # Two of a kind live in the tree only where the elite had dropped the first.
    alive = Counter(each.pair.digest for each in end.individuals if each.place == 1)
    assert max(alive.values()) == 1


def test_a_thought_is_rewritten_once_its_pair_joined():
    writer = Writer(numbers=100_000, broken=0)
    rounds, end, parts = run(
        "mcts-ahd", generator=writer, evaluator=Evaluator(fine, refuse=lambda n: False), pairs=60
    )
    asked = [p for prompts, _, _ in writer.calls for p in prompts if p.form == "mcts-thought"]
    nodes = [each for each in end.individuals if each.place]
    assert len(asked) == 2 * len(nodes)
    assert sum(done.metrics["reflections"] for done in rounds) == len(asked)
    assert {prompt.warmer for prompt in asked} == {-parts.config.generator.temperature}
    for each in nodes:
        for half in (each.pair.destroy, each.pair.repair):
            assert half.strategy.endswith("mcts-thought")
    # Later prompts show what was said, and not the writer's own sentence.
    later = [p for prompts, _, _ in writer.calls for p in prompts if p.form == "mcts-m1"]
    assert later
    for prompt in later:
        assert "in mcts-thought}" in prompt.text
    own = [p for done in rounds for p in done.programs if not p.strategy.endswith("thought")]
    assert own  # what the writer itself had said is kept beside it


def test_how_it_is_called():
    rules = MctsAhd()
    assert rules.variant(True).startswith("MCTS-AHD (Zheng et al. 2025): 4 initial nodes")
    assert "thoughts are aligned" in rules.variant(True)
    assert rules.variant(False).startswith(f"{WITHOUT} (Zheng et al. 2025)")
    with pytest.raises(InputError, match="widening"):
        run("mcts-ahd", method_settings={"widening": 2})


def test_without_prose_the_forms_are_those_of_spo():
    rounds, _, _ = run("mcts-ahd", evaluator=Evaluator(default_verdict), rounds=2)
    forms = {p.form for done in rounds for p in done.programs}
    assert forms <= {INITIALIZATION, *FORMS.values()}
    assert all("reflections" not in done.metrics for done in rounds)
