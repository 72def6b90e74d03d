"""The pytest plugin as users meet it, in a pytest of its own."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from chaoskit.campaign.mechanisms import traced
from tests.marks import rare
from tests.plugin.chaos_files import BILL, LOG, write_files

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
    """What, where, expected and seen with the reason, and one replay command: as a result of its
    own, beside that of the test.
    """
    pytester.makepyfile(TEST)
    result = pytester.runpytest_subprocess(
        "--chaos-seed=5", "--strict-markers", "-p", "no:randomly"
    )
    result.assert_outcomes(passed=1, failed=2)
    text = result.stdout.str()
    assert "chaoskit: --chaos-seed=5" in text
    assert re.search(r"duplicate_effect +payments\.charge in .*record_after_effect\.py", text)
    assert re.search(r"where +(kill|late:1)@\S+", text)
    assert re.search(r"expected +charge of .* EUR to .*: once; seen twice, because", text)
    assert re.search(r"replay +chaoskit replay ck1-\S+", text)
    assert "(seed 5)" in text
    assert "SUBFAILED[duplicate_effect@payments.charge] " in text
    told, _, _ = text.partition("short test summary info")  # which is whole again in a CI
    assert told.count("because attempts 1 and 2 each did it") == 1


@pytest.mark.exhaustive
def test_results_reach_junit_also_under_xdist(pytester: pytest.Pytester) -> None:
    """Verdict, seed, points and replay are properties of the test case, with two workers too, and
    each finding is a failure of its own in it.
    """
    pytester.makepyfile(TEST)
    pytester.runpytest_subprocess("-n", "2", "--junit-xml=out.xml").assert_outcomes(
        passed=1, failed=2
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
    finding, item = (str(failure.text) for failure in root.iter("failure"))
    assert finding.startswith("duplicate_effect  payments.charge in ")
    assert item.startswith("INVALID: ")


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
    result.assert_outcomes(failed=2)
    assert "chaoskit: --chaos-seed=11" in result.stdout.str()
    assert "AssertionError" not in result.stdout.str()


def test_unknown_is_no_pass(pytester: pytest.Pytester) -> None:
    """A task that shows no effect fails the test, and so does a budget that was over before
    anything was tried; the reason is said.
    """
    write_files(pytester.path, log=LOG)
    pytester.makepyfile(
        """
        def test_nothing_to_see(chaos):
            chaos.command(["true", "--key", "sk_live_0123456789abcdefghij"])

        def test_no_time(chaos):
            chaos.run("scenarios/log.py:good", budget="0.001s")
        """
    )
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(failed=2)
    text = result.stdout.str()
    assert "nothing to judge by" in text
    assert "UNKNOWN  $ true --key " in text
    assert "sk_live_0123456789" not in text
    assert "no trial was run" in text
    assert "not tested  the time limit of 0.001 s was reached" in text


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
    assert "there is no file no_such_scenario.py" in result.stdout.str()
    assert "@pytest.mark.chaos(" in result.stdout.str()
    result = pytester.runpytest_subprocess("--chaos-seed=many")
    assert "--chaos-seed takes a number" in result.stdout.str()


KNOWN = """
import pytest

@pytest.mark.chaos("scenarios/bill.py", known={"duplicate_effect@payments.*": "ticket 7"})
def test_one_is_new(chaos):
    chaos()

@pytest.mark.chaos("scenarios/log.py:bad", known={"diverged_state": "ticket 8"})
def test_known(chaos):
    chaos()

@pytest.mark.chaos("scenarios/log.py:good", known={"diverged_state@outputs": "ticket 9"})
def test_gone(chaos):
    chaos()

def test_not_looked_for(chaos):
    report = chaos.run("scenarios/log.py:good", budget="1 trial", known={"stuck": "ticket 10"})
    assert report.summary.trials == 1
"""


@pytest.mark.skipif(not traced().works, reason="whole campaigns need system calls")
@pytest.mark.parametrize(
    "words",
    [rare(("-n", "2"), name="workers"), pytest.param(("-p", "no:subtests"), id="own reports")],
)
def test_known_gaps_are_strict_expected_failures(
    pytester: pytest.Pytester, words: tuple[str, ...]
) -> None:
    """What is known and nothing else is an xfail; what is new fails; so does what is not there any
    more, but only if it was looked for; with pytest's subtests and without them.
    """
    write_files(pytester.path, log=LOG, bill=BILL)
    pytester.makepyfile(KNOWN)
    result = pytester.runpytest_subprocess(*words, "-rxf")
    result.assert_outcomes(failed=3, xfailed=1, passed=1)
    text = result.stdout.str()
    assert re.search(r"XFAIL .*::test_known - diverged_state@outputs: ticket 8", text)
    assert re.search(r"SUBFAILED\[duplicate_effect@email.send\] .*::test_one_is_new", text)
    assert re.search(r"known +duplicate_effect@payments.charge: ticket 7", text)
    assert re.search(r"gone +diverged_state@outputs is not there any more.*known=", text)
    assert "not seen    stuck is known; what could show it was not tried" in text
    assert "not tested  the limit of 1 trial was reached" in text


def test_scenarios_are_tests_without_writing_any(pytester: pytest.Pytester) -> None:
    """Each scenario of the files that match is an item, once, beside the tests, and can be chosen
    by its name; explicit paths are not added to.
    """
    write_files(pytester.path, log=LOG, bill=BILL, _part="", conftest="")
    (pytester.path / "tests").mkdir()
    (pytester.path / "tests" / "test_other.py").write_text("def test_other():\n    pass\n")
    pytester.makeini("[pytest]\nchaos_scenarios = scenarios/*.py\ntestpaths = tests\n")
    mine = ["scenarios/bill.py::scenario", "scenarios/log.py::bad", "scenarios/log.py::good"]
    other = "tests/test_other.py::test_other"
    for words, wanted in {
        (): [*mine, other],
        ("-o", "testpaths="): [*mine, other],
        ("-o", "testpaths=tests scenarios"): [*mine, other],
        ("tests",): [other],
        ("scenarios/log.py",): mine[1:],
        ("scenarios", "-k", "bill"): mine[:1],
    }.items():
        result = pytester.runpytest_inprocess("--collect-only", "-q", *words)
        found = [line for line in result.outlines if "::" in line]
        assert sorted(found) == wanted, words
    pytester.makeconftest(
        """
        import pytest

        @pytest.fixture(autouse=True)
        def automatic():
            print("used automatically")
        """
    )
    result = pytester.runpytest_subprocess("scenarios/log.py::good", "-n", "1", "-rP")
    result.assert_outcomes(passed=1)
    assert "VALID    scenarios/log.py:good: " in result.stdout.str()
    assert "used automatically" in result.stdout.str()


def test_a_glob_without_files_and_a_file_without_scenarios_are_errors(
    pytester: pytest.Pytester,
) -> None:
    """A slip in a name is never a run of nothing."""
    write_files(pytester.path, none="x = 1\n", broken="import nothing_of_this_name\n")
    result = pytester.runpytest_inprocess("--chaos-scenarios=scenarios/*.py")
    result.assert_outcomes(errors=2)
    text = result.stdout.str()
    assert "none.py has no scenario: write `scenario = Scenario(…)` in it" in text
    assert "broken.py cannot be imported: ModuleNotFoundError" in text
    result = pytester.runpytest_inprocess("--chaos-scenarios=scenario/*.py")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "--chaos-scenarios: no file matches 'scenario/*.py'" in result.stderr.str()


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
