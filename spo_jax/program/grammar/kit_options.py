"""How much a repair program with a kit tries, and with which options it inserts."""

from spo_jax.program.grammar.base import Choice, Choices, Weights, uses_state
from spo_jax.program.grammar.kit import Words
from spo_jax.program.grammar.pieces import NONE, STATE, ordinal, steps


def tries_again(choices: Choices) -> bool:
    """Whether the program makes several tries."""
    return choices["retry"] != "once"


def weighted(choices: Choices) -> bool:
    """Whether regret is weighed against the cost of an insertion."""
    return choices.get("criterion") == "weighted"


# --- how many tries -------------------------------------------------------------------------------

_BUDGET_RULES: Weights = {"fixed": 4.0, "grow": 1.5, "switch": 1.5, "early": 1.0, "burst": 1.0}
RATES: dict[str, Weights] = {
    "grow": {5: 1.0, 10: 1.0, 20: 1.0, 40: 1.0},
    "switch": {2: 1.0, 5: 1.0, 10: 1.0, 20: 1.0},
    "early": {1: 1.0, 3: 1.0, 10: 1.0},
    "burst": {3: 1.0, 5: 1.0, 8: 1.0},
}


def budget_rules(choices: Choices) -> Weights:
    if not tries_again(choices):
        return {}
    return _BUDGET_RULES if uses_state(choices) else {"fixed": 1.0}


def low_budgets(choices: Choices) -> Weights:
    if choices.get("budget_rule", "fixed") == "fixed":
        return {}
    return {200: 1.0, 500: 1.0} if choices["build"] == "ordered" else {500: 1.0, 1000: 1.0}


def budgets(choices: Choices) -> Weights:
    if not tries_again(choices):
        return {}
    if choices["build"] == "ordered":
        return {800: 1.0, 1500: 1.5, 2500: 1.0, 4000: 0.7}
    return {2000: 1.0, 4000: 1.0, 6000: 0.7}


def budget(choices: Choices, words: Words) -> tuple[list[str], str]:
    """(lines that set `tries`, phrase)."""
    rule, rate = choices["budget_rule"], choices.get("budget_rate")
    high, low = choices["budget"], choices.get("budget_low")
    work, unit = f"len({words.removed})", "insertions"
    if choices["build"] == "regret":
        work, unit = f"{work} ** 2", "scores"
    lines, most = [f"low, high = {low}, {high}"], "budget"
    if rule == "fixed":
        lines, phrase, most = [], f"{high} {unit}", str(high)
    else:
        if rule == "grow":
            lines.append(f"budget = low + (high - low) * min({STATE}, {rate}) // {rate}")
            phrase = f"{low} {unit} growing to {high} over {rate} steps without improvement"
        elif rule == "switch":
            lines.append(f"budget = high if {STATE} >= {rate} else low")
            phrase = f"{low} {unit}, or {high} after {steps(rate)} without improvement"
        elif rule == "early":
            lines.append(f"budget = high if {STATE} < {rate} else low")
            phrase = f"{high} {unit}, or {low} after {steps(rate)} without improvement"
        else:
            lines.append(f"budget = high if {STATE} % {rate} == {int(rate or 2) - 1} else low")
            phrase = f"{low} {unit}, or {high} on every {ordinal(rate)} step without improvement"
    lines.append(f"tries = max(1, min({choices['cap']}, {most} // {work}))")
    return lines, f"make up to {choices['cap']} tries (within {phrase}) and keep the shortest"


# --- options of a call ----------------------------------------------------------------------------

# k -> (source, phrase)
PLACES = {
    **{str(k): (str(k), f"{k} cheapest places") for k in (2, 3, 4, 5)},
    "all": ("len(dist)", "places"),
    "random": ("rng.randint(2, 5)", "2 to 5 cheapest places (drawn at random)"),
    "cycle 3": (
        f"2 + {STATE} % 3", "2 to 4 cheapest places (in turn with the steps without improvement)"
    ),
    "cycle 4": (
        f"2 + {STATE} % 4", "2 to 5 cheapest places (in turn with the steps without improvement)"
    ),
    "late 5": (
        f"2 if {STATE} < 5 else 4", "2 cheapest places (4 after 5 steps without improvement)"
    ),
    "late 20": (
        f"2 if {STATE} < 20 else 4", "2 cheapest places (4 after 20 steps without improvement)"
    ),
}  # fmt: skip


def places(choices: Choices) -> Weights:
    if choices.get("criterion", "greedy") == "greedy":
        return {}
    weights: dict[Choice, float] = {"2": 3.0, "3": 3.0, "4": 1.0, "5": 1.0, "all": 0.5}
    weights["random"] = 1.0
    if uses_state(choices):
        weights |= dict.fromkeys(("cycle 3", "cycle 4", "late 5", "late 20"), 1.0)
    return weights


def nears(choices: Choices) -> Weights:
    weights: dict[Choice, float] = {0: 8.0, 5: 0.7, 10: 1.0, 20: 0.7}
    if uses_state(choices):
        weights |= {"widen 5": 0.5, "widen 10": 0.5}
    return weights


def perturbs(choices: Choices) -> Weights:
    """Noise on scores; tries by regret need it, or they would all be the same."""
    if choices["build"] == "regret":
        noises: dict[Choice, float] = dict.fromkeys(
            ("noise 0.1", "noise 0.2", "noise 0.5", "noise 1.0"), 1.0
        )
        if uses_state(choices):
            noises |= {"rising noise 10": 0.8, "rising noise 30": 0.8}
        return noises if tries_again(choices) else {NONE: 6.0, **noises}
    weights: dict[Choice, float] = {NONE: 10.0, "blink 0.01": 1.0, "blink 0.03": 1.0}
    weights["blink 0.1"] = 0.5
    if not tries_again(choices):  # noise takes a draw for each place: too dear for many tries
        weights |= {"noise 0.05": 1.0, "noise 0.1": 1.0, "noise 0.2": 1.0}
    if uses_state(choices):
        weights |= {"rising blink 10": 0.5, "rising blink 30": 0.5}
    return weights


def options_of(choices: Choices) -> tuple[list[str], list[str], list[str], list[str]]:
    """(lines before the tries, lines in a try, options of the call, phrases)."""
    lines: list[str] = []
    in_try: list[str] = []
    options: list[str] = []
    phrases: list[str] = []
    if "k" in choices:
        line = f"k = {PLACES[str(choices['k'])][0]}"
        (in_try if choices["k"] == "random" else lines).append(line)
    if weighted(choices):
        lines.append(f"weight = {choices['weight']}")
    near = str(choices["near"])
    if near.startswith("widen"):
        low = near.split()[1]
        lines.append(f"near = min(40, {low} + {STATE})")
        phrases.append(
            f"look beside {low} near nodes, one more with each step without improvement up to 40"
        )
    elif near != "0":
        lines.append(f"near = {near}")
        phrases.append(f"look beside {near} near nodes only")
    if near != "0":
        options.append("near=near")
    rising, kind, value = ["", "", *str(choices["perturb"]).split()][-3:]
    if choices["perturb"] != NONE:
        most = {"blink": 0.1, "noise": 1}[kind]
        if rising:
            lines.append(f"{kind} = {most} * {STATE} / ({STATE} + {value})")
            size = f"growing to {most} (half way after {value} steps without improvement)"
        else:
            lines.append(f"{kind} = {value}")
            size = f"of {value}" if kind == "blink" else f"of up to {value}"
        phrases.append(f"{_PERTURBS[kind, str(choices['build'])]} {size}")
        options.append(f"{kind}={kind}")
    fresh = choices.get("fresh", 1)
    if fresh != 1:
        lines.append(f"fresh = {fresh}")
        phrases.append(f"open a new route only where {fresh} times its cost is lower")
        options.append("fresh=fresh")
    if choices["perturb"] != NONE:
        options.append("rng=rng")
    return lines, in_try, options, phrases


_PERTURBS = {
    ("blink", "ordered"): "overlook a better place with a probability",
    ("noise", "ordered"): "raise costs at random by a share",
    ("noise", "regret"): "raise scores at random by a share",
}
