"""The policy that samples from a vLLM server and updates its adapters with the JAX trainer.

Design decisions:

- The server's log-probabilities are at temperature 1, the objective's at the sampling temperature
  and before top-p, and the two programs round differently. The update changes the same adapters
  that sampled, so the trainer's own log-probabilities replace the sampler's
  (`GrpoConfig.on_policy`). The server's numbers are for metrics and the probe. With
  `importance_cap` they are at the sampling temperature, and nothing is cut off (top-p 1), so that
  the weights compare probabilities of the distribution that was sampled.
- Every round's adapters have new names and folders; the probe checks them before the first prompt.
- A server is not deterministic: a repeated round may sample different answers. Finished rounds keep
  theirs. So requests have no seeds, which would cost vLLM's fast sampler.
- A server that rested starts as soon as the adapters are there, beside the round's cross-play.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import jax
import numpy as np

from spo_jax.config import Settings
from spo_jax.errors import InputError
from spo_jax.program import ROLES, Completion, Group, Prompt, Role
from spo_jax.rl.policy import Policy, model_folder
from spo_jax.rl.qwen import Qwen
from spo_jax.rl.qwen.config import FULL, QwenConfig
from spo_jax.rl.tokens import Tokenizer
from spo_jax.rl.vllm.adapters import Versions
from spo_jax.rl.vllm.cards import Peak, check_given_back
from spo_jax.rl.vllm.client import Client
from spo_jax.rl.vllm.probe import Expected, Probe
from spo_jax.rl.vllm.replies import Sampling
from spo_jax.rl.vllm.sampler import Sampler
from spo_jax.rl.vllm.server import LOG, Attached, Server, Started


def require_weighable(config: Settings) -> None:
    """Raises InputError if the weights of `importance_cap` would not be of what was sampled."""
    if config.vllm.importance_cap is None:
        return
    if config.generator.top_p != 1:
        raise InputError(
            "importance_cap is given, which weighs answers by their probabilities without top-p, "
            f"and top_p is {config.generator.top_p:g}; use --top-p 1, or leave out importance_cap"
        )
    if config.learning.mended == "sample":
        raise InputError(
            "importance_cap is given, and mended is sample, whose answers are sampled at "
            "temperature 0; use --mended inherit, or leave out importance_cap"
        )


class VllmPolicy(Policy):
    """A `Policy` that samples from a server. Call `open` first, `close` at the end."""

    def __init__(self, config: Settings, model: Qwen, tokenizer: Tokenizer) -> None:
        super().__init__(config, model, tokenizer)
        self._config, self._shape = config, model.config
        self._probe = Probe.of(tokenizer.encode, self._room, config.vllm.logprobs_mode)
        self._round = 0
        self._names: dict[Role, tuple[str, Path]] = {}
        self._expected: dict[str, Expected] = {}  # by the names of the current adapters
        self._before: dict[str, Expected] = {}  # of the adapters that they replaced
        self._remark: Callable[[str], None] = lambda line: None
        self._versions: Versions | None = None
        self._sampler: Sampler | None = None
        self._measured: dict[str, float] = {}

    @classmethod
    def load(cls, config: Settings) -> Policy:
        """As `Policy.load`. Raises InputError if server and trainer cannot take turns, or if the
        weights of `importance_cap` would not be of what was sampled.
        """
        require_weighable(config)
        if config.vllm.residency != "both":
            check_given_back()
        return super().load(config)

    def open(self, folder: Path, remark: Callable[[str], None]) -> None:
        """Keep adapters and the server's output in a run's folder. The server starts at the first
        request.
        """
        config = self._config
        server: Server
        if config.vllm.url is not None:
            server = Attached(config.vllm.url)
        else:
            where = model_folder(config.generator.model)
            server = Started(config, where, folder / LOG, self._sampling.context)
        self._remark = remark
        self._versions = Versions(folder, self.lora, self._shape)
        self._sampler = Sampler(config, server, states_of(self._shape), self._check, remark)
        self._base_expected = self._probe.expect(self._trainer, self.learners["destroy"], base=True)
        self._publish()
        self._leave()

    def close(self) -> None:
        """End our own server; leave another one as it was."""
        if self._sampler is not None:
            self._leave()
            self._sampler.close()
            assert self._versions is not None
            self._versions.tidy(self._names)  # the last round's adapters were never used

    # --- sampling ---------------------------------------------------------------------------------

    def stream(
        self, prompts: Sequence[Prompt], n: int, seed: int
    ) -> Iterator[dict[int, tuple[Completion, ...]]]:
        """The results of `generate`, in parts of about `sample_rows` answers, in order.

        Empty parts come while the next one is not ready. Raises InputError if the server fails,
        refuses, or has other weights than the trainer. `seed` has no effect: see `Client.complete`.
        """
        config, sampler = self._config, self._opened()
        how = Sampling(
            n=n,
            temperature=config.generator.temperature,
            top_p=config.generator.top_p,
            max_new_tokens=config.generator.max_new_tokens,
            stop_tokens=self._tokenizer.stops,
            timeout=config.endpoint.request_timeout,
        )

        tokens = [self.tokens_of(each) for each in prompts]

        def ask(place: int, client: Client) -> tuple[Completion, ...]:
            prompt = prompts[place]
            with_it = replace(how, temperature=how.temperature + prompt.warmer)
            name = self._names[prompt.role][0]
            return client.complete(name, tokens[place], with_it, self._tokenizer)

        work = [partial(ask, place) for place in range(len(prompts))]
        longest = max(map(len, tokens), default=0) + how.max_new_tokens

        size = max(1, config.generator.sample_rows // n)
        part: dict[int, tuple[Completion, ...]] = {}
        place = 0
        with self._watched("sampling"):
            for group in sampler.each(work, n, longest):
                if group is None:
                    yield {}
                    continue
                part[place] = group
                place += 1
                if len(part) == size or place == len(prompts):
                    yield part
                    part = {}

    # --- learning ---------------------------------------------------------------------------------

    def update(self, groups: Mapping[Role, Sequence[Group]]) -> dict[str, float]:
        """As `Policy.update`, while the server rests; then writes the new adapters for it.

        Metrics also have the drift of the server's log-probabilities, the probe's results, and the
        memory used, in GB, if known.
        """
        self._opened().rest()
        with self._watched("update"):
            self._trainer.to_devices()
            metrics = super().update(groups)
            self._round += 1
            self._publish()
            self._leave()
        self._warn(metrics)
        measured, self._measured = self._measured, {}
        if self._config.search.minutes is not None or self._round < self._config.search.rounds:
            self._opened().begin()  # beside what is left of the round
        return metrics | measured

    def save(self, folder: Path, number: int) -> None:
        super().save(folder, number)
        self._round = number

    def restore(self, folder: Path, number: int) -> None:
        super().restore(folder, number)
        self._round = number
        if self._versions is not None:
            self._trainer.to_devices()
            self._publish()
            self._leave()

    # --- inside -----------------------------------------------------------------------------------

    def _opened(self) -> Sampler:
        if self._sampler is None:
            raise InputError("the policy has no folder for its adapters yet; call open first")
        return self._sampler

    def _publish(self) -> None:
        """Make the learners' adapters the ones that the server serves."""
        assert self._versions is not None
        before = {role: self._expected[name] for role, (name, _) in self._names.items()}
        self._names = self._versions.publish(self.learners, self._round)
        self._expected = {
            name: self._probe.expect(self._trainer, self.learners[role])
            for role, (name, _) in self._names.items()
        }
        self._before = {self._names[role][0]: expected for role, expected in before.items()}
        self._opened().want(dict(self._names.values()), self._round)

    def _leave(self) -> None:
        """Move the base to host memory if the server needs the card."""
        if self._config.vllm.residency != "both":
            self._trainer.to_host()

    def _check(self, client: Client, base: str) -> None:
        config = self._config
        found = self._probe.check(
            client,
            (base, self._base_expected),
            self._expected,
            self._before,
            config.vllm.probe_tolerance,
            config.endpoint.request_timeout,
        )
        noted = self._measured
        noted["probe"] = max(found.apart, noted.get("probe", 0.0))
        if not np.isnan(found.share):
            noted["probe_share"] = min(found.share, noted.get("probe_share", np.inf))
        assert self._versions is not None
        self._versions.tidy(self._names)

    def _warn(self, metrics: Mapping[str, float]) -> None:
        config = self._config
        limit = config.vllm.drift_warning
        for role in ROLES:
            if (mean := metrics.get(f"{role}/drift_mean", 0.0)) > limit:
                self._remark(
                    f"Warning: the vLLM server's log-probabilities of {role} answers are "
                    f"{mean:.3g} nats per token from the trainer's on average, more than {limit:g} "
                    "(drift_warning)"
                )

    @contextmanager
    def _watched(self, phase: str) -> Iterator[None]:
        """Record a phase's peak memory: of all processes on the trainer's card, and of the trainer
        in the whole run so far, if JAX counts it.
        """
        with Peak() as peak:
            yield
        stats = [device.memory_stats() or {} for device in jax.local_devices()]
        most = max((s.get("peak_bytes_in_use", 0) for s in stats), default=0)
        for name, value in (f"{phase}_card", peak.most), ("trainer", most):
            if value:
                key = f"memory/{name}"
                self._measured[key] = max(value / 1e9, self._measured.get(key, 0.0))


def states_of(shape: QwenConfig) -> int:
    """Blocks of a server's cache that hold the delta nets' states of one answer: one for as many
    layers as attend.
    """
    full = shape.layer_types.count(FULL)
    return -(-(shape.num_layers - full) // max(full, 1))
