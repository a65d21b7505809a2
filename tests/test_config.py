"""Settings: their defaults, their lawful values, presets, files and flags."""

import argparse
import ast
import contextlib
import tomllib
from pathlib import Path
from types import NoneType
from typing import get_origin

import pytest
from hypothesis import given
from hypothesis import strategies as st

import spo_jax
from spo_jax import presets
from spo_jax.cli import main
from spo_jax.cli.flags import add_arguments
from spo_jax.cli.flags import given as given_by
from spo_jax.config import FIELDS, GROUPS, Settings
from spo_jax.config.fields import bounds, choices, kinds
from spo_jax.config.groups import SearchSettings
from spo_jax.errors import InputError
from spo_jax.presets import PRESETS, problem_of, read_preset, to_toml

DEFAULTS = Settings().flat()
NUMBERS = [each for each in FIELDS.values() if bounds(each.info) != (None, None)]
CHOICES = [each for each in FIELDS.values() if choices(each.info)]
by_name = {"ids": lambda each: each.flat}


def made(**flat):
    """The settings that were asked for, as they came out."""
    found = Settings.make(**flat).flat()
    return found[next(iter(flat))]


def parse(*argv):
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return given_by(parser.parse_args(argv))


AT_ENDPOINTS = ("real-small", "hosted")


def problem_for(preset):
    return "cvrp" if preset == "paper-cvrp" else "tsp"


def wrote(path, text):
    path.write_text(text)
    return str(path)


# --- defaults and presets -------------------------------------------------------------------------


def test_defaults_are_the_numbers_of_the_paper():
    expected = {
        # Section 5.1: 30 rounds, 10 programs a role, 100 steps; Appendix B.1: six instances of 50
        # nodes, two rollouts each.
        "rounds": 30, "population_size": 10, "steps": 100, "size": 50, "instances": 6,
        "rollouts": 2,
        # Appendix A.3: three mutation and two crossover groups, six responses, 30 repairs.
        "mutation_groups": 3, "crossover_groups": 2, "responses": 6, "repairs_per_destroy": 30,
        # Appendices A.4 and A.5: L = 2, weight 0.1, up to five evolved leaders.
        "top_responses": 2, "diversity": 0.1, "panel_evolved": 5, "panel_classical": False,
        # Appendix A.2: the context, how programs are sampled, rank-16 adapters scaled by 32.
        "context": 8192, "temperature": 0.8, "top_p": 0.95, "lora_rank": 16, "lora_alpha": 32.0,
        # Appendix A.4: AdamW at 5e-6, clipping radius 0.2, gradient norm 1, whole-answer ratios of
        # centred advantages, failed answers left out.
        "learning_rate": 5e-6, "clip": 0.2, "max_gradient_norm": 1.0, "ratio": "sequence",
        "advantage": "centred", "failure_penalty": None,
    }  # fmt: skip
    assert expected.items() <= DEFAULTS.items()
    assert Settings().search.group_forms * Settings().search.responses == 30


@pytest.mark.parametrize(
    ("problem", "tokens", "micro_batch"), [("tsp", 1200, 3), ("cvrp", 2048, 2)]
)
def test_what_the_paper_sets_for_each_problem(problem, tokens, micro_batch):
    # Appendices A.2 and A.4: longest answers, adapters' targets, optimization micro-batches.
    for preset in ("smoke", f"paper-{problem}"):
        config = presets.settings(problem, preset)
        assert config.generator.max_new_tokens == tokens
        assert config.learning.micro_batch == micro_batch
    targets = {p: presets.settings(p, "smoke").learning.lora_targets for p in ("tsp", "cvrp")}
    assert targets["tsp"] != targets["cvrp"]


def test_a_preset_for_one_problem_names_it(tmp_path):
    assert [problem_of(p) for p in ("paper-tsp", "paper-cvrp", "quick")] == ["tsp", "cvrp", None]
    odd = wrote(tmp_path / "odd.toml", "problem = 3\n")
    with pytest.raises(InputError, match=r"problem is 3; it must be a text .*odd\.toml"):
        problem_of(odd)
    with pytest.raises(InputError, match=r"preset paper-tsp is for tsp, not for cvrp"):
        presets.settings("cvrp", "paper-tsp")


def test_paper_presets_have_the_nominal_budget():
    for preset in ("paper-tsp", "paper-cvrp"):
        search = presets.settings(problem_for(preset), preset).search
        destroys = search.rounds * search.group_forms * search.responses
        assert (destroys, destroys * search.repairs_per_destroy) == (900, 27_000)


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
        "schedule": "constant", "clip": 0.2, "max_gradient_norm": 1.0, "ratio": "sequence",
        "advantage": "centred", "failure_penalty": "none", "residency": "restart",
    }  # fmt: skip
    preset = f"paper-{problem}"
    assert written.items() <= read_preset(preset, problem).items()
    for more in ({"model": "folder"}, {"generator": "vllm", "vllm_python": "p", "model": "9B"}):
        large = presets.settings(problem, preset, **more).flat()
        assert (
            written | {"update": "grpo", "failure_penalty": None} | more
        ).items() <= large.items()
    assert presets.settings(problem, preset, generator="grammar").learning.update == "none"
    attached = {"generator": "vllm", "vllm_url": "http://x"}
    with pytest.raises(InputError, match="residency is restart, but a server at vllm_url is not"):
        presets.settings(problem, preset, **attached)
    assert presets.settings(problem, preset, residency="sleep", **attached).vllm.url == "http://x"


def test_cvrp_has_the_hybrid_panel_under_every_general_preset():
    for preset in ("smoke", "quick", "standard", "paper-cvrp"):
        search = presets.settings("cvrp", preset).search
        assert (search.panel_evolved, search.panel_classical) == (2, True)
    assert presets.settings("cvrp", "quick", panel_evolved=3).search.panel_evolved == 3


def test_the_model_that_ships_learns_with_settings_of_its_own(tmp_path):
    text = (Path(spo_jax.__file__).parent / "presets" / "embedded.toml").read_text()
    own = tomllib.loads(text)["learning"]
    for preset in set(PRESETS) - set(AT_ENDPOINTS):
        small = presets.settings(problem_for(preset), preset)
        assert (small.generator.name, small.generator.model) == ("model", "embedded")
        assert own.items() <= small.flat().items()
        novice = presets.settings(problem_for(preset), preset, model="novice")
        assert novice == small.replace(model="novice")
        # Another model, the grammar and an experiment have the paper's.
        for others in ({"model": "folder"}, {"generator": "grammar"}):
            large = presets.settings(problem_for(preset), preset, **others).flat()
            assert {name: large[name] for name in own} == {name: DEFAULTS[name] for name in own}
    # What a person wrote counts more.
    assert presets.settings("tsp", "quick", learning_rate=0.125).learning.learning_rate == 0.125
    mine = wrote(tmp_path / "mine.toml", "[learning]\nlearning_rate = 0.25\n")
    learning = presets.settings("tsp", mine).learning
    assert (learning.learning_rate, learning.advantage) == (0.25, own["advantage"])
    with pytest.raises(InputError, match=r"unknown preset 'embedded'"):
        presets.settings("tsp", "embedded")


def test_presets_for_endpoints_want_one():
    for preset in AT_ENDPOINTS:
        with pytest.raises(InputError, match="give both --base-url"):
            presets.settings("tsp", preset)
        made = presets.settings("tsp", preset, base_url="http://x/v1", model="m")
        assert (made.generator.name, made.generator.prompts_style) == ("openai", "frame")
    assert presets.settings("cvrp", "real-small", generator="grammar").generator.kit == "none"


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("problem", ["tsp", "cvrp"])
def test_dumped_settings_are_a_preset_of_the_same_settings(preset, problem, tmp_path, capsys):
    if problem_of(preset) not in (None, problem):
        problem = problem_of(preset)
    asked = {"base_url": "http://x/v1", "model": "m"} if preset in AT_ENDPOINTS else {}
    line = ["discover", problem, "--preset", preset, "--dump-config", "--seed", "7"]
    for name, value in asked.items():
        line += [f"--{name.replace('_', '-')}", value]
    assert main(line) == 0
    text = capsys.readouterr().out
    path = wrote(tmp_path / "same.toml", text)
    assert presets.settings(problem, path) == presets.settings(problem, preset, seed=7, **asked)
    assert main(["discover", "--preset", path, "--dump-config"]) == 0
    assert capsys.readouterr().out == text
    for each in FIELDS.values():
        assert f"# {each.info.description}" in text
    assert not list(tmp_path.glob("runs*"))


def test_a_dumped_preset_leaves_other_models_their_numbers(tmp_path, capsys, monkeypatch):
    def dump(preset, *more):
        assert main(["discover", "tsp", "--preset", preset, "--dump-config", *more]) == 0
        return capsys.readouterr().out

    other = {"generator": "vllm", "vllm_python": "p", "model": "9B"}
    for preset, more in (("paper-tsp", other), ("quick", {"generator": "grammar"})):
        path = wrote(tmp_path / "dumped.toml", dump(preset))
        assert presets.settings("tsp", path, **more) == presets.settings("tsp", preset, **more)
    # And it leaves the model that ships its own, wherever it comes from.
    small = {"generator": "model", "model": "embedded", "vllm_python": None}
    server = ("--generator", "vllm", "--vllm-python", "p", "--model", str(tmp_path))
    monkeypatch.setattr(
        "spo_jax.search.plugins.require_parts", lambda config: None
    )  # no such model
    for preset, more in (("quick", ("--generator", "grammar")), ("paper-tsp", server)):
        text = dump(preset, *more)
        path = wrote(tmp_path / "dumped.toml", text)
        assert dump(path) == text
        assert (
            presets.settings("tsp", path, **small).learning
            == presets.settings("tsp", preset).learning
        )
        asked = wrote(tmp_path / "dumped.toml", dump(preset, *more, "--learning-rate", "5e-6"))
        learning = presets.settings("tsp", asked, **small).learning
        assert (learning.learning_rate, learning.advantage) == (5e-6, "standardised")
    own = dump("quick", "--learning-rate", "0.125")
    path = wrote(tmp_path / "dumped.toml", "\ufeff" + own)
    assert presets.settings("tsp", path).learning.learning_rate == 0.125
    plain = wrote(tmp_path / "no-suffix", own)
    assert dump(plain) == own


@pytest.mark.parametrize(
    "argv",
    [
        ["--credit", "nope"],
        ["--learning-credit", "nope"],
        ["--survivors", "no_such_module:f"],
        ["--panel", "math:pi"],
        ["--utility", "math:nope"],
        ["--method", "eho"],
        ["--method", "reevo", "--method-setting", "wide=3"],
        ["--generator", "grammer"],
        ["--generator", "no_such_module:Writer"],
        ["--generator", "openai", "--base-url", "ftp:x", "--model", "m"],
        ["--model", "nowhere"],
        ["--update", "math:nope"],
        ["--evaluator", "math:pi"],
        ["--lora-targets", "mixer"],
        ["--advantage", "math:nope"],
        ["--max-new-tokens", "90000", "--context", "100000"],
    ],
    ids=" ".join,
)
def test_dumping_refuses_what_a_run_refuses(argv, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    start = ["discover", "tsp", "--preset", "smoke", *argv]
    assert main([*start, "--out", "run"]) == 2
    errors = capsys.readouterr().err
    assert main([*start, "--dump-config"]) == 2
    assert capsys.readouterr() == ("", errors)
    assert errors.startswith("spo: ")
    assert not any(tmp_path.iterdir())


@pytest.mark.long
@given(st.text(), st.floats(0, 1e6), st.integers(-(2**63), 2**63 - 1))
def test_odd_values_survive_the_file(text, diversity, number):
    odd = {"method": "a:b", "method_settings": {text: text, "n": number}, "diversity": diversity}
    with contextlib.suppress(InputError):
        odd |= {"model": made(model=text)}
    config = Settings.make(**odd, failure_penalty=None, generator="grammar")
    kept = presets._flat(to_toml(config), "dumped", "tsp")
    assert Settings.make(**kept) == config


def test_a_search_stands_for_settings(tmp_path, capsys):
    """Above a preset's, also one of the user's, and below those that are given."""
    found = presets.settings("cvrp", search="solve", steps=700).evaluation
    assert (found.start, found.acceptance) == ("construction", "record-to-record")
    assert (found.steps, found.work) == (700, presets.SEARCHES["solve"]["work"])
    plain = presets.settings("cvrp")
    assert presets.settings("cvrp", search="paper") == plain
    assert presets.settings("cvrp", search="solve").search == plain.search
    own = tmp_path / "own.toml"
    own.write_text('[evaluation]\nacceptance = "annealing"\nwork = 3.0\nsteps = 9\n')
    line = [
        "discover",
        "cvrp",
        "--preset",
        str(own),
        "--search",
        "paper",
        "--start",
        "construction",
    ]
    assert main([*line, "--dump-config"]) == 0
    again = tmp_path / "again.toml"
    again.write_text(capsys.readouterr().out)
    found = presets.settings("cvrp", str(again)).evaluation
    assert (found.acceptance, found.work, found.steps) == ("improving", None, 9)
    assert found.start == "construction"


def test_a_search_that_there_is_not(capsys):
    for name in ("sovle", "random", "3"):
        assert main(["discover", "tsp", "--search", name]) == 2
        sentence = f"spo: search is {name!r}; it must be one of paper, solve\n"
        assert capsys.readouterr().err == sentence


def test_a_preset_file_of_the_users_own(tmp_path):
    path = tmp_path / "mine.toml"
    mine = wrote(path, "seed = 2\n[search]\nrounds = 7\ndiversity = 0\n[generator]\nprompts='none'")
    config = presets.settings("tsp", mine, seed=3)
    assert (config.search.rounds, config.search.diversity, config.seed) == (7, 0.0, 3)
    assert config.generator.prompts is None
    path.write_text("rounds = = 7")
    with pytest.raises(InputError, match=r"is not TOML"):
        presets.settings("tsp", mine)
    path.write_text("[learning]\nlearning_rate = 'none'\n")
    with pytest.raises(InputError, match="learning_rate is 'none'; it must be a number"):
        presets.settings("tsp", mine)
    with pytest.raises(InputError, match=r"cannot read preset"):
        presets.settings("tsp", str(tmp_path / "none.toml"))
    with pytest.raises(InputError, match=r"unknown preset 'standart'.*'standard'"):
        presets.settings("tsp", "standart")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("wrokers = 7", r"'wrokers' in preset .*: did you mean 'workers' above all tables\?"),
        ("rounds = 7", r"unknown setting 'rounds' in preset .*: it belongs in \[search\]"),
        ("[learning]\nrounds = 7", r"'rounds' in preset .*: it belongs in \[search\]"),
        ("[search]\nseed = 7", r"'seed' in preset .*: it belongs above all tables"),
        ("[search]\nround = 7", r"'round' in preset .*: did you mean 'rounds' in \[search\]\?"),
        ("[vllm]\nvllm_python = 'p'", r"did you mean 'python' in \[vllm\]\?"),
        ("[generator]\ngenerator = 'grammar'", r"did you mean 'name' in \[generator\]\?"),
        (
            "[serach]\nrounds = 7",
            r"unknown table \[serach\] in preset .*: did you mean \[search\]\?",
        ),
        ("[problem.cvrp.search]\nrounds = 3", r"did you mean \[problems\]\?"),
        ("[problms.cvrp.search]\nrounds = 3", r"did you mean \[problems\]\? .*problems.NAME.GROUP"),
        ("[other]\nrounds = 7", r"unknown table \[other\] in preset .*: use search, evaluation"),
        ("preset = 'quick'", r"'preset' in preset .*: preset is an option of spo discover, and no"),
        ("[search]\npresets = 'quick'", r"'presets' in preset .*: preset is an option of spo disc"),
        ("resume = 'x'", r"'resume' in preset .*: resume is an option of spo discover, and no"),
        (
            "[search]\nparent = 'rank'",
            r"'parent' in preset .*: did you mean 'parents' in \[search\]",
        ),
        ("[cvrp]\nsteps = 7", r"unknown table \[cvrp\] in preset .*problems.NAME.GROUP"),
        ("[search]\nrounds = '3'", r"rounds is '3'; .* 100000 \(in \[search\] of preset .*mine"),
        ("problem = 'tps'", r"unknown problem 'tps'.*'tsp'"),
        ("search = 7", r"search is 7 in preset .*; it must be a table, \[search\]"),
        ("problems = 7", r"problems is 7 in preset .*; it must be a table"),
        ("[problems.cvpr.search]\nrounds = 3", r"unknown problem 'cvpr'"),
        ("[problems.cvrp]\nrounds = 3", r"'rounds' in preset .*: it belongs in \[search\]"),
        ("[problems.cvrp.search]\nround = 3", r"'round' in preset .*'rounds' in \[search\]"),
    ],
)
def test_misplaced_and_misspelt_keys_are_reported_where_they_belong(text, message, tmp_path):
    with pytest.raises(InputError, match=message):
        presets.settings("tsp", wrote(tmp_path / "mine.toml", text))


def test_a_preset_has_settings_for_one_problem_alone(tmp_path):
    text = "[search]\nrounds = 7\n[problems.cvrp.search]\nrounds = 3\npanel_evolved = 1\n"
    text += "[problems.'no_such_module:P'.search]\nrounds = 4\n"
    path = wrote(tmp_path / "both.toml", text)
    assert presets.settings("tsp", path).search.rounds == 7
    found = presets.settings("cvrp", path).search
    assert (found.rounds, found.panel_evolved, found.panel_classical) == (3, 1, True)


def test_numbers_of_a_method_are_added_to_those_of_the_file(tmp_path):
    text = "[search]\nmethod = 'funsearch'\n[search.method_settings]\nislands = 4\nscore = 'last'\n"
    path = wrote(tmp_path / "mine.toml", text)
    own = parse("--method-setting", "islands=2", "--method-setting", "temperature = 0.5")
    assert presets.settings("tsp", path, **own).search.method_settings == {
        "islands": 2, "score": "last", "temperature": 0.5,
    }  # fmt: skip


# --- values ---------------------------------------------------------------------------------------


def test_unknown_names_are_answered_with_the_closest():
    with pytest.raises(InputError, match=r"unknown setting 'round'.*'rounds'"):
        presets.settings("tsp", "smoke", round=3)
    with pytest.raises(InputError, match=r"unknown setting 'repairs'"):
        Settings.make(repairs=3)
    with pytest.raises(InputError, match=r"unknown setting 'round'.*'rounds'"):
        SearchSettings(round=3)


# What the other settings have to be where one is at its bound.
COMPANY = {
    "responses": {"repairs_per_destroy": 10_000},
    "repairs_per_destroy": {"responses": 1},
    "context": {"max_new_tokens": 1},
    "max_new_tokens": {"context": 10_000_000},
    "importance_cap": {"generator": "vllm", "vllm_url": "http://x"},
    "panel_evolved": {"panel_classical": True},
    "pairs": {"method": "eoh"},
}


@pytest.mark.parametrize("each", NUMBERS, **by_name)
def test_the_boundaries_of_every_number(each):
    for bound, sign in zip(bounds(each.info), (-1, 1), strict=True):
        assert made(**{each.flat: bound}, **COMPANY.get(each.flat, {})) == bound
        step = 1 if isinstance(bound, int) or sign > 0 else 0.005
        with pytest.raises(InputError, match=rf"^{each.flat} is .*must be"):
            Settings.make(**{each.flat: bound + sign * step})


ODD_TEXTS = ["9" * 20, "9" * 5000, "-" + "9" * 20, "1e400", "inf", "-inf", "nan", "0x10", "1_0", ""]
ODD_TEXTS += ["\u0663", "1e308", "-0.0", "0", "\0", "\udc80", "none"]
ODD_NUMBERS = [10**20, -(10**20), 10**400, float("inf"), -float("inf"), 1e308]


@pytest.mark.parametrize("each", FIELDS.values(), **by_name)
def test_no_value_is_too_odd_for_a_sentence(each):
    """On the command line and in a file: refused in a sentence, or within the setting's bounds."""
    flag = "--" + each.flat.replace("_", "-")
    typed = each.flat != "problem" and bool not in kinds(each.info.annotation)
    taken = []
    named = dict in map(get_origin, kinds(each.info.annotation))
    for odd in ODD_TEXTS if typed and not named else []:
        with contextlib.suppress(InputError):
            taken.append(parse(f"{flag}={odd}")[each.flat])
    for odd in (*ODD_TEXTS, *ODD_NUMBERS):
        with contextlib.suppress(InputError):
            taken.append(made(**{each.flat: odd}))
    low, high = bounds(each.info)
    for value in taken:
        if low is not None and value is not None:
            assert low <= value <= high
        if isinstance(value, str):
            value.encode("utf-8")
            assert "\0" not in value


@pytest.mark.parametrize("each", FIELDS.values(), **by_name)
def test_every_setting_refuses_a_value_of_another_type(each):
    wrong = [b"x", float("nan"), [1], 1 if isinstance(DEFAULTS[each.flat], bool) else True]
    if each.former:  # it was true or false
        wrong[-1] = 1
    named = dict in map(get_origin, kinds(each.info.annotation))
    for value in [*wrong, {1: 2} if named else {}]:
        with pytest.raises(InputError, match=rf"^{each.flat} is .*must be"):
            Settings.make(**{each.flat: value})


@pytest.mark.parametrize("each", CHOICES, **by_name)
def test_choices(each):
    company = {"generator": "vllm", "vllm_python": "p"} if each.group == "vllm" else {}
    for choice in choices(each.info):
        # "auto" becomes what the generator needs: test_prompts_style.
        expected = "paper" if choice == "auto" and not company else choice
        assert made(**{each.flat: choice}, **company) == expected
    with pytest.raises(InputError, match=f"{each.flat} is 'other'; it must be one of"):
        Settings.make(**{each.flat: "other"})


def test_prompts_style():
    endpoint = {"generator": "openai", "base_url": "http://x", "model": "m"}
    assert Settings().generator.prompts_style == "paper"
    assert Settings.make(**endpoint).generator.prompts_style == "frame"
    vllm = {"generator": "vllm", "vllm_python": "p"}
    assert Settings.make(**vllm, model="folder").generator.prompts_style == "frame"
    assert Settings.make(**vllm).generator.prompts_style == "paper"  # the model that ships
    for name, style, mend in (("folder", "frame", 1), ("embedded", "paper", 0)):
        own = Settings.make(generator="model", model=name).generator
        assert (own.prompts_style, own.mend) == (style, mend)
    assert Settings.make(**endpoint, prompts_style="paper").generator.prompts_style == "paper"
    back = Settings.make(**endpoint).replace(generator="grammar", base_url=None, model="embedded")
    assert back.generator.prompts_style == "frame"  # what was resolved once stays


def test_relations():
    for wrong, message in (
        ({"mutation_groups": 0, "crossover_groups": 0}, "both 0"),
        ({"repairs_per_destroy": 20}, "repairs_per_destroy is 20.*multiple of responses"),
        ({"panel_evolved": 0}, "panel_evolved is 0"),
        ({"select": "validation", "finalists": 0}, "finalists is 0"),
        ({"max_new_tokens": 8192}, "max_new_tokens is 8192 and context 8192"),
        ({"method_settings": {"islands": 3}}, "method_settings is given, but method is spo"),
        ({"base_url": "http://x"}, "base_url is given, but generator is model; use .* openai"),
    ):
        with pytest.raises(InputError, match=message):
            Settings.make(**wrong)
    with pytest.raises(InputError, match="panel_evolved is 0"):
        SearchSettings(panel_evolved=0)


def test_a_model_learns_unless_told_otherwise_and_nothing_else_can():
    def update(**flat):
        return Settings.make(**flat).learning.update

    assert update(generator="model") == "grpo"
    assert update(generator="model", update="none") == "none"
    assert update(generator="grammar") == "none"
    assert update(generator="my.module:Writer") == "none"
    assert update(generator="my.module:Writer", update="my.module:learn") == "my.module:learn"
    for generator in ("grammar", "my.module:Writer"):
        with pytest.raises(InputError, match=f"update is grpo.* generator is {generator}"):
            update(generator=generator, update="grpo")


def test_the_rivals_updates_and_their_settings():
    own = {"update": "evotune", "update_settings": {"beta": 0.1, "divergence": "js"}}
    assert Settings.make(**own).learning.update == "evotune"
    assert parse("--update-setting", "beta=0.1", "--update-setting", "every=2") == {
        "update_settings": {"beta": 0.1, "every": 2}
    }
    assert Settings.make(update="evotune", minutes=1, update_settings={"every": 2})
    for wrong, message in (
        ({"generator": "grammar", "update": "calm"}, "update is calm, which trains a model"),
        ({"update_settings": {"kl": 0}}, "update_settings is given, and update is grpo, which has"),
        (own | {"update_settings": {"bta": 1}}, "update evotune has no setting 'bta': .* 'beta'"),
        (
            own | {"update_settings": {"beta": -1}},
            "update_settings: beta is -1; it must be",
        ),
        (
            own | {"update_settings": {"divergence": "kl"}},
            "divergence is 'kl'; .* one of",
        ),
        ({"update": "calm", "learning_credit": "gap"}, "update is calm.* learning_credit is given"),
        ({"update": "calm", "parents": "none"}, "update is calm.* parents is none"),
        ({"update": "calm", "method": "a:b"}, "update is calm.* method is a:b"),
        ({"update": "evotune", "method": "eoh"}, "update is evotune, and method is eoh"),
        ({"update": "evotune", "minutes": 1}, "minutes is given, .* --update-setting every=2"),
    ):
        with pytest.raises(InputError, match=message):
            Settings.make(**wrong)


def test_a_model_that_is_named_is_used():
    config = presets.settings("tsp", "smoke", model="folder")
    assert (config.generator.name, config.generator.model) == ("model", "folder")
    assert config.learning.update == "grpo"
    with pytest.raises(InputError, match="model is folder, but generator is grammar"):
        presets.settings("tsp", "smoke", model="folder", generator="grammar")


def test_a_credit_to_learn_from_needs_an_update():
    config = presets.settings("tsp", "quick", learning_credit="shared")
    assert (config.search.credit, config.learning.learning_credit) == ("stackelberg", "shared")
    for more in ({"update": "none"}, {"generator": "grammar"}):
        with pytest.raises(InputError, match="learning_credit is shared, and update is none"):
            presets.settings("tsp", "quick", learning_credit="shared", **more)
    own = {"generator": "grammar", "update": "mine:updater", "learning_credit": "mine:credit"}
    assert presets.settings("tsp", "quick", **own).learning.learning_credit == "mine:credit"


@given(st.integers(0, 2**63 - 1), st.floats(0, 1e6), st.booleans())
def test_settings_survive_their_flat_values(seed, diversity, state):
    config = Settings.make(seed=seed, diversity=diversity, state=state, cpu_seconds=2.5)
    assert Settings.make(**config.flat()) == config == config.replace()
    assert config.replace(seed=5).flat() == config.flat() | {"seed": 5}


def test_settings_are_frozen_and_can_be_built_by_group():
    config = Settings(search=SearchSettings(rounds=3), evaluation={"steps": 5})
    assert config == Settings.make(rounds=3, steps=5)
    for owner, name in ((config, "seed"), (config.search, "rounds")):
        with pytest.raises(ValueError, match="frozen"):
            setattr(owner, name, 4)


def test_changes_that_forbid_a_resume():
    config = Settings.make(workers=2, learning_credit="shared")
    assert config.changed({"workers": 5, "model": "moved", "rounds": 30}) == []
    assert config.changed({"rounds": 3, "credit": "shared", "seed": 0}) == ["rounds", "credit"]
    assert config.changed({"learning_credit": None}) == ["learning_credit"]


# --- flags ----------------------------------------------------------------------------------------


def test_flags_are_made_from_the_settings():
    assert parse() == {}
    assert parse(
        "--repairs-per-destroy", "12", "--diversity", "0.5", "--no-state", "--panel-classical",
        "--parents", "rank", "--cpu-seconds", "none", "--workers", "3", "--vllm-python", "p",
        "--method-setting", "a=1", "--method-setting", "b = x y", "--method-setting", "c=true",
    ) == {
        "repairs_per_destroy": 12, "diversity": 0.5, "state": False, "panel_classical": True,
        "parents": "rank", "cpu_seconds": None, "workers": 3, "vllm_python": "p",
        "method_settings": {"a": 1, "b": "x y", "c": True},
    }  # fmt: skip
    assert parse("--on", "a", "b", "--on", "c") == {"on": ["a", "b", "c"]}


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--rounds", "many"], "rounds is 'many'; it must be a whole number from 1 to 100000"),
        (["--seed=-1"], "seed is '-1'; it must be a whole number from 0"),
        (["--parents", "best"], "parents is 'best'; it must be one of uniform, rank"),
        (["--method-setting", "islands"], "--method-setting is 'islands'; write it as NAME=VALUE"),
    ],
)
def test_a_malformed_flag_is_one_sentence(argv, message, capsys):
    with pytest.raises(InputError, match=f"^{message}"):
        parse(*argv)
    assert main(["discover", "tsp", *argv]) == 2
    assert capsys.readouterr().err.startswith(f"spo: {message}")


def test_help_has_sections_and_hides_what_is_rare(capsys):
    assert main(["discover", "--help"]) == 0
    short = capsys.readouterr().out
    assert main(["discover", "--help-all"]) == 0
    long = capsys.readouterr().out
    for each in FIELDS.values():
        assert each.info.description
        assert "\n" not in each.help
        flag = "--" + each.flat.replace("_", "-").replace("-settings", "-setting")
        assert each.flat == "problem" or flag in long.split()[:-1] or f"{flag}," in long
        if each.rare:
            assert f"{flag} " not in short
    for group in GROUPS:
        assert f"{group} settings:" in short
    assert "[a whole number from 1 to 100000; default: 30]" in " ".join(short.split())
    assert short.count("\n") < 150 < long.count("\n")


# --- the models -----------------------------------------------------------------------------------


def test_every_number_has_bounds_and_every_flat_name_is_unique():
    assert len(FIELDS) == sum(
        len([n for n in model.model_fields if n not in GROUPS])
        for model in (Settings, *GROUPS.values())
    )
    for each in FIELDS.values():
        some = set(kinds(each.info.annotation)) - {NoneType}
        assert (bounds(each.info) != (None, None)) == bool(some & {int, float}), each.flat


@pytest.mark.long
def test_every_setting_is_read_somewhere():
    """A setting that nobody reads is a lie; the check is for `GROUP.FIELD` in the package."""
    read = set()
    for path in Path(spo_jax.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Attribute):
                of = node.value
                group = of.attr if isinstance(of, ast.Attribute) else getattr(of, "id", "")
                read.add((group.strip("_") if group in GROUPS else "", node.attr))
    assert {(each.group, each.name) for each in FIELDS.values()} - read == set()


def test_the_documented_file_and_calls(tmp_path):
    text = (Path(__file__).parents[1] / "docs" / "runs.md").read_text("utf-8")
    section = text.split("## Settings")[1].split("\n## ")[0]
    file, code = (section.split(f"```{kind}\n")[1].split("```")[0] for kind in ("toml", "python"))
    path = wrote(tmp_path / "mine.toml", file)
    assert presets.settings("cvrp", path).evaluation.size == 30
    assert presets.settings("tsp", path).search.method_settings == {"islands": 4}
    made: dict[str, Settings] = {}
    exec(code, made)
    assert made["config"] == presets.settings("tsp", "quick", rounds=6)


def test_a_list_that_is_given_twice_is_one_list():
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    found = parser.parse_args(["--on", "uniform:20x2", "--on", "a", "b"])
    assert given_by(found)["on"] == ["uniform:20x2", "a", "b"]
    assert "pydantic" not in parser.format_help()


def test_a_size_of_the_callers_wins_over_instances_that_a_preset_names() -> None:
    own = presets.settings("tsp", "quick").evaluation
    assert own.on
    for asked in ({"size": 30}, {"instances": 2}, {"size": 30, "instances": 2}):
        chosen = presets.settings("tsp", "quick", **asked).evaluation
        assert (chosen.on, chosen.size) == ((), asked.get("size", 50))
    both = presets.settings("tsp", "quick", size=30, on=("uniform:20x1",)).evaluation
    assert both.on == ("uniform:20x1",)
    assert presets.settings("tsp", "standard", validation_size=60).evaluation.validate_on == ()
