"""Prompts say everything that the paper's ask for, in our words, and follow a user's folder."""

import hashlib
import inspect
import itertools
import os
import re
from importlib import import_module
from pathlib import Path

import pytest

from spo_jax.envs.problem import Problem
from spo_jax.envs.problems import get_problem
from spo_jax.errors import InputError
from spo_jax.program import ROLES, Pair, Program
from spo_jax.program.grammar.base import FORMS
from spo_jax.search.writing import prompts
from spo_jax.search.writing.prompts import INITIALIZATION, Templates, built_in, templates_of

PROBLEMS = ("tsp", "cvrp")
DESTROY = Program(
    "destroy", "def destroy(a):\n    return 'cost $5'\n", "Remove the $worst stretch of nodes."
)
DESTROYS = (DESTROY, Program("destroy", "def destroy(b):\n    return 2\n", "Remove at random."))
REPAIRS = (
    Program("repair", "def repair(a):\n    return 3\n", "Insert by regret."),
    Program("repair", "def repair(b):\n    return 4\n", "Insert the farthest first."),
)
STATE = "steps_since_improvement"
FOLDER = Path(prompts.__file__).parent


def problem_of(name):
    """One of ours, or one of the user's that has no contract of its own."""
    if name in PROBLEMS:
        return get_problem(name)
    return type("Own", (Problem,), {"name": name})()


def ask(problem, role, form=INITIALIZATION, folder=None, **options):
    family = DESTROYS if role == "destroy" else REPAIRS
    texts = Templates.read(folder, problem_of(problem))
    parents = family[: texts.form(form).parents[0]]
    paired = DESTROY if role == "repair" else None
    return texts.render(problem, role, form, parents, paired, **options).text


def every_prompt(**options):
    for problem, role, form in itertools.product(PROBLEMS, ROLES, FORMS):
        yield problem, role, form, ask(problem, role, form, **options)


# What each prompt has to say, after Appendix D and our own contract: a name and a pattern for each.
EVERYWHERE = {
    "expert": r"\bexpert\b",
    "setting": r"large neighbourhood search",
    "reusable": r"\breusable\b",
    "meaning of dist": r"dist\[i\]\[j\] is the length of the step from",
    "state input": r"- steps_since_improvement: an integer, the number of steps since .* strictly",
    "rng input": r"- rng: the only source of randomness",
    "one policy": r"one coherent (removal|reconstruction) policy",
    "no fixed thresholds": r"No constants that suit only one problem size",
    "local evaluation": r"instead of searching through everything",
    "time": r"500 calls .* seconds of CPU time",
    "modules": r"math, random, numpy, heapq, itertools, functools, collections, bisect, operator, "
    r"copy and typing, nothing else",
    "no state": r"Nothing is remembered from one call to the next",
    "no classes": r"No classes, decorators, async, names with double underscores",
    "random.Random": r"random, choice, choices, sample, shuffle, randint, randrange, uniform",
    "numpy Generator": r"integers, permutation, normal, choice with size, replace and p",
    "two parts": r"Answer in two parts",
    "strategy": r"^STRATEGY: a single short sentence that states precisely which decision the code",
    "not broader": r"rather than the general idea",
    "code": r"^CODE: exactly one Python function, (destroy|repair)",
    "code does what the strategy says": r"STRATEGY sentence names must be its main mechanism",
}
DESTROY_FACTS = {
    "adaptive": r"The policy is adaptive: steps_since_improvement has to change something concrete",
    "not fixed": r"does the same at every step is not asked for",
    "removed first": r"Choose removed_(nodes|customers) first; only then build partial_",
    "from the current": r"removed_(nodes|customers) holds \w+ of current_(tour|routes) only",
    "35%": r"At most 35% of the (tour|customers) may leave: no more than 35 \* n // 100",
    "exactly once": r"Each (node|customer) ends up .*exactly once",
    "size from scale": r"number of removed (nodes|customers) and the number of (candidates|routes)",
}
REPAIR_FACTS = {
    "adaptive": r"adaptive where that helps: steps_since_improvement may change the order of the "
    r"insertions, how many candidates are considered, or how ties are broken",
    "paired destroy": r"Paired destroy: .*\nStrategy: Remove the \$worst stretch of nodes\.",
    "complements": r"reconstruction policy that answers this destroy",
    "exactly once": r"Put every removed (node|customer) back, exactly once",
    "order": r"stayed keep their order",
    "no optimisation": r"No further optimisation of the (tour|routes)",
    "scope from scale": r"number of insertion positions .* removed (nodes|customers)",
}
FACTS = {
    ("tsp", "destroy"): DESTROY_FACTS
    | {
        "problem": r"travelling salesperson problem \(TSP\)",
        "interface": r"destroy\(dist, current_tour, steps_since_improvement, rng\) -> "
        r"\(partial_tour, removed_nodes\)",
        "purpose": r"disturbance from which a good repair can reach a shorter tour",
        "regions": r"looks at the current tour and finds the places where a removal means some",
        "order": r"nodes of partial_tour stand in the same order as in current_tour",
        "scale": r"follow from the length of the tour",
    },
    ("tsp", "repair"): REPAIR_FACTS
    | {
        "problem": r"travelling salesperson problem \(TSP\)",
        "interface": r"repair\(dist, partial_tour, removed_nodes, steps_since_improvement, rng\) "
        r"-> complete_tour",
        "purpose": r"make a complete tour of what the destroy operator left",
        "lengths": r"fewer than n nodes, so take the positions for insertion from "
        r"len\(partial_tour\).*len\(dist\) tells how many nodes there are in all, and nothing",
        "context": r"let the partial tour and the set of removed nodes tell it",
        "only context": r"partial tour is only the ground on which nodes are inserted",
        "scale": r"length of the growing tour and the number of removed nodes",
    },
    ("cvrp", "destroy"): DESTROY_FACTS
    | {
        "problem": r"capacitated vehicle routing problem \(CVRP\)",
        "interface": r"destroy\(dist, demands, capacity, current_routes, steps_since_improvement, "
        r"rng\) -> \(partial_routes, removed_customers\)",
        "purpose": r"takes customers out while the routes that remain keep their order and their f",
        "depot implied": r"depot is implied at both ends of a route and never stands in one",
        "demands": r"what customer i needs, a positive integer; demands\[0\] is 0",
        "policy": r"picks customers or parts of routes whose removal means something",
        "order": r"stay keep their order within their own route",
        "depot": r"The depot, node 0, cannot be removed",
        "feasible": r"No partial route may exceed the capacity",
        "scale": r"how many routes and customers there are and from how tight the capacity is",
        "vehicles": r"or one number of vehicles",
    },
    ("cvrp", "repair"): REPAIR_FACTS
    | {
        "problem": r"capacitated vehicle routing problem \(CVRP\)",
        "interface": r"repair\(dist, demands, capacity, partial_routes, removed_customers, "
        r"steps_since_improvement, rng\) -> complete_routes",
        "purpose": r"make complete, feasible routes of what the destroy operator left",
        "depot implied": r"depot is implied at both ends of a route and never stands in one",
        "demands": r"what customer i needs, a positive integer; demands\[0\] is 0",
        "new routes": r"opens a new route when none has room",
        "retained": r"Customers that stayed are all still there, exactly once",
        "depot": r"The depot 0 stands in no route that you return",
        "capacity": r"No route that you return carries more than the capacity",
        "order where feasible": r"order within a route wherever feasibility lets them",
        "scale": r"how many routes, customers and removed customers there are, and from the room",
        "bounded": r"a bounded number of positions that respect the capacity",
        "vehicles": r"or one number of vehicles",
    },
}
REQUESTS = {
    "initialization": r"No earlier (destroy|repair) program is given",
    "mechanism-replacement": r"one of its major decisions, put a different mechanism .* leave the "
    r"rest of the design as it is",
    "state-control-redesign": r"main mechanism stays\. Change .* thresholds, budgets, how many "
    r"candidates it considers, or the schedule",
    "simplification": r"redundant in it, or more complicated than .* Do not add another major mech",
    "divergent-crossover": r"notes on what has been tried already, .* different from both in subst",
    "shared-principle-crossover": r"Find the principle, at a high level, .* program of a new str",
}


class TestWhatPromptsSay:
    @pytest.mark.parametrize(("problem", "role"), FACTS)
    @pytest.mark.parametrize("form", FORMS)
    def test_the_checklist(self, problem, role, form):
        text = ask(problem, role, form)
        facts = EVERYWHERE | FACTS[problem, role] | {"request": REQUESTS[form]}
        missing = [name for name, fact in facts.items() if not re.search(fact, text, re.MULTILINE)]
        assert not missing

    @pytest.mark.parametrize("state", [True, False])
    def test_a_prompt_knows_one_problem_only(self, state):
        foreign = {
            "tsp": r"\b(cvrp|vehicles?|customers?|routes?|routing|depot|capacit\w*|demands?)\b",
            "cvrp": r"\b(tsp|travelling|salesperson|tours?)\b",
        }
        for problem, _, _, text in every_prompt(state=state):
            assert re.search(foreign[problem], text, re.IGNORECASE) is None

    def test_no_placeholder_is_left(self):
        for _, role, form, text in every_prompt():
            for program in (*DESTROYS, *REPAIRS):  # whose own dollar signs must come through
                text = text.replace(program.source, "").replace(program.strategy, "")
            assert "$" not in text, (role, form)

    def test_forms_are_those_of_table_3(self):
        for role in ROLES:
            turns = [built_in().in_turn(kind, role) for kind in ("mutation", "crossover")]
            assert (INITIALIZATION, *turns[0], *turns[1]) == FORMS
        assert [templates_of("tsp").form(form).parents[0] for form in FORMS] == [0, 1, 1, 1, 2, 2]

    @pytest.mark.parametrize("form", FORMS)
    @pytest.mark.parametrize("role", ROLES)
    def test_parents_are_shown_with_strategy_and_source(self, role, form):
        text = ask("tsp", role, form, show_destroy="strategy")
        shown = (DESTROYS if role == "destroy" else REPAIRS)[
            : templates_of("tsp").form(form).parents[0]
        ]
        for number, parent in enumerate(shown, 1):
            block = f"Parent {number}\nStrategy: {parent.strategy}\n```python\n{parent.source}```"
            assert block in text
        assert f"Parent {len(shown) + 1}" not in text
        assert text.index("Python rules") < text.index("Task") < text.index("Answer in two parts")

    @pytest.mark.parametrize(
        ("show", "strategy", "source"),
        [("strategy", True, False), ("source", False, True), ("both", True, True)],
    )
    def test_the_paired_destroy_is_shown_as_asked(self, show, strategy, source):
        text = ask("cvrp", "repair", show_destroy=show)
        assert (DESTROY.strategy in text) == strategy
        assert (DESTROY.source in text) == source

    def test_a_prompt_records_what_it_was_made_of(self):
        prompt = templates_of("tsp").render(
            "tsp", "repair", "simplification", REPAIRS[:1], DESTROY, state=False
        )
        assert (prompt.problem, prompt.role, prompt.form) == ("tsp", "repair", "simplification")
        assert prompt.parents == REPAIRS[:1]
        assert prompt.destroy is DESTROY
        assert prompt.state is False

    def test_a_program_without_a_strategy(self):
        silent = Program("destroy", "def destroy(): pass\n")
        assert (
            "Strategy: (none given)"
            in templates_of("tsp").render("tsp", "repair", INITIALIZATION, (), silent).text
        )


class TestWithoutState:
    def test_state_is_in_the_interface_and_nowhere_else(self):
        for _, role, _, text in every_prompt(state=False):
            lines = [line for line in text.splitlines() if STATE in line]
            assert len(lines) == 2
            assert lines[0].startswith(f"    {role}(")
            assert lines[1].startswith(f"- {STATE}: always 0")
            assert re.search(r"adaptive|stagnat|right after", text) is None

    def test_the_rest_is_the_same(self):
        for problem, role, form in itertools.product(PROBLEMS, ROLES, FORMS):
            sides = [ask(problem, role, form, state=state).splitlines() for state in (True, False)]
            assert len(sides[0]) == len(sides[1])
            different = sum(a != b for a, b in zip(*sides, strict=True))
            assert different == (3 if form == "state-control-redesign" else 2)


class TestFolder:
    def test_a_file_replaces_ours(self, tmp_path):
        (tmp_path / "simplification.txt").write_text("Make this $role shorter for $$1:\n$parents\n")
        (tmp_path / ".hidden").write_text("$")
        text = ask("tsp", "destroy", "simplification", folder=tmp_path)
        assert "Make this destroy shorter for $1:\nParent 1\n" in text
        assert "redundant" not in text
        assert ask("tsp", "destroy", folder=tmp_path) == ask("tsp", "destroy")

    def test_our_own_templates_as_a_folder_change_nothing(self, tmp_path):
        for path in FOLDER.glob("*.txt"):  # with the declarations of forms, or without
            (tmp_path / path.name).write_text(path.read_text())
        for name in ("simplification.txt", "eoh-m3.txt"):
            (tmp_path / name).write_text(built_in().texts[name])
        for problem in map(get_problem, PROBLEMS):
            folder = tmp_path / problem.name
            folder.mkdir()
            for path in tmp_path.glob("*.txt"):
                (folder / path.name).write_text(path.read_text())
            for role in ROLES:
                (folder / f"{problem.name}-{role}.txt").write_text(problem.contract(role))
            ours, mine = Templates.read(None, problem), Templates.read(folder, problem)
            assert (mine.texts, mine.forms) == (ours.texts, ours.forms)
            assert (mine.digest, mine.own_forms) == (ours.digest, False)
            for role, form in itertools.product(ROLES, FORMS):
                asked = ask(problem.name, role, form)
                assert ask(problem.name, role, form, folder=folder) == asked

    def test_a_problem_of_the_users(self, tmp_path):
        (tmp_path / "knapsack-destroy.txt").write_text("Unpack.\n$state_input\n$adaptation\n")
        with pytest.raises(InputError, match=r"no contract of a repair: .*knapsack-repair\.txt"):
            ask("knapsack", "destroy", folder=tmp_path)
        (tmp_path / "knapsack-repair.txt").write_text("$state_input $adaptation $paired_destroy")
        text = ask("knapsack", "destroy", folder=tmp_path)
        assert text.startswith("Unpack.\n- steps_since_improvement: an integer")
        assert "knapsack" not in ask("tsp", "destroy", folder=tmp_path)  # it has its own
        with pytest.raises(InputError, match="no contract of a destroy"):
            ask("path", "destroy", folder=tmp_path)

    @pytest.mark.parametrize(
        ("text", "complaint"),
        [
            ("$state_input $adaptation", r"lacks placeholder \$paired_destroy"),
            ("$state_input $adaptation $paired_destroy $ 5", r"stray \$"),
            (None, "must return a text"),
        ],
    )
    def test_bad_contracts_of_a_problem(self, monkeypatch, text, complaint):
        problem = get_problem("tsp")
        ours = type(problem).contract

        def contract(self, role):
            return text if role == "repair" else ours(self, role)

        monkeypatch.setattr(type(problem), "contract", contract)
        with pytest.raises(InputError, match=rf"contract\('repair'\) of problem tsp .*{complaint}"):
            Templates.read(problem=problem)

    @pytest.mark.parametrize(
        ("name", "text", "complaint"),
        [
            ("simplify.txt", "$role $parents", "no prompt template"),
            ("README.md", "", "no prompt template"),
            ("simplification.txt", "Shorter, $role!", r"lacks placeholder \$parents"),
            ("layout.txt", "$rules", r"\$contract, \$output, \$request"),
            ("rules.txt", "$role $name", r"unknown placeholder \$name"),
            ("rules.txt", "$role costs $ 5", r"stray \$"),
            ("rules.txt", b"$role \xff", "UTF-8"),
            ("rules.txt", "$role \0", "null character"),
        ],
    )
    def test_bad_templates(self, tmp_path, name, text, complaint):
        raw = text if isinstance(text, bytes) else text.encode()
        (tmp_path / name).write_bytes(raw)
        with pytest.raises(InputError, match=complaint):
            ask("tsp", "destroy", folder=tmp_path)

    def test_folders_that_cannot_be_read(self, tmp_path):
        with pytest.raises(InputError, match="cannot read the folder"):
            Templates.read(tmp_path / "missing")
        (tmp_path / "rules.txt").mkdir()
        with pytest.raises(InputError, match="cannot read prompt template"):
            Templates.read(tmp_path)


class TestNewForms:
    def test_a_file_that_declares_a_form_is_asked_in_turn(self, tmp_path):
        (tmp_path / "analogy.txt").write_text(
            "#form kind=mutation parents=1\nTask: an analogy for $role\n$parents\n"
        )
        (tmp_path / "analogy-stateless.txt").write_text("Task: without state\n$parents\n")
        (tmp_path / "blend.txt").write_text(
            "#form kind=crossover parents=3 role=repair turn=0\nTask: blend\n$parents\n"
        )
        texts = Templates.read(tmp_path)
        ours = built_in().in_turn("mutation", "destroy")
        assert texts.in_turn("mutation", "destroy") == [*ours, "analogy"]
        assert texts.in_turn("crossover", "destroy") == built_in().in_turn("crossover", "destroy")
        assert texts.in_turn("crossover", "repair")[0] == "blend"
        assert "Task: an analogy for destroy\nParent 1" in ask(
            "tsp", "destroy", "analogy", folder=tmp_path
        )
        assert "Task: without state\n" in ask(
            "tsp", "destroy", "analogy", folder=tmp_path, state=False
        )
        assert "#form" not in ask("tsp", "repair", "analogy", folder=tmp_path)
        with pytest.raises(InputError, match="'blend' is for repair prompts only"):
            texts.render("tsp", "destroy", "blend", DESTROYS)
        (tmp_path / "blend.txt").write_text("#form kind=other parents=3\nTask: blend\n$parents\n")
        assert Templates.read(tmp_path).digest != texts.digest

    @pytest.mark.parametrize(
        ("name", "text", "complaint"),
        [
            ("new.txt", "#form kind=mutatoin parents=1\n$parents", "kind=mutation|crossover"),
            ("new.txt", "#form kind=mutation\n$parents", "parents=N"),
            ("new.txt", "#form kind=mutation parents=0\n", "show at least 1 parent"),
            ("new.txt", "#form kind=crossover parents=3-2\n$parents", "parents=N"),
            ("new.txt", "#form kind=crossover parents=2 rôle=repair\n$parents", "role=destroy"),
            ("new.txt", "#form kind=other parents=1 turn=-1\n$parents", "turn=N"),
            ("new.txt", "#form kind=mutation parents=1\nTask", r"lacks placeholder \$parents"),
            ("new.txt", "#form kind=mutation parents=1\n$parents $reflection", r"\$reflection"),
            ("new.md", "#form kind=mutation parents=1\n$parents", "no prompt template"),
            ("simplification.md", "$role $parents", "no prompt template"),
            ("new-stateless.txt", "$parents", "no prompt template"),
            ("rules.txt", "#form kind=mutation parents=1\n$role", "is no prompt form"),
            ("tsp-destroy.txt", "#form kind=other parents=0\n", "is no prompt form"),
            ("simplification.txt", "#form kind=mutation parents=2\n$role $parents", "anew"),
        ],
    )
    def test_wrong_declarations(self, tmp_path, name, text, complaint):
        (tmp_path / name).write_text(text)
        with pytest.raises(InputError, match=complaint):
            Templates.read(tmp_path, get_problem("tsp"))


class TestArguments:
    @pytest.mark.parametrize(
        ("role", "form", "parents", "destroy", "complaint"),
        [
            ("insert", INITIALIZATION, (), None, "unknown role"),
            ("destroy", "mutation", (), None, "unknown prompt form"),
            ("destroy", INITIALIZATION, DESTROYS[:1], None, "0 parents, not 1"),
            ("destroy", "simplification", (), None, "1 parents, not 0"),
            ("destroy", "divergent-crossover", DESTROYS[:1], None, "2 parents, not 1"),
            ("destroy", "simplification", REPAIRS[:1], None, "must be destroy programs"),
            ("repair", INITIALIZATION, (), None, "paired destroy"),
            ("destroy", INITIALIZATION, (), DESTROY, "destroy prompt has none"),
            ("repair", INITIALIZATION, (), REPAIRS[0], "must be a destroy program"),
        ],
    )
    def test_what_does_not_fit_is_refused(self, role, form, parents, destroy, complaint):
        with pytest.raises(InputError, match=complaint):
            templates_of("tsp").render("tsp", role, form, parents, destroy)

    def test_unknown_problem_and_view(self):
        with pytest.raises(InputError, match="show_destroy"):
            ask("tsp", "repair", show_destroy="everything")


def test_our_words_are_not_the_papers():
    """No eight words in a row are those of the paper's Appendix on prompts."""
    data = os.environ.get("SPO_DATA")
    paper = Path(data).resolve().parent / "paper" / "spo.tex" if data else None
    if paper is None or not paper.exists():
        pytest.skip("set SPO_DATA to a data folder beside which paper/spo.tex lies")

    def runs(text):
        words = re.findall(r"\w+", text.lower())
        return {tuple(words[i : i + 8]) for i in range(len(words) - 7)}

    appendix = paper.read_text("utf-8").partition(r"\label{app:prompts}")[2]
    theirs = runs(appendix.partition(r"\label{app:state-intervention}")[0])
    assert len(theirs) > 1000
    ours = {}
    for problem in map(get_problem, PROBLEMS):
        ours |= Templates.read(None, problem).texts
    for name, text in ours.items():
        assert not runs(text) & theirs, name


# Digests of what every form asked before forms were declared by their files.
ASKED = {
    "initialization": "c278e29917695fff",
    "mechanism-replacement": "ec0847c2fd302f42",
    "state-control-redesign": "ee9c8f01eca6adb5",
    "simplification": "d523587146fa350e",
    "divergent-crossover": "ee0a67976b7d0e7c",
    "shared-principle-crossover": "bbd3bd5394ed2b7e",
    "reflections": "11d07b605719fe72",
}


@pytest.mark.parametrize("form", ASKED)
def test_the_packages_prompts_are_what_they_were(form):
    asked = hashlib.sha256()
    shows = ("strategy", "source", "both")
    if form == "reflections":
        pairs = [Pair(*both) for both in zip(DESTROYS, REPAIRS, strict=True)]
        for show in shows:
            asked.update(built_in().short_reflection("tsp", *pairs, 20, show).text.encode())
        asked.update(built_in().long_reflection("cvrp", "", ["a", "b"], 50).text.encode())
    else:
        count = templates_of("tsp").form(form).parents[0]
        for problem, role, state, show in itertools.product(PROBLEMS, ROLES, (True, False), shows):
            family = (DESTROYS if role == "destroy" else REPAIRS) * 2
            prompt = templates_of(problem).render(
                problem, role, form, family[:count], DESTROY if role == "repair" else None,
                state=state, show_destroy=show, show_parents=show,
            )  # fmt: skip
            asked.update(prompt.text.encode())
    assert asked.hexdigest()[:16] == ASKED[form]


class TestKit:
    """Prompts of runs that offer the problem's kit, and of those that do not."""

    @pytest.mark.parametrize("problem", ["tsp", "cvrp"])
    @pytest.mark.parametrize("role", ROLES)
    def test_every_function_of_the_role_is_described_with_its_parameters(self, problem, role):
        reference = import_module(f"{get_problem(problem).kit}.reference")
        text = shown(problem, role, kit=True)
        described = dict(re.findall(r"lns\.(\w+)\(([^)]*)\)", text))
        for name, given in described.items():
            parameters = inspect.signature(getattr(reference, name)).parameters.values()
            due = [each.name for each in parameters]
            documented = [part.partition("=")[0].strip() for part in given.split(",")]
            documented = [name for name in documented if name != "*"]
            assert documented == due[: len(documented)] == due or name in ("nearest",), name
            for part in given.split(","):
                if "=" in part:
                    option, _, value = part.strip().partition("=")
                    default = inspect.signature(getattr(reference, name)).parameters[option].default
                    assert str(default) == value, (name, option)
        removing = {name for name in reference.__all__ if name.endswith("_removal")}
        inserting = {
            "ordered_insertion",
            "regret_insertion",
            "greedy_insertion",
            "two_opt",
            "or_opt",
        }
        assert (removing if role == "destroy" else inserting) <= described.keys()

    @pytest.mark.parametrize("problem", ["tsp", "cvrp"])
    @pytest.mark.parametrize("role", ROLES)
    def test_without_it_nothing_speaks_of_it(self, problem, role):
        text = shown(problem, role, kit=False)
        assert "lns" not in text.replace("(LNS)", "").lower()
        assert "Kit" not in text
        assert "\n\n\n" not in text
        assert ("no 2-opt" in text) == (role == "repair")

    def test_only_the_kit_differs(self):
        """Line by line: what the kit adds, and the one requirement that it changes."""
        ours, theirs = (shown("tsp", "repair", kit=kit).splitlines() for kit in (True, False))
        less = [line for line in theirs if line not in ours]
        assert all(
            line.startswith(
                ("- Nodes that stayed", "- The partial tour", "- No further", "- You may")
            )
            for line in less
        ), less

    def test_a_problem_without_a_kit_is_asked_for_programs_without_one(self):
        class Bare(Problem):
            name = "bare"

            def contract(self, role):
                return "$state_input $adaptation" + " $paired_destroy" * (role == "repair")

        texts = Templates.read(None, Bare(), kit=True)
        assert not texts.kit
        assert "lns" not in texts.texts["rules.txt"]

    def test_a_contract_of_the_users_may_have_it_or_not(self, tmp_path):
        problem = get_problem("tsp")
        plain = "$state_input $adaptation"
        (tmp_path / "tsp-destroy.txt").write_text(plain)
        assert Templates.read(tmp_path, problem, kit=True).texts["tsp-destroy.txt"] == plain
        (tmp_path / "tsp-destroy.txt").write_text(f"$$1 $$kit ${{kit}}\n{plain}")
        text = Templates.read(tmp_path, problem, kit=True).texts["tsp-destroy.txt"]
        assert text.startswith("$$1 $$kit Kit\nWith import lns")
        (tmp_path / "tsp-destroy.txt").write_text(f"{plain} $kits")
        with pytest.raises(InputError, match=r"unknown placeholder \$kits"):
            Templates.read(tmp_path, problem, kit=True)

    def test_a_prompt_says_whether_it_offers_the_kit(self):
        for kit in (True, False):
            prompt = templates_of("tsp", kit).render("tsp", "destroy", INITIALIZATION)
            assert prompt.kit == kit


def shown(problem, role, kit):
    paired = None if role == "destroy" else Program("destroy", "def destroy(a):\n    pass\n", "x")
    return templates_of(problem, kit).render(problem, role, INITIALIZATION, (), paired).text
