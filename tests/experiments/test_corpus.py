"""The examples that the embedded model learns from, its tokenizer and its batches."""

import ast
import random
from collections import defaultdict
from itertools import islice

import numpy as np
import pytest

import corpus
import pretrain_data
from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.program import Pair, Prompt, parse_response
from spo_jax.program.grammar.base import FORMS
from spo_jax.rl.tokens import Tokenizer
from spo_jax.search.writing.prompts import built_in

PROBLEMS, get_grammar = corpus.PROBLEMS, corpus.get_grammar
COUNT = 300


@pytest.fixture(scope="module")
def examples() -> list[corpus.Example]:
    return [corpus.draw(3, number) for number in range(COUNT)]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    folder = tmp_path_factory.mktemp("tokenizer")
    pretrain_data.train_tokenizer(folder, seed=0, answers=150)
    return Tokenizer.load(folder)


def test_an_example_depends_on_its_number_alone(examples: list[corpus.Example]) -> None:
    again = corpus.draw(3, 70)
    assert (again.prompt, again.answer) == (examples[70].prompt, examples[70].answer)
    assert corpus.draw(4, 70).answer != again.answer


@pytest.mark.long
def test_answers_are_programs_and_prompts_are_of_every_kind(examples: list[corpus.Example]) -> None:
    kinds = set()
    for example in examples:
        prompt = example.prompt
        program = parse_response(prompt.role, example.answer)
        assert program.strategy
        assert len(prompt.parents) == built_in().form(prompt.form).parents[0]
        assert (prompt.destroy is not None) == (prompt.role == "repair")
        if not prompt.state:
            names = {n.id for n in ast.walk(ast.parse(program.source)) if isinstance(n, ast.Name)}
            assert "steps_since_improvement" not in names
        kinds.add((prompt.problem, prompt.role, prompt.form))
    assert len(kinds) == 2 * 2 * len(FORMS)


@pytest.mark.long
def test_a_novice_begins_plainly_and_edits_parents_of_every_skill() -> None:
    """Skill: choices that are neither plain nor in the table of drafts."""

    def skill(prompt: Prompt, choices: corpus.Choices) -> int:
        grammar = get_grammar(prompt.problem, prompt.role, prompt.kit)
        return sum(
            slot.plain is not None
            and choices.get(slot.name, slot.plain) != slot.plain
            and choices[slot.name] not in grammar.drafts.get(slot.name, ())
            and grammar.drafts.get(slot.name) != {}
            for slot in grammar.slots
        )

    drawn = [corpus.draw(3, number, novice=True) for number in range(COUNT)]
    assert corpus.draw(3, 70, novice=True).answer == drawn[70].answer
    assert corpus.draw(3, 70).answer != drawn[70].answer
    parents = []
    for example in drawn:
        prompt, gained = example.prompt, skill(example.prompt, example.choices)
        assert parse_response(prompt.role, example.answer).strategy
        if not example.near:  # a first draft, or a child of programs that it cannot read
            assert gained == 0
        parents += [skill(prompt, parent) for parent in example.near]
        if prompt.form == "mechanism-replacement" and example.near:
            assert gained - parents[-1] <= 2
    assert set(parents) >= set(range(6))
    assert 0.2 < np.mean([each == 0 for each in parents]) < 0.6


def test_a_repair_suits_the_destroy_it_answers() -> None:
    """Better than one that was drawn for nothing, in the mean of many."""
    for problem in PROBLEMS:
        rng = random.Random(0)
        grammar, leaders = get_grammar(problem, "repair"), get_grammar(problem, "destroy")
        gains = []
        for _ in range(150):
            removal = corpus.lineage(leaders, rng, True)
            answer = corpus._child(grammar, FORMS[0], [], removal, rng, True)
            chance = corpus.suits(removal, grammar.sample(rng))
            gains.append(corpus.suits(removal, answer) - chance)
        assert np.mean(gains) > 0.3


def test_costly_programs_are_rare(examples: list[corpus.Example]) -> None:
    def costly(problem: str, role: str, choices: corpus.Choices) -> bool:
        return corpus.costly(get_grammar(problem, role), choices)

    plain = [e for e in examples if not e.prompt.kit]
    assert 0.3 < len(plain) / len(examples) < 0.7
    assert np.mean([costly(e.prompt.problem, e.prompt.role, e.choices) for e in plain]) < 0.05
    fresh = [
        costly(problem, role, get_grammar(problem, role).sample(random.Random(number)))
        for problem in PROBLEMS
        for role in corpus.ROLES
        for number in range(30)
    ]
    assert np.mean(fresh) > 0.25
    assert costly("tsp", "destroy", {"size_rule": "fixed", "size_high": "limit"})
    assert not costly("tsp", "destroy", {"size_rule": "fixed", "size_high": "10"})
    many = {"insert": "ordered", "scope": "near", "noise": 0, "polish": "none"}
    near = {"width_range": "3:8", "tries_range": "5:10"}
    assert not costly("tsp", "repair", many | near)
    assert costly("tsp", "repair", many | near | {"tries_range": "5:20"})
    assert not costly("cvrp", "repair", {"retry": "once"})


@pytest.mark.long
def test_rewritten_programs_do_what_they_did() -> None:
    """Pairs of rewritten programs walk through the very same solutions."""
    for problem in PROBLEMS:
        rng = random.Random(1)
        pairs = []
        for _ in range(4):
            own = [
                corpus.program(get_grammar(problem, role), get_grammar(problem, role).sample(rng))
                for role in corpus.ROLES
            ]
            other = [corpus.rewritten(program, rng) for program in own]
            assert all(a.digest != b.digest for a, b in zip(own, other, strict=True))
            pairs += [Pair(*own), Pair(*other)]
        world = get_problem(problem)
        with LocalEvaluator(world, 1, seed=0) as evaluator:
            rollouts = evaluator.run(pairs, world.sample(20, 1, 5), seeds=range(1), steps=20)
        assert np.isfinite(rollouts.best_cost).all()
        np.testing.assert_array_equal(rollouts.best_cost[::2], rollouts.best_cost[1::2])


def test_template_lines_are_single_tokens(
    tokenizer: Tokenizer, examples: list[corpus.Example]
) -> None:
    assert tokenizer.size == pretrain_data.VOCABULARY
    lines = pretrain_data.template_lines()
    assert all(len(tokenizer.encode(line)) == 1 for line in lines)
    for example in examples[:40]:
        prompt = tokenizer.prompt(example.prompt.text)
        text = f"user\n{example.prompt.text}\nassistant\n"
        assert tokenizer.decode(prompt) == text
        assert tokenizer.decode(tokenizer.encode(example.answer)) == example.answer


def test_batches_hold_every_example_once_and_weigh_its_parts(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pretrain_data, "WINDOW", 48)
    monkeypatch.setattr(pretrain_data, "WIDTHS", (1024, 4096))
    data = pretrain_data.Data(tokenizer, seed=3, tokens=8192)
    batches = data.batches(1)
    rows = [
        (tokens[mask], weights[mask])
        for batch in batches
        for tokens, mask, weights in zip(batch.tokens, batch.mask, batch.weights, strict=True)
        if mask.any()
    ]
    assert len(rows) == 48
    answers = defaultdict(list)  # two prompts may have the same answer
    for tokens, weights in rows:
        text = tokenizer.decode(tokens[weights == 1.0])
        assert tokens[-1] == tokenizer.stops[0]
        shown = tokenizer.decode(tokens[weights == pretrain_data.PARENTS])
        assert "You are an expert" not in shown
        answers[text].append(shown)
    for number in range(48, 96):
        example = corpus.draw(3, number)
        strategies = [parent.strategy for parent in example.prompt.parents]
        assert any(all(each in shown for each in strategies) for shown in answers[example.answer])


def test_the_stream_goes_on_where_it_was_left(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pretrain_data, "WINDOW", 16)
    data = pretrain_data.Data(tokenizer, seed=3, tokens=4096)
    whole = list(islice(pretrain_data.stream(data, 0, 0), 9))
    window, place, _ = whole[3]
    rest = list(islice(pretrain_data.stream(data, window, place + 1), 5))
    for (w, p, rows), (x, q, again) in zip(whole[4:], rest, strict=True):
        assert (w, p) == (x, q)
        np.testing.assert_array_equal(rows.tokens, again.tokens)
