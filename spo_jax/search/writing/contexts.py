"""Generation contexts (Appendix D): a prompt form, and as many parents as it shows."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice

from spo_jax.config import Settings
from spo_jax.envs.run.states import HIDDEN_STATE
from spo_jax.program import Pair, Program, Prompt, Role
from spo_jax.program.constants import Constant
from spo_jax.search.population import Population
from spo_jax.search.writing.languages import LANGUAGES
from spo_jax.search.writing.prompts import Kind, ShowDestroy, Templates
from spo_jax.search.writing.reflecting import comprehensive_prompt, flash_prompt, ranges_prompt


@dataclass(frozen=True)
class PromptMaker:
    """Makes the prompts of a run.

    config: the run's. problem: its name. fits: whether a prompt is short enough for the generator.
    """

    config: Settings
    problem: str
    templates: Templates
    fits: Callable[[str], bool] = lambda text: True

    def contexts(
        self,
        role: Role,
        population: Population,
        rng: random.Random,
        *,
        k: int,
        groups: int,
        first: int = 0,
        destroy: Program | None = None,
    ) -> list[Prompt]:
        """`groups` prompts of round k for one role: the forms in turn, from the `first` on.

        A form with too few eligible parents in the population becomes parent-free (Appendix A.5),
        as all of them do in the first round. destroy: the program that repairs are to answer.
        """
        prompts = []
        for form in islice(cycle(self._forms(role, k)), first, first + groups):
            needed = self.templates.form(form).parents[0]
            parents = draw_parents(population, needed, self.config.search.parents, rng)
            prompts.append(self.fitted(role, form, parents, destroy))
        return prompts

    def fitted(
        self,
        role: Role,
        form: str,
        parents: tuple[Program, ...],
        destroy: Program | None = None,
        reflection: str = "",
    ) -> Prompt:
        """The first of these that fits, else the last: everything; parents without their sources;
        no parents; and the destroy program without its source.

        reflection: for the forms that show one. A form of another method's language shows its
        parents' sources or nothing of them, and a destroy without a sentence by its source.
        """
        language = LANGUAGES[self.templates.form(form).language]
        wanted: ShowDestroy = self.config.generator.show_destroy
        if language.answer == "code":
            wanted = "source"
        tries: list[tuple[str, tuple[Program, ...], ShowDestroy, ShowDestroy]] = [
            ("", parents, "both", wanted)
        ]
        if parents and not language.name:
            tries += [("sources", parents, "strategy", wanted)]
        if parents:
            tries += [("parents", (), "both", wanted)]
        if destroy and wanted != "strategy":
            tries += [("all", (), "both", "strategy")]
        for shortened, shown, show_parents, show_destroy in tries:
            prompt = self.templates.render(
                self.problem,
                role,
                form if shown else language.first,
                shown,
                destroy,
                state=self.config.generator.state != HIDDEN_STATE,
                show_destroy=show_destroy,
                show_parents=show_parents,
                reflection=reflection,
            )
            prompt = replace(prompt, shortened=shortened)
            if self.fits(prompt.whole):
                break
        return prompt

    def short_reflection(self, worse: Pair, better: Pair, words: int) -> Prompt:
        """As `Templates.short_reflection`; shows strategies alone where the sources do not fit."""
        prompt = self.templates.short_reflection(self.problem, worse, better, words)
        if self.fits(prompt.whole):
            return prompt
        return self.templates.short_reflection(self.problem, worse, better, words, "strategy")

    def long_reflection(self, before: str, hints: Sequence[str], words: int) -> Prompt:
        """As `Templates.long_reflection`."""
        return self.templates.long_reflection(self.problem, before, hints, words)

    def flash(self, ranked: Sequence[Pair], words: int) -> Prompt:
        """As `flash_prompt`; shows strategies alone where the sources do not fit."""
        prompt = flash_prompt(self.templates, self.problem, ranked, words)
        if self.fits(prompt.whole):
            return prompt
        return flash_prompt(self.templates, self.problem, ranked, words, sources=False)

    def comprehensive(
        self, experience: str, good: Sequence[str], bad: Sequence[str], words: int
    ) -> Prompt:
        """As `comprehensive_prompt`."""
        return comprehensive_prompt(self.templates, self.problem, experience, good, bad, words)

    def ranges(self, program: Program, constants: Sequence[Constant]) -> Prompt:
        """As `ranges_prompt`."""
        return ranges_prompt(self.templates, self.problem, program, constants)

    def aligned_thought(self, program: Program) -> Prompt:
        """As `Templates.aligned_thought`, to be answered at temperature 0."""
        prompt = self.templates.aligned_thought(self.problem, program)
        return replace(prompt, warmer=-self.config.generator.temperature)

    def _forms(self, role: Role, k: int) -> list[str]:
        """One role's forms in round k: mutations, then crossovers (Table 3).

        With forms of the user's own, each round goes on in the order of a kind's forms where the
        last one ended, so that none is left out. With the package's alone, every round begins with
        the first.
        """
        config = self.config
        due: dict[Kind, int] = {
            "mutation": config.search.mutation_groups,
            "crossover": config.search.crossover_groups,
        }
        found: list[str] = []
        for kind, groups in due.items():
            forms = self.templates.in_turn(kind, role)
            first = (k - 1) * groups % len(forms) if self.templates.own_forms else 0
            found += islice(cycle(forms), first, first + groups)
        return found


def draw_parents(
    population: Population, needed: int, how: str, rng: random.Random
) -> tuple[Program, ...]:
    """`needed` parents with different sources, or none if there are not as many.

    how: "uniform", "rank" with weights 1, 1/2, 1/3, ... from the best score down, or "none".
    """
    if how == "none":
        return ()
    pool = sorted(population, key=lambda member: (-member.score, member.program.digest))
    weights = {id(m): 1.0 if how == "uniform" else 1 / (k + 1) for k, m in enumerate(pool)}
    parents: list[Program] = []
    while pool and len(parents) < needed:
        parent = rng.choices(pool, [weights[id(member)] for member in pool])[0].program
        parents.append(parent)
        pool = [member for member in pool if member.program.digest != parent.digest]
    return tuple(parents) if len(parents) == needed else ()


def shortage(prompts: Sequence[Prompt]) -> str:
    """A sentence on prompts that had to leave something out; an empty one where none had."""
    short = Counter(prompt.shortened for prompt in prompts if prompt.shortened)
    if not short:
        return ""
    words = {
        "sources": "show their parents' strategies alone",
        "parents": "no parents",
        "all": "no parents and only the strategy of their destroy",
    }
    left = ", ".join(f"{short[name]} {text}" for name, text in words.items() if short[name])
    return (
        f"{sum(short.values())} of {len(prompts)} {prompts[0].role} prompts are too long for the "
        f"context: {left}"
    )
