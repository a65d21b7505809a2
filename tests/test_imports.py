"""Who may import whom, and what a worker and `spo --help` must not load."""

import ast
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import spo_jax

ROOT = Path(spo_jax.__file__).parent
PACKAGES = ("envs", "rl", "search", "peers", "runs", "frameworks")
OUTSIDE = {
    "cli",
    "__main__",
    "presets",
    "__init__",
}  # what sees everything


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def imports(path: Path) -> set[str]:
    """Modules of ours that a file imports, also inside its functions."""
    found = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.add(node.module or "")
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in found if name.split(".")[0] == "spo_jax"}


def test_data_flows_one_way() -> None:
    allowed = {"envs": {"envs"}, "rl": {"rl"}, "search": {"search", "envs", "rl"}}
    allowed["peers"] = {"peers", *allowed["search"]}
    allowed["runs"] = {"runs", *allowed["search"]}
    allowed["frameworks"] = {"frameworks", *allowed["runs"]}
    for path in ROOT.rglob("*.py"):
        part = path.relative_to(ROOT).parts[0].removesuffix(".py")
        if part in OUTSIDE:
            continue
        for name in imports(path):
            top = name.split(".")[1] if "." in name else ""
            assert top != "cli", f"{path} imports {name}"
            if top in PACKAGES:
                assert top in allowed.get(part, set()), f"{path} imports {name}"


def test_problems_are_known_by_their_packages_alone() -> None:
    """No code outside names a problem; the table of names and the default of a run do.

    Nor does what knows the TYPEs of files, to say which problem a file is of.
    """
    known = ("tsp", "cvrp", "vrptw")
    named = ("envs/problems/__init__.py", "envs/files/headers.py", "config/__init__.py", "presets/")
    named += tuple(f"envs/problems/{name}/" for name in known)
    for path in ROOT.rglob("*.py"):
        place = path.relative_to(ROOT).as_posix()
        if place in named or place.startswith(
            ("presets/", *(f"envs/problems/{n}/" for n in known))
        ):
            continue
        for name in imports(path):
            assert not name.startswith(tuple(f"spo_jax.envs.problems.{n}" for n in known)), path
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert node.value.lower() not in known, path


def test_there_is_no_circle_of_imports() -> None:
    """Of modules, with imports inside functions and for type checkers.

    The package itself shows names of all of them and is imported for its version.
    """
    modules = {}
    for path in ROOT.rglob("*.py"):
        name = ".".join(path.relative_to(ROOT.parent).with_suffix("").parts)
        modules[name.removesuffix(".__init__")] = path
    del modules["spo_jax"]
    graph = {}
    for name, path in modules.items():
        found = {each for each in imports(path) if each in modules}
        # `from package import module` names the package too, of which it needs nothing.
        inner = {each.rpartition(".")[0] for each in found}
        used = {each.rpartition(".")[0] for each in imports(path) - found}
        graph[name] = found - (inner - used) - {name}
    tuple(TopologicalSorter(graph).static_order())  # raises CycleError


def loaded_by(code: str, whole: bool = False) -> set[str]:
    """Modules that are loaded; their packages unless `whole` names are asked for."""
    script = f"import sys\n{code}\nprint(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return {name if whole else name.split(".")[0] for name in out.stdout.split()}


def test_a_worker_never_imports_jax() -> None:
    modules = loaded_by(
        "import spo_jax.envs.run.sandbox.process.zygote\n"
        "from spo_jax.envs.problems import get_problem\n"
        "get_problem('tsp').classical_destroys(), get_problem('cvrp').classical_destroys(), "
        "get_problem('vrptw').classical_destroys()"
    )
    heavy = {"jax", "jaxlib", "flax", "optax", "orbax", "chex", "matplotlib", "rich"}
    assert not modules & heavy


def test_nothing_that_evaluates_imports_jax() -> None:
    """XLA takes a gigabyte of address space and, for small sums, most of the time."""
    rooms = ("envs.gaps", "envs.report.evaluation", "envs.report.baselines", "envs.report.solve")
    modules = loaded_by("\n".join(f"import spo_jax.{room}" for room in rooms))
    assert not modules & {"jax", "jaxlib", "flax", "chex", "matplotlib"}


def test_what_reads_runs_imports_no_jax() -> None:
    """Names of credits and utilities are known without the functions that compute them."""
    rooms = ("runs.run", "runs.discover", "runs.report.write", "search.spo", "frameworks.scoring")
    modules = loaded_by("\n".join(f"import spo_jax.{room}" for room in rooms))
    assert not modules & {"jax", "jaxlib", "flax", "chex"}


def test_the_command_line_loads_nothing_heavy_before_it_knows_the_command() -> None:
    modules = loaded_by(
        "from spo_jax.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass"
    )
    assert not modules & {"jax", "flax", "optax", "numpy", "rich", "matplotlib"}


NODES = """TYPE: TSP
DIMENSION: 9
EDGE_WEIGHT_TYPE: EUC_2D
NODE_COORD_SECTION
""" + "".join(f"{i} {i % 3} {i}\n" for i in range(1, 10))


def test_a_search_begins_without_what_it_does_not_need(tmp_path: Path) -> None:
    """It begins as soon as it can: no runs, settings, tables, other problems or workers' code."""
    file = tmp_path / "a.tsp"
    file.write_text(NODES)
    modules = loaded_by(
        "from spo_jax.cli import main\n"
        "from spo_jax.envs.run.sandbox.process import starting\n"
        "first = {*sys.modules}\n"
        "starts, launched = [], starting.launched\n"
        "def noted(*arguments):\n"
        "    starts.append({*sys.modules} - first)\n"
        "    return launched(*arguments)\n"
        "starting.launched = noted\n"
        f"code = main(['solve', {str(file)!r}, '--steps', '2', '--out', {str(file) + '.tour'!r}])\n"
        "assert code == 0 and starts\n"
        "assert not any('numpy' in each for each in starts), starts",
        whole=True,
    )
    assert "spo_jax.envs.run.jobs.parallel_search" in modules
    packages = {"jax", "sqlite3", "pydantic", "rich", "matplotlib", "multiprocessing", "email"}
    ours = {"search", "config", "runs.run", "envs.report.evaluation", "envs.report.compare"}
    ours |= {"envs.problems.cvrp", "envs.problems.vrptw", "program.answers"}
    ours |= {"envs.run.sandbox.process.zygote", "envs.run.sandbox.child"}
    assert not modules & (packages | {f"spo_jax.{each}" for each in ours})


def test_a_folder_has_at_most_a_dozen_files() -> None:
    for path in ROOT.rglob("__init__.py"):
        files = [each for each in path.parent.glob("*.py") if each != path]
        assert len(files) <= 12, path.parent


def test_no_file_is_too_long() -> None:
    for path in ROOT.rglob("*.py"):
        assert len(path.read_text().splitlines()) <= 500, path
