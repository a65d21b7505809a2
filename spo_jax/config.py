"""One run's settings: a frozen dataclass, checked where it is built. See also spo_jax.presets.

The defaults are the paper's numbers for the TSP. A field's metadata holds its help and its lawful
range, from which the checks, the command-line flags and the documentation are made, so a new field
is one line here and one use elsewhere.
"""

import argparse
import dataclasses
import difflib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args, get_origin, get_type_hints

from spo_jax.config_rules import check_relations
from spo_jax.errors import InputError
from spo_jax.words import EMBEDDED, LEARNERS, SPO

MAX_WORKERS = 1024


def _workers() -> int:
    """The CPUs this process may use."""
    return min(len(os.sched_getaffinity(0)), MAX_WORKERS)


def _knob(
    default: Any,
    help: str,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] = (),
    own: bool = False,
    volatile: bool = False,
) -> Any:
    """A field with its help and lawful range; a volatile one may change when a run is resumed.

    A number has both bounds, or one that no use has would overflow somewhere. own: beside the
    choices a user's own, as package.module:function, is lawful.
    """
    metadata = {
        "help": help,
        "low": low,
        "high": high,
        "choices": choices,
        "own": own,
        "volatile": volatile,
    }
    if callable(default):
        return dataclasses.field(default_factory=default, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Config:
    """Everything a discovery run depends on. Raises InputError for a value out of range."""

    problem: str = _knob("tsp", "problem: tsp, cvrp or package.module:OBJECT")
    seed: int = _knob(0, "seed of every random stream of the run", low=0, high=2**63 - 1)
    workers: int = _knob(
        _workers, "worker processes; the results do not depend on it", low=1, high=MAX_WORKERS,
        volatile=True,
    )  # fmt: skip

    method: str = _knob(
        SPO, "how pairs are discovered: spo, funsearch, eoh, reevo, g-lns, best-of-n or "
        "package.module:OBJECT",
    )  # fmt: skip
    method_settings: str | None = _knob(
        None, "numbers of another method than spo, as one text: 'islands=4, samples=2'"
    )

    # The search: Algorithm 1 and Appendices A.3 to A.5.
    rounds: int = _knob(30, "program-discovery rounds K", low=1, high=100_000)
    mutation_groups: int = _knob(3, "groups of answers to mutation prompts", low=0, high=1000)
    crossover_groups: int = _knob(2, "groups of answers to crossover prompts", low=0, high=1000)
    responses: int = _knob(6, "answers sampled from one prompt (a group)", low=1, high=10_000)
    repairs_per_destroy: int = _knob(
        30, "repair candidates generated for a valid destroy; a multiple of responses",
        low=1, high=100_000,
    )  # fmt: skip
    top_responses: int = _knob(
        2, "L: best responses averaged in a leader credit", low=1, high=100_000
    )
    population_size: int = _knob(10, "most programs kept per role", low=1, high=10_000)
    diversity: float = _knob(
        0.1, "weight of strategy distance in survivor selection", low=0.0, high=1e6
    )
    survivors: str = _knob(
        "diverse", "who survives a round: the paper's rule, or a function like `select`",
        choices=("diverse",), own=True,
    )  # fmt: skip
    parents: str = _knob(
        "uniform", "how parents are drawn from a population (none: best-of-N, without evolution)",
        choices=("uniform", "rank", "none"),
    )  # fmt: skip
    deduplicate: str = _knob(
        "round", "repeated destroys to leave out: those of the round, or of the whole run",
        choices=("round", "run"),
    )  # fmt: skip
    utility: str = _knob(
        "improvement", "what a pair is worth: improvement (the paper's J), anytime (its mean over "
        "the steps), or a function of the rollouts", choices=("improvement", "anytime"), own=True,
    )  # fmt: skip
    credit: str = _knob("stackelberg", "credit scheme: a name or package.module:function")
    learning_credit: str | None = _knob(
        None, "credit scheme that the update alone learns from, while credit goes on selecting "
        "programs (none: credit does both)",
    )  # fmt: skip
    generator: str = _knob(
        "model", "who writes programs: model, vllm, openai, grammar or package.module:Class"
    )
    update: str = _knob(
        "auto", "generator update: grpo, none or package.module:object (auto: grpo for a model)"
    )
    panel: str = _knob(
        "evolved", "the leader panel: the paper's, or a function like `leader_panel`",
        choices=("evolved",), own=True,
    )  # fmt: skip
    panel_evolved: int = _knob(
        5, "evolved destroys in the leader panel, at most (CVRP: 2)", low=0, high=10_000
    )
    panel_classical: bool = _knob(
        False, "add the problem's fixed classical destroys to the panel (CVRP: yes)"
    )
    cross_play_candidates: int = _knob(
        20, "a round's best repairs that join the population's in cross-play", low=1, high=100_000
    )
    best_from: str = _knob(
        "responses", "pairs the best pair is chosen from: responses only, or cross-play too",
        choices=("responses", "all"),
    )  # fmt: skip

    select: str = _knob(
        "utility", "the run's pair: the highest J (the paper's rule), or the best in validation",
        choices=("utility", "validation"),
    )  # fmt: skip
    finalists: int = _knob(
        10, "best pairs that are validated when the rounds are over (0: none)", low=0, high=10_000
    )
    validation_size: int = _knob(
        100, "nodes or customers of a validation instance", low=3, high=100_000
    )
    validation_instances: int = _knob(6, "validation instances", low=1, high=10_000)
    validation_steps: int = _knob(500, "LNS iterations in validation", low=1, high=1_000_000)

    # The model and its update: Appendices A.2 and A.4.
    model: str = _knob(
        EMBEDDED, "language model: embedded, the folder of a Qwen3.5, or its name at an endpoint",
        volatile=True,
    )  # fmt: skip
    temperature: float = _knob(0.8, "sampling temperature", low=0.01, high=100.0)
    top_p: float = _knob(0.95, "probability mass that is sampled from", low=0.001, high=1.0)
    max_new_tokens: int = _knob(
        1200, "longest answer in tokens (CVRP: 2048)", low=1, high=1_000_000
    )
    context: int = _knob(
        8192, "longest prompt and answer together, in tokens", low=2, high=10_000_000
    )
    sample_rows: int = _knob(64, "answers sampled side by side", low=1, high=100_000)
    lora_rank: int = _knob(16, "rank of the adapters", low=1, high=4096)
    lora_alpha: float = _knob(32.0, "adapters count alpha / rank times", low=0.001, high=1e6)
    lora_targets: str = _knob(
        "mixers", "matrices with adapters: mixers, mixers+mlp, or names with commas"
    )
    learning_rate: float = _knob(5e-6, "AdamW's learning rate", low=1e-9, high=1.0)
    schedule: str = _knob(
        "constant", "the learning rate at an adapter's k-th step (a round without a usable answer "
        "has none): the same, or divided by the square root of k",
        choices=("constant", "inverse-sqrt"),
    )  # fmt: skip
    weight_decay: float = _knob(0.01, "AdamW's weight decay", low=0.0, high=1.0)
    max_gradient_norm: float = _knob(1.0, "gradients are clipped to this norm", low=1e-6, high=1e12)
    clip: float = _knob(0.2, "epsilon of the clipped ratio", low=0.001, high=0.999)
    ratio: str = _knob(
        "sequence", "probability ratio of a whole answer, of its tokens' mean, or of each token",
        choices=("sequence", "length-normalised", "token"),
    )  # fmt: skip
    advantage: str = _knob(
        "centred", "credits less their group's mean, or also over its standard deviation",
        choices=("centred", "standardised"), own=True,
    )  # fmt: skip
    failure_penalty: float | None = _knob(
        None, "a failed answer earns this much less than its group's worst (none: it is left out)",
        low=0.0, high=1e6,
    )  # fmt: skip
    deterministic: bool = _knob(
        False, "ask a GPU for operations that give the same bits each time, which are slower; "
        "without them a resumed run ends as it would have to rounding only"
    )  # fmt: skip
    micro_batch: int = _knob(3, "answers in one gradient (CVRP: 2)", low=1, high=100_000)
    share_prompts: bool = _knob(True, "compute a group's prompt once; the same gradient")

    # An endpoint that writes the programs, without learning: generator openai.
    base_url: str | None = _knob(
        None, "address of an OpenAI-compatible endpoint, as http://127.0.0.1:8000/v1",
        volatile=True,
    )  # fmt: skip
    concurrency: int = _knob(
        8, "requests that the endpoint gets at a time", low=1, high=1000, volatile=True
    )
    request_timeout: float = _knob(
        600.0,
        "seconds that an endpoint may take for a whole answer",
        low=0.01,
        high=1e6,
        volatile=True,
    )
    retries: int = _knob(
        5, "how often a request that failed is repeated", low=0, high=1000, volatile=True
    )
    request_extra: str | None = _knob(
        None, """more fields of each request, as JSON: '{"reasoning_effort": "low"}'"""
    )
    prompt_price: float = _knob(
        0.0, "price of a million prompt tokens, for the record", low=0.0, high=1e9, volatile=True
    )
    completion_price: float = _knob(
        0.0,
        "price of a million completion tokens, for the record",
        low=0.0,
        high=1e9,
        volatile=True,
    )

    # A vLLM server that samples from the adapters that learn: generator vllm. It also reads
    # concurrency, request_timeout and retries.
    vllm_python: str | None = _knob(
        None, "bin/python of the environment whose vLLM is started", volatile=True
    )
    vllm_url: str | None = _knob(
        None, "address of a running vLLM server, instead of one that is started", volatile=True
    )
    vllm_args: str | None = _knob(
        None, "more arguments of the server that is started, as one text", volatile=True
    )
    vllm_devices: str | None = _knob(
        None, "cards of the server that is started, as 1 or 0,1: its CUDA_VISIBLE_DEVICES",
        volatile=True,
    )  # fmt: skip
    vllm_startup: float = _knob(
        900.0, "seconds that the server may take to start", low=0.1, high=1e6, volatile=True
    )
    residency: str = _knob(
        "both", "who has the device: server and trainer both; or in turn, where the server sleeps, "
        "or is started again, for each round",
        choices=("both", "sleep", "restart"), volatile=True,
    )  # fmt: skip
    probe_tolerance: float = _knob(
        0.15, "nats a token that server and trainer may differ by on a fixed text",
        low=1e-6, high=1e6, volatile=True,
    )  # fmt: skip
    drift_warning: float = _knob(
        0.1, "nats a token between server and trainer from which the log warns", low=0.0, high=1e6,
        volatile=True,
    )  # fmt: skip
    importance_cap: float | None = _knob(
        None,
        "weigh samples by trainer over server, at most by this (none: alike)",
        low=1e-6,
        high=1e6,
    )

    # What a pair is judged on: Appendices B.1 and B.2.
    on: tuple[str, ...] = _knob(
        (), "training instances, in place of size and instances: uniform:SIZExCOUNT[@SEED], "
        "files, folders", volatile=True,
    )  # fmt: skip
    validate_on: tuple[str, ...] = _knob(
        (), "validation instances, likewise", volatile=True,
    )  # fmt: skip
    size: int = _knob(50, "nodes (TSP) or customers (CVRP) of an instance", low=3, high=100_000)
    instances: int = _knob(6, "training instances", low=1, high=10_000)
    rollouts: int = _knob(2, "rollouts (seeds) of a pair on each instance", low=1, high=10_000)
    steps: int = _knob(100, "LNS iterations of a rollout", low=1, high=1_000_000)
    cpu_seconds: float | None = _knob(
        None, "CPU-time limit of a 500-step rollout, scaled by steps (default: the problem's own)",
        low=0.01, high=1e6,
    )  # fmt: skip
    memory_mb: int = _knob(512, "memory limit of a program, MiB", low=64, high=1_000_000)
    on_invalid: str = _knob(
        "fail", "an infeasible candidate fails the pair, or is a rejected step",
        choices=("fail", "skip"),
    )  # fmt: skip
    evaluator: str = _knob(
        "local", "what runs programs: local (sandboxed processes on this machine), or a class or "
        "function like `LocalEvaluator`", choices=("local",), own=True,
    )  # fmt: skip
    unsafe_sandbox: bool = _knob(
        False, "run programs even where the sandbox is incomplete", volatile=True
    )

    # What a prompt shows: Appendix D.
    state: bool = _knob(True, "offer steps_since_improvement to programs (ablation: no)")
    show_destroy: str = _knob(
        "strategy", "what a repair prompt shows of its destroy program",
        choices=("strategy", "source", "both"),
    )  # fmt: skip
    prompts: str | None = _knob(
        None, "folder of prompt templates that override the package's", volatile=True
    )

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = _checked(field, getattr(self, field.name))
            object.__setattr__(self, field.name, value)
        if self.update == "auto":
            learns = self.generator in LEARNERS and self.method == SPO
            object.__setattr__(self, "update", "grpo" if learns else "none")
        check_relations(self)

    @property
    def group_forms(self) -> int:
        """Groups of answers in one role's set: three mutations and two crossovers in the paper."""
        return self.mutation_groups + self.crossover_groups

    @property
    def nominal_pairs(self) -> int:
        """Pairs that are as many programs as all rounds generate at most (Appendix C: 13,950)."""
        destroys = self.rounds * self.group_forms * self.responses
        return destroys * (1 + self.repairs_per_destroy) // 2

    def to_dict(self) -> dict[str, Any]:
        """Plain values that JSON holds, in the order of the fields."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Config":
        """The inverse of `to_dict`. Raises InputError for an unknown name or an unlawful value."""
        check_names(values, "the config")
        return cls(**values)

    def changed(self, given: Mapping[str, Any]) -> list[str]:
        """Settings in `given` with which it would be another run; volatile ones do not count."""
        return [
            name
            for name, value in given.items()
            if not FIELDS[name].metadata["volatile"] and getattr(self, name) != value
        ]


FIELDS: dict[str, "dataclasses.Field[Any]"] = {f.name: f for f in dataclasses.fields(Config)}
_TYPES: dict[str, Any] = get_type_hints(Config)


# --- checks ---------------------------------------------------------------------------------------


def _kind(name: str) -> tuple[type, bool]:
    """A field's basic type, and whether it may be None."""
    if get_origin(_TYPES[name]) is tuple:
        return tuple, False
    kinds = [kind for kind in get_args(_TYPES[name]) if kind is not type(None)]
    return (kinds[0], True) if kinds else (_TYPES[name], False)


def _range(field: "dataclasses.Field[Any]") -> str:
    """The lawful values of a field, in words."""
    kind, optional = _kind(field.name)
    low, high = field.metadata["low"], field.metadata["high"]
    words = {int: "a whole number", float: "a number", bool: "true or false", str: "a text",
             tuple: "texts, each"}[kind]  # fmt: skip
    if kind in (str, tuple):
        words += ", not empty, without null characters, in UTF-8"
    if field.metadata["choices"]:
        words = "one of " + ", ".join(field.metadata["choices"])
        words += ", or package.module:function" if field.metadata["own"] else ""
    elif low is not None:
        words += f" from {low} to {high}"
    return words + (" or none" if optional else "")


def _checked(field: "dataclasses.Field[Any]", value: Any) -> Any:
    """`value` in the field's own type. Raises InputError unless it is lawful."""
    kind, optional = _kind(field.name)
    if optional and (value is None or value == "none"):  # TOML has no word for it
        return None
    if kind is float and type(value) is int and abs(value) < 2**63:
        value = float(value)
    if kind is tuple and isinstance(value, list):  # as JSON and TOML have it
        value = tuple(value)
    if type(value) is not kind or not _in_range(field.metadata, value):
        raise InputError(f"{field.name} is {value!r:.80}; it must be {_range(field)}")
    return value


def _in_range(metadata: Mapping[str, Any], value: Any) -> bool:
    if isinstance(value, tuple):
        return all(isinstance(text, str) and text.strip() and _plain(text) for text in value)
    if isinstance(value, str):
        if not metadata["choices"]:
            return bool(value.strip()) and _plain(value)
        return value in metadata["choices"] or (metadata["own"] and ":" in value)
    return metadata["low"] is None or metadata["low"] <= value <= metadata["high"]


def _plain(text: str) -> bool:
    """Whether a text holds neither a null character nor half a surrogate pair."""
    return not re.search("[\0\ud800-\udfff]", text)


def check_names(values: Mapping[str, Any], where: str) -> None:
    """Raises InputError for a name that is no setting, with the closest that is."""
    for name in values:
        if name not in FIELDS:
            raise InputError(f"unknown setting {name!r} in {where}{closest(name, FIELDS)}")


def closest(name: str, known: Any) -> str:
    """A hint at the known name nearest to a misspelt one."""
    near = difflib.get_close_matches(str(name).replace("-", "_"), list(known), n=1, cutoff=0.5)
    near = near or difflib.get_close_matches(str(name), list(known), n=1, cutoff=0.3)
    return f": did you mean {near[0]!r}?" if near else f" (known: {', '.join(known)})"


# --- the command line -----------------------------------------------------------------------------


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """One flag for each field but `problem`: --repairs-per-destroy 30, --state or --no-state."""
    group = parser.add_argument_group("settings (each overrides the preset)")
    for field in FIELDS.values():
        if field.name == "problem":
            continue
        flag = "--" + field.name.replace("_", "-")
        help = field.metadata["help"].replace("%", "%%")
        if _kind(field.name)[0] is bool:
            group.add_argument(flag, action=argparse.BooleanOptionalAction, default=None, help=help)
        elif _kind(field.name)[0] is tuple:
            group.add_argument(flag, nargs="+", default=None, metavar="SPEC", help=help)
        else:
            own = ("MODULE:NAME",) if field.metadata["own"] else ()
            words = "|".join((*field.metadata["choices"], *own))
            metavar = words or _kind(field.name)[0].__name__.upper()
            group.add_argument(flag, default=None, metavar=metavar, help=help)


def overrides_from(namespace: argparse.Namespace) -> dict[str, Any]:
    """The settings given on the command line, in the fields' own types."""
    given = {
        name: getattr(namespace, name, None)
        for name in FIELDS
        if name != "problem" and getattr(namespace, name, None) is not None
    }
    return {name: _converted(FIELDS[name], value) for name, value in given.items()}


def _converted(field: "dataclasses.Field[Any]", text: Any) -> Any:
    kind, optional = _kind(field.name)
    if not isinstance(text, str):
        return _checked(field, text)
    if optional and text.lower() == "none":
        return None
    try:
        value = kind(text)
    except ValueError:
        raise InputError(f"{field.name} is {text!r:.80}; it must be {_range(field)}") from None
    return _checked(field, value)
