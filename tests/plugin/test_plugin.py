"""The pytest plugin as users meet it, in a pytest of its own."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

ROOT = Path(__file__).resolve().parents[2]
BROKEN = ROOT / "scenarios" / "broken" / "record_after_effect.py"

TEST = f"""
import pytest

@pytest.mark.chaos(r"{BROKEN}", points=4)
def test_marked(chaos):
    chaos()

def test_mended(chaos):
    report = chaos.command(
        ["bash", r"{ROOT / "tests" / "tasks" / "task.sh"}", "{{payments.url}}"],
        services=["payments"], points=3,
    )
    assert report.verdict == "VALID"
    assert chaos.report is report
"""


def test_a_finding_fails_the_test_with_its_four_lines(pytester: pytest.Pytester) -> None:
    """What, where, expected and seen with the reason, and one replay command."""
    pytester.makepyfile(TEST)
    result = pytester.runpytest_subprocess(
        "--chaos-seed=5", "--strict-markers", "-p", "no:randomly"
    )
    result.assert_outcomes(passed=1, failed=1)
    text = result.stdout.str()
    assert "chaoskit: --chaos-seed=5" in text
    assert re.search(r"duplicate_effect +payments\.charge in .*record_after_effect\.py", text)
    assert re.search(r"where +(kill|late:1)@\S+", text)
    assert re.search(r"expected +charge of .* EUR to .*: once; seen twice, because", text)
    assert re.search(r"replay +chaoskit replay ck1-\S+", text)
    assert "(seed 5)" in text


def test_results_reach_junit_also_under_xdist(pytester: pytest.Pytester) -> None:
    """Verdict, seed, points and replay are properties of the test case, with two workers too."""
    pytester.makepyfile(TEST)
    pytester.runpytest_subprocess("-n", "2", "--junit-xml=out.xml").assert_outcomes(
        passed=1, failed=1
    )
    root = ET.parse(pytester.path / "out.xml").getroot()  # noqa: S314
    found = {
        case.get("name"): {p.get("name"): p.get("value") for p in case.iter("property")}
        for case in root.iter("testcase")
    }
    assert found["test_marked"]["chaos_verdict"] == "INVALID"
    assert found["test_marked"]["chaos_seed"] == "0"
    assert str(found["test_marked"]["chaos_points"]).startswith("4 of ")
    assert str(found["test_marked"]["chaos_replay"]).startswith("chaoskit replay ck1-")
    assert found["test_mended"]["chaos_verdict"] == "VALID"


def test_ini_keys_are_the_options_defaults(pytester: pytest.Pytester) -> None:
    """chaos_points and chaos_seed in the ini file hold where no option is given."""
    pytester.makeini("[pytest]\nchaos_seed = 11\nchaos_points = 2\n")
    pytester.makepyfile(
        f"""
        def test_it(chaos):
            try:
                chaos.run(r"{BROKEN}")
            finally:
                assert chaos.report.summary.seed == 11
                assert chaos.report.summary.points.tested == 2
        """
    )
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(failed=1)
    assert "chaoskit: --chaos-seed=11" in result.stdout.str()
    assert "AssertionError" not in result.stdout.str()


def test_unknown_is_no_pass(pytester: pytest.Pytester) -> None:
    """A task that shows no effect fails the test, and the reason is said."""
    pytester.makepyfile("def test_it(chaos):\n    chaos.command(['true'])\n")
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(failed=1)
    assert "nothing to judge by" in result.stdout.str()


def test_wrong_use_names_the_fix(pytester: pytest.Pytester) -> None:
    """A scenario that is not there, a missing marker, a seed that is no number."""
    pytester.makepyfile(
        """
        def test_missing(chaos):
            chaos.run("no_such_scenario.py")

        def test_unmarked(chaos):
            chaos()
        """
    )
    result = pytester.runpytest_subprocess()
    assert "unknown scenario 'no_such_scenario.py'" in result.stdout.str()
    assert "@pytest.mark.chaos(" in result.stdout.str()
    result = pytester.runpytest_subprocess("--chaos-seed=many")
    assert "--chaos-seed takes a number" in result.stdout.str()


def test_a_suite_without_chaos_tests_loads_nothing_of_chaoskit(pytester: pytest.Pytester) -> None:
    """The plugin is only a few functions until a test uses it."""
    pytester.makepyfile(
        """
        import sys

        def test_it():
            mine = {m for m in sys.modules if m.split(".")[0] == "chaoskit"}
            assert mine <= {"chaoskit", "chaoskit.pytest_plugin"}
        """
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=1)


@pytest.mark.exhaustive
def test_shards_of_a_suite_divide_each_campaign(pytester: pytest.Pytester) -> None:
    """Under --chaos-shard a test runs its part and says what it left to the others; one for which
    nothing is left is skipped, and what is no shard is refused.
    """
    pytester.makepyfile(
        f"""
        def test_it(chaos):
            try:
                chaos.run(r"{BROKEN}", points=4)
            finally:
                if chaos.report is not None:
                    said = [s for s in chaos.report.summary.not_tested if "other shards" in s]
                    print("trials", chaos.report.summary.trials, *said)
        """
    )
    trials = []
    for shard in ("1/2", "2/2"):
        result = pytester.runpytest_subprocess(f"--chaos-shard={shard}", "-s")
        found = re.search(rf"trials (\d+) (\d+) trials .*this is {shard}", result.stdout.str())
        assert found, result.stdout.str()
        trials.append((int(found[1]), int(found[2])))
    (own, left), (other_own, other_left) = trials
    assert own == other_left > 0
    assert other_own == left > 0
    result = pytester.runpytest_subprocess("--chaos-shard=900/900", "-rs")
    result.assert_outcomes(skipped=1)
    assert "nothing is left for shard 900/900" in result.stdout.str()
    result = pytester.runpytest_subprocess("--chaos-shard=3/2")
    result.assert_outcomes(failed=1)
    assert "as in 1/3" in result.stdout.str()
