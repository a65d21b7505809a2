"""A run whose writer has not written one valid program in its first round stops there.

What a language model writes in a first round tells whether the rest is worth its time and money.
"""

from collections import Counter
from pathlib import Path

from spo_jax.config import Settings
from spo_jax.envs.problems import get_problem
from spo_jax.errors import InputError
from spo_jax.program import ROLES, Game, Role
from spo_jax.runs.display.funnel import unparsable
from spo_jax.search.rounds import Round

WORST = 3  # reasons that are shown
LONGEST = 120  # characters of a reason


def require_valid(done: Round, config: Settings, path: Path) -> None:
    """Raises InputError if no answer of a first round is valid, that is, no pair has a utility.

    path: the run's folder. The round is committed already, so --resume goes on with the second.
    """
    if done.number != 1 or done.counts.top is not None or not done.answers:
        return
    game = get_problem(config.problem).interface.game
    asked = "; ".join(_funnel(done, role, game) for role in ROLES)
    shown = Counter(
        f"{game.named(each.subject)} {each.status}: {game.told(each.reason)}"
        for each in done.failures
    )
    worst = [f"{n} times {text[:LONGEST]}" for text, n in shown.most_common(WORST)]
    reasons = f" Most often: {'; '.join(worst)}." if worst else ""
    raise InputError(
        f"no answer of the first round is a valid program: {asked}.{reasons} `spo report {path}` "
        f"shows the answers. Begin a new run with {' or '.join(_advice(done, config))}; "
        "--resume goes on with this one all the same"
    )


def _funnel(done: Round, role: Role, game: Game) -> str:
    """How many answers there are for a role, with a program, and with one that the gate passes."""
    counts = done.counts
    answers = counts.destroy_answers if role == "destroy" else counts.repair_answers
    passed = sum(
        program is not None
        for each in done.answers
        if each.prompt.role == role
        for program in each.programs
    )
    parsed = max(answers - unparsable(done.failures, role), passed)
    text = f"of {answers} answers with a {role} {parsed} hold a program"
    return f"{game.words(text)}, and {passed} passed the gate"


def _advice(done: Round, config: Settings) -> list[str]:
    """What could help, the likeliest first."""
    cut = sum(done.metrics.get(f"{role}/cut", 0.0) for role in ROLES)
    found = []
    if cut:
        found.append(f"a longer --max-new-tokens ({cut:.0f} answers were cut)")
    if config.generator.prompts_style == "paper":
        found.append("--prompts-style frame")
    if not config.generator.mend:
        found.append("--mend 1")
    return [*found, "another --model", "another --temperature"]
