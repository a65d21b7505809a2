"""A library that tests compare with is missed aloud, unless it was left out on purpose."""

import math

import pytest

from tests.oracles import oracle

MISSING = "spo_jax_no_such_library"


def test_one_that_is_there_is_the_module() -> None:
    assert oracle("math") is math


@pytest.mark.parametrize("value", [None, "", "0"])
def test_a_missing_one_is_an_error(value: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPO_WITHOUT_ORACLES", raising=False)
    if value is not None:
        monkeypatch.setenv("SPO_WITHOUT_ORACLES", value)
    with pytest.raises(ModuleNotFoundError, match=MISSING) as caught:
        oracle(MISSING)
    assert "extra `oracles`" in caught.value.__notes__[0]


def test_one_that_was_left_out_is_a_skip_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPO_WITHOUT_ORACLES", "1")
    with pytest.raises(pytest.skip.Exception, match=f"{MISSING} was left out"):
        oracle(MISSING)
