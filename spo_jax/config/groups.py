"""The groups of a run's settings. The defaults are the paper's numbers for the TSP.

A new setting is one line here and one use elsewhere: `spo_jax.config` says why.
"""

from typing import Literal, Self

from pydantic import model_validator

from spo_jax import jsontext
from spo_jax.config.fields import Group, Own, Text, rare, rare_volatile, refuse, setting, volatile
from spo_jax.constants import EMBEDDED, OWN_MODELS, SPO, ImportanceMode

# Fields of a request that other settings decide, or that must not change.
OWN_FIELDS = frozenset(
    ("model", "messages", "temperature", "top_p", "max_tokens", "max_completion_tokens", "seed")
) | {"n", "stream"}


class SearchSettings(Group):
    """Algorithm 1 and Appendices A.3 to A.5."""

    method: Text = setting(
        SPO, "spo, funsearch, eoh, reevo, g-lns, mcts-ahd, hsevo, best-of-n or package.module:NAME"
    )
    method_settings: dict[str, int | float | bool | str] = setting(
        dict, "settings of a method other than spo"
    )
    rounds: int = setting(30, "program-discovery rounds K", 1, 100_000)
    pairs: int | None = rare(
        None, "pairs that a method other than spo writes (none: SPO's programs)", 1, 10**9
    )
    mutation_groups: int = setting(3, "groups of answers to mutation prompts", 0, 1000)
    crossover_groups: int = setting(2, "groups of answers to crossover prompts", 0, 1000)
    responses: int = setting(6, "answers sampled from one prompt (a group)", 1, 10_000)
    repairs_per_destroy: int = setting(
        30, "repairs requested per valid destroy; a multiple of responses", 1, 100_000
    )
    top_responses: int = rare(2, "L: best responses averaged in a leader credit", 1, 100_000)
    population_size: int = setting(10, "most programs kept per role", 1, 10_000)
    diversity: float = rare(0.1, "weight of strategy distance in survivor selection", 0.0, 1e6)
    survivors: Literal["diverse", "ranked"] | Own = rare(
        "diverse",
        "who survives a round: by score and distance (the paper), or by rank and distance",
    )
    parents: Literal["uniform", "rank", "none"] = rare(
        "uniform", "how parents are drawn from a population (none: no evolution)"
    )
    deduplicate: Literal["round", "run"] = rare(
        "round", "drop destroys that repeat in the round, or in the whole run"
    )
    credit: Text = setting("stackelberg", "credit scheme: a name or package.module:NAME")
    panel: Literal["evolved"] | Own = rare("evolved", "how the leader panel is chosen")
    panel_evolved: int = rare(5, "evolved destroys in the leader panel, at most", 0, 10_000)
    panel_classical: bool = rare(False, "add the problem's classical destroys to the panel")
    cross_play_candidates: int = rare(
        20, "a round's best repairs that join the population's in cross-play", 1, 100_000
    )
    best_from: Literal["responses", "all"] = rare(
        "responses", "choose the best pair from responses, or from cross-play too"
    )
    select: Literal["utility", "validation"] = setting(
        "utility", "the run's pair: the highest J (the paper's rule), or the best in validation"
    )
    start_pairs: tuple[Text, ...] = volatile(
        (), "pairs that round 1 starts from: pair files, run folders, or shipped"
    )
    minutes: float | None = volatile(
        None, "wall-clock minutes of the run, in place of rounds: as many as fit", 0.01, 1e6
    )
    finalists: int = setting(10, "pairs validated after the last round (0: none)", 0, 10_000)
    halving: bool = rare(
        False, "validate the better half on twice as many instances, until the last few are on all"
    )

    @property
    def group_forms(self) -> int:
        """Groups of answers in one role's set: three mutations and two crossovers in the paper."""
        return self.mutation_groups + self.crossover_groups

    @property
    def nominal_pairs(self) -> int:
        """Pairs that a method other than spo writes: `pairs`, or as many as make the programs that
        all rounds generate at most (Appendix C: 13,950).
        """
        if self.pairs is not None:
            return self.pairs
        destroys = self.rounds * self.group_forms * self.responses
        return destroys * (1 + self.repairs_per_destroy) // 2

    @model_validator(mode="after")
    def _related(self) -> Self:
        refuse(
            self.group_forms < 1,
            "mutation_groups and crossover_groups are both 0; a round needs at least one group",
        )
        refuse(
            self.repairs_per_destroy % self.responses > 0,
            f"repairs_per_destroy is {self.repairs_per_destroy}; it must be a multiple of "
            f"responses ({self.responses}), because repairs come in whole groups",
        )
        refuse(
            self.select == "validation" and not self.finalists,
            "finalists is 0; select = validation needs at least 1 to choose from",
        )
        refuse(
            self.panel_evolved == 0 and not self.panel_classical,
            "panel_evolved is 0; without panel_classical it must be at least 1, "
            "or repairs could not be compared",
        )
        refuse(
            self.method == SPO and bool(self.method_settings),
            "method_settings is given, but method is spo, whose numbers have options of their own; "
            "leave it out, or name another method",
        )
        for name in ("start_pairs", "minutes"):
            refuse(
                self.method != SPO and bool(getattr(self, name)),
                f"{name} is given, and method is {self.method}, which begins and counts its rounds "
                f"in its own way; leave out {name}",
            )
        return self


class EvaluationSettings(Group):
    """What a pair is judged on: Appendices B.1 and B.2."""

    on: tuple[Text, ...] = volatile(
        (),
        "training instances instead of size and instances: uniform:SIZExCOUNT[@SEED], files, "
        "folders",
    )
    validate_on: tuple[Text, ...] = volatile((), "validation instances, likewise")
    distances: Literal["file", "exact", "round", "ceil", "dimacs"] = volatile(
        "file", "distances of instance files: as the file says, not rounded, or rounded so"
    )
    capacity: float | None = volatile(
        None, "capacity of vehicles, for instance files without one", 1e-9, 1e12
    )
    vehicles: int | None = volatile(
        None, "most routes, in place of what instance files say", 1, 1_000_000
    )
    acceptance: Literal["improving", "annealing", "record-to-record"] | Own = rare(
        "improving",
        "worse solutions that a rollout accepts: none (the paper), or as spo solve has it",
    )
    start: Literal["random", "construction"] | Own = rare(
        "random", "first solution of a rollout: random (the paper), or the problem's construction"
    )
    utility: Literal["improvement", "anytime"] | Own = setting(
        "improvement", "what a pair is worth: the paper's J, or its mean over the steps"
    )
    evaluator: Literal["local", "ray"] | Own = rare(
        "local", "what runs programs: this machine, a cluster with Ray, or one's own"
    )
    ray_address: Text | None = rare_volatile(
        None, "head of the cluster, HOST:PORT, auto or local (none: $RAY_ADDRESS, or auto)"
    )
    size: int = setting(50, "nodes (TSP) or customers (CVRP, VRPTW) of an instance", 3, 100_000)
    instances: int = setting(6, "training instances", 1, 10_000)
    rollouts: int = setting(2, "rollouts (seeds) of a pair on each instance", 1, 10_000)
    steps: int = setting(100, "LNS iterations of a rollout", 1, 1_000_000)
    cpu_seconds: float | None = setting(
        None, "CPU limit of 500 steps, scaled to the steps (none: the problem's own)", 0.01, 1e6
    )
    work: float | None = rare(
        None,
        "work per step and node, on average, after which a rollout ends early (none: no bound)",
        1e-3,
        1e12,
    )
    memory_mb: int = rare(512, "memory limit of a program, MiB", 64, 1_000_000)
    on_invalid: Literal["fail", "skip"] = setting(
        "fail", "an infeasible candidate fails the rollout, or is a rejected step"
    )
    unsafe_sandbox: bool = volatile(False, "run programs even where the sandbox is incomplete")
    validation_size: int = rare(100, "nodes or customers of a validation instance", 3, 100_000)
    validation_instances: int = rare(6, "validation instances", 1, 10_000)
    validation_steps: int = rare(500, "LNS iterations in validation", 1, 1_000_000)


class GeneratorSettings(Group):
    """Who writes programs, and what a prompt shows: Appendices A.2 and D."""

    name: Text = setting(
        "model", "model, vllm, openai, grammar or package.module:NAME", flat="generator"
    )
    model: Text = volatile(
        EMBEDDED,
        f"{', '.join(OWN_MODELS)}, the folder or GGUF file of a Qwen, or the name of a model at an "
        "endpoint",
    )
    temperature: float = setting(0.8, "sampling temperature", 0.01, 100.0)
    top_p: float = rare(0.95, "probability mass that is sampled from", 0.001, 1.0)
    max_new_tokens: int = setting(1200, "longest answer, in tokens", 1, 1_000_000)
    context: int = rare(8192, "longest prompt and answer together, in tokens", 2, 10_000_000)
    sample_rows: int = rare(64, "answers sampled side by side", 1, 100_000)
    mend: int | None = rare(
        None,
        "how often an answer that is nearly right goes back to the model with the reason "
        "(none: once with a model of one's own, else 0)",
        0,
        10,
    )
    kit: Literal["lns", "none"] = setting(
        "lns", "module of operators' inner loops that programs may import (none: the paper)"
    )
    state: Literal["stagnation", "progress", "none"] | Own = rare(
        "stagnation",
        "what programs are shown of the search: steps since improvement (the paper), with the "
        "share of the budget and the last change, or nothing",
    )
    show_destroy: Literal["strategy", "source", "both"] = rare(
        "strategy", "what a repair prompt shows of its destroy program"
    )
    prompts_style: Literal["auto", "paper", "frame"] = rare(
        "auto",
        "the paper's prompts, or shorter ones with a frame of the function (auto: frame for a "
        "model of one's own)",
    )
    prompts: Text | None = volatile(None, "folder of prompt templates that override the package's")

    @model_validator(mode="after")
    def _related(self) -> Self:
        refuse(
            self.max_new_tokens >= self.context,
            f"max_new_tokens is {self.max_new_tokens} and context {self.context}; "
            "the difference is what a prompt may take",
        )
        return self


class LearningSettings(Group):
    """The model's update: Appendices A.2 and A.4."""

    update: Text = setting(
        "auto", "grpo, calm, evotune, none or package.module:NAME (auto: grpo for a model)"
    )
    update_settings: dict[str, int | float | bool | str] = rare(
        dict, "settings that calm and evotune have of their own"
    )
    learning_credit: Text | None = rare(
        None, "credit scheme of the update alone, while credit selects programs (none: the same)"
    )
    copies: Literal["earn", "unpaid"] = rare(
        "earn",
        "what an answer with the program of one of its parents teaches: its credit, as any other, "
        "or nothing",
    )
    lora_rank: int = setting(16, "rank of the adapters", 1, 4096)
    lora_alpha: float = rare(32.0, "adapters count alpha / rank times", 0.001, 1e6)
    lora_targets: Text = rare(
        "mixers", "matrices with adapters: mixers, mixers+mlp, or names with commas"
    )
    learning_rate: float = setting(5e-6, "AdamW's learning rate", 1e-9, 1.0)
    schedule: Literal["constant", "inverse-sqrt"] = rare(
        "constant", "learning rate at an adapter's k-th step: the same, or divided by sqrt(k)"
    )
    weight_decay: float = rare(0.01, "AdamW's weight decay", 0.0, 1.0)
    max_gradient_norm: float = rare(1.0, "gradients are clipped to this norm", 1e-6, 1e12)
    clip: float = rare(0.2, "epsilon of the clipped ratio", 0.001, 0.999)
    ratio: Literal["sequence", "length-normalised", "token"] = rare(
        "sequence", "probability ratio of a whole answer, of its tokens' mean, or of each token"
    )
    advantage: Literal["centred", "standardised", "leave-one-out"] | Own = rare(
        "centred",
        "credits minus their group's mean, or also divided by its standard deviation, or minus the "
        "mean of the others",
    )
    sample_weights: Literal["groups", "samples"] = rare(
        "groups", "a role's groups count alike in an update, or its samples do"
    )
    failure_penalty: float | None = rare(
        None,
        "a failed answer earns this much less than its group's worst (none: no part)",
        0.0,
        1e6,
    )
    mended: Literal["original", "inherit", "sample"] = rare(
        "original",
        "what a mended answer teaches: nothing, so that the original stays unpaid; its credit goes "
        "to the original; or it is a sample of its own prompt",
    )
    deterministic: bool = rare(
        False, "ask a GPU for the same bits each time, which is slower (no: to rounding only)"
    )
    micro_batch: int = rare(3, "answers in one gradient", 1, 100_000)
    share_prompts: bool = rare(True, "compute a group's prompt once; the same gradient")


class EndpointSettings(Group):
    """An OpenAI-compatible endpoint that writes programs, without learning: generator openai.

    Generator vllm reads concurrency, request_timeout and retries too.
    """

    base_url: Text | None = volatile(None, "address of the endpoint, as http://127.0.0.1:8000/v1")
    concurrency: int | None = volatile(
        None, "answers at a time (none: 8, or as many prompts as the cache of vLLM holds)", 1, 1000
    )
    request_timeout: float = rare_volatile(600.0, "seconds for a whole answer", 0.01, 1e6)
    retries: int = rare_volatile(5, "how often a request that failed is repeated", 0, 1000)
    request_extra: Text | None = rare(
        None, """more fields of each request, as JSON: '{"reasoning_effort": "low"}'"""
    )
    prompt_price: float = rare_volatile(0.0, "price of a million prompt tokens", 0.0, 1e9)
    completion_price: float = rare_volatile(0.0, "price of a million completion tokens", 0.0, 1e9)

    @model_validator(mode="after")
    def _related(self) -> Self:
        if self.request_extra is None:
            return self
        try:
            fields = jsontext.parse(self.request_extra)
        except ValueError:
            fields = None
        refuse(
            not isinstance(fields, dict),
            f"request_extra is {self.request_extra!r}; it must be a JSON object, as "
            """'{"reasoning_effort": "low"}'""",
        )
        taken = ", ".join(sorted(OWN_FIELDS.intersection(fields or ())))
        refuse(
            bool(taken),
            f"request_extra holds {taken}, which a request has already; leave it out",
        )
        return self


class VllmSettings(Group):
    """A vLLM server that samples from the adapters that learn: generator vllm."""

    python: Text | None = volatile(
        None, "bin/python of the environment whose vLLM is started", flat="vllm_python"
    )
    url: Text | None = volatile(None, "address of a running server instead", flat="vllm_url")
    args: Text | None = volatile(None, "more arguments of the server started", flat="vllm_args")
    devices: Text | None = volatile(
        None, "CUDA_VISIBLE_DEVICES of the server started, as 1 or 0,1", flat="vllm_devices"
    )
    startup: float = rare_volatile(
        900.0, "seconds that the server may take to start", 0.1, 1e6, flat="vllm_startup"
    )
    residency: Literal["both", "sleep", "restart"] = volatile(
        "both", "server and trainer share the device, or the server sleeps or restarts each round"
    )
    probe_tolerance: float = rare_volatile(
        0.15,
        "most that server and trainer may differ in log-probability per token, in nats",
        1e-6,
        1e6,
    )
    drift_warning: float = rare_volatile(
        0.03,
        "log-probability per token, in nats, by which they differ when the log warns",
        0.0,
        1e6,
    )
    importance_cap: float | None = rare(
        None,
        "weigh samples by trainer over server, at most by this (none: alike); needs top_p 1",
        1e-6,
        1e6,
    )
    importance_mode: ImportanceMode = rare(
        "sequence-truncate",
        "weights of whole samples or of tokens; above the cap they are cut to it or left out",
    )

    @property
    def logprobs_mode(self) -> str:
        """vLLM's: processed log-probabilities are at the sampling temperature, as weights need."""
        return "raw_logprobs" if self.importance_cap is None else "processed_logprobs"

    @model_validator(mode="after")
    def _related(self) -> Self:
        given = self.url is not None
        refuse(
            given and self.residency == "restart",
            "residency is restart, but a server at vllm_url is not ours to start: use sleep",
        )
        refuse(
            given and self.devices is not None,
            "vllm_devices is given, but a server at vllm_url is not ours to start; leave out one",
        )
        return self
