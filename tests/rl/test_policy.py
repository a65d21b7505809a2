"""The policy of a run: what it writes, what it learns, what it keeps, what it refuses."""

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spo_jax import presets
from spo_jax.config import FIELDS, Settings
from spo_jax.config.fields import choices
from spo_jax.errors import InputError
from spo_jax.program import Group, Prompt, parse_response
from spo_jax.rl import policy as module
from spo_jax.rl.backend import devices, keep_compiled
from spo_jax.rl.buckets import FEW
from spo_jax.rl.lora import TARGET_SETS, init_adapter
from spo_jax.rl.peft import import_peft
from spo_jax.rl.policy import (
    OutOfMemory,
    Policy,
    export_adapters,
    fingerprint,
    lora_of,
    model_folder,
)
from spo_jax.rl.qwen import QwenConfig
from spo_jax.rl.qwen.config import named_config
from spo_jax.rl.sampling import sample
from spo_jax.rl.updates.batches import TokenGroup
from spo_jax.rl.updates.grpo import ADVANTAGES, RATIOS
from spo_jax.rl.updates.learning import adapter_key, grpo_of
from spo_jax.rl.updates.trainer import NotFinite, Trainer
from spo_jax.seeding import derive
from tests.rl import speaker

N = 2  # answers to a prompt


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return speaker.write(tmp_path_factory.mktemp("model"), ("full_attention",))


@pytest.fixture(scope="module")
def config(folder: Path) -> Settings:
    return Settings.make(
        generator="model", model=str(folder), max_new_tokens=3, context=60, sample_rows=4,
        lora_rank=2, lora_targets="q_proj, v_proj", learning_rate=0.05, share_prompts=False,
    )  # fmt: skip


@pytest.fixture
def policy(config: Settings) -> Policy:
    return Policy.load(config)


def prompt(role: Any, paragraphs: int = 3, n: int = 0) -> Prompt:
    return Prompt("tsp", role, "simplification", "\n\n".join(["word"] * paragraphs) + f" {n}")


PROMPTS = [prompt("repair"), prompt("destroy", 4), prompt("repair", 7), prompt("destroy")]


def graded(policy: Policy, seed: int = 0) -> dict[Any, list[Group]]:
    """One group a prompt with credits out of nowhere, one sample of each role without."""
    answers = policy.generate(PROMPTS, N, seed)
    rng = np.random.default_rng(seed)
    groups: dict[Any, list[Group]] = {"destroy": [], "repair": []}
    for asked, group in zip(PROMPTS, answers, strict=True):
        credits = rng.normal(size=N)
        if not groups[asked.role]:
            credits[1] = math.nan
        groups[asked.role].append(Group(asked, group, credits, np.isnan(credits)))
    return groups


def leaves(policy: Policy) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(policy.learners)]


def equal(one: list[np.ndarray], other: list[np.ndarray]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


# --- it writes ------------------------------------------------------------------------------------


def test_a_system_message_and_a_warmer_draw(
    policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = [
        replace(PROMPTS[1], system="word word"), replace(PROMPTS[0], warmer=0.25), PROMPTS[3],
    ]  # fmt: skip
    calls = []

    def stream(model: Any, tokens: Any, n: int, key: Any, how: Any, adapter: Any) -> Any:
        calls.append((how.temperature, [policy._tokenizer.decode(each) for each in tokens]))
        yield dict.fromkeys(range(len(tokens)), ())

    monkeypatch.setattr(module, "stream", stream)
    policy.generate(asked, 1, 7)
    usual = policy._sampling.temperature
    assert [(temperature, len(texts)) for temperature, texts in calls] == [
        (usual, 2),
        (usual + 0.25, 1),
    ]
    tokens = policy._tokenizer.prompt(PROMPTS[1].text, "word word")
    assert calls[0][1][0] == policy._tokenizer.decode(tokens)
    assert len(tokens) > len(policy._tokenizer.prompt(PROMPTS[1].text))


@pytest.mark.long
def test_answers_are_what_the_sampler_draws(policy: Policy, folder: Path) -> None:
    found = policy.generate(PROMPTS, N, 7)
    assert [len(group) for group in found] == [N] * 4
    for role, places in (("repair", [0, 2]), ("destroy", [1, 3])):
        tokens = [policy._tokenizer.prompt(PROMPTS[place].text) for place in places]
        seed = derive(7, "tokens", role)
        key = jax.random.wrap_key_data(jnp.array([seed >> 32, seed & 0xFFFFFFFF], jnp.uint32))
        adapter = policy.learners[role].adapter.scaled(policy.lora.scale)
        drawn = sample(policy.model, tokens, N, key, policy._sampling, adapter)
        for place, samples in zip(places, drawn, strict=True):
            for completion, own in zip(found[place], samples, strict=True):
                assert np.array_equal(completion.tokens, own.tokens)
                assert np.array_equal(completion.logprobs, own.logprobs)
                assert completion.text == policy._tokenizer.decode(own.tokens)
                assert completion.finished == own.finished
    texts = [completion.text for group in found for completion in group]
    programs = [text for text in texts if text.startswith("STRATEGY")]
    assert len(programs) >= 2
    assert parse_response("destroy", programs[0]).strategy.startswith("A ")


def test_all_models_but_those_that_ship_write_prose(policy: Policy, config: Settings) -> None:
    assert policy.writes_prose
    for name in ("embedded", "novice"):
        shipped = config.replace(model=name)
        assert not Policy(shipped, policy.model, policy._tokenizer).writes_prose


@pytest.mark.long
def test_parts_are_the_whole_in_batches(policy: Policy) -> None:
    parts = list(policy.stream(PROMPTS, N, 7))
    assert [sorted(part) for part in parts] == [[1, 3], [0, 2]]  # four rows side by side
    whole = policy.generate(PROMPTS, N, 7)
    for part in parts:
        for place, group in part.items():
            for one, other in zip(group, whole[place], strict=True):
                assert one.text == other.text
                assert np.array_equal(one.logprobs, other.logprobs)


def test_each_role_speaks_with_its_own_adapter(policy: Policy) -> None:
    before = policy.generate(PROMPTS, N, 1)
    learner = policy.learners["repair"]
    policy.learners["repair"] = replace(
        learner, adapter=jax.tree.map(lambda x: x + 1.0, learner.adapter)
    )
    after = policy.generate(PROMPTS, N, 1)
    for place, asked in enumerate(PROMPTS):
        same = all(
            np.array_equal(a.logprobs, b.logprobs)
            for a, b in zip(before[place], after[place], strict=True)
        )
        assert same == (asked.role == "destroy")


def test_adapters_and_samples_follow_from_the_seed(config: Settings, policy: Policy) -> None:
    assert equal(leaves(policy), leaves(Policy.load(config)))
    assert not equal(leaves(policy), leaves(Policy.load(config.replace(seed=1))))
    a, b = (policy.learners[role].adapter.layers[0]["q_proj"].a for role in ("destroy", "repair"))
    assert not np.array_equal(a, b)
    one, two, three = (
        [completion.text for group in policy.generate(PROMPTS, N, seed) for completion in group]
        for seed in (2**63, 2**63, 2**63 + 1)
    )
    assert one == two != three


def test_a_prompt_fits_if_it_leaves_room_for_the_answer(policy: Policy) -> None:
    # 60 tokens less 3 of an answer; the template adds one before the text and three after it.
    length = {n: len(policy._tokenizer.prompt(prompt("repair", n).text)) for n in (50, 60)}
    extra = length[50] - 50
    assert length[60] - 60 == extra
    assert policy.fits(prompt("repair", 57 - extra).text)
    assert not policy.fits(prompt("repair", 58 - extra).text)
    with pytest.raises(InputError, match="exceeds the context of 60"):
        policy.generate([prompt("repair", 58 - extra)], 1, 0)


# --- it learns ------------------------------------------------------------------------------------


@pytest.mark.long
def test_an_update_is_one_step_a_role(policy: Policy, config: Settings) -> None:
    groups = graded(policy)
    trainer = Trainer(policy.model, policy.lora, replace(grpo_of(config), ladder=FEW), 60)
    expected, measured = {}, {}
    for role in ("destroy", "repair"):
        named = [
            TokenGroup(
                "any",
                policy._tokenizer.prompt(group.prompt.text),
                [completion.tokens for completion in group.completions],
                [completion.logprobs for completion in group.completions],
                group.credits,
            )
            for group in groups[role]
        ]
        learner = trainer.init(adapter_key(config.seed, role))
        expected[role], measured[role] = trainer.update(learner, named)
    metrics = policy.update(groups)
    assert equal(leaves(policy), [np.asarray(x) for x in jax.tree.leaves(expected)])
    assert {int(policy.learners[role].steps) for role in ("destroy", "repair")} == {1}
    # What depends on the clock is left out, because equal runs have equal records.
    assert not any("second" in name for name in metrics)
    assert len(metrics) == 2 * (len(measured["repair"]) - 1)
    assert metrics["destroy/samples"] == 3
    assert metrics["destroy/dropped"] == 1
    assert metrics["repair/ratio_mean"] == pytest.approx(1.0, abs=1e-4)
    assert metrics["repair/gradient_norm"] == measured["repair"]["gradient_norm"] > 0


@pytest.mark.long
def test_failures_are_punished_where_that_is_asked_for(config: Settings) -> None:
    strict = Policy.load(config.replace(failure_penalty=0.1))
    metrics = strict.update(graded(strict))
    assert metrics["destroy/samples"] == 4
    assert metrics["destroy/dropped"] == 0


@pytest.mark.long
def test_an_objective_that_is_no_number_ends_the_run_in_one_sentence(policy: Policy) -> None:
    groups = graded(policy)
    before = leaves(policy)
    policy._trainer._weights = jax.tree.map(lambda x: x * jnp.nan, policy._trainer._weights)
    with pytest.raises(NotFinite, match=r"group destroy 2 \(simplification\).*lower learning_rate"):
        policy.update(groups)
    assert equal(leaves(policy), before)


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [("RESOURCE_EXHAUSTED: Out of memory", OutOfMemory, "not enough memory"),
     ("INTERNAL: no", jax.errors.JaxRuntimeError, "INTERNAL: no")],
)  # fmt: skip
def test_a_full_device_is_reported_with_what_helps(
    policy: Policy, monkeypatch: pytest.MonkeyPatch, code: str, kind: Any, words: str
) -> None:
    def full(*args: Any) -> Any:
        raise jax.errors.JaxRuntimeError(code)

    known = kind is OutOfMemory
    monkeypatch.setattr(module, "stream", full)
    with pytest.raises(kind, match=words + (".*sample_rows or max_new_tokens" if known else "")):
        policy.generate(PROMPTS, N, 0)
    monkeypatch.setattr(policy._trainer, "update", full)
    with pytest.raises(kind, match=words + (".*micro_batch or max_new_tokens" if known else "")):
        policy.update({"destroy": [], "repair": []})


def test_learners_are_kept_by_number(policy: Policy, config: Settings, tmp_path: Path) -> None:
    policy.save(tmp_path, 1)
    first = leaves(policy)
    policy.update(graded(policy))
    policy.save(tmp_path, 2)
    second = leaves(policy)
    assert not equal(first, second)
    fresh = Policy.load(config.replace(seed=5))
    fresh.restore(tmp_path, 2)
    assert equal(leaves(fresh), second)
    fresh.restore(tmp_path, 1)  # and what came later is gone
    assert equal(leaves(fresh), first)
    with pytest.raises(InputError, match="has no checkpoint 2; there are 1"):
        fresh.restore(tmp_path, 2)


def test_adapters_leave_as_peft_folders(policy: Policy, config: Settings, tmp_path: Path) -> None:
    policy.update(graded(policy))
    policy.save(tmp_path / "checkpoints", 3)
    export_adapters(config, tmp_path / "checkpoints", 3, tmp_path / "out")
    shape = QwenConfig.from_json(config.generator.model)
    for role in ("destroy", "repair"):
        adapter, lora = import_peft(tmp_path / "out" / role, shape)
        assert (lora.rank, lora.alpha, set(lora.targets)) == (2, 32.0, {"q_proj", "v_proj"})
        own = policy.learners[role].adapter
        assert equal(*([np.asarray(x) for x in jax.tree.leaves(each)] for each in (adapter, own)))
    with pytest.raises(InputError, match="exists already"):
        export_adapters(config, tmp_path / "checkpoints", 3, tmp_path / "out")


# --- settings and folders -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("problem", "preset", "parameters"),
    [
        ("tsp", "paper-tsp", 3_932_160),  # 8 of 32 layers have the matrices that the paper names
        ("tsp", "standard", 11_796_480),
        ("cvrp", "paper-cvrp", 29_097_984),
        ("cvrp", "standard", 36_962_304),
    ],
)
def test_adapters_of_the_9b(problem: str, preset: str, parameters: int) -> None:
    lora = lora_of(presets.settings(problem, preset, model="folder"))
    adapter = jax.eval_shape(lambda: init_adapter(jax.random.key(0), lora, named_config("9B")))
    assert sum(leaf.size for leaf in jax.tree.leaves(adapter)) == parameters


def test_settings_become_those_of_the_parts(policy: Policy) -> None:
    for name in ("mixers", "mixers+mlp"):
        assert lora_of(Settings.make(lora_targets=name)).targets == TARGET_SETS[name]
    assert lora_of(Settings.make(lora_targets="out_proj,up_proj")).targets == (
        "out_proj",
        "up_proj",
    )
    with pytest.raises(InputError, match="'atention' is not a target"):
        lora_of(Settings.make(lora_targets="atention"))
    own = grpo_of(Settings.make(advantage="numpy:sign"))
    assert own.advantage is np.sign
    with pytest.raises(InputError, match=r"cannot import advantage 'numpy:nothing'"):
        grpo_of(Settings.make(advantage="numpy:nothing"))
    for name, fields in (("ratio", RATIOS), ("advantage", ADVANTAGES)):
        assert set(choices(FIELDS[name].info)) - {"package.module:NAME"} == set(fields)
    with pytest.raises(InputError, match="the model's context of 1024 leaves nothing"):
        Policy(Settings.make(max_new_tokens=1024), policy.model, policy._tokenizer)


def test_models_that_are_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="no such folder"):
        model_folder(str(tmp_path / "none"))
    with pytest.raises(InputError, match=r"has no tokenizer\.json"):
        Policy.load(Settings.make(generator="model", model=str(tmp_path)))
    with pytest.raises(InputError, match=r"novise: no such folder; name .* embedded or novice$"):
        model_folder("novise")
    monkeypatch.setitem(__import__("sys").modules, "spo_jax.rl.embedded", None)
    for name in ("embedded", "novice"):
        with pytest.raises(InputError, match=f"no {name} model"):
            model_folder(name)


def test_a_fingerprint_is_of_what_answers_depend_on(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    (copy / "README.md").write_text("mine")
    first = fingerprint(folder)
    assert fingerprint(copy) == first
    settings = json.loads((copy / "tokenizer_config.json").read_text())
    (copy / "tokenizer_config.json").write_text(json.dumps({**settings, "chat_template": "x"}))
    second = fingerprint(copy)
    assert (second["weights"], second["tokenizer"]) != tuple(first.values())
    assert second["weights"] == first["weights"]
    with open(copy / "model.safetensors", "r+b") as file:
        file.seek(-1, 2)
        file.write(b"\x7f")
    assert fingerprint(copy)["weights"] != first["weights"]


# --- JAX ------------------------------------------------------------------------------------------


@pytest.fixture
def untouched(monkeypatch: pytest.MonkeyPatch) -> Any:
    """JAX's settings of the cache, as they are without anybody's wishes, and put back."""
    names = [name for name in jax.config.values if "compilation_cache" in name]
    names += [name for name in jax.config.values if "persistent_cache" in name]
    before = {name: jax.config.values[name] for name in names}
    jax.config.update("jax_enable_compilation_cache", True)
    jax.config.update("jax_compilation_cache_dir", None)
    yield
    for name, value in before.items():
        jax.config.update(name, value)


def test_compiled_programs_are_kept_where_they_can_be(untouched: None, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    words = keep_compiled(tmp_path / "file" / "compiled")
    assert words.startswith("Compiled programs are not cached, so every start compiles: ")
    assert jax.config.values["jax_compilation_cache_dir"] is None
    assert keep_compiled(tmp_path / "compiled") == ""
    assert jax.config.values["jax_compilation_cache_dir"] == str(tmp_path / "compiled")
    assert keep_compiled(tmp_path / "other") == ""  # the first one stays
    assert jax.config.values["jax_compilation_cache_dir"] == str(tmp_path / "compiled")


def test_nothing_is_kept_against_the_users_wish(untouched: None, tmp_path: Path) -> None:
    jax.config.update("jax_enable_compilation_cache", False)
    assert keep_compiled(tmp_path / "compiled") == ""
    assert not (tmp_path / "compiled").exists()


def test_devices_have_a_name() -> None:
    assert devices() == f"{len(jax.devices())} x cpu"
