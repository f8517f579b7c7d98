"""The trigram drafter without a file of the user's: counted on packaged text, in the target's tokens."""

from mdsd_core.assets import ASSETS
from mdsd_core.decoding.drafters.ngram import WittenBellTrigram
from mdsd_core.disk_cache import cache_dir, in_one_step, key_of, package_digest
from mdsd_core.models import LanguageModel, model_names
from mdsd_core.models.packaged import GGUF_SHA256
from mdsd_core.models.prompts import load_prompts

#: The packaged sets that the drafter ``ngram`` is counted on: their prompts, never what a target wrote after them.
NGRAM_TEXTS = ("mt_bench", "human_eval", "asdiv", "xsum")


def trigram(target: LanguageModel, file: str = "") -> WittenBellTrigram:
    """The trigram drafter over the target's tokens: of a file of the user's, or of the packaged prompts.

    The latter takes seconds to count; for a packaged target it is kept in the cache folder.

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such file, or it was made for another vocabulary.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from mdsd_core.models import load_model
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "text.txt").write_text("abab")
    ...     model = trigram(load_model("tiny-random"), f"{folder}/text.txt")
    >>> int(model.distribution([97]).argmax()), chr(98)
    (98, 'b')
    """
    if file:
        return WittenBellTrigram.of_file(file, target.encode, target.vocab_size)
    key = key_of(package_digest(), GGUF_SHA256, target.name, target.vocab_size, NGRAM_TEXTS, ASSETS)
    kept = cache_dir() / "ngram" / f"{key[:16]}.npz"
    if target.name in model_names() and kept.is_file():
        return WittenBellTrigram.load(kept)
    texts = [target.encode(prompt.text) for name in NGRAM_TEXTS for prompt in load_prompts(name)]
    model = WittenBellTrigram.fit(texts, target.vocab_size)
    if target.name in model_names():
        with in_one_step(kept) as part, part.open("wb") as counts:
            model.save(counts)
    return model
