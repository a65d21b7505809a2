import argparse
import ast
import contextlib
import tomllib
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

import spo_jax
from spo_jax.config import FIELDS, Config, add_arguments, overrides_from
from spo_jax.errors import InputError
from spo_jax.presets import PRESETS, load, problem_of, read_preset


def parse(*argv):
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return overrides_from(parser.parse_args(argv))


def test_defaults_are_the_numbers_of_the_paper():
    config = Config()
    # Section 5.1: 30 rounds, 10 programs a role, 100 steps; Appendix B.1: six instances of 50
    # nodes, two rollouts each.
    assert (config.rounds, config.population_size, config.steps) == (30, 10, 100)
    assert (config.size, config.instances, config.rollouts) == (50, 6, 2)
    # Appendix A.3: three mutation and two crossover groups, six responses, 30 repairs a destroy.
    assert (config.mutation_groups, config.crossover_groups, config.responses) == (3, 2, 6)
    assert config.group_forms * config.responses == 30
    assert config.repairs_per_destroy == 30
    # Appendices A.4 and A.5: L = 2, weight 0.1, up to five evolved leaders.
    assert (config.top_responses, config.diversity, config.panel_evolved) == (2, 0.1, 5)
    assert config.panel_classical is False
    # Appendix A.2: the context, how programs are sampled, rank-16 adapters with scaling factor 32.
    assert (config.context, config.temperature, config.top_p) == (8192, 0.8, 0.95)
    assert (config.lora_rank, config.lora_alpha) == (16, 32.0)
    # Appendix A.4: AdamW at 5e-6, clipping radius 0.2, gradient norm 1, whole-answer ratios of
    # centred advantages, failed answers left out.
    assert (config.learning_rate, config.clip, config.max_gradient_norm) == (5e-6, 0.2, 1.0)
    assert (config.ratio, config.advantage, config.failure_penalty) == ("sequence", "centred", None)


@pytest.mark.parametrize(
    ("problem", "tokens", "micro_batch", "targets"),
    [("tsp", 1200, 3, "mixers"), ("cvrp", 2048, 2, "mixers+mlp")],
)
def test_what_the_paper_sets_for_each_problem(problem, tokens, micro_batch, targets):
    # Appendices A.2 and A.4: longest answers, adapters' targets, optimization micro-batches.
    for preset in ("smoke", f"paper-{problem}"):
        config = load(problem, preset)
        assert (config.max_new_tokens, config.micro_batch) == (tokens, micro_batch)
        assert config.lora_targets == targets


def test_a_preset_for_one_problem_names_it(tmp_path):
    assert [problem_of(p) for p in ("paper-tsp", "paper-cvrp", "quick")] == ["tsp", "cvrp", None]
    odd = tmp_path / "odd.toml"
    odd.write_text("problem = 3\n")
    with pytest.raises(InputError, match=r"problem is 3 in preset .*odd\.toml; it must be text"):
        problem_of(str(odd))


def test_paper_presets_have_the_nominal_budget():
    for preset in ("paper-tsp", "paper-cvrp"):
        config = load(preset.removeprefix("paper-"), preset)
        destroys = config.rounds * config.group_forms * config.responses
        assert destroys == 900
        assert destroys * config.repairs_per_destroy == 27_000


@pytest.mark.parametrize("problem", ["tsp", "cvrp"])
def test_paper_presets_say_what_the_paper_says(problem):
    """Appendices A.2 to A.5, whatever the defaults are and whatever the model that ships needs."""
    written = {
        "rounds": 30, "mutation_groups": 3, "crossover_groups": 2, "responses": 6,
        "repairs_per_destroy": 30, "top_responses": 2, "population_size": 10, "diversity": 0.1,
        "parents": "uniform", "deduplicate": "round", "credit": "stackelberg", "select": "utility",
        "validation_steps": 500, "size": 50, "instances": 6, "rollouts": 2, "steps": 100,
        "generator": "model", "update": "auto", "temperature": 0.8, "top_p": 0.95, "context": 8192,
        "lora_rank": 16, "lora_alpha": 32.0, "learning_rate": 5e-6,
        "lora_targets": {"tsp": "mixers", "cvrp": "mixers+mlp"}[problem],
        "schedule": "constant", "clip": 0.2, "max_gradient_norm": 1.0, "ratio": "sequence",
        "advantage": "centred", "failure_penalty": "none", "residency": "restart",
    }  # fmt: skip
    preset = f"paper-{problem}"
    assert written.items() <= read_preset(preset, problem).items()
    for more in ({"model": "folder"}, {"generator": "vllm", "vllm_python": "p", "model": "9B"}):
        large = load(problem, preset, more).to_dict()
        resolved = written | {"update": "grpo", "failure_penalty": None} | more
        assert resolved.items() <= large.items()
    assert load(problem, preset, {"generator": "grammar"}).update == "none"
    attached = {"generator": "vllm", "vllm_url": "http://x"}
    with pytest.raises(InputError, match="residency is restart, but a server at vllm_url is not"):
        load(problem, preset, attached)
    assert load(problem, preset, attached | {"residency": "sleep"}).vllm_url == "http://x"


def test_a_preset_may_say_none(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('failure_penalty = "none"\nprompts = "none"\n')
    config = load("tsp", str(path))
    assert (config.failure_penalty, config.prompts) == (None, None)
    path.write_text('learning_rate = "none"\n')
    with pytest.raises(InputError, match="learning_rate is 'none'; it must be a number"):
        load("tsp", str(path))


def test_cvrp_has_the_hybrid_panel_under_every_general_preset():
    for preset in ("smoke", "quick", "standard", "paper-cvrp"):
        config = load("cvrp", preset)
        assert (config.panel_evolved, config.panel_classical) == (2, True)
    assert load("cvrp", "quick", {"panel_evolved": 3}).panel_evolved == 3


def test_the_model_that_ships_learns_with_settings_of_its_own(tmp_path):
    own = tomllib.loads((Path(spo_jax.__file__).parent / "presets" / "embedded.toml").read_text())
    assert own
    for preset in PRESETS:
        problem = "cvrp" if preset == "paper-cvrp" else "tsp"
        small = load(problem, preset)
        assert (small.generator, small.model, small.update) == ("model", "embedded", "grpo")
        assert {name: getattr(small, name) for name in own} == own
        # Another model, the grammar and an experiment have the paper's.
        for others in ({"model": "folder"}, {"generator": "grammar"}):
            large = load(problem, preset, others)
            assert {n: getattr(large, n) for n in own} == {n: getattr(Config(), n) for n in own}
    # What a person wrote counts more.
    assert load("tsp", "quick", {"learning_rate": 0.125}).learning_rate == 0.125
    path = tmp_path / "mine.toml"
    path.write_text("learning_rate = 0.25\n")
    assert load("tsp", str(path)).learning_rate == 0.25
    assert load("tsp", str(path)).advantage == own["advantage"]
    with pytest.raises(InputError, match=r"unknown preset 'embedded'"):
        load("tsp", "embedded")


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_is_lawful_and_in_the_package(preset):
    problem = "cvrp" if preset == "paper-cvrp" else "tsp"
    assert load(problem, preset).problem == problem
    assert (Path(spo_jax.__file__).parent / "presets" / f"{preset}.toml").is_file()


def test_a_preset_of_another_problem_is_refused():
    with pytest.raises(InputError, match=r"preset paper-tsp is for tsp, not for cvrp"):
        load("cvrp", "paper-tsp")


def test_unknown_names_are_answered_with_the_closest():
    with pytest.raises(InputError, match=r"unknown preset 'standart'.*'standard'"):
        load("tsp", "standart")
    with pytest.raises(InputError, match=r"unknown setting 'round' in the options.*'rounds'"):
        load("tsp", "smoke", {"round": 3})
    with pytest.raises(InputError, match=r"unknown setting 'repairs' in the config"):
        Config.from_dict({"repairs": 3})


def test_a_preset_file_of_the_users_own(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("rounds = 7\ndiversity = 0\n")
    config = load("tsp", str(path), {"seed": 3})
    assert (config.rounds, config.diversity, config.seed) == (7, 0.0, 3)
    path.write_text("rounds = = 7")
    with pytest.raises(InputError, match=r"is not TOML"):
        load("tsp", str(path))
    path.write_text("wrokers = 7")
    with pytest.raises(InputError, match=r"'wrokers' in preset .*'workers'"):
        load("tsp", str(path))
    with pytest.raises(InputError, match=r"cannot read preset"):
        load("tsp", str(tmp_path / "none.toml"))


def test_a_preset_has_settings_for_one_problem_alone(tmp_path):
    path = tmp_path / "both.toml"
    path.write_text("rounds = 7\n[cvrp]\nrounds = 3\npanel_evolved = 1\n")
    assert load("tsp", str(path)).rounds == 7
    found = load("cvrp", str(path))
    assert (found.rounds, found.panel_evolved, found.panel_classical) == (3, 1, True)
    path.write_text("[cvpr]\nrounds = 3\n")
    with pytest.raises(InputError, match=r"unknown problem 'cvpr' in preset .*'cvrp'"):
        load("tsp", str(path))
    path.write_text("[cvrp]\nround = 3\n")
    with pytest.raises(InputError, match=r"unknown setting 'round' in preset .*'rounds'"):
        load("tsp", str(path))


NUMBERS = [f for f in FIELDS.values() if f.metadata["low"] is not None]


@pytest.mark.parametrize("field", NUMBERS, ids=lambda f: f.name)
def test_the_lower_boundary_of_every_number(field):
    low = field.metadata["low"]
    step = 1 if isinstance(low, int) else 0.005
    # The group settings are bound to each other, so the least lawful value needs company.
    company = {"responses": 1} if field.name == "repairs_per_destroy" else {}
    company |= {"max_new_tokens": 1} if field.name == "context" else {}
    if field.name == "importance_cap":
        company |= {"generator": "vllm", "vllm_url": "http://x"}
    Config(**{field.name: low} | company | {"panel_classical": True})
    with pytest.raises(InputError, match=rf"^{field.name} is .*must be"):
        Config(**{field.name: low - step})


@pytest.mark.parametrize("field", NUMBERS, ids=lambda f: f.name)
def test_the_upper_boundary_of_every_number(field):
    high = field.metadata["high"]
    company = {"repairs_per_destroy": high} if field.name == "responses" else {}
    company |= {"responses": 1} if field.name == "repairs_per_destroy" else {}
    company |= {"context": 10 * high} if field.name == "max_new_tokens" else {}
    if field.name == "importance_cap":
        company |= {"generator": "vllm", "vllm_url": "http://x"}
    Config(**{field.name: high} | company)
    with pytest.raises(InputError, match=rf"^{field.name} is .*must be"):
        Config(**{field.name: high + 1})


ODD_TEXTS = ["9" * 20, "9" * 5000, "-" + "9" * 20, "1e400", "inf", "-inf", "nan", "0x10", "1_0", ""]
ODD_TEXTS += ["\u0663", "1e308", "-0.0", "0", "\0", "\udc80", "none"]
ODD_NUMBERS = [10**20, -(10**20), 10**400, float("inf"), -float("inf"), 1e308]


@pytest.mark.parametrize("field", FIELDS.values(), ids=lambda f: f.name)
def test_no_value_is_too_odd_for_a_sentence(field):
    """On the command line and in a file: refused in a sentence, or within the field's bounds."""

    def typed(text):
        if field.name == "problem":
            return Config(problem=text).problem
        return overrides_from(argparse.Namespace(**{field.name: text}))[field.name]

    taken = []
    for odd in ODD_TEXTS:
        with contextlib.suppress(InputError):
            taken.append(typed(odd))
    for odd in ODD_NUMBERS:
        with contextlib.suppress(InputError):
            taken.append(getattr(Config(**{field.name: odd}), field.name))
    low, high = field.metadata["low"], field.metadata["high"]
    for value in taken:
        if low is not None and value is not None:
            assert low <= value <= high
        if isinstance(value, str) and not field.metadata["choices"]:
            value.encode("utf-8")
            assert "\0" not in value


def test_every_number_has_bounds():
    for field in FIELDS.values():
        basic = set(get_args(field.type)) or {field.type}
        for bound in ("low", "high"):
            known = field.metadata[bound] is not None
            assert known == bool(basic & {int, float}), field.name


@pytest.mark.parametrize("field", FIELDS.values(), ids=lambda f: f.name)
def test_every_field_refuses_a_value_of_another_type(field):
    for wrong in ([1], {}, b"x", float("nan")):
        with pytest.raises(InputError, match=rf"^{field.name} is .*must be"):
            Config(**{field.name: wrong})
    wrong = 1 if isinstance(getattr(Config(), field.name), bool) else True
    with pytest.raises(InputError, match=rf"^{field.name} is .*must be"):
        Config(**{field.name: wrong})


@pytest.mark.parametrize(
    "field", [f for f in FIELDS.values() if f.metadata["choices"]], ids=lambda f: f.name
)
def test_choices(field):
    for choice in field.metadata["choices"]:
        assert getattr(Config(**{field.name: choice}), field.name) == choice
    with pytest.raises(InputError, match=f"{field.name} is 'other'; it must be one of"):
        Config(**{field.name: "other"})


def test_relations():
    with pytest.raises(InputError, match=r"both 0"):
        Config(mutation_groups=0, crossover_groups=0)
    with pytest.raises(InputError, match=r"repairs_per_destroy is 20.*multiple of responses"):
        Config(repairs_per_destroy=20)
    with pytest.raises(InputError, match=r"panel_evolved is 0"):
        Config(panel_evolved=0)
    assert Config(panel_evolved=0, panel_classical=True).panel_evolved == 0
    with pytest.raises(InputError, match=r"max_new_tokens is 8192 and context 8192"):
        Config(max_new_tokens=8192)


def test_a_model_learns_unless_told_otherwise_and_nothing_else_can():
    assert Config(generator="model").update == "grpo"
    assert Config(generator="model", update="none").update == "none"
    assert Config(generator="grammar").update == "none"
    assert Config(generator="my.module:Writer").update == "none"
    assert Config(generator="my.module:Writer", update="my.module:learn").update != "none"
    for generator in ("grammar", "my.module:Writer"):
        with pytest.raises(InputError, match=f"update is grpo.* generator is {generator}"):
            Config(generator=generator, update="grpo")


def test_a_model_that_is_named_is_used():
    config = load("tsp", "smoke", {"model": "folder"})
    assert (config.generator, config.model, config.update) == ("model", "folder", "grpo")
    assert load("tsp", "smoke", {"generator": "grammar"}).update == "none"
    with pytest.raises(InputError, match="model is folder, but generator is grammar"):
        load("tsp", "smoke", {"model": "folder", "generator": "grammar"})


def test_flags_are_made_from_the_fields():
    assert parse() == {}
    given = parse(
        "--repairs-per-destroy", "12", "--diversity", "0.5", "--no-state", "--panel-classical",
        "--parents", "rank", "--cpu-seconds", "none", "--workers", "3",
    )  # fmt: skip
    assert given == {
        "repairs_per_destroy": 12,
        "diversity": 0.5,
        "state": False,
        "panel_classical": True,
        "parents": "rank",
        "cpu_seconds": None,
        "workers": 3,
    }


def test_a_malformed_flag_is_one_sentence():
    with pytest.raises(InputError, match=r"^rounds is 'many'; it must be a whole number"):
        parse("--rounds", "many")
    with pytest.raises(InputError, match=r"^seed is -1; it must be a whole number from 0"):
        parse("--seed=-1")
    with pytest.raises(InputError, match=r"^parents is 'best'; it must be one of uniform, rank"):
        parse("--parents", "best")


def test_every_flag_has_one_line_of_help():
    for field in FIELDS.values():
        assert field.metadata["help"]
        assert "\n" not in field.metadata["help"]
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    for name in FIELDS.keys() - {"problem"}:
        assert "--" + name.replace("_", "-") in parser.format_help()


def test_config_survives_its_dict():
    config = load("cvrp", "smoke", {"cpu_seconds": 2.5, "prompts": "folder"})
    assert Config.from_dict(config.to_dict()) == config


@given(st.integers(0, 2**63 - 1), st.floats(0, 1e6), st.booleans())
def test_any_lawful_values_survive_the_dict(seed, diversity, state):
    config = Config(seed=seed, diversity=diversity, state=state)
    assert Config.from_dict(config.to_dict()) == config


def test_a_credit_to_learn_from_needs_an_update():
    config = load("tsp", "quick", {"learning_credit": "shared"})
    assert (config.credit, config.learning_credit, config.update) == (
        "stackelberg",
        "shared",
        "grpo",
    )
    assert Config.from_dict(config.to_dict()) == config
    assert config.changed({"learning_credit": None}) == ["learning_credit"]
    assert config.changed({"learning_credit": "shared"}) == []
    for more in ({"update": "none"}, {"generator": "grammar"}):
        with pytest.raises(InputError, match="learning_credit is shared, and update is none"):
            load("tsp", "quick", {"learning_credit": "shared", **more})
    own = {"generator": "grammar", "update": "mine:updater", "learning_credit": "mine:credit"}
    assert load("tsp", "quick", own).learning_credit == "mine:credit"


def test_changes_that_forbid_a_resume():
    config = Config(workers=2)
    assert config.changed({"workers": 5, "model": "moved", "rounds": config.rounds}) == []
    assert config.changed({"rounds": 3, "credit": "shared", "seed": 0}) == ["rounds", "credit"]


def test_every_field_is_read_somewhere():
    """A setting that nobody reads is a lie; the check is for `config.FIELD` in the package."""
    read = set()
    for path in Path(spo_jax.__file__).parent.rglob("*.py"):
        names = {"config", "settings"} | ({"self"} if path.name == "config.py" else set())
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                read |= {node.attr} if node.value.id in names else set()
    assert FIELDS.keys() - read == set()
