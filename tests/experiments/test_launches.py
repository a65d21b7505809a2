"""Kernels are counted from XLA's text, as often as loops run them."""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp

sys.path.append(str(Path(__file__).parents[2] / "experiments/bench"))
from launches import launches

TEXT = """\
HloModule jit_f, is_scheduled=true

%fused (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  ROOT %m = f32[4]{0} multiply(%p, %p)
}

%inner (t: (s32[], f32[4])) -> (s32[], f32[4]) {
  %t = (s32[], f32[4]{0}) parameter(0)
  %f.1 = f32[4]{0} fusion(%t), kind=kLoop, calls=%fused
  ROOT %r = (s32[], f32[4]{0}) tuple(%t, %f.1)
}

%outer (t: (s32[], f32[4])) -> (s32[], f32[4]) {
  %c.1 = f32[4]{0} custom-call(%t), custom_call_target="__cublas$gemm"
  %f.2 = f32[4]{0} fusion(%c.1), kind=kLoop, calls=%fused
  ROOT %w.1 = (s32[], f32[4]{0}) while(%f.2), condition=%x, body=%inner, backend_config={"known_trip_count":{"n":"5"}}
}

ENTRY %main.3 (a: f32[4]) -> f32[4] {
  %a = f32[4]{0} parameter(0)
  %copy.1 = f32[4]{0} copy(%a)
  %b = f32[4]{0} bitcast(%copy.1)
  %w.2 = (s32[], f32[4]{0}) while(%b), condition=%x, body=%outer, backend_config={"known_trip_count":{"n":"3"}}
  %call.1 = f32[4]{0} call(%w.2), to_apply=%inner
  %w.3 = (s32[], f32[4]{0}) while(%call.1), condition=%x, body=%inner
  ROOT %g = f32[4]{0} get-tuple-element(%w.3), index=1
}
"""  # noqa: E501


def test_kernels_by_hand() -> None:
    # A copy; three times a product, a fusion and five fusions; a call; a loop of unknown length.
    assert launches(TEXT) == 1 + 3 * (1 + 1 + 5) + 1 + 1


def test_a_loop_counts_as_often_as_it_runs() -> None:
    def program(length: int) -> int:
        def run(x: jax.Array) -> jax.Array:
            return jax.lax.fori_loop(0, length, lambda _, y: jnp.sin(y @ y), x)

        return launches(jax.jit(run).lower(jnp.ones((8, 8))).compile().as_text())

    assert program(70) - program(40) == 3 * (program(40) - program(30)) > 0
