"""The interactive page: does it react, by hand and by keyboard, and does it say what the library says?"""

import json

import numpy as np
import pytest

from mdsd_core.distributions import SamplingParams, probabilities
from mdsd_core.schemes.names import scheme_family
from mdsd_core.transport.subset import optimal_acceptance
from mdsd_core.verifiers import verifier, verifiers_for
from mdsd_core.verifiers.optimal import Optimal
from tests.built.page_problems import PHONE

SCHEMES = ("with_replacement", "without_replacement", "distinct", "greedy", "spechub", "deterministic")


def instances(count):
    """Pairs p, q of one to six tokens: skewed, with zeros, ties, equal, one-hot."""
    rng = np.random.default_rng(20)
    for number in range(count):
        V = int(rng.integers(1, 7))
        p, q = rng.dirichlet(np.full(V, 0.5)), rng.dirichlet(np.full(V, 0.5))
        match number % 6:
            case 1:
                q = p.copy()
            case 2 if V > 2:
                p[rng.integers(V)] = q[rng.integers(V)] = 0.0
            case 3:
                p, q = np.full(V, 1.0 / V), np.round(q * 8 + 0.5)
            case 4:
                p = np.eye(V)[rng.integers(V)]
        yield p / p.sum(), q / q.sum()


def enumerated(rule, p, q, scheme):
    """The acceptance of a rule, summed over all draft tuples from the exact law of what it emits."""
    # the page shows the optimum itself: the plan is made to the tightest tolerance
    rule_of = Optimal(tolerance=1e-12) if rule == "optimal" else verifier(rule)
    plan = rule_of.prepare(p, q, scheme)
    total = 0.0
    for drafts, chance in zip(*scheme.enumerate(q)):
        total += chance * plan.output_law(drafts)[np.unique(drafts[drafts >= 0])].sum()
    return total


@pytest.fixture
def page(site, browser):
    browser.open(site + "interactive.html", 1000, 900)
    browser.until("document.querySelector('#mdsd-page table.verifiers') !== null")
    return browser


@pytest.mark.parametrize("name", SCHEMES)
def test_its_numbers_are_those_of_the_library(page, name):
    cases = []
    for number, (p, q) in enumerate(instances(36)):
        cases.append((p, q, 2 if name == "spechub" else 1 + number % 4))
    calls = ", ".join(f"mdsdRates.answer({p.tolist()}, {q.tolist()}, '{name}', {n})" for p, q, n in cases)
    answers = page.evaluate(f"[{calls}]")
    compared = set()
    for (p, q, n), answer in zip(cases, answers, strict=True):
        scheme = scheme_family(name)(n)
        optimum = optimal_acceptance(p, q, scheme)
        assert answer["rate"] == pytest.approx(optimum.rate, abs=1e-9)
        drafted, wanted = scheme.set_mass(q, answer["subset"]), p[answer["subset"]].sum()
        if answer["subset"]:
            assert 1 - (drafted - wanted) == pytest.approx(optimum.rate, abs=1e-9)
        for rule in set(answer["verifiers"]) & set(verifiers_for(scheme)):
            wanted = enumerated(rule, p, q, scheme)
            assert answer["verifiers"][rule] == pytest.approx(wanted, abs=1e-9), (rule, p, q, n)
            compared.add(rule)
        assert all(value <= answer["rate"] + 1e-12 for value in answer["verifiers"].values())
    assert len(compared) >= (1 if name == "distinct" else 2)


@pytest.mark.parametrize("temperature", [0.1, 0.7, 1.0, 2.0])
def test_its_temperature_is_that_of_the_library(page, temperature):
    weights = [46.0, 22, 12, 10, 0, 4]
    with np.errstate(divide="ignore"):
        want = probabilities(np.log(weights), SamplingParams(temperature))
    got = page.evaluate(f"mdsdRates.atTemperature({weights}, {temperature})")
    assert np.abs(np.array(got) - want).max() < 1e-12


def test_it_reacts_to_every_control(page):
    seen = [page.evaluate("document.getElementById('mdsd-page').innerHTML")]
    for control, value in [("scheme", "greedy"), ("n", 3), ("temperature", 0.5), ("p-2", 90), ("q-0", 5)]:
        event = "dispatchEvent(new Event('input', {bubbles: true}))"
        page.evaluate(f"(x => {{ x.value = {json.dumps(value)}; x.{event}; }})(document.getElementById('{control}'))")
        seen.append(page.evaluate("document.getElementById('mdsd-page').innerHTML"))
    assert len(set(seen)) == len(seen)
    shown = page.evaluate("""(x => ({
        p: [0, 1, 2, 3, 4, 5].map(x => Number(document.getElementById(`p-${x}`).value)),
        q: [0, 1, 2, 3, 4, 5].map(x => Number(document.getElementById(`q-${x}`).value)),
        rate: Number(document.getElementById("mdsd-page").dataset.rate),
        text: document.getElementById("summary").textContent,
        greedy: Number(document.querySelector("[data-rule=greedy] td").textContent)}))()""")
    assert (shown["p"][2], shown["q"][0]) == (90, 5)
    p, q = (np.array(shown[side]) ** 2.0 for side in "pq")  # temperature 0.5
    best = optimal_acceptance(p / p.sum(), q / q.sum(), scheme_family("greedy")(3)).rate
    assert shown["rate"] == pytest.approx(best, abs=1e-9)
    assert f"{best:.4f}" in shown["text"]
    assert shown["greedy"] == pytest.approx(best, abs=1e-4)
    assert page.messages == []


def test_it_says_so_when_no_token_has_weight(page):
    page.evaluate("""for (let x = 0; x < 6; x++) document.getElementById(`q-${x}`).value = 0;
        document.getElementById("q-0").dispatchEvent(new Event("input", {bubbles: true}))""")
    assert page.evaluate("document.getElementById('summary').textContent") == "Give at least one token of q a weight."
    assert page.messages == []


def test_it_can_be_used_by_keyboard(page):
    page.evaluate("document.getElementById('scheme').focus()")
    page.press("Tab", 9)
    assert page.evaluate("document.activeElement.id") == "n"
    page.press("ArrowRight", 39)
    assert page.evaluate("document.querySelector('output[for=n]').textContent") == "3"
    unnamed = """[...document.querySelectorAll("#mdsd-page input, #mdsd-page select")]
        .filter(x => !x.labels.length && !x.ariaLabel).map(x => x.id)"""
    assert page.evaluate(unnamed) == []


@pytest.mark.parametrize("dark", [False, True])
def test_its_text_can_be_read(site, browser, dark):
    """Contrast of text and curve against the ground, in both themes, on a phone."""
    browser.open(site + "interactive.html", PHONE, 800, dark=dark)
    browser.until("document.querySelector('#mdsd-page svg text') !== null")
    colours = browser.evaluate("""(() => {
        const style = x => getComputedStyle(document.querySelector(x));
        return [style("#mdsd-page svg text").fill, style("#mdsd-page select").color, style("body").backgroundColor,
            style("#mdsd-page svg rect.p").fill, style("#mdsd-page svg rect.q").fill]; })()""")
    text, select, ground, p, q = (luminance(colour) for colour in colours)
    contrast = [(max(x, ground) + 0.05) / (min(x, ground) + 0.05) for x in (text, select, p, q)]
    assert min(contrast[:2]) > 7
    assert min(contrast[2:]) > 3


def luminance(colour):
    """Relative luminance of ``rgb(r, g, b)``, as the accessibility guidelines define it."""
    parts = np.array([float(x) for x in colour[colour.index("(") + 1 :].rstrip(")").split(",")[:3]]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])
