"""What a card does with a model and a vLLM server, beside what docs/research/card.md
expects of it.

    python experiments/bench/card.py --model FOLDER --vllm-python ENV/bin/python
    python experiments/bench/card.py --model FOLDER --vllm-python ENV/bin/python --concurrency 8

Prints the measured column of docs/research/card.md: starts the server as a
run does, samples answers to prompts of the paper's form, as many at a time as the cache holds, and
updates both adapters twice on them, with random credits. The first update compiles. Nothing is
kept.
"""

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from spo_jax import presets
from spo_jax.envs.problems import get_problem
from spo_jax.envs.report.solve import shipped_pair
from spo_jax.program import ROLES, Completion, Group, Program, Prompt, Role
from spo_jax.program.grammar.base import MECHANISM_REPLACEMENT, SHARED_PRINCIPLE_CROSSOVER
from spo_jax.rl.backend import share_devices
from spo_jax.rl.policy import Policy
from spo_jax.rl.vllm.policy import VllmPolicy
from spo_jax.search.writing.prompts import templates_of


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", required=True, help="folder of a Qwen3.5")
    parser.add_argument("--vllm-python", required=True, help="bin/python with vLLM")
    parser.add_argument("--vllm-args", default="--language-model-only")
    parser.add_argument("--residency", default="restart", choices=["both", "sleep", "restart"])
    parser.add_argument("--prompts", type=int, default=48, help="of each phase")
    parser.add_argument("--answers", type=int, default=6, help="of a prompt")
    parser.add_argument("--max-new-tokens", type=int, default=1200)
    parser.add_argument("--micro-batch", type=int, default=3)
    parser.add_argument("--concurrency", type=int, help="prompts at a time")
    run(parser.parse_args())


def run(options: argparse.Namespace) -> None:
    config = presets.settings(
        "tsp",
        "paper-tsp",
        generator="vllm",
        model=options.model,
        vllm_python=options.vllm_python,
        vllm_args=options.vllm_args,
        residency=options.residency,
        max_new_tokens=options.max_new_tokens,
        micro_batch=options.micro_batch,
        concurrency=options.concurrency,
        rounds=1,  # no server starts behind an update
    )
    share_devices(config.vllm.residency != "both")
    policy = VllmPolicy.load(config)
    asked = prompts(options.prompts)
    print("| | measured |\n|---|---:|")
    with tempfile.TemporaryDirectory() as folder:
        try:
            policy.open(Path(folder), print)
            began = time.perf_counter()
            policy.generate(asked[:1], 1, 0)
            row("server started and checked, s", time.perf_counter() - began)
            answers = sampled(policy, asked, options.answers)
            for name in ("first update, with compilation", "second update"):
                updated(policy, asked, answers, name)
        finally:
            policy.close()


def sampled(policy: Policy, asked: Sequence[Prompt], n: int) -> Sequence[tuple[Completion, ...]]:
    began = time.perf_counter()
    answers = policy.generate(asked, n, 0)
    spent = time.perf_counter() - began
    tokens = sum(len(one.tokens) for group in answers for one in group)
    row("sampling, tokens per second", tokens / spent)
    row("mean tokens of an answer", tokens / n / len(asked))
    return answers


def updated(
    policy: Policy,
    asked: Sequence[Prompt],
    answers: Sequence[tuple[Completion, ...]],
    name: str,
) -> None:
    rng = np.random.default_rng(0)
    groups: dict[Role, list[Group]] = {role: [] for role in ROLES}
    for prompt, group in zip(asked, answers, strict=True):
        groups[prompt.role].append(Group(prompt, group, rng.normal(size=len(group))))
    began = time.perf_counter()
    metrics = policy.update(groups)
    row(f"{name}, s", time.perf_counter() - began)
    for key in ("memory/sampling_card", "memory/update_card"):
        if key in metrics:
            row(f"{name}, {key}, GB", metrics[key])


def prompts(count: int) -> list[Prompt]:
    """Of the paper's run: one destroy to five repairs, with parents as most have."""
    pair = shipped_pair(get_problem("tsp"))
    templates = templates_of("tsp")
    found = []
    for i in range(count):
        role: Role = "repair" if i % 6 else "destroy"
        own: Program = getattr(pair, role)
        answered = pair.destroy if role == "repair" else None
        form = SHARED_PRINCIPLE_CROSSOVER if i % 2 else MECHANISM_REPLACEMENT
        parents = (own, own) if i % 2 else (own,)
        found.append(templates.render("tsp", role, form, parents, answered))
    return found


def row(name: str, value: float) -> None:
    print(f"| {name} | {value:,.1f} |", flush=True)


if __name__ == "__main__":
    main()
