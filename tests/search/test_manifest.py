"""A manifest that was edited or damaged is a sentence, or is read as it is."""

import json
import shutil
from contextlib import suppress

import pytest
from spo_fakes import small

from spo_jax.cli import main
from spo_jax.config import FIELDS, Settings
from spo_jax.errors import InputError
from spo_jax.jsontext import DEPTH, parse
from spo_jax.rl import embedded
from spo_jax.runs import manifest as manifests
from spo_jax.runs.database.store import Store
from spo_jax.runs.discover import check_finished, prepare
from spo_jax.runs.folders import MANIFEST, read_manifest
from spo_jax.runs.manifest import (
    check_model,
    check_objects,
    check_prompts,
    idle_devices,
    manifest,
    model_of,
    other_software,
)
from spo_jax.runs.manifest import parse as parse_manifest
from spo_jax.runs.run import load_run

MODEL = {"name": "m", "base_url": "http://x/v1"}
LOCAL = {"folder": "/f", "weights": "w", "tokenizer": "t", "devices": "1 of 2 x gpu"}
WEIRD = [
    None,
    1,
    -1.5,
    True,
    "x",
    "",
    [],
    [1],
    {},
    {"a": 1},
    [[[]]],
    float("nan"),
    10**30,
    "\ud800",
]


CODE = manifests._checkout()  # git is asked once, not for each of a thousand manifests


def nested(text, depth):
    return text * depth


def whole():
    return manifest(
        small(), "smoke", {"seccomp": True}, model=MODEL, variant="v", rounds=3, prompts="digest",
        objects={"credit": "a:b"},
    )  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        nested("[", 100_000),
        nested('{"a":', 100_000),
        nested("[", 100_000) + nested("]", 100_000),
        json.dumps(whole())[:-1] + ', "more": ' + nested("[", 500) + nested("]", 500) + "}",
        json.dumps(whole())[:-1] + ', "config": ' + nested('{"a":', 500) + nested("}", 501),
        "",
        "\0",
        "[]",
        "null",
        "1" * 10_000,
        '{"config": null}',
        "\ufeff{}",
    ],
)
def test_what_is_no_manifest_is_a_sentence_of_every_command(tmp_path, capsys, text):
    run = tmp_path / "run"
    with Store.create(run, whole()):
        pass
    (run / MANIFEST).write_text(text)
    with pytest.raises(InputError, match=r"manifest.json cannot be read: "):
        load_run(run)
    for line in (
        ["discover", "--resume", str(run)],
        ["evaluate", str(run), "--problem", "tsp", "--on", "uniform:5x1"],
        ["export", str(run), "--out", str(tmp_path / "x.py")],
    ):
        assert main(line) == 2
        errors = capsys.readouterr().err
        assert errors.startswith(f"spo: {run / MANIFEST} cannot be read: ")
        assert errors.count("\n") == 1
        assert len(errors) < 500
    assert main(["runs", str(tmp_path)]) in (0, 2)
    assert "Traceback" not in capsys.readouterr().err


@pytest.fixture(scope="module")
def created(tmp_path_factory):
    """A run without a round, whose manifest each test writes anew."""
    run = tmp_path_factory.mktemp("created") / "run"
    with Store.create(run, whole()):
        pass
    return run


@pytest.mark.long
@pytest.mark.parametrize("name", ["more", *whole()])
@pytest.mark.parametrize("value", WEIRD, ids=repr)
def test_whatever_a_field_is_a_run_can_be_looked_at_or_says_why(created, monkeypatch, name, value):
    monkeypatch.setattr(manifests, "_checkout", lambda: CODE)
    run = created
    data = whole()
    edits = [{**data, name: value}]
    if isinstance(data.get(name), dict):
        edits += [{**data, name: {**data[name], inner: value}} for inner in data[name]]
    for edited in edits:
        (run / MANIFEST).write_text(json.dumps(edited))
        try:
            found = read_manifest(run)
            load_run(run)
        except InputError:
            continue
        idle_devices(found.get("model"))
        for now in (MODEL, LOCAL, None):
            other_software(found, now)
            with suppress(InputError):
                check_model(found.get("model"), now, run)
            with suppress(InputError):
                check_prompts(found, "digest", run)
            with suppress(InputError):
                check_objects(found, {}, run)


def test_a_manifest_says_what_is_wrong_in_it(tmp_path):
    run = tmp_path / "run"
    with Store.create(run, whole()):
        pass
    for changed, why in (
        ({"rounds": "x"}, "rounds is 'x', where a int is due"),
        ({"rounds": -1}, "rounds is -1"),
        ({"versions": [1]}, r"versions is \[1\], where a dict is due"),
        ({"model": {"name": 3}}, "name is 3, where a text is due"),
        ({"config": {**small().flat(), "seed": "x"}}, "seed"),
    ):
        (run / MANIFEST).write_text(json.dumps({**whole(), **changed}))
        with pytest.raises(InputError, match=f"cannot be read: .*{why}"):
            read_manifest(run)


def test_json_is_walked_as_deep_as_it_may_be():
    for text in (
        nested("[", DEPTH) + nested("]", DEPTH),
        nested('{"a":', DEPTH - 1) + "[" + "]" + nested("}", DEPTH - 1),
    ):
        assert json.dumps(parse(text)).replace(" ", "") == text
        with pytest.raises(ValueError, match=f"it is nested more than {DEPTH} levels deep"):
            parse(f"[{text}]")
    flat = json.dumps([[], {}] * 10_000)
    assert len(parse(flat)) == 20_000
    assert parse(b'{"a": "\xc3\xa9"}') == {"a": "\u00e9"}
    with pytest.raises(ValueError, match="utf-8"):
        parse(b'"\xff"')


def test_more_fields_of_a_request_may_not_be_nested_for_ever():
    assert "request_extra" in FIELDS
    with pytest.raises(InputError, match="it must be a JSON object"):
        small(
            generator="openai",
            base_url="http://x/v1",
            model="m",
            request_extra=nested("[", 100_000),
        )


def test_a_finished_run_keeps_its_model(tmp_path):
    began, now = Settings.make(model="elsewhere"), Settings()
    record = {"model": {"folder": "elsewhere", "weights": "other", "tokenizer": "other"}}
    with pytest.raises(InputError, match=r"began with another model: the weights in .* differ"):
        check_finished(began, record, now, tmp_path)
    check_finished(began, {"model": model_of(now)}, now, tmp_path)  # the same, moved
    check_finished(now, record, now, tmp_path)  # nobody named another


def test_a_run_of_the_novice_names_it_and_goes_on_with_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "novice").mkdir()  # a folder of that name is ./novice
    config = prepare("tsp", given={"model": "novice"}).config
    assert config.generator.model == "novice"
    mine = prepare("tsp", given={"model": "./novice", "generator": "model"}).config
    assert mine.generator.model == str(tmp_path / "novice")
    folder = shutil.copytree(embedded.FOLDER, tmp_path / "made")
    monkeypatch.setitem(embedded.FOLDERS, "novice", folder)
    (folder / "model.safetensors").write_bytes(b"others")
    model = model_of(config)
    assert model["folder"] == str(folder)
    record = manifest(config, "quick", {}, model=model)
    assert record["config"]["model"] == "novice"
    check_model(record["model"], model, tmp_path)
    with pytest.raises(InputError, match=r"the weights in .*embedded/model differ"):
        check_model(record["model"], model_of(Settings()), tmp_path)


def test_a_run_from_before_the_kit_goes_on_without_it():
    record = whole()
    assert record["config"].pop("kit") == "lns"
    assert parse_manifest(json.dumps(record).encode())["config"]["kit"] == "none"


def test_layers_that_are_no_mapping_are_refused():
    with pytest.raises(InputError, match=r"^evaluator 'local' has layers of type list"):
        manifest(small(), "quick", ["seccomp"])  # type: ignore[arg-type]
