"""The trigram drafter of a sweep: counted once for a packaged target, read again, of the right vocabulary."""

from types import SimpleNamespace

import pytest

from mdsd_core.decoding.drafters import packaged_trigram
from mdsd_core.decoding.drafters.ngram import WittenBellTrigram
from mdsd_core.models import load_model


def test_the_packaged_trigram_is_counted_once(tmp_path, monkeypatch):
    asked = []

    def prompts(name):
        asked.append(name)
        return [SimpleNamespace(text="the cat sat on the mat, the cat sat")]

    monkeypatch.setattr(packaged_trigram, "load_prompts", prompts)
    monkeypatch.setattr(packaged_trigram, "cache_dir", lambda: tmp_path)
    target = load_model("tiny-random")
    first = packaged_trigram.trigram(target)
    assert asked == list(packaged_trigram.NGRAM_TEXTS)
    (kept,) = (tmp_path / "ngram").iterdir()
    again = packaged_trigram.trigram(target)
    assert asked == list(packaged_trigram.NGRAM_TEXTS)
    context = target.encode("the c")
    assert again.distribution(context).tolist() == first.distribution(context).tolist()
    assert again.distribution(context).argmax() == target.encode("the cat")[-2]
    with pytest.raises(ValueError, match="was made for 257 tokens, but the target has 300"):
        WittenBellTrigram.of_file(kept, target.encode, 300)
    assert WittenBellTrigram.of_file(kept, target.encode, 257).vocab_size == 257
