"""What is no scenario's file is refused with the words to write, and is not run."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaoskit.model.errors import ScenarioError, UsageError
from chaoskit.model.token import Target
from chaoskit.trial.loading import load

PLAIN = """
from pathlib import Path
Path("charged").touch()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The present folder: a plain program, a script, and a scenario with one scenario."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plain.py").write_text(PLAIN)
    (tmp_path / "pay.sh").write_text("#!/bin/sh\n")
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "scenarios" / "shop.py").write_text("from chaoskit import Scenario\n")
    return tmp_path


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("plain.py", 'to run it as a command: chaoskit run … -- python "$PWD/plain.py"'),
        ("plain.py", "plain.py has no scenario (it does not mention chaoskit, and was not run)"),
        ("plain.py:main", "plain.py has no scenario"),
        ("pay.sh", "to run it as a command: chaoskit run … -- ./pay.sh"),
        ("scenarios/shop.py", "shop.py has no scenario: write `scenario = Scenario(…)` in it"),
        ("scenarios/shp.py", "there is no file scenarios/shp.py; nearest: scenarios/shop.py"),
        ("pay.rb", "there is no file pay.rb; a command goes after --; nearest: "),
        ("scenarios", "scenarios is a folder: give a scenario's file; nearest: scenarios/shop.py"),
    ],
)
def test_the_message_has_the_words_to_write(folder: Path, given: str, says: str) -> None:
    """A forgotten -- or a slip in a name is told what was meant, and no program runs for it."""
    with pytest.raises(UsageError) as refused:
        load(Target(scenario=given))
    assert says in str(refused.value)
    assert not (folder / "charged").exists()


def test_a_program_given_by_its_whole_path_keeps_it(folder: Path) -> None:
    """The words to write are those for the file that was given."""
    with pytest.raises(ScenarioError) as refused:
        load(Target(scenario=str(folder / "plain.py")))
    assert str(refused.value).endswith(f"-- python {folder}/plain.py")


@pytest.mark.parametrize(
    "text",
    ["from loading_base import scenario", "import loading_base\nscenario = loading_base.scenario"],
)
def test_a_scenario_may_come_from_another_file(folder: Path, text: str) -> None:
    """A file that only passes it on need not mention chaoskit."""
    base = (
        "from chaoskit import Scenario\nscenario = Scenario(command=('true',), title='passed on')\n"
    )
    (folder / "loading_base.py").write_text(base)
    (folder / "passes_on.py").write_text(text)
    assert load(Target(scenario="passes_on.py")).title == "passed on"


@pytest.mark.parametrize("text", ["def", "\0"])
def test_a_file_that_is_not_python_says_so(folder: Path, text: str) -> None:
    """What cannot be read as Python is told by Python's own words."""
    (folder / "odd.py").write_text(text)
    with pytest.raises(ScenarioError, match=r"odd\.py cannot be imported: "):
        load(Target(scenario="odd.py"))


def test_where_there_are_no_scenarios_none_is_suggested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is not there is said to be not there."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as refused:
        load(Target(scenario="nope.py"))
    assert str(refused.value) == "there is no file nope.py"
