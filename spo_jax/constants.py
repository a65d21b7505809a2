"""Words of settings that more than one module knows, and what they were before."""

from typing import Any, Literal

EMBEDDED = "embedded"  # the model that ships
NOVICE = "novice"  # the same model, taught plain programs and single steps away from them
OWN_MODELS = (EMBEDDED, NOVICE)  # models of the package, by name
ENDPOINT = "openai"  # the generator that asks an OpenAI-compatible endpoint
GRAMMAR = "grammar"  # the generator that writes without a model, by the problem's grammar
VLLM = "vllm"  # the generator that samples from a vLLM server and trains its adapters
LEARNERS = ("model", VLLM)  # generators whose model can learn
WITH_MODEL = (*LEARNERS, ENDPOINT)  # generators that `model` is for
# How GRPO corrects a sampler that differs from the trainer.
ImportanceMode = Literal["sequence-truncate", "sequence-mask", "token-truncate", "token-mask"]
STORED = ".spo.npz"  # how a file of instances of any problem ends
SHIPPED = "shipped"  # the name of the pair that comes with a problem
ALL = "all"  # of `spo compare`: the problem's construction and all its baselines
KIT = "lns"  # the module by which programs import the kit of a problem
SPO = "spo"  # the method of the paper; the others are its baselines and train no model
# Of the search of a rollout, which a pair file has in its head.
TERMS = ("acceptance", "start", "state")
FRAMEWORKS = ("openevolve", "shinka")  # for which `spo task` writes a folder
# What a score depends on, and what the system message of such a folder says.
TASK_SETTINGS = (
    "seed", "workers", "on", "distances", "capacity", "vehicles", "utility", "evaluator",
    "ray_address", "size", "instances", "rollouts", "steps", "cpu_seconds", "work", "memory_mb",
    "on_invalid", "unsafe_sandbox", "kit", "state", "prompts", "acceptance",
)  # fmt: skip
# What settings that have names now were before.
FORMER = {"state": {True: "stagnation", False: "none"}}


def current(name: str, value: Any) -> Any:
    """The value that a setting has now where it was given as before."""
    return FORMER[name][value] if isinstance(value, bool) and name in FORMER else value
