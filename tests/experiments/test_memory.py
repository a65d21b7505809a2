"""The plan of the memory that sampling needs: it sees what sampling runs."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PROGRAM = """
import sys
from types import SimpleNamespace

sys.path.insert(0, "experiments/bench")
import jax
import jax.numpy as jnp
import numpy as np
import memory
import shapes
from flax import nnx
from spo_jax.rl import sampling
from spo_jax.rl.lora import LoraConfig, init_adapter
from spo_jax.rl.sampling import SamplingConfig

sampling.FIRST_SEGMENT = 8
config = shapes.config_of("small")
config = type(config)(**{**config.__dict__, "vocab_size": 256, "hidden_size": 64,
                         "intermediate_size": 128})
model = shapes.random_model(config, jnp.float32)
lora = LoraConfig(rank=2)
adapter = init_adapter(jax.random.key(0), lora, config).scaled(lora.scale)
options = SimpleNamespace(rows=12, prompt=64, completion=40)
abstract = nnx.eval_shape(lambda: model)
planned = memory.sampling_plans(
    abstract, jax.eval_shape(lambda: adapter), options, jax.devices()[0]
)

found = {}
for name in ("_prefill", "_next", "_segment"):
    def spied(*given, name=name, program=getattr(sampling, name)):
        found[name] = program.trace(*given).lower().compile().memory_analysis()
        return program(*given)
    setattr(sampling, name, spied)
prompts = list(np.arange(128, dtype=np.int32).reshape(2, 64))
settings = SamplingConfig(max_new_tokens=40, stop_tokens=(1000,))
sampling.sample(model, prompts, 6, jax.random.key(0), settings, adapter)
for name, plan in zip(("_prefill", "_next", "_segment"), planned):
    for what in ("temp", "argument", "output"):
        sizes = [getattr(one, f"{what}_size_in_bytes") for one in (plan, found[name])]
        print(name, what, *sizes)
"""


@pytest.mark.slow
def test_the_plan_is_of_the_programs_that_run() -> None:
    """From shapes alone: of the prefill, the last growth of the buffers and the last segment."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert len(lines) == 9
    for name, what, planned, run in lines:
        assert int(planned) == int(run) > 0 or (what, planned) == ("temp", run), (name, what)
