"""The updates that train a run's model, by name, and the settings that are their own.

What they share is a run's: rates, adapters, micro-batches. A number says whose it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from spo_jax.config.fields import with_settings
from spo_jax.errors import InputError

GRPO, CALM, EVOTUNE = "grpo", "calm", "evotune"


@dataclass(frozen=True)
class Calm:
    """Of CALM (Huang et al. 2025, arXiv 2505.12285): a reward by tiers, relative to the parents.

    invalid: r_invalid, of an answer without a valid program; the paper has it in (-1, 0).
    copy: alpha_1, the share of r_invalid for an answer as good as a parent, thus a copy.
    worse: alpha_2, the share for one below the best parent, times the relative difference.
    kl: beta, the weight of the divergence from the base.
    The values of the first three are ours, since the paper's could not be had; they keep its order
    of tiers. kl is that of Shao et al. (2024), whose objective the paper takes.
    """

    invalid: Annotated[float, Field(ge=-0.999, le=-0.001)] = -0.8
    copy: Annotated[float, Field(ge=0, le=1)] = 0.75
    worse: Annotated[float, Field(ge=0, le=1)] = 0.5
    kl: Annotated[float, Field(ge=0, le=1000)] = 0.04


@dataclass(frozen=True)
class EvoTune:
    """Of EvoTune (Surina et al. 2025, arXiv 2504.05108): DPO on pairs of answers to one prompt.

    every: rounds from training to training; 0: a sixth of the run's, at least 1 (2,701 prompts and
        400 there). beta, divergence, epochs, batch (2 x 16 pairs a step): as released.
    percentile: the share of the valid answers since the last training, in per cent, whose score is
        good enough for the better one of a pair.
    """

    every: Annotated[int, Field(ge=0, le=100_000)] = 0
    beta: Annotated[float, Field(ge=1e-6, le=1e6)] = 0.4
    divergence: Literal["forward-kl", "reverse-kl", "js"] = "forward-kl"
    percentile: Annotated[float, Field(ge=0, le=100)] = 70.0
    epochs: Annotated[int, Field(ge=1, le=1000)] = 2
    batch: Annotated[int, Field(ge=1, le=100_000)] = 32


@dataclass(frozen=True)
class Grpo:
    """The paper's; its numbers are settings of the run."""


UPDATES: dict[str, Any] = {GRPO: Grpo(), CALM: Calm(), EVOTUNE: EvoTune()}


def settings_of(update: str, given: Mapping[str, Any]) -> Any:
    """The own settings of an update in UPDATES, with those given.

    Raises InputError for one that it has not, or for an unlawful value.
    """
    if given and update not in (CALM, EVOTUNE):
        raise InputError(
            f"update_settings is given, and update is {update}, which has none; leave it out, or "
            f"name {CALM} or {EVOTUNE}"
        )
    found = UPDATES.get(update, Grpo())
    return with_settings(found, given, f"update {update}", "update_settings") if given else found
