import json

import pytest

from mdsd_study.report.results import Results, estimate, exact
from mdsd_study.tools.markup import add_provenance, fill_numbers
from mdsd_study.tools.notebooks.project import ProjectError

FACTS = {
    "version": "1.2",
    "commit": "abc",
    "date": "2026-01-02",
    "profile": "ci",
    "findings": "[[01_first_look.rate:.1f]]!",
}


def read_full(name):
    if name != "06_all":
        raise FileNotFoundError(f"{name}.json is missing")
    made = {"processor": "CPU", "cores": 2, "commit": "0123", "date": "2026-01-02T03:04"}
    values = {
        "gap: a, one": estimate(0.25, (0.125, 0.5), atol=1e-4),
        "gap: a, two": estimate(0.25, (-0.25, 0.5), atol=1e-4),
        "gap: a, three": estimate(-0.5, (-0.75, -0.25), atol=1e-4),
    }
    return Results(name, "full", {}, values, made)


def read(name):
    if name != "01_first_look":
        raise FileNotFoundError(f"{name}.json is missing")
    values = {
        "rate": exact(0.123456, atol=1e-4),
        "rates.by_n": exact([[0.5, 0.25]], atol=1e-4),
        "mean": estimate(0.5, (0.25, 0.75), atol=1e-4),
        "contexts": exact(1234, atol=0),
    }
    return Results(name, "ci", {}, values)


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("a [[01_first_look.rate:.3f]] b", "a 0.123 b"),
        ("[[01_first_look.rates.by_n.0.1:.2f]]", "0.25"),
        ("[[01_first_look.mean:interval .1f]]", "0.5 (0.2 to 0.8)"),
        ("[[01_first_look.contexts:,]]", "1,234"),
        ("[[version]], [[commit]], [[date]], [[profile]]", "1.2, abc, 2026-01-02, ci"),
        ("[[findings]]", "0.1!"),
        ("[[01_first_look.rate:points .1f]]", "12.3"),
        ("[[01_first_look.mean:interval points +.0f]]", "+50 (+25 to +75)"),
        ("[[full/06_all.gap: a, one:.2f]]", "0.25"),
        ("[[full/06_all.gap: .*:means above 0]]", "2 of 3"),
        ("[[full/06_all.gap: .*:intervals above 0]]", "1 of 3"),
        ("[[full/06_all]]", "Recorded on 2026-01-02 on CPU (2 cores), commit 0123."),
        ("x[[0, 1]] and [[a.b]]", "x[[0, 1]] and [[a.b]]"),
    ],
)
def test_numbers_are_filled_in(text, filled):
    assert fill_numbers(text, read, FACTS, "page", read_full) == filled


@pytest.mark.parametrize(
    "text",
    [
        "[[01_first_look.rats:.3f]]",
        "[[02_other.rate]]",
        "[[01_first_look.rate:interval .1f]]",
        "[[01_first_look.rates.by_n.0.2]]",
        "[[01_first_look.rate:nonsense]]",
        "[[01_first_look.rate:tenths .1f]]",
        "[[01_first_look.rate:intervals above 0]]",
        "[[full/01_first_look.rate:.3f]]",
        "[[full/01_first_look]]",
        "[[06_all.gap: a, one:.2f]]",
        "[[full/06_all.no such .*:means above 0]]",
    ],
)
def test_a_number_that_is_not_there_is_an_error(text):
    with pytest.raises(ProjectError, match=r"page: .*cannot be filled in"):
        fill_numbers(text, read, FACTS, "page", read_full)


FIGURE = """Before.

```{figure} ../results/figures/a.png
:name: fig-a
:alt: A line.

The caption.
```

After."""


@pytest.fixture
def page(tmp_path):
    figures = tmp_path / "results" / "figures"
    figures.mkdir(parents=True)
    (figures / "a.png").write_bytes(b"")
    note = {"notebook": "01_first_look", "parameters": {"profile": "ci"}, "made": {"commit": "abc+changes"}}
    (figures / "a.json").write_text(json.dumps(note))
    (tmp_path / "notebooks").mkdir()
    return tmp_path / "notebooks" / "01_first_look.ipynb"


@pytest.mark.parametrize("fence", ["```", "::::"])
def test_the_line_stands_under_the_caption(page, tmp_path, fence):
    text = add_provenance(FIGURE.replace("```", fence), page, tmp_path)
    line = r"Made by notebook 01\_first\_look, commit abc+changes, parameters profile=ci."
    assert f"The caption.\n\n{line}\n{fence}\n\nAfter." in text
    assert text.startswith("Before.\n")


def test_other_directives_stay_as_they_are(page, tmp_path):
    text = "```{code-cell}\nx\n```\n\n```{figure-md} y\n```"
    assert add_provenance(text, page, tmp_path) == text


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (":alt: A line.\n", "", "say in `:alt:`"),
        ("The caption.\n", "", "has no caption"),
        ("a.png", "b.png", "no such file"),
    ],
)
def test_a_figure_without_alt_text_caption_or_file_is_refused(page, tmp_path, old, new, message):
    with pytest.raises(ProjectError, match=message):
        add_provenance(FIGURE.replace(old, new), page, tmp_path)


def test_a_figure_of_unknown_origin_is_refused_but_a_drawing_is_not(page, tmp_path):
    (tmp_path / "results" / "figures" / "a.json").unlink()
    with pytest.raises(ProjectError, match="no note of where it comes from"):
        add_provenance(FIGURE, page, tmp_path)
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.svg").write_text("<svg/>")
    drawing = FIGURE.replace("results/figures/a.png", "images/a.svg")
    assert add_provenance(drawing, page, tmp_path) == drawing
