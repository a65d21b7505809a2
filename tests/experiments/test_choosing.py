"""What rules of choice take and lose, by hand."""

import sys

import numpy as np
import pytest

import choosing


def test_rollouts_of_a_rule() -> None:
    assert choosing.cost_of("validation", 6, 4) == 24
    # (24, 2), (12, 3), (6, 5), (3, 9)
    assert choosing.cost_of("halving", 24, 9) == 24 * 2 + 12 + 6 * 2 + 3 * 4
    assert choosing.cost_of("halving", 4, 5) == 20
    assert choosing.cost_of("highest J", 1, 0) == 0


def test_rules_choose_the_lowest_gap() -> None:
    gaps = np.array([[3.0] * 4, [np.nan] * 4, [1.0] * 4, [2.0] * 4, [9.0] * 4, [1.0] * 4])
    assert choosing.highest(gaps) == 0
    assert choosing.lowest(gaps) == 2
    assert choosing.halved(gaps) == 2


def test_regrets_of_pairs_that_do_not_vary() -> None:
    gaps = np.arange(16.0)[::-1, None] * np.ones((1, 8))
    found = dict(zip(choosing.RULES, choosing.regrets(gaps, 3), strict=True))
    assert found["highest J", 1, 0] == 15
    assert found["validation", 6, 4] == 10  # the best of the first six
    assert found["halving", 12, 4] == 4
    assert found["validation", 16, 4] == 0
    assert np.isnan(found["halving", 16, 8])  # half of the instances are four
    assert np.isnan(found["validation", 24, 9])


def test_variances_are_found_again() -> None:
    rng = np.random.default_rng(0)
    gaps = rng.normal(0, 0.5, (4000, 1)) + rng.normal(0, 3, (1, 20))
    gaps += rng.normal(0, 2, (4000, 20))
    assert choosing.variances(gaps) == pytest.approx((0.5, 2), rel=0.1)
    by_hand = np.array([[0.0, 2.0], [4.0, 6.0], [np.nan, 1.0]])
    assert choosing.variances(by_hand) == pytest.approx((np.sqrt(8), 0))


@pytest.mark.long
def test_without_noise_the_best_of_what_is_seen_wins() -> None:
    true, measured = choosing.expected(1.0, 0.0, 50)
    assert np.array_equal(true, measured)
    found = dict(zip(choosing.RULES, true, strict=True))
    assert found["halving", 48, 16] == found["halving", 48, 24] == 0
    assert found["validation", 16, 2] == found["halving", 16, 8] > 0


@pytest.mark.long
def test_luck_raises_the_regret_that_is_measured() -> None:
    true, measured = choosing.expected(0.0, 1.0, 1000, 16, 4)
    known = [finalists <= 16 for _, finalists, _ in choosing.RULES]
    assert np.isnan(true[~np.array(known)]).all()
    assert np.array_equal(true[known], np.zeros(sum(known)))  # pairs are alike
    # The expected least of 16 standard normals is -1.766; of a mean over four, half of that.
    assert measured[known] == pytest.approx(1.766 / 2, abs=0.03)


@pytest.mark.slow
def test_a_run_resumes(tmp_path, monkeypatch, capsys) -> None:  # type: ignore[no-untyped-def]
    preset = tmp_path / "tiny.toml"
    preset.write_text("[search]\nrounds = 1\nresponses = 2\nrepairs_per_destroy = 2\n"
                      "[evaluation]\nsize = 8\ninstances = 1\nsteps = 3\n")  # fmt: skip
    flags = ["--runs", "1", "--preset", str(preset), "--pairs", "4", "--instances", "6", "--size",
             "8", "--steps", "3", "--out", str(tmp_path / "out")]  # fmt: skip
    monkeypatch.setattr(choosing, "WORLDS", 5)
    monkeypatch.setattr(choosing, "DRAWS", 5)
    monkeypatch.setattr(sys, "argv", ["choosing.py", *flags])
    assert choosing.main() == 0
    first = capsys.readouterr().out
    monkeypatch.setattr(choosing.LocalEvaluator, "run", None)  # what is kept is not run again
    assert choosing.main() == 0
    assert capsys.readouterr().out in first
    assert (tmp_path / "out" / "choosing.md").read_text().startswith("| rule |")
    monkeypatch.setattr(sys, "argv", ["choosing.py", *flags, "--pairs", "5"])
    assert choosing.main() == 2
    assert "use another OUT" in capsys.readouterr().err
