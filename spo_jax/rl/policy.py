"""The policy: samples programs with two adapters of one frozen base, and updates the adapters.

It is generator and updater in one, so each round samples from the updated adapters. Its random keys
derive from the given seeds, and the adapters are its only state between rounds. So a restored run
continues exactly if the backend is reproducible: see `backend.repeats`.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from itertools import product
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from spo_jax.config import Settings
from spo_jax.config.updates import UPDATES
from spo_jax.constants import OWN_MODELS
from spo_jax.errors import InputError, SpoError
from spo_jax.generator import Streaming
from spo_jax.program import ROLES, Completion, Group, Prompt, Role
from spo_jax.rl.buckets import FEW, FINE, LARGE, Ladder
from spo_jax.rl.checkpoint import Checkpoints
from spo_jax.rl.lora import TARGET_SETS, LoraConfig, init_adapter, present
from spo_jax.rl.peft import export_peft
from spo_jax.rl.qwen import Qwen, QwenConfig, gguf, load_pretrained
from spo_jax.rl.sampling import Sample, SamplingConfig, stream
from spo_jax.rl.tensor_files import fresh_folder, read_json
from spo_jax.rl.tokens import Tokenizer
from spo_jax.rl.updates.batches import TokenGroup
from spo_jax.rl.updates.grpo import ADVANTAGES
from spo_jax.rl.updates.learning import (
    adapter_key,
    learning_of,
    objective_of,
    stream_key,
)
from spo_jax.rl.updates.trainer import AdapterTrainer, Learner, NotFinite, make_optimizer

# The settings that an answer depends on, by their label.
FILES = {
    "weights": ("config.json", "*.safetensors"),
    "tokenizer": (
        "tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json"
    ),
}  # fmt: skip
PROBLEMS = "spo_problems"  # key of config.json: the problems whose programs a model can write
# Parameters of a model with so many layers that a shape takes longer to compile than to compute:
# with 1.5 B on the machine of an H100 12 s for the sampler, 20 s for the update.
MANY = 3 * 10**8
CLOCKED = "tokens_per_second"  # the only metric of an update that differs between equal updates


class OutOfMemory(SpoError, MemoryError):
    """The device's memory is exhausted; earlier checkpoints stay valid."""


@contextmanager
def _enough_memory(what: str, settings: str) -> Iterator[None]:
    """One sentence for XLA's out-of-memory error."""
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        raise OutOfMemory(
            f"the device has not enough memory to {what}: start a new run with a smaller "
            f"{settings}; finished rounds of this one are kept, for a larger device"
        ) from error


class Policy(Streaming):
    """Samples programs with the adapter of their role, and updates both adapters.

    config: of the run. model: the base of both roles. Prompts go through the tokenizer's chat
    template. Raises InputError for settings that do not fit the model or the adapters.
    """

    def __init__(self, config: Settings, model: Qwen, tokenizer: Tokenizer) -> None:
        context = _context(config, model.config)
        # Those of the package know the forms of SPO's prompts alone.
        self.writes_prose = config.generator.model not in OWN_MODELS
        self.model, self._tokenizer = model, tokenizer
        self._room = context - config.generator.max_new_tokens
        self._prompt_tokens = lru_cache(4096)(tokenizer.prompt)
        if config.generator.mend:  # a template that takes no further turns is refused now
            tokenizer.prompt("", turns=[("", "")])
        self._sampling = SamplingConfig(
            temperature=config.generator.temperature,
            top_p=config.generator.top_p,
            max_new_tokens=config.generator.max_new_tokens,
            stop_tokens=tokenizer.stops,
            context=context,
            max_rows=config.generator.sample_rows,
            ladder=ladder_of(model),
        )
        self.lora = lora_of(config)
        self._learning = learning_of(config, model, self.lora, ladder_of(model), context)
        self._learns = config.learning.update in UPDATES
        self._responses = config.search.responses
        self.learners: dict[Role, Learner] = {
            role: self._trainer.init(adapter_key(config.seed, role)) for role in ROLES
        }

    @property
    def _trainer(self) -> AdapterTrainer:
        return self._learning.trainer

    @classmethod
    def load(cls, config: Settings) -> "Policy":
        """The policy of a run's model at the run's start.

        A CPU computes in float32, where it is faster than in bfloat16; other devices as stored.
        Raises InputError for a folder without a suitable model or tokenizer.
        """
        folder = model_folder(config.generator.model)
        tokenizer = Tokenizer.load(folder)
        on_cpu = jax.default_backend() == "cpu"
        model = load_pretrained(folder, jnp.float32 if on_cpu else None)
        model.remat = not on_cpu  # models small enough for a CPU's speed fit its memory
        return cls(config, model, tokenizer)

    # --- sampling ---------------------------------------------------------------------------------

    def open(self, folder: Path, remark: Callable[[str], None]) -> None:
        """Begin to compile the first update, beside the first answers."""
        if self._learns:
            self._trainer.prepare(self.learners["repair"], self._responses)

    def fits(self, text: str) -> bool:
        """Whether a prompt leaves room for an answer of maximum length."""
        return len(self._prompt_tokens(text)) <= self._room

    def takes(self, prompt: Prompt) -> bool:
        return len(self.tokens_of(prompt)) <= self._room

    def tokens_of(self, prompt: Prompt) -> np.ndarray:
        return self._prompt_tokens(prompt.text, prompt.system, prompt.turns)

    def stream(
        self, prompts: Sequence[Prompt], n: int, seed: int
    ) -> Iterator[dict[int, tuple[Completion, ...]]]:
        """`n` completions of each prompt, with their tokens and log-probabilities, batch by batch.

        Deterministic in seed, prompts and adapters. Raises InputError for a prompt that does not
        fit, and OutOfMemory.
        """
        for role, warmer in product(ROLES, sorted({prompt.warmer for prompt in prompts})):
            kind = (role, warmer)
            places = [i for i, each in enumerate(prompts) if (each.role, each.warmer) == kind]
            if not places:
                continue
            sampling = replace(self._sampling, temperature=self._sampling.temperature + warmer)
            asked = [prompts[place] for place in places]
            tokens = [self.tokens_of(prompt) for prompt in asked]
            adapter = self.learners[role].adapter.scaled(self.lora.scale)
            key = stream_key(seed, "tokens", role)
            with _enough_memory("sample", "sample_rows or max_new_tokens"):
                for part in stream(self.model, tokens, n, key, sampling, adapter):
                    yield {
                        places[i]: tuple(map(self._completion, samples))
                        for i, samples in part.items()
                    }

    def _completion(self, sample: Sample) -> Completion:
        text = self._tokenizer.decode(sample.tokens)
        return Completion(text, sample.tokens, sample.logprobs, finished=sample.finished)

    # --- learning ---------------------------------------------------------------------------------

    def update(self, groups: Mapping[Role, Sequence[Group]]) -> dict[str, float]:
        """What the run's update makes of the groups of each role; its metrics, by role.

        Raises NotFinite for a non-finite objective, and OutOfMemory; earlier checkpoints stay
        valid.
        """
        metrics: dict[str, float] = {}
        for role in ROLES:
            named = [self._group(f"{role} {i + 1}", group) for i, group in enumerate(groups[role])]
            try:
                with _enough_memory("learn", "micro_batch or max_new_tokens"):
                    learner, measured = self._learning.update(role, self.learners[role], named)
                    self.learners[role] = learner
            except NotFinite as error:
                what = str(error).partition(";")[0]
                raise NotFinite(
                    f"{what}; finished rounds are kept, but resuming from them would end here "
                    "again: start a new run with a lower learning_rate"
                ) from None
            metrics |= {f"{role}/{k}": value for k, value in measured.items() if k != CLOCKED}
        return metrics

    def advantages(self, groups: Mapping[Role, Sequence[Group]]) -> dict[Role, list[np.ndarray]]:
        """[B] float64 of each group as `update` has them, NaN for samples that are left out."""
        return {
            role: [self._learning.advantages(self._group(role, g)) for g in groups[role]]
            for role in ROLES
        }

    def _group(self, name: str, group: Group) -> TokenGroup:
        return TokenGroup(
            name=f"{name} ({group.prompt.form})",
            prompt=self.tokens_of(group.prompt),
            completions=[completion.tokens for completion in group.completions],
            logprobs=[completion.logprobs for completion in group.completions],
            credits=group.credits,
            failed=group.failed,
            prompts=[self.tokens_of(prompt) for prompt in group.prompts],
            by_pair=group.by_pair,
            others=group.others,
        )

    # --- checkpoints ------------------------------------------------------------------------------

    def save(self, folder: Path, number: int) -> None:
        """Save both learners as checkpoint `number`, on the disk when this returns."""
        self._learning.save(folder.parent, number)
        with Checkpoints(folder) as checkpoints:
            checkpoints.save(number, self.learners)

    def restore(self, folder: Path, number: int) -> None:
        """Restore both learners from checkpoint `number`; delete later ones."""
        self._learning.restore(folder.parent, number)
        with Checkpoints(folder) as checkpoints:
            self.learners = checkpoints.restore(number, like=self.learners)
            checkpoints.discard_after(number)


# --- settings -------------------------------------------------------------------------------------


def require_fitting(config: Settings) -> None:
    """Raises InputError where a run's settings do not fit its model, as `Policy` does."""
    shape = QwenConfig.from_json(model_folder(config.generator.model))
    _context(config, shape)
    present(lora_of(config), shape)
    _ = ADVANTAGES[config.learning.advantage]


def _context(config: Settings, shape: QwenConfig) -> int:
    """The longest prompt and answer together. Raises InputError where no prompt has room."""
    context = min(config.generator.context, shape.max_position_embeddings)
    if config.generator.max_new_tokens >= context:
        raise InputError(
            f"max_new_tokens is {config.generator.max_new_tokens}; the model's context of "
            f"{context} leaves nothing for a prompt"
        )
    return context


def lora_of(config: Settings) -> LoraConfig:
    """The adapters of a run. Raises InputError for an unknown target."""
    names = tuple(name.strip() for name in config.learning.lora_targets.split(","))
    targets = TARGET_SETS.get(config.learning.lora_targets, names)
    return LoraConfig(config.learning.lora_rank, config.learning.lora_alpha, targets)


def ladder_of(model: Qwen) -> Ladder:
    """The lengths that a model's programs are compiled for on this device."""
    if jax.default_backend() == "cpu":
        return FEW
    size = sum(leaf.size for leaf in jax.tree.leaves(nnx.state(model)))
    return LARGE if size >= MANY else FINE


# --- folders --------------------------------------------------------------------------------------


def model_folder(name: str) -> Path:
    """The folder of a model: one of the package, by its name, a named folder, or a GGUF file's.

    Raises InputError if it is missing, and MissingExtra for a GGUF file without the package gguf.
    """
    if name in OWN_MODELS:
        try:
            from spo_jax.rl.embedded import FOLDERS
        except ImportError:
            raise InputError(
                f"this installation has no {name} model; name the folder of one with --model"
            ) from None
        return FOLDERS[name]
    folder = Path(name)
    if folder.suffix == gguf.SUFFIX and not folder.is_dir():
        return gguf.folder_of(folder)
    if not folder.is_dir():
        raise InputError(
            f"model {name}: no such folder; name the folder of a Qwen, its GGUF file, "
            f"or {' or '.join(OWN_MODELS)}"
        )
    return folder


def trained_on(name: str) -> tuple[str, ...]:
    """The only problems that a model knows, as its config.json says; () for one that says nothing.

    Raises InputError as `model_folder`.
    """
    problems = read_json(model_folder(name) / "config.json").get(PROBLEMS)
    return tuple(map(str, problems)) if isinstance(problems, list) else ()


def fingerprint(folder: str | Path) -> dict[str, str]:
    """Hex digests of the weights and of the tokenizer in a folder."""
    found = {}
    for word, patterns in FILES.items():
        digest = hashlib.blake2b(digest_size=16)
        for path in sorted(path for pattern in patterns for path in Path(folder).glob(pattern)):
            with open(path, "rb") as file:
                own = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16))
            digest.update(path.name.encode() + b"\0" + own.digest())
        found[word] = digest.hexdigest()
    return found


def export_adapters(config: Settings, checkpoints: Path, number: int, out: str | Path) -> None:
    """Write OUT/destroy and OUT/repair, the adapters after a round, as PEFT folders.

    Raises InputError if OUT exists and is not empty, or the checkpoint is missing.
    """
    shape, lora = QwenConfig.from_json(model_folder(config.generator.model)), lora_of(config)
    with fresh_folder(out) as fresh, Checkpoints(checkpoints) as kept:
        learners = kept.restore(number, like=_abstract(config, shape))
        for role, learner in learners.items():
            export_peft(learner.adapter, lora, shape, fresh / role, base=config.generator.model)


def _abstract(config: Settings, shape: QwenConfig) -> dict[Role, Learner]:
    """The shapes of the arrays that `Policy.save` writes."""

    def learner() -> Learner:
        adapter = init_adapter(jax.random.key(0), lora_of(config), shape)
        return Learner(adapter, make_optimizer(objective_of(config)).init(adapter), jnp.int32(0))

    return {role: jax.eval_shape(learner) for role in ROLES}
