"""One run's settings: frozen models, one for each group, checked where they are built.

The defaults are the paper's numbers for the TSP. A new setting is one line here and one use
elsewhere: flags, checks and files of presets are made from it. Every setting has a flat name too, a
unique one: its flag's, and the one that `Settings.make`, `Settings.replace` and messages use.
"""

from collections.abc import Mapping
from typing import Any, Self

from pydantic import model_validator

from spo_jax.config.fields import (
    Group,
    Setting,
    Text,
    closest,
    refuse,
    setting,
    settings_of,
    volatile,
)
from spo_jax.config.groups import (
    EndpointSettings,
    EvaluationSettings,
    GeneratorSettings,
    LearningSettings,
    SearchSettings,
    VllmSettings,
)
from spo_jax.config.updates import CALM, EVOTUNE, GRPO, UPDATES
from spo_jax.config.updates import settings_of as settings_of_update
from spo_jax.constants import ENDPOINT, LEARNERS, OWN_MODELS, SPO, TERMS, VLLM, WITH_MODEL, current
from spo_jax.errors import InputError
from spo_jax.limits import MAX_WORKERS, usable_cores

EXCHANGEABLE = {"local", "ray"}  # evaluators with the same results, to the bit


class Settings(Group):
    """Everything a discovery run depends on.

    Raises:
        InputError: A value is out of range.
    """

    problem: Text = setting("tsp", "problem: tsp, cvrp, vrptw or package.module:NAME")
    seed: int = setting(0, "seed of every random stream of the run", 0, 2**63 - 1)
    workers: int = volatile(
        usable_cores, "worker processes; no rollout depends on how many", 1, MAX_WORKERS
    )
    search: SearchSettings = SearchSettings()
    evaluation: EvaluationSettings = EvaluationSettings()
    generator: GeneratorSettings = GeneratorSettings()
    learning: LearningSettings = LearningSettings()
    endpoint: EndpointSettings = EndpointSettings()
    vllm: VllmSettings = VllmSettings()

    @classmethod
    def make(cls, **flat: Any) -> Self:
        """Make settings of their flat names: Settings.make(rounds=3, generator="grammar").

        Args:
            **flat: Values by flat name; what is left out has its default.

        Raises:
            InputError: A name is unknown, or a value unlawful.
        """
        tables: dict[str, Any] = {group: {} for group in ("", *GROUPS)}
        for name, value in flat.items():
            if name not in FIELDS:
                raise InputError(f"unknown setting {name!r}{closest(name, (*FIELDS, 'preset'))}")
            tables[FIELDS[name].group][FIELDS[name].name] = value
        return cls(**tables.pop(""), **tables)

    def replace(self, **flat: Any) -> Self:
        """These settings with others in place of some, as `make` takes them."""
        return self.make(**self.flat() | flat)

    def flat(self) -> dict[str, Any]:
        """Plain values that JSON holds by their flat names, which `make` takes."""
        tables = self.model_dump()
        return {
            each.flat: (tables[each.group] if each.group else tables)[each.name]
            for each in FIELDS.values()
        }

    @property
    def terms(self) -> dict[str, str]:
        """What of the search of a rollout is not the paper's, by flat name."""
        flat = self.flat()
        return {n: flat[n] for n in TERMS if flat[n] != FIELDS[n].info.default}

    def changed(self, given: Mapping[str, Any]) -> list[str]:
        """Tell which settings would make it another run.

        Args:
            given: Values by flat name.

        Returns:
            The flat names with another value than here; volatile ones do not count.
        """
        now = self.flat()
        return [
            n
            for n, v in given.items()
            if not FIELDS[n].volatile
            and now[n] != current(n, v)
            and not (n == "evaluator" and {now[n], v} == EXCHANGEABLE)
        ]

    @model_validator(mode="after")
    def _related(self) -> Self:
        generator, method = self.generator.name, self.search.method
        if self.learning.update == "auto":
            update = GRPO if generator in LEARNERS and method == SPO else "none"
            self.__dict__["learning"] = self.learning.model_copy(update={"update": update})
        update = self.learning.update
        # The package's models read their own prompts alone, wherever they run.
        asked = generator == ENDPOINT or self.generator.model not in OWN_MODELS
        prose = asked and generator in WITH_MODEL
        resolved: dict[str, Any] = {}
        if self.generator.prompts_style == "auto":
            resolved["prompts_style"] = "frame" if prose else "paper"
        if self.generator.mend is None:
            resolved["mend"] = int(prose)
        if resolved:
            self.__dict__["generator"] = self.generator.model_copy(update=resolved)
        refuse(
            self.learning.mended == "sample" and update == EVOTUNE,
            f"mended is sample, and update is {EVOTUNE}, which compares answers to one prompt; "
            "use --mended inherit, or leave out mended",
        )
        refuse(
            self.search.pairs is not None and method == SPO,
            "pairs is given, and method is spo, whose budget is its rounds; leave out pairs",
        )
        refuse(
            update in UPDATES and generator not in LEARNERS,
            f"update is {update}, which trains a model, and generator is {generator}; "
            "leave out one of them",
        )
        refuse(
            self.learning.learning_credit is not None and update == "none",
            f"learning_credit is {self.learning.learning_credit}, and update is none, which learns "
            "nothing; leave out one of them, or say credit for what selects programs",
        )
        refuse(
            method != SPO and ":" not in method and update != "none",
            f"update is {update}, and method is {method}, which trains no model; "
            "leave out one of them",
        )
        own = settings_of_update(update, self.learning.update_settings)
        refuse(
            update == EVOTUNE and self.search.minutes is not None and not own.every,
            f"update is {EVOTUNE}, which trains every sixth of the run's rounds, and minutes is "
            "given, so their number is not known; say the rounds, as --update-setting every=2",
        )
        for wrong, what in (
            (self.learning.learning_credit is not None, "learning_credit is given, too"),
            (self.search.parents == "none", "parents is none"),
            (method != SPO, f"method is {method}, whose rounds do not compute it"),
        ):
            refuse(
                update == CALM and wrong,
                f"update is {CALM}, which learns from a reward relative to the parents, and "
                f"{what}; leave out one of them",
            )
        refuse(
            generator == ENDPOINT
            and (self.endpoint.base_url is None or self.generator.model in OWN_MODELS),
            f"generator is {ENDPOINT}, which asks an endpoint for a model of its own; "
            "give both --base-url URL and --model NAME",
        )
        refuse(
            generator == VLLM and (self.vllm.python is None) == (self.vllm.url is None),
            f"generator is {VLLM}, which needs a server: give either --vllm-python PATH of an "
            "environment that has vLLM, or --vllm-url URL of one that runs",
        )
        given = self.flat()
        for name, owner in _OWNERS.items():
            refuse(
                given[name] is not None and generator != owner,
                f"{name} is given, but generator is {generator}; use generator {owner}, "
                f"or leave out {name}",
            )
        return self


# Settings that only one generator reads, and its name.
_OWNERS = dict.fromkeys(("base_url", "request_extra"), ENDPOINT) | dict.fromkeys(
    ("vllm_python", "vllm_url", "vllm_args", "vllm_devices", "importance_cap"), VLLM
)
GROUPS = {
    n: type(i.default) for n, i in Settings.model_fields.items() if isinstance(i.default, Group)
}
FIELDS: dict[str, Setting] = {each.flat: each for each in settings_of("", Settings)}
FIELDS |= {s.flat: s for group, model in GROUPS.items() for s in settings_of(group, model)}
