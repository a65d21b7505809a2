import json
import os
import random
import shutil
import socket
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from spo_jax.errors import InputError
from spo_jax.rl.checkpoint import Checkpoints
from spo_jax.rl.lora import LoraConfig, init_adapter
from spo_jax.rl.qwen.config import FULL, LINEAR, QwenConfig


@partial(jax.tree_util.register_dataclass, data_fields=["weights", "key"], meta_fields=["name"])
@dataclass(frozen=True)
class State:
    weights: dict
    key: jax.Array
    name: str


def numbered(number, size=50):
    """A small state that differs from number to number."""
    return {"a": jnp.full((size,), number, jnp.float32), "step": jnp.int32(number)}


def bits(leaf):
    if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return str(jax.random.key_impl(leaf)), bits(jax.random.key_data(leaf))
    array = np.asarray(leaf)
    return array.dtype.name, array.shape, array.tobytes()


def same(tree, other):
    assert jax.tree.structure(tree) == jax.tree.structure(other)
    for leaf, its in zip(jax.tree.leaves(tree), jax.tree.leaves(other), strict=True):
        assert bits(leaf) == bits(its)


def everything():
    rng = np.random.default_rng(0)
    weights = {
        "float32": jnp.asarray(rng.normal(size=(3, 5)), jnp.float32).at[0, 0].set(jnp.nan),
        "bfloat16": jnp.asarray(rng.normal(size=(4, 2)), jnp.bfloat16),
        "int": jnp.arange(-3, 3, dtype=jnp.int8),
        "scalar": jnp.uint32(7),
        "empty array": jnp.zeros((0, 3)),
        "numpy": rng.integers(0, 9, size=(2, 2)),
        "no layers": {},
        "nothing": None,
        "round": 5,
        "rate": 0.25,
        "done": True,
        "a/b.c's [0] ü": (jnp.ones(2), [jnp.zeros(1)]),
    }
    adapter = {"a": weights["float32"], "b": weights["bfloat16"]}
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))
    _, moved = optimizer.update(
        jax.tree.map(jnp.ones_like, adapter), optimizer.init(adapter), adapter
    )
    weights["optimizer"] = moved
    return State(weights, jax.random.split(jax.random.key(3, impl="rbg"), 2), "here")


def run(program, *args, **environment):
    """Standard output of a Python program; standard error must stay empty."""
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, args)],
        env={**os.environ, "JAX_PLATFORMS": "cpu", **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


# --- round trips ----------------------------------------------------------------------------------


@pytest.mark.long
def test_every_leaf_comes_back_bit_for_bit(tmp_path):
    state = everything()
    with Checkpoints(tmp_path) as checkpoints:
        checkpoints.save(1, state)
        restored = checkpoints.restore(1, state)
    same(restored, state)
    assert restored.name == "here"
    back = restored.weights
    assert [type(back[k]) for k in ("round", "rate", "done", "numpy")] == [
        int, float, bool, np.ndarray,
    ]  # fmt: skip
    assert isinstance(back["optimizer"][1][0], optax.ScaleByAdamState)
    draw = jax.random.bits(state.key[1], (4,))
    assert (jax.random.bits(restored.key[1], (4,)) == draw).all()
    assert not back["float32"].committed


def test_another_manager_restores_into_an_abstract_state(tmp_path):
    def make(seed):
        return {"w": jax.random.normal(jax.random.key(seed), (3, 4)), "key": jax.random.key(seed)}

    with Checkpoints(tmp_path) as checkpoints:
        checkpoints.save(0, make(5))
    place = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    abstract = jax.eval_shape(lambda: make(0))
    placed = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=place), abstract
    )
    with Checkpoints(tmp_path) as checkpoints:
        assert checkpoints.latest() == 0
        free, held = checkpoints.restore(0, abstract), checkpoints.restore(0, placed)
    same(free, make(5))
    same(held, make(5))
    assert held["w"].committed
    assert held["key"].committed
    assert not free["w"].committed
    assert not free["key"].committed


def test_the_static_part_is_that_of_like(tmp_path):
    state = State({"w": jnp.ones(2)}, jax.random.key(0), "saved")
    with Checkpoints(tmp_path) as checkpoints:
        checkpoints.save(0, state)
        like = State({"w": jnp.zeros(2)}, jax.random.key(9), "asked for")
        restored = checkpoints.restore(0, like)
    assert restored.name == "asked for"
    same(restored.weights, state.weights)


def test_a_state_without_arrays(tmp_path):
    with Checkpoints(tmp_path) as checkpoints:
        checkpoints.save(0, {"none": None, "empty": {}})
        assert checkpoints.restore(0, {"none": None, "empty": {}}) == {"none": None, "empty": {}}


def test_arrays_may_change_or_be_donated_once_save_returns(tmp_path):
    advance = jax.jit(lambda x: jax.tree.map(lambda y: y + 1, x), donate_argnums=0)
    state = [jnp.zeros((512, 512)) for _ in range(8)]
    on_host = np.zeros((1000, 1000), np.int32)
    with Checkpoints(tmp_path, keep=6) as checkpoints:
        for number in range(6):
            checkpoints.save(number, (state, on_host))
            on_host += 1
            state = advance(state)
        for number in range(6):
            expected = ([jnp.full((512, 512), float(number))] * 8, np.full_like(on_host, number))
            same(checkpoints.restore(number, expected), expected)


def test_an_adapter_takes_its_own_size_and_no_more(tmp_path):
    config = QwenConfig(
        vocab_size=4096, hidden_size=256, intermediate_size=512,
        layer_types=(LINEAR, LINEAR, LINEAR, FULL), num_attention_heads=4, num_key_value_heads=2,
        head_dim=64, linear_num_key_heads=4, linear_num_value_heads=4, linear_key_head_dim=64,
        linear_value_head_dim=64, rotary_dim=16,
    )  # fmt: skip
    abstract = jax.eval_shape(
        lambda key: init_adapter(key, LoraConfig(), config), jax.random.key(0)
    )
    rng = np.random.default_rng(0)
    adapter = jax.tree.map(lambda x: rng.normal(size=x.shape).astype(np.float32), abstract)
    optimizer = (optax.EmptyState(), optax.ScaleByAdamState(np.int32(1), adapter, adapter))
    with Checkpoints(tmp_path) as checkpoints:
        checkpoints.save(0, (adapter, optimizer))
    written = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    arrays = 3 * 4 * adapter.size  # weights and two moments, float32; the base would be 9 times it
    assert 0.8 * arrays < written < arrays + 60_000


# --- numbers --------------------------------------------------------------------------------------


def test_the_newest_stay(tmp_path):
    with Checkpoints(tmp_path, keep=2) as checkpoints:
        assert checkpoints.numbers() == ()
        assert checkpoints.latest() is None
        for number in (1, 2, 9, 10):
            checkpoints.save(number, numbered(number))
        assert checkpoints.numbers() == (9, 10)
        assert checkpoints.latest() == 10
        same(checkpoints.restore(9, numbered(0)), numbered(9))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["10", "9"]


def test_nothing_goes_before_the_new_one_is_finished(tmp_path, monkeypatch):
    finished = []
    with Checkpoints(tmp_path, keep=2) as checkpoints:
        delete = checkpoints._manager.delete

        def watched(number):
            finished.append(sorted(path.parent.name for path in tmp_path.glob("*/checksums.json")))
            delete(number)

        monkeypatch.setattr(checkpoints._manager, "delete", watched)
        for number in range(4):
            checkpoints.save(number, numbered(number))
    assert finished == [["0", "1", "2"], ["1", "2", "3"]]


def test_a_number_saved_again_is_replaced(tmp_path):
    with Checkpoints(tmp_path) as checkpoints:
        for number in (1, 2):
            checkpoints.save(number, numbered(number))
        checkpoints.save(2, numbered(20))
        assert checkpoints.numbers() == (1, 2)
        same(checkpoints.restore(2, numbered(0)), numbered(20))
    with Checkpoints(tmp_path) as checkpoints:
        checkpoints.save(2, numbered(200))
        same(checkpoints.restore(2, numbered(0)), numbered(200))
        same(checkpoints.restore(1, numbered(0)), numbered(1))


def test_later_ones_are_discarded(tmp_path):
    with Checkpoints(tmp_path, keep=5) as checkpoints:
        for number in range(1, 5):
            checkpoints.save(number, numbered(number))
        checkpoints.discard_after(7)
        assert checkpoints.numbers() == (1, 2, 3, 4)
        checkpoints.discard_after(2)
        assert checkpoints.numbers() == (1, 2)
        checkpoints.save(3, numbered(33))
    with Checkpoints(tmp_path) as checkpoints:
        assert checkpoints.numbers() == (1, 2, 3)
        same(checkpoints.restore(3, numbered(0)), numbered(33))
        checkpoints.discard_after(-1)
        assert checkpoints.numbers() == ()
    assert list(tmp_path.iterdir()) == []


# --- other devices --------------------------------------------------------------------------------

FOUR = """
import sys
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import NamedSharding, PartitionSpec as P
from spo_jax.rl.checkpoint import Checkpoints
from spo_jax.rl.sharding import make_mesh

assert len(jax.devices()) == 4
one, four = sys.argv[1:]
mesh = make_mesh(2, 2)
split, whole = NamedSharding(mesh, P("fsdp", "data")), NamedSharding(mesh, P())
like = {
    "w": jax.ShapeDtypeStruct((8, 6), jnp.float32, sharding=split),
    "b": jax.device_put(jnp.zeros((3, 3), jnp.bfloat16), whole),
    "keys": jax.ShapeDtypeStruct(
        (4,), jax.random.key(0).dtype, sharding=NamedSharding(mesh, P("data"))
    ),
    "step": 0,
}
with Checkpoints(one) as checkpoints:
    state = checkpoints.restore(1, like)
assert state["w"].sharding == split and state["b"].sharding == whole
assert {shard.data.shape for shard in state["w"].addressable_shards} == {(4, 3)}
assert {shard.data.shape for shard in state["keys"].addressable_shards} == {(2,)}
assert len(state["b"].addressable_shards) == 4
np.testing.assert_array_equal(np.asarray(state["w"]), np.arange(48.0).reshape(8, 6))
state["w"] = 2 * state["w"]
with Checkpoints(four) as checkpoints:
    checkpoints.save(2, state)
print("done")
"""


@pytest.mark.long
def test_onto_four_devices_and_back(tmp_path):
    state = {
        "w": jnp.arange(48.0).reshape(8, 6),
        "b": jnp.full((3, 3), 1.5, jnp.bfloat16),
        "keys": jax.random.split(jax.random.key(4), 4),
        "step": 12,
    }
    with Checkpoints(tmp_path / "one") as checkpoints:
        checkpoints.save(1, state)
    flags = "--xla_force_host_platform_device_count=4"
    assert run(FOUR, tmp_path / "one", tmp_path / "four", XLA_FLAGS=flags) == "done\n"
    with Checkpoints(tmp_path / "four") as checkpoints:
        mesh = Mesh(np.array(jax.devices()[:1]), ("data",))
        like = {**state, "w": jax.device_put(state["w"], NamedSharding(mesh, P("data")))}
        restored = checkpoints.restore(2, like)
    same(restored, {**state, "w": 2 * state["w"]})
    assert restored["w"].sharding.is_equivalent_to(like["w"].sharding, 2)


TWO_PROCESSES = """
import sys
import jax

port, process, folder = sys.argv[1:]
jax.distributed.initialize(f"localhost:{port}", num_processes=2, process_id=int(process))
import jax.numpy as jnp, numpy as np
from jax.sharding import NamedSharding, PartitionSpec as P
from spo_jax.errors import InputError
from spo_jax.rl.checkpoint import Checkpoints
from spo_jax.rl.sharding import make_mesh, replicated

assert (jax.process_count(), len(jax.devices()), len(jax.local_devices())) == (2, 4, 2)
mesh = make_mesh(2, 2)
rows = np.arange(32.0, dtype=np.float32).reshape(8, 4)
split = jax.device_put(rows, NamedSharding(mesh, P(("data", "fsdp"))))
product = jax.jit(lambda x: x @ x.T, out_shardings=NamedSharding(mesh, P()))(split)
np.testing.assert_allclose(np.asarray(product), rows @ rows.T, rtol=1e-5)
state = {
    "split": split,
    "whole": replicated(jnp.arange(6.0), mesh),
    "key": jax.random.key(3),  # of each process, as is the next
    "numpy": np.arange(5),
    "step": 4,
}
with Checkpoints(folder, keep=2) as checkpoints:
    for number in (1, 2, 3, 3):
        checkpoints.save(number, state)
    assert checkpoints.numbers() == (2, 3)
    restored = checkpoints.restore(3, state)
    assert restored["split"].sharding == split.sharding and restored["step"] == 4
    for here, there in zip(split.addressable_shards, restored["split"].addressable_shards):
        np.testing.assert_array_equal(here.data, there.data)
    try:
        checkpoints.restore(3, {**state, "numpy": np.arange(6)})
    except InputError:
        checkpoints.discard_after(2)
    checkpoints.save(4, state)
assert checkpoints.numbers() == (2, 4)
"""


@pytest.mark.slow
def test_two_processes_and_then_one(tmp_path):
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    flags = "--xla_force_host_platform_device_count=2"
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", TWO_PROCESSES, str(port), str(process), str(tmp_path)],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        for process in range(2)
    ]
    for process in processes:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    state = {
        "split": jnp.arange(32.0).reshape(8, 4),
        "whole": jnp.arange(6.0),
        "key": jax.random.key(3),
        "numpy": np.arange(5),
        "step": 4,
    }
    with Checkpoints(tmp_path) as checkpoints:
        assert checkpoints.numbers() == (2, 4)
        for number in (2, 4):
            same(checkpoints.restore(number, state), state)


# --- kills ----------------------------------------------------------------------------------------

# A process that imported everything and started nothing is forked for each moment, and the fork
# killed then. The fork writes "s" for a save that returned and "d" for one that was waited for.
KILLS = """
import os, signal, sys, time
import jax, jax.numpy as jnp, numpy as np
from spo_jax.rl.checkpoint import Checkpoints

def state(number):
    rng = np.random.default_rng(number)
    return {"w": jnp.asarray(rng.normal(size=(2, 256, 512)), jnp.float32), "step": number}

def train(folder, pipe):
    with Checkpoints(folder, keep=2) as checkpoints:
        for number in range(1000):
            checkpoints.save(number, state(number))
            os.write(pipe, b"s%d " % number)
            if number % 2:
                checkpoints.wait()
                os.write(pipe, b"d%d " % number)

for moment in sys.argv[2:]:
    event, delay = moment.split("+")
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        train(os.path.join(sys.argv[1], moment), writer)
    seen = b""
    while event.encode() not in seen.split():
        seen += os.read(reader, 100)
    time.sleep(float(delay))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(writer)
    while more := os.read(reader, 100):
        seen += more
    print(moment, *(word.decode() for word in seen.split()))
"""


def killed_state(number):
    rng = np.random.default_rng(number)
    return {"w": jnp.asarray(rng.normal(size=(2, 256, 512)), jnp.float32), "step": number}


@pytest.mark.long
def test_a_kill_leaves_whole_checkpoints_and_all_that_were_finished(tmp_path):
    draw = random.Random(0)
    moments = ["s0+0", "s1+0", "d1+0", "s2+0"]
    moments += [f"s{draw.randrange(2, 6)}+{draw.uniform(0, 0.12):.4f}" for _ in range(6)]
    lines = run(KILLS, tmp_path, *moments).splitlines()
    assert len(lines) == len(moments)
    unfinished = 0
    for line in lines:
        moment, *events = line.split()
        folder = tmp_path / moment
        unfinished += any(not (path / "checksums.json").exists() for path in folder.iterdir())
        saved = max(int(event[1:]) for event in events if event[0] == "s")
        finished = {int(event[1:]) for event in events if event[0] == "d"} | {saved - 1}
        with Checkpoints(folder, keep=2) as checkpoints:
            numbers = checkpoints.numbers()
            assert set(numbers) <= set(range(saved + 2))
            assert max(finished) in (*numbers, -1)
            for number in numbers:
                same(checkpoints.restore(number, killed_state(0)), killed_state(number))
            checkpoints.discard_after(max(finished))
            checkpoints.save(max(finished) + 1, numbered(7))
            same(checkpoints.restore(max(finished) + 1, numbered(0)), numbered(7))
            assert {path.name for path in folder.iterdir()} == set(map(str, checkpoints.numbers()))
    assert unfinished >= 4  # or the moments prove nothing


def test_a_checkpoint_is_on_the_disk_when_it_counts(tmp_path, monkeypatch):
    events = []
    fsync, rename = os.fsync, Path.rename

    def watched_fsync(descriptor):
        events.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")))
        fsync(descriptor)

    def watched_rename(path, target):
        events.append("rename")
        return rename(path, target)

    with Checkpoints(tmp_path) as checkpoints:
        checkpoints.save(1, numbered(1))
        checkpoints._manager.wait_until_finished()
        monkeypatch.setattr(os, "fsync", watched_fsync)
        monkeypatch.setattr(Path, "rename", watched_rename)
        checkpoints.wait()
        monkeypatch.undo()
    moment = events.index("rename")
    below = {path for path in (tmp_path / "1").rglob("*") if path.name != "checksums.json"}
    assert {*below, tmp_path / "1" / ".checksums.json"} <= set(events[:moment])
    assert {tmp_path / "1", tmp_path} <= set(events[moment + 1 :])


def test_leftovers_of_a_kill_do_not_confuse(tmp_path):
    with Checkpoints(tmp_path) as checkpoints:
        checkpoints.save(1, numbered(1))
    shutil.copytree(tmp_path / "1", tmp_path / "2.orbax-checkpoint-tmp")
    shutil.copytree(tmp_path / "1", tmp_path / "3.orbax-checkpoint-tmp-1700000000000000")
    shutil.copytree(tmp_path / "1", tmp_path / "discarded" / "0")
    shutil.copytree(tmp_path / "1", tmp_path / "4")
    (tmp_path / "4" / "checksums.json").unlink()
    (tmp_path / "5").mkdir()
    (tmp_path / "5" / "mine.txt").write_text("not a checkpoint")
    (tmp_path / "notes" / "layout").mkdir(parents=True)
    with Checkpoints(tmp_path, keep=2) as checkpoints:
        assert checkpoints.numbers() == (1,)
        for number in (2, 3, 4):
            checkpoints.save(number, numbered(number))
            same(checkpoints.restore(number, numbered(0)), numbered(number))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["3", "4", "5", "notes"]
    assert (tmp_path / "5" / "mine.txt").exists()


# --- errors ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A folder with checkpoints 3 and 4 of an adapter-like state."""
    folder = tmp_path_factory.mktemp("checkpoints")
    with Checkpoints(folder) as checkpoints:
        for number in (3, 4):
            checkpoints.save(number, {"a": jnp.ones((4, 8)), "key": jax.random.key(0)})
    return folder


def refuse(folder, number, like):
    with Checkpoints(folder) as checkpoints, pytest.raises(InputError) as caught:
        checkpoints.restore(number, like)
    message = str(caught.value)
    assert str(folder) in message
    assert "\n" not in message
    return message


LIKE = {"a": jnp.ones((4, 8)), "key": jax.random.key(0)}


def test_a_missing_number(saved, tmp_path):
    assert refuse(saved, 5, LIKE).endswith(
        "there are 3, 4; --rewind goes back to the round of an earlier one"
    )
    assert refuse(tmp_path, 0, LIKE).endswith("has no checkpoint 0; there are none")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"a": jnp.ones((8, 8))}, "['a'] is float32[4,8] there and float32[8,8] here"),
        ({"a": jnp.ones((32,))}, "['a'] is float32[4,8] there and float32[32] here"),
        ({"a": jnp.ones((4, 8), jnp.bfloat16)}, "float32[4,8] there and bfloat16[4,8] here"),
        ({"a": {"b": jnp.ones((4, 8))}}, "['a'] is float32[4,8] there and absent here"),
        ({"b": jnp.ones(1)}, "['b'] is absent there and float32[1] here"),
        ({"key": jax.random.key(0, impl="rbg")}, "key<threefry2x32>[] there and key<rbg>[] here"),
        ({"key": jnp.zeros(2, jnp.uint32)}, "key<threefry2x32>[] there and uint32[2] here"),
    ],
)
def test_a_state_that_does_not_fit(saved, change, words):
    message = refuse(saved, 4, {**LIKE, **change})
    assert words in message
    assert "adapter of another shape or rank" in message


def damage_cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def damage_bit(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.long
@pytest.mark.parametrize("damage", [damage_cut, damage_bit, Path.unlink])
def test_damage_to_any_file_is_reported(saved, tmp_path, damage, capfd):
    files = [path for path in sorted((saved / "4").rglob("*")) if path.is_file()]
    assert len(files) > 5
    for file in files:
        folder = tmp_path / file.name
        shutil.copytree(saved, folder)
        damage(folder / file.relative_to(saved))
        if damage is Path.unlink and file.name == "checksums.json":
            assert "has no checkpoint 4; there are 3;" in refuse(folder, 4, LIKE)
        else:
            message = refuse(folder, 4, LIKE)
            assert "is damaged (" in message
            assert message.endswith("; --rewind goes back to the round of an earlier one")
        with Checkpoints(folder) as checkpoints:
            same(checkpoints.restore(3, LIKE), LIKE)
        shutil.rmtree(folder)
    assert capfd.readouterr() == ("", "")


def test_what_orbax_cannot_read_is_reported_too(saved, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(saved, folder)
    sums = json.loads((folder / "4" / "checksums.json").read_text())
    kept = {name: crc for name, crc in sums.items() if not name.startswith("arrays/")}
    (folder / "4" / "checksums.json").write_text(json.dumps(kept))
    shutil.rmtree(folder / "4" / "arrays")
    assert "checkpoint 4" in refuse(folder, 4, LIKE)


def test_a_folder_that_is_none(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(InputError, match=f"{file} is a file; checkpoints need a folder"):
        Checkpoints(file)
    with pytest.raises(InputError, match=r"file/below cannot hold checkpoints .Not a directory"):
        Checkpoints(file / "below")
    with pytest.raises(InputError, match=r"cannot hold checkpoints .No such file or directory"):
        Checkpoints("/proc/checkpoints")


def test_a_folder_that_cannot_be_written(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write anywhere
    with pytest.raises(InputError, match=r"cannot hold checkpoints .Permission denied"):
        Checkpoints(tmp_path)


def test_arguments_that_make_no_sense(tmp_path):
    with pytest.raises(InputError, match="keep is 1; a run needs its two newest"):
        Checkpoints(tmp_path, keep=1)
    with Checkpoints(tmp_path) as checkpoints:
        with pytest.raises(TypeError, match=r"name'. is a str; a checkpoint holds arrays"):
            checkpoints.save(0, {"name": "x"})
        with pytest.raises(TypeError, match="abstract"):
            checkpoints.save(0, jax.eval_shape(lambda: numbered(0)))
        for number in (1, 2):
            checkpoints.save(number, numbered(number))
        with pytest.raises(InputError, match="has a checkpoint 2, made after number 1: discard"):
            checkpoints.save(1, numbered(10))
        same(checkpoints.restore(1, numbered(0)), numbered(1))


FULL_DISK = """
import resource, sys
import jax.numpy as jnp, numpy as np
from spo_jax.errors import InputError
from spo_jax.rl.checkpoint import Checkpoints

small = {"w": jnp.ones(10)}
large = {"w": jnp.asarray(np.random.default_rng(0).normal(size=(1000, 1000)))}
with Checkpoints(sys.argv[1], keep=2) as checkpoints:
    for number in (1, 2):
        checkpoints.save(number, small)
    checkpoints.wait()
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
    for _ in range(2):
        checkpoints.save(3, large)
        try:
            checkpoints.wait()
        except InputError as error:
            print(error)
        print(checkpoints.numbers())
    checkpoints.save(3, large)
    try:
        checkpoints.save(3, small)
    except InputError as error:
        print(error)
    checkpoints.save(3, small)
    print(checkpoints.numbers(), checkpoints.restore(3, small)["w"].sum())
    checkpoints.save(4, large)
    raise SystemExit
"""


@pytest.mark.long
def test_a_write_that_fails_is_reported_and_earlier_ones_stay(tmp_path):
    failure = f"checkpoint 3 could not be written in {tmp_path} (File too large)"
    lines = run(FULL_DISK, tmp_path).splitlines()
    assert lines == [failure, "(1, 2)", failure, "(1, 2)", failure, "(2, 3) 10.0"]
    with Checkpoints(tmp_path, keep=2) as checkpoints:
        assert checkpoints.numbers() == (2, 3)
        checkpoints.save(4, {"w": jnp.zeros(10)})
        assert checkpoints.numbers() == (3, 4)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["3", "4"]


def test_closing_tells_of_a_failed_write_unless_something_else_did(tmp_path, monkeypatch):
    def fail():
        raise OSError(28, os.strerror(28))

    def failing():
        checkpoints = Checkpoints(tmp_path)
        checkpoints.save(1, numbered(1))
        checkpoints._manager.wait_until_finished()
        monkeypatch.setattr(checkpoints._manager, "wait_until_finished", fail)
        return checkpoints

    with pytest.raises(InputError, match="No space left on device"), failing():
        pass
    with pytest.raises(KeyError, match="the cause"), failing():
        raise KeyError("the cause")


@pytest.mark.long
def test_the_terminal_stays_clean(tmp_path):
    program = """
import sys
import jax.numpy as jnp
from spo_jax.rl.checkpoint import Checkpoints
with Checkpoints(sys.argv[1], keep=2) as checkpoints:
    for number in range(4):
        checkpoints.save(number, {"w": jnp.ones(10)})
    checkpoints.restore(3, {"w": jnp.ones(10)})
"""
    assert run(program, tmp_path) == ""
