import pytest

from mdsd_study.report.reproduction import compare_results
from mdsd_study.report.results import Results, Value, estimate, exact, timing


def results(parameters=None, profile="ci", **values):
    return Results("x", profile, parameters or {"seed": 0}, values)


@pytest.mark.parametrize(
    ("found", "reference", "good"),
    [
        (exact(1.0001, atol=0), exact(1.0, atol=2e-4), True),  # the reference's tolerance counts
        (exact(1.0003, atol=1), exact(1.0, atol=2e-4), False),
        (exact(102.0, atol=0), exact(100.0, atol=0, rtol=0.03), True),
        (exact(104.0, atol=0), exact(100.0, atol=0, rtol=0.03), False),
        (exact(3, atol=0), exact(3, atol=0), True),
        (exact(4, atol=0), exact(3, atol=0), False),
        (exact("holds", atol=0), exact("holds", atol=0), True),
        (exact("fails", atol=9), exact("holds", atol=9), False),
        (exact(True, atol=9), exact(False, atol=9), False),
        (exact(1, atol=9), exact(True, atol=9), False),
        (exact([1.0, 2.0], atol=0), exact([1.0, 2.1], atol=0.2), True),
        (exact([1.0, 2.5], atol=0), exact([1.0, 2.1], atol=0.2), False),
        (exact([[1.0], [2.5]], atol=0), exact([[1.0], [2.1]], atol=0.2), False),
        (exact([1.0], atol=0), exact([1.0, 2.1], atol=0.2), False),
        (exact(1.0, atol=0), exact([1.0], atol=0.2), False),
        (estimate(0.5, (0.4, 0.6), atol=0), estimate(0.5, (0.4, 0.6), atol=0.01), True),
        (estimate(0.5, (0.3, 0.6), atol=0), estimate(0.5, (0.4, 0.6), atol=0.01), False),
        (estimate(0.5, (0.4, 0.7), atol=0), estimate(0.5, (0.4, 0.6), atol=0.01), False),
        (estimate(0.7, (0.6, 0.8), overlap=True), estimate(0.5, (0.4, 0.61), overlap=True), True),
        (estimate(0.7, (0.62, 0.8), overlap=True), estimate(0.5, (0.4, 0.61), overlap=True), False),
        (estimate(0.2, (0.1, 0.3), overlap=True), estimate(0.5, (0.4, 0.61), overlap=True), False),
        (estimate([0.7], ([0.6], [0.8]), overlap=True), estimate([0.5], ([0.4], [0.61]), overlap=True), True),
        (estimate([0.7], ([0.62], [0.8]), overlap=True), estimate([0.5], ([0.4], [0.61]), overlap=True), False),
        (timing(1.0), timing(100.0), True),
        (exact(1.0, atol=0), timing(1.0), False),
        (exact(1.0, atol=0), Value(1.0, "exact"), False),  # no tolerance
    ],
)
def test_comparison(found, reference, good):
    assert (compare_results(results(a=found), results(a=reference)) == []) is good


def test_a_value_on_one_side_only_is_a_difference():
    one, two = results(a=timing(1)), results(a=timing(1), b=timing(1))
    assert "b is in the reference but not in the results" in compare_results(one, two)[0]
    assert "b is in the results but not in the reference" in compare_results(two, one)[0]


def test_other_parameters_or_another_profile_are_not_compared():
    value = exact(1.0, atol=0)
    (text,) = compare_results(results({"seed": 1}, a=value), results({"seed": 0}, a=value))
    assert "seed = 1, the reference with 0" in text
    (text,) = compare_results(results(profile="ci", a=value), results(profile="quick", a=value))
    assert "x (quick) was compared with x (ci)" in text
