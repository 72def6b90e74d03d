"""What a report prints of a schedule can be given to ``--at``: it is the equal schedule again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from html import unescape
from itertools import islice
from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec
import pytest
from hypothesis import HealthCheck, event, example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from chaoskit.campaign.store import FILE, Store, StoredTrial
from chaoskit.explore import soak
from chaoskit.explore.faults import Ground, preludes
from chaoskit.model.actions import POWER, Kill, KillLeader, Late, Pause, Stop, Twin
from chaoskit.model.errors import UsageError
from chaoskit.model.history import History
from chaoskit.model.pasted import read_schedule
from chaoskit.model.points import CallPoint, Point, WindowPoint
from chaoskit.model.preludes import Damage
from chaoskit.model.schedule import Fault, Schedule, kill, parse_schedule
from chaoskit.model.secrets import without_secrets
from chaoskit.reporting.forms import render
from chaoskit.reporting.summary import Summary, summarize
from chaoskit.reporting.terminal import four_lines
from chaoskit.strategies import schedules
from tests.model.values import CALL_POINTS, GLOBS, POINTS, SCHEDULES
from tests.reporting.test_forms import terminal
from tests.reporting.test_html_parts import data_of


def _faults(points: list[Point]) -> Iterator[Fault]:
    """Every fault that can be at these points."""
    for point in points:
        yield Fault(KillLeader(), point)
        yield Fault(Stop("stop", 500), point)
        if isinstance(point, CallPoint) and point.side == "after":
            yield from (Fault(loss, point) for loss in POWER)
        if not isinstance(point, CallPoint):
            yield from (Fault(Pause(), point), Fault(Twin(), point))
        if isinstance(point, WindowPoint) and point.window == "received":
            yield Fault(Late(None), point)


@st.composite
def soaked(draw: st.DrawFn) -> Schedule:
    """One of the schedules that a soak draws, from any points, files and changes."""
    points = draw(st.lists(POINTS | CALL_POINTS, min_size=1, max_size=4))
    files = draw(st.lists(GLOBS | st.just("my état [a b].json"), max_size=2))
    ground = Ground(History(()), points, {"price": ""}, files)
    done = preludes(ground, ("resumers", "clock", "damage", "change"))
    seed = draw(st.integers(0, 1000))
    drawn = soak.schedules(points, 9.0, seed, 3, list(_faults(points)), done)
    return next(islice(drawn, draw(st.integers(0, 20)), None))


@st.composite
def strategic(draw: st.DrawFn) -> Schedule:
    """One of those that `chaoskit.strategies` draws."""
    points = draw(st.lists(POINTS, min_size=1, max_size=4))
    kinds = ("kill", "late", "stop", "pause", "twin", "damage", "clock", "resumers", "services")
    return draw(schedules(points, faults=kinds, kills_max=3, services=("payments",)))


DRAWN = st.one_of(soaked(), strategic(), SCHEDULES).filter(lambda drawn: drawn.faults > 0)
AT_FILE = parse_schedule("kill@write(a@b.txt)#1")
LONG = parse_schedule(" / ".join(f"kill@p1:rename({'x' * 90}->{'y' * 90})#1" for _ in range(3)))


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory, campaigns: Mapping[str, Path]) -> Path:
    """A stored campaign of one trial with a finding, of which the schedule can be replaced."""
    folder = tmp_path_factory.mktemp("printed")
    (folder / FILE).write_bytes((campaigns["invalid"] / FILE).read_bytes())
    return folder


def _of_schedule(folder: Path, schedule: Schedule) -> tuple[Summary, dict[str, str]]:
    """The summary and every form of a campaign whose only finding is of this schedule."""
    with Store(folder, writable=True) as store:
        failed = next(t for t in store.trials() if t.judgement.roots)
        history = store.history(failed.schedule).encode()
        store.forget(t for t in store.trials() if t.wave)
        trial: StoredTrial = msgspec.structs.replace(failed, schedule=str(schedule))
        store.put_trial(trial, history)
        summary = summarize(store)
        forms = ("html", "json", "junit", "sarif", "markdown")
        return summary, {name: render(name, summary, store) for name in forms}


def _printed(forms: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Where a form prints the schedule of its one finding, and what it prints."""
    (found,) = json.loads(forms["json"])["findings"]
    yield "json", found["schedule"]
    cases = ET.fromstring(forms["junit"]).iter("testcase")  # noqa: S314 - made by ourselves
    yield "junit", next(case.attrib["name"] for case in cases if case.find("failure") is not None)
    (result,) = json.loads(forms["sarif"])["runs"][0]["results"]
    yield "sarif", result["properties"]["schedules"][0]
    rows = data_of(forms["html"])["data"]["trials"]
    yield "html", rows[-1][0]
    (title,) = re.findall(r"<summary><code>.*, at (.*)</code></summary>", forms["markdown"])[:1]
    yield "markdown, folded", unescape(title)
    tokens = MarkdownIt("commonmark").enable("table").parse(forms["markdown"])
    inline = [t for t in tokens if t.type == "inline"]
    headings = [t.content for t in inline]
    cells = inline[headings.index("finding") + 5 :]
    assert cells[3].children is not None
    yield "markdown, table", cells[3].children[0].content


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(DRAWN)
@example(AT_FILE)
@example(LONG)
def test_every_form_prints_schedules_that_can_be_read(stored: Path, schedule: Schedule) -> None:
    """JSON, JUnit, SARIF, HTML and Markdown print a schedule so that it reads as the same one."""
    if without_secrets(str(schedule)) != str(schedule):
        return
    _, forms = _of_schedule(stored, schedule)
    for place, text in _printed(forms):
        assert read_schedule(text) == schedule, place


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(DRAWN, st.integers(40, 200))
@example(LONG, 80)
def test_a_terminal_of_any_width_prints_schedules_that_can_be_read(
    stored: Path, schedule: Schedule, width: int
) -> None:
    """However a narrow terminal breaks the lines of a schedule, it reads as the same one."""
    summary, _ = _of_schedule(stored, schedule)
    lines = terminal(summary, width).splitlines()
    first = next(n for n, line in enumerate(lines) if line.startswith("    where "))
    ends = ("    between ", "    in code ", "    expected ")
    last = next(n for n, line in enumerate(lines) if line.startswith(ends))
    text = "\n".join([lines[first].removeprefix("    where "), *lines[first + 1 : last]])
    event("folded" if last - first > 1 else "on one line")
    assert read_schedule(text) == schedule
    assert dict(four_lines(summary.findings[0], ""))["where"] == str(schedule)


@settings(max_examples=40)
@given(DRAWN)
def test_each_point_and_each_fault_alone_is_a_schedule(schedule: Schedule) -> None:
    """A report names the last fault's point: that is a kill there, or what is done before."""
    for fault in (fault for faults in schedule.attempts for fault in faults):
        assert read_schedule(str(fault)) == Schedule(((fault,),))
        if not fault.is_prelude:
            assert read_schedule(str(fault.point)) == Schedule(((kill(fault.point),),))


def test_a_pattern_with_a_blank_is_drawn_as_one_that_matches_it() -> None:
    """What a schedule's text cannot hold stands as a question mark, which matches it."""
    ground = Ground(History(()), (), checkpoints=("my état.json",))
    drawn = [f.action for f in preludes(ground, ("damage",)) if isinstance(f.action, Damage)]
    assert {damage.files for damage in drawn} == {"my??tat.json", "**/*"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("payments.charge#3.aplied", "nearest: applied"),
        ("kil@a#1", "nearest: kill"),
        ("clock:7d", "not a prelude"),
        ("foo", "not a point"),
        ("", "not a point"),
        ("kill@write([redacted])#1", "paste its line `chaoskit replay ck1-…` instead"),
        ("kill@write(aaaa… (2345 characters)", "paste its line `chaoskit replay ck1-…` instead"),
    ],
)
def test_what_is_none_is_refused_in_words(text: str, words: str) -> None:
    """The message names what was meant, or where the whole of it stands."""
    with pytest.raises(UsageError, match=re.escape(words)):
        read_schedule(text)


def test_an_at_sign_in_the_name_of_a_file_makes_no_fault_of_a_point() -> None:
    """A point with an @ in the name of its file is a kill there, and no fault of that name."""
    point = CallPoint("write", "a@b.txt", 1)
    assert read_schedule("write(a@b.txt)#1") == Schedule(((Fault(Kill(), point),),))
