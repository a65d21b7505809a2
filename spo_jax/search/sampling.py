"""The answers of a round, and the play of repairs with the destroys that they answer."""

from collections.abc import Callable, Sequence
from functools import partial

from spo_jax.envs.run.evaluator import Progress
from spo_jax.program import Pair, Prompt
from spo_jax.search.candidates import Answers, ask
from spo_jax.search.contexts import shortage
from spo_jax.search.parts import Parts
from spo_jax.search.payoffs import Table
from spo_jax.search.rounds import Failure
from spo_jax.seeding import derive


def sample(
    parts: Parts,
    k: int,
    prompts: Sequence[Prompt],
    play: Callable[[Sequence[Answers], Progress], None] = lambda new, progress: None,
    *,
    n: int | None = None,
    stream: Sequence[str] = (),
) -> tuple[list[Answers], list[Failure]]:
    """The answers to the prompts of one role; `play` gets them part by part, in a fixed order.

    n: answers to each prompt, by default `responses`. stream: what else names the random stream,
    where a round asks for one role more than once.
    """
    if not prompts:
        return [], []
    config, look, role = parts.config, parts.observer, prompts[0].role
    n = config.responses if n is None else n
    if short := shortage(prompts):
        look.remark(f"round {k}: {short}")
    look.stage(k, role, len(prompts) * n)
    seed = derive(config.seed, "round", k, "answers", role, *stream)
    settled = 0

    def then(new: list[Answers]) -> None:
        nonlocal settled
        size = len(new) * n
        play(new, lambda done, total: look.advance(settled + size * done // total))
        settled += size
        look.advance(settled)

    return ask(
        parts.generator, parts.evaluator.check, prompts, n, seed,
        then=then, around=partial(look.working, "sampling"),
    )  # fmt: skip


def play_responses(table: Table, new: Sequence[Answers], progress: Progress) -> None:
    """Play every repair in some answers with the destroy that it answers."""
    met = [
        Pair(answers.prompt.destroy, repair)
        for answers in new
        for repair in answers.programs
        if answers.prompt.destroy is not None and repair is not None
    ]
    table.play(met, "response", progress)
