"""Tasks that cannot begin, or do not find their files: what campaigns and replays say of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaoskit.campaign.events import Finished
from chaoskit.campaign.options import Options
from chaoskit.campaign.replay import replay
from chaoskit.campaign.run import run
from chaoskit.campaign.store import Store
from chaoskit.campaign.workers import Inline
from chaoskit.model.errors import ScenarioError, UsageError
from chaoskit.model.token import CommandSpec, ReplayToken, Target
from tests.campaign.small_task import small_task

SCENARIO = """
from chaoskit import Scenario

scenario = Scenario(command=("sh", "pay.sh"), outputs=("out",))
"""


def problems_of(target: Target, tmp_path: Path) -> tuple[str, ...]:
    """What the survey of a campaign says against its target."""
    options = Options(target=target, runs=str(tmp_path / "runs"), mechanisms=("windows",))
    *_, last = run(options, Inline())
    assert isinstance(last, Finished)
    with Store(last.folder) as store:
        survey = store.survey()
    assert survey is not None
    return survey[2].problems


@pytest.mark.parametrize("word", ["pay.sh", "./pay.sh"])
def test_a_file_that_is_an_argument_is_named_with_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    """A command that fails, and has an argument that is a file here, is told the word to write."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pay.sh").write_text("exit 0\n")
    spec = CommandSpec(command=("sh", word, "x" * 5000), outputs=("out",))
    _, hint = (p for p in problems_of(Target(command=spec), tmp_path) if "matched" not in p)
    assert hint == (
        f'`{word}` is a file here, but the task runs in its work folder: write "$PWD/pay.sh"'
    )


def test_a_scenario_is_told_the_placeholder(tmp_path: Path) -> None:
    """What lies beside a scenario's file is named by {here}."""
    file = tmp_path / "scenario.py"
    file.write_text(SCENARIO)
    (tmp_path / "pay.sh").write_text("exit 0\n")
    told = problems_of(Target(scenario=str(file)), tmp_path)
    assert any('write "{here}/pay.sh"' in problem for problem in told)


def test_a_command_that_fails_for_another_reason_is_told_nothing_of_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No word of it is a file here, so the hint would be wrong."""
    monkeypatch.chdir(tmp_path)
    spec = CommandSpec(command=("sh", "-c", "exit 3"), outputs=("out",))
    told = problems_of(Target(command=spec), tmp_path)
    assert any("ended with status 3" in problem for problem in told)
    assert not any("work folder" in problem for problem in told)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("ignore=('payments.refund',)", "no effect .* called 'payments.refund'; nearest: payments"),
        ("expect={'payments.*': [{'amuont': 1}]}", "has no field 'amuont'; nearest: amount"),
    ],
)
def test_words_that_fit_no_effect_of_an_undisturbed_run_are_refused(
    tmp_path: Path, more: str, said: str
) -> None:
    """A pattern to ignore and a declared field that meet nothing are mistakes, not results."""
    target = small_task(tmp_path, "keyed")
    file = Path(target.scenario)
    file.write_text(
        file.read_text().replace("scenario = Scenario(", f"scenario = Scenario({more}, ")
    )
    with pytest.raises(UsageError, match=said):
        problems_of(target, tmp_path)


def test_a_replay_from_another_folder_says_where_to_run_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that is not there from here cannot be started: that is no outcome of the replay."""
    monkeypatch.chdir(tmp_path)
    spec = CommandSpec(command=("./pay.sh",), outputs=("out",))
    token = ReplayToken(target=Target(command=spec), seed=0, schedule="kill@a#1", fingerprint="0")
    with pytest.raises(ScenarioError) as refused:
        replay(token, str(tmp_path))
    said = str(refused.value)
    assert said.startswith("the task cannot be started: ./pay.sh: No such file")
    assert said.endswith("run this from the folder where the run was made")


def test_a_fault_that_does_not_land_proves_nothing_whatever_else_is_seen(tmp_path: Path) -> None:
    """Where half of the token's trial took place, another finding is not what became of it."""
    token = ReplayToken(
        target=small_task(tmp_path, "none"),
        seed=0,
        schedule="kill@payments.charge#2.applied / kill@payments.charge#99.applied",
        fingerprint="00000000",
    )
    replayed = replay(token, str(tmp_path), repeats=0)
    assert replayed.judgement.findings
    assert replayed.outcome == "UNKNOWN"
    assert any("did not land" in reason for reason in replayed.reasons)


def test_no_points_at_all_are_refused_before_anything_is_run(tmp_path: Path) -> None:
    """A schedule without a fault, or one that does not parse, leaves no run behind."""
    target = small_task(tmp_path, "keyed")
    for text, says in (("none", "no points at all"), ("- / -", "has no fault"), ("kill@a", "a")):
        options = Options(target=target, runs=str(tmp_path / "runs"), only=(text,))
        with pytest.raises(UsageError, match=says):
            list(run(options, Inline()))
    assert not (tmp_path / "runs").exists()
