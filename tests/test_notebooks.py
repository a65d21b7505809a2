"""The notebooks of docs/notebooks: stored without outputs, and every cell runs."""

import json
import re
from pathlib import Path
from typing import Any

import matplotlib
import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
named = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def cells(path: Path, kind: str) -> list[str]:
    notebook = json.loads(path.read_text("utf-8"))
    return ["".join(each["source"]) for each in notebook["cells"] if each["cell_type"] == kind]


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS


@named
def test_a_notebook_is_stored_without_outputs(path: Path) -> None:
    notebook = json.loads(path.read_text("utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert set(notebook["metadata"]) == {"kernelspec", "language_info"}
    assert len({each["id"] for each in notebook["cells"]}) == len(notebook["cells"])
    for each in notebook["cells"]:
        assert each["metadata"] == {}
        if each["cell_type"] == "code":
            assert (each["outputs"], each["execution_count"]) == ([], None)


@named
def test_a_notebook_begins_with_its_title_and_its_links_lead_somewhere(path: Path) -> None:
    texts = cells(path, "markdown")
    assert re.match(r"# \S", texts[0])
    for link in re.findall(r"\]\(([^)\s#]+)", "\n".join(texts)):
        if not re.match(r"[a-z]+:", link):
            assert (path.parent / link).exists(), link


@pytest.mark.slow
@named
def test_every_cell_of_a_notebook_runs(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one namespace and in order, as a kernel runs them; magics would be no Python.

    They run in a folder of their own, in which a notebook finds the data of experiments/.
    """
    pytest.importorskip("pandas", reason="pandas is not installed (the extra study)")
    matplotlib.use("agg")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "experiments").symlink_to(ROOT / "experiments")
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, source in enumerate(cells(path, "code"), 1):
        exec(compile(source, f"{path.name}, cell {number}", "exec"), names)
