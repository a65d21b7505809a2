"""Converts groups of samples to arrays of bounded shapes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from spo_jax.errors import InputError
from spo_jax.rl.buckets import Ladder, pad_left, pad_right
from spo_jax.rl.sharding import ROWS
from spo_jax.rl.updates.grpo import GrpoConfig, advantages
from spo_jax.rl.updates.samples import Batch as Batch
from spo_jax.rl.updates.samples import TokenGroup as TokenGroup
from spo_jax.rl.updates.samples import WeightedSample as WeightedSample


@dataclass(frozen=True)
class Selection:
    """The samples with an advantage, and counts.

    samples: those with a non-zero advantage, by group, or alone where a group's samples answered
    different prompts; all with an advantage where the objective compares with the base, which pulls
    at them too. groups: number with a usable sample.
    usable: samples with a credit and log-probabilities. dropped: the others. largest: samples of
    the largest group, whatever they are worth.
    """

    samples: tuple[tuple[WeightedSample, ...], ...]
    groups: int
    usable: int
    dropped: int
    largest: int


def advantages_of(group: TokenGroup, config: GrpoConfig) -> np.ndarray:
    """[B] float64, NaN for samples that are left out."""
    failed = np.zeros(len(group.credits), bool) if group.failed is None else group.failed
    return advantages(
        group.credits, failed, group.usable(), config, by_pair=group.by_pair, others=group.others
    )


def select(groups: Sequence[TokenGroup], config: GrpoConfig, context: int) -> Selection:
    """Advantages and weights of eq:grpo: the mean over groups of the mean over a group's samples,
    or the mean over samples.

    Raises InputError for a usable sample longer than `context` tokens with its prompt.
    """
    found = [advantages_of(group, config) for group in groups]
    counted = sum(bool(np.isfinite(values).any()) for values in found)
    usable = sum(int(np.isfinite(values).sum()) for values in found)
    chosen = []
    for index, (group, values) in enumerate(zip(groups, found, strict=True)):
        size = int(np.isfinite(values).sum())
        alike = size * counted if config.weights == "groups" else usable
        rows = []
        moved = np.isfinite(values) if config.refers else np.nan_to_num(values)
        for i in np.flatnonzero(moved).tolist():
            prompt = group.prompt_of(i)
            length = len(prompt) + len(group.completions[i])
            if length > context:
                raise InputError(
                    f"group {group.name}: sample {i} is {length} tokens long with its prompt; "
                    f"the context is {context}"
                )
            rows.append(
                WeightedSample(
                    index, prompt, group.completions[i], group.logprobs[i],
                    float(values[i]), 1.0 / alike,
                )
            )  # fmt: skip
        apart = [[row] for row in rows] if len(group.prompts) else [rows] if rows else []
        chosen += [tuple(each) for each in apart]
    sizes = [len(group.completions) for group in groups]
    return Selection(tuple(chosen), counted, usable, sum(sizes) - usable, max(sizes, default=0))


Rows = tuple[WeightedSample | None, ...]  # a batch's rows in order, K times G m; None: padding


def plan(
    selection: Selection, config: GrpoConfig, mesh: Mesh | None = None
) -> Iterator[tuple[Batch, Rows]]:
    """The batches of an update on their devices, `config.micro_batch` rows per device at a time.

    By default each row has its own prompt, and rows of similar length share a batch. With shared
    prompts, a batch has one group per device and K rounds of rows; on some ladders all have
    as many rows, whatever their groups lost.
    """
    width, devices = config.micro_batch, mesh.size if mesh else 1
    if config.share_prompts:
        groups = sorted(selection.samples, key=_longest)
        largest = selection.largest if config.ladder.alike else 0
        if largest:  # rounds of equal size
            width = -(-largest // -(-largest // width))
        for start in range(0, len(groups), devices):
            some = groups[start : start + devices]
            yield batch_of(some, devices, width, largest, config.ladder, mesh)
        return
    rows = sorted((row for group in selection.samples for row in group), key=_length)
    for start in range(0, len(rows), width * devices):
        # K = 1 and m = 1: every row is a group of one.
        single = [(row,) for row in rows[start : start + width * devices]]
        yield batch_of(single, width * devices, 1, 0, config.ladder, mesh)


def _length(sample: WeightedSample) -> int:
    return len(sample.prompt) + len(sample.tokens)


def _longest(group: tuple[WeightedSample, ...]) -> tuple[int, int]:
    return len(group[0].prompt), max(len(sample.tokens) for sample in group)


def batch_of(
    groups: Sequence[tuple[WeightedSample, ...]],
    count: int,
    width: int,
    largest: int,
    ladder: Ladder,
    mesh: Mesh | None,
) -> tuple[Batch, Rows]:
    """`groups`, padded to `count`, as rounds of `count * width` rows; as many rounds as the largest
    group, or a group of `largest` samples, needs.
    """
    rounds = max(-(-max(len(group), largest) // width) for group in groups)
    filler = groups[0][0]
    missing = count - len(groups)
    prompts = [group[0].prompt for group in groups] + [filler.prompt[:1]] * missing
    rows: list[WeightedSample | None] = []
    for k in range(rounds):
        for group in [*groups, *[()] * missing]:
            part = group[k * width : (k + 1) * width]
            rows += [*part, *[None] * (width - len(part))]
    size = ladder.of_completion(max(len(row.tokens) for row in rows if row))
    tokens, mask = pad_right([row.tokens if row else filler.tokens[:1] for row in rows], size)
    logprobs = np.zeros(tokens.shape, np.float32)
    for i, row in enumerate(rows):
        if row:
            logprobs[i, : len(row.logprobs)] = row.logprobs
    padded, prompt_mask = pad_left(prompts, ladder.of_prompt(max(map(len, prompts))))
    advantage = np.array([row.advantage if row else 0.0 for row in rows], np.float32)
    weight = np.array([row.weight if row else 0.0 for row in rows], np.float32)

    def by_round(values: np.ndarray) -> jax.Array:
        values = values.reshape(rounds, count * width, *values.shape[1:])
        return _place(values, mesh, P(None, ROWS))

    batch = Batch(
        _place(padded, mesh, P(ROWS)),
        _place(prompt_mask, mesh, P(ROWS)),
        *map(by_round, (tokens, mask, logprobs, advantage, weight)),
    )
    return batch, tuple(rows)


def _place(values: np.ndarray, mesh: Mesh | None, spec: P) -> jax.Array:
    return (
        jnp.asarray(values) if mesh is None else jax.device_put(values, NamedSharding(mesh, spec))
    )
