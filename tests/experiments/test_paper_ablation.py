"""Table 2 of the paper against studies of ours."""

import numpy as np
import pytest
from scipy import stats

import paper_ablation
from spo_jax.envs.files.textfiles import write_atomically
from spo_jax.errors import InputError
from spo_jax.search.lab.power import holm, interval


def test_effects_are_differences_of_the_papers_rows() -> None:
    found = paper_ablation.effects()
    assert found["shared", 50] == pytest.approx(1.398 - 0.212)
    assert found["no-state", 500] == pytest.approx(6.484 - 3.139)
    assert len(found) == 8


def test_p_is_that_of_a_t_test_on_the_differences() -> None:
    values = np.array([0.3, -0.1, 0.2, 0.05, 0.4])
    expected = stats.ttest_1samp(values, 0.5, alternative="less").pvalue
    assert paper_ablation.below(*interval(values), 5, 0.5) == pytest.approx(expected)


def test_only_sizes_and_arms_of_the_paper_and_all_tests_are_one_family(tmp_path) -> None:
    path = tmp_path / "study-tests.csv"
    lines = ["arm,measure,seeds,difference,low,high"]
    lines += [f"{arm},{measure},8,0.1,-0.2,0.4" for arm, measure in (
        ("shared", "gap: uniform:100x4@2026"), ("no-state", "gap: uniform:200x4@2026"),
        ("shared", "gap: uniform:70x4@2026"), ("shared", "median"),
        ("no-update", "gap: uniform:100x4@2026"),
    )]  # fmt: skip
    write_atomically(path, "\n".join(lines).encode())
    found = paper_ablation.compared([str(path)])
    assert list(found.arm) == ["shared", "no-state"]
    effects = [1.908 - 0.642, 2.686 - 1.274]
    whole = [paper_ablation.below(0.1, -0.2, 0.4, 8, effect) for effect in effects]
    half = [paper_ablation.below(0.1, -0.2, 0.4, 8, effect / 2) for effect in effects]
    expected = holm([*whole, *half])
    assert [*found.whole, *found.half] == pytest.approx(list(expected))


def test_a_file_without_such_tests_is_refused(tmp_path) -> None:
    path = tmp_path / "none.csv"
    path.write_text("arm,measure,seeds,difference,low,high\nshared,median,8,1,0,2\n")
    with pytest.raises(InputError, match="has no gap of shared or no-state"):
        paper_ablation.compared([str(path)])
    path.write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="is no table of tests"):
        paper_ablation.compared([str(path)])
