"""German sentences of the Debian handbook, out of the HTML pages of its Debian package."""

import re
from html.parser import HTMLParser
from itertools import chain
from pathlib import Path

#: Where the package ``debian-handbook`` puts its pages.
HANDBOOK = Path("/usr/share/doc/debian-handbook/html")

# A sentence ends at . ! or ? before a space and a capital, but not after an abbreviation such as "z. B.".
_SENTENCE_END = re.compile(r"(?<=[a-zäöüß\d)»“\"]{2}[.!?])\s+(?=[A-ZÄÖÜ„»])")

_ENGLISH = re.compile(r"\b(?:the|of|and|to|that|with|you|this|are)\b", re.IGNORECASE)


class _Paragraphs(HTMLParser):
    """Collects the text of every ``<div class="para">``; of nested ones, the inner text only once."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._open: list[list[str] | None] = []  # one entry a div: its text so far, None if it is no paragraph

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "div":
            self._open.append([] if ("class", "para") in attrs else None)

    def handle_endtag(self, tag: str) -> None:
        if tag == "div" and self._open:
            text = self._open.pop()
            if text is not None:
                self.found.append(" ".join("".join(text).split()))

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] is not None:
            self._open[-1].append(data)


def paragraphs(page: Path) -> list[str]:
    """The paragraphs of one page, spaces collapsed."""
    parser = _Paragraphs()
    parser.feed(page.read_text(encoding="utf-8"))
    return [text for text in parser.found if text]


def german_sentences(root: Path) -> list[tuple[str, str]]:
    """Sentences that the German edition really translates, as (id, sentence), in a fixed order.

    What the translators left in English is left out: sentences that stand in the English edition of the page, or have
    a common English word. So are sentences shorter than 30 or longer than 300 characters, and repetitions.
    """
    result: dict[str, str] = {}  # sentence -> id
    for page in sorted((root / "de-DE").glob("*.html")):
        original = root / "en-US" / page.name
        english = [_SENTENCE_END.split(text) for text in paragraphs(original)] if original.is_file() else []
        untranslated = set(chain.from_iterable(english))
        for number, paragraph in enumerate(paragraphs(page)):
            for index, sentence in enumerate(_SENTENCE_END.split(paragraph)):
                fits = 30 <= len(sentence) <= 300 and sentence.endswith((".", "!", "?"))
                if fits and sentence not in untranslated and not _ENGLISH.search(sentence):
                    result.setdefault(sentence, f"{page.stem}/{number}/{index}")
    return [(key, sentence) for sentence, key in result.items()]
