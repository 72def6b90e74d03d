"""``chaoskit run``: one campaign."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Generator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Literal, cast

import click
from rich.console import Console

from chaoskit.campaign.events import CampaignEvent, Finished
from chaoskit.campaign.mechanisms import best, traced
from chaoskit.campaign.options import DEFAULT_RUNS, Options
from chaoskit.campaign.planning import depth_from, kinds_from
from chaoskit.campaign.run import run as run_campaign
from chaoskit.campaign.sharding import check_shard, shard_from
from chaoskit.campaign.store import Store
from chaoskit.cli.forms import check_forms, check_places, form_options, reading, write_forms
from chaoskit.cli.live import Live
from chaoskit.cli.process import SIGNALS
from chaoskit.cli.shrinking import shrink_findings
from chaoskit.cli.soak import with_soak
from chaoskit.cli.words import (
    command_words,
    exit_codes,
    named_time,
    pair,
    read_declared,
    text_of,
)
from chaoskit.explore.faults import FAULT_KINDS
from chaoskit.explore.plan import MECHANISMS, Mechanism
from chaoskit.model.actions import LATE, Lateness
from chaoskit.model.durations import parse_duration
from chaoskit.model.errors import UsageError, unknown_name
from chaoskit.model.events import SUCCESS
from chaoskit.model.findings import Verdict
from chaoskit.model.pasted import read_schedule
from chaoskit.model.preludes import parse_clock
from chaoskit.model.scenario import ATTEMPTS
from chaoskit.model.token import CommandSpec, Target
from chaoskit.reporting.clean import plain
from chaoskit.reporting.summary import Summary, summarize
from chaoskit.reporting.terminal import show

_SECONDS = click.FloatRange(min=0, min_open=True)


def jobs_number(text: str) -> int:
    """``auto`` or a number of workers.

    Raises:
        UsageError: neither.
    """
    if text == "auto":
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    if not text.isdigit() or int(text) < 1:
        raise UsageError(f"-j takes a number of workers, at least 1, or auto; not {text!r}")
    return int(text)


AUTO = "auto"


def mechanisms_of(text: str) -> tuple[Mechanism, ...]:
    """A comma-separated list of mechanisms, or ``auto``: the best that works here.

    Raises:
        UsageError: one of them does not exist, or does not work on this machine.
    """
    if text == AUTO:
        return best()
    chosen: list[Mechanism] = []
    for name in filter(None, (part.strip() for part in text.split(","))):
        match = next((known for known in MECHANISMS if known == name), None)
        if match is None:
            raise unknown_name("mechanism", name, MECHANISMS)
        chosen.append(match)
    if "calls" in chosen:
        rung = traced()
        if not rung.works:
            raise UsageError(
                f"system calls cannot be traced here ({rung.why}); use --mechanisms "
                "windows,crossings; chaoskit doctor says more"
            )
    return tuple(chosen)


def in_flight_of(text: str) -> tuple[Lateness, ...]:
    """How requests land that are in flight at a kill: ``landed``, or how late besides.

    Raises:
        UsageError: there is no such way.
    """
    chosen = []
    for name in filter(None, (part.strip() for part in text.split(","))):
        if name == "landed":
            continue
        match = next((known for known in LATE if known == name), None)
        if match is None:
            raise unknown_name("way to land", name, ("landed", *LATE))
        chosen.append(match)
    return tuple(chosen)


@click.command(
    short_help="Kill and resume one task at every point, and judge it.",
    epilog="Exit codes: 0 valid, 1 findings, 2 usage, 3 chaoskit itself failed, 4 unknown.",
)
@click.argument("scenario", required=False)
@click.option(
    "--services",
    default="",
    help="Fake services, as in payments,email,database; payments:eu,payments:us are two of a kind, "
    "./sms.py:create is one of your own.",
)
@click.option("--resume", "resume", default="", help="The command line that resumes the task.")
@click.option(
    "--prepare",
    default="",
    metavar="COMMAND",
    help="Run before the first attempt of each trial: what it writes is the starting state.",
)
@click.option(
    "--control",
    default="",
    metavar="COMMAND",
    help="The task in another form (no checkpoints, one item at a time), whose effects are right.",
)
@click.option(
    "--expect",
    "expect",
    multiple=True,
    metavar="OPERATION=WHAT",
    help="What an undisturbed run must do: payments.charge=12, or a CSV or JSON file of fields.",
)
@click.option(
    "--env",
    "env",
    multiple=True,
    metavar="NAME=VALUE",
    help="A variable for the task; {payments.url} and the like are filled in.",
)
@click.option(
    "--outputs",
    multiple=True,
    metavar="GLOB",
    help="Files that must end as an undisturbed run leaves them: *.csv, ~/.job/done, /tmp/x.",
)
@click.option(
    "--recorded",
    multiple=True,
    metavar="GLOB",
    help="Files that each record a completed step, as in done-*: what they record is not redone.",
)
@click.option(
    "--contract",
    default="",
    metavar="RULES",
    help="How often an effect may happen, as in email.send=at-least-once.",
)
@click.option(
    "--ignore",
    multiple=True,
    metavar="OPERATION",
    help="Effects that nobody counts, as in database.leases.*: a lock, a lease, a heartbeat.",
)
@click.option(
    "--success", metavar="CODES", help="Exit codes that mean success, as in 0,101; by default 0."
)
@click.option(
    "--attempts",
    type=click.IntRange(min=1),
    help="A task that has failed so often after the last fault is stuck; by default 4.",
)
@click.option(
    "--behaviour",
    "behaviours",
    multiple=True,
    help="How a service misbehaves, as in lose-reply@payments.charge#3.",
)
@click.option(
    "--tables",
    type=click.Path(path_type=Path),
    help="A file with the SQL that creates the tables of the database service.",
)
@click.option(
    "--allow",
    multiple=True,
    metavar="HOST:PORT",
    help="Whom the task may reach besides the services; it is then never plainly VALID.",
)
@click.option(
    "--clean",
    multiple=True,
    metavar="PATH",
    help="A file or folder that a run before has left: hide it from the task.",
)
@click.option("--at", "only", multiple=True, metavar="POINT", help="Only this point or schedule.")
@click.option(
    "--mechanisms",
    default=AUTO,
    show_default=True,
    help="Where to kill: calls, windows, crossings, lines, times; auto is the best that works.",
)
@click.option(
    "--in-flight",
    default="landed,late:1",
    show_default=True,
    help="A request in flight at a kill has landed, or lands late: after 1, 2, or all that follow.",
)
@click.option(
    "--times", type=click.IntRange(min=0), default=0, help="Also kill at so many random moments."
)
@click.option(
    "--depth",
    default=1,
    show_default="1, 3 for a soak",
    help="Kills in one trial, at most: 1, 2 or 3; of those with 3 a sample is run.",
)
@click.option(
    "--snapshots/--no-snapshots",
    default=True,
    show_default=True,
    help="Go on from copies of the world where that is exact; see above.",
)
@click.option("--soak", metavar="TIME", help="Instead: random schedules for 90s, 10m, 1h.")
@click.option(
    "--shrink/--no-shrink",
    default=None,
    help="Look for the smallest trial of each finding; by default where several kills or random "
    "times were needed.",
)
@click.option(
    "--resume-after",
    metavar="TIME",
    help="After each kill all clocks advance by 90s, 5m, 1h, 7d; many leases matter only then.",
)
@click.option(
    "--resumed-within",
    default="",
    metavar="TIME",
    help="The task is resumed so soon after an interruption (72h): no fault lets more time pass.",
)
@click.option(
    "--key-lifetime",
    "key_lifetime",
    multiple=True,
    metavar="SERVICE=TIME",
    help="How long a service remembers an idempotency key, as in payments=72h; by default 24h.",
)
@click.option("--skip-sleeps", is_flag=True, help="The task's sleep calls return at once.")
@click.option(
    "--kill",
    "kill",
    type=click.Choice(["tree", "leader", "both"]),
    default="tree",
    show_default=True,
    help="SIGKILL to all processes of the task, to the first one alone, or each in its turn.",
)
@click.option(
    "--faults",
    default="",
    metavar="KINDS",
    help="Also a few trials of other faults: all, none, or some of "
    f"{', '.join(FAULT_KINDS)}; by default the scenario's own changes.",
)
@click.option("--power-loss", is_flag=True, help="Also lose power after each system call.")
@click.option("--max-points", type=click.IntRange(min=1), help="Sample so many trials a wave.")
@click.option(
    "--reached",
    metavar="PERCENT",
    type=click.IntRange(0, 100),
    default=100,
    show_default=True,
    help="UNKNOWN if fewer of the points on files that baselines passed come again.",
)
@click.option(
    "--max-time",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    help="Start no trial after so long.",
)
@click.option("--shard", metavar="K/N", help="Only the K-th of N parts; see chaoskit join.")
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=_SECONDS,
    help="Kill an attempt that takes longer; by default 300 in an undisturbed run, and then 10 and "
    "20 times as long as that took.",
)
@click.option("--seed", default=0, show_default=True, help="Decides inputs and samples.")
@click.option("-j", "--jobs", default="auto", show_default=True, help="Workers.")
@form_options
@click.option("--runs", type=click.Path(path_type=Path), default=DEFAULT_RUNS, show_default=True)
@click.option("--work-dir", type=click.Path(path_type=Path), help="Where work folders are made.")
@click.option("--fresh", is_flag=True, help="Begin anew even if an interrupted one is there.")
@click.option("-q", "--quiet", is_flag=True, help="No progress, only the report.")
@click.pass_context
def run(ctx: click.Context, /, **given: object) -> int:
    """Kill and resume one task at every point, and judge it.

    SCENARIO is a Python file with `scenario = Scenario(…)`, or FILE:NAME. Instead of one, give a
    command after `--`; {payments.url}, {email.url}, {email.smtp_host}, {email.smtp_port},
    {database.url}, {state}, {seed} and {inputs} in it are filled in. The command runs here, as if
    typed, in a copy-on-write view of the file system: nothing real is changed.

    The part before the kill is run once for many points: the work folder and the services' books
    are copied while the task stands still at each of them, and only the resumes are run, one for
    each state. Every failure is shown again by a real kill, and so is a sample of the rest.
    Where a copy would not be exact each trial is a real kill, and the report says why.

    \b
    chaoskit run scenarios/sound/forty_calls.py --json out.json
    chaoskit run --services payments,email --resume "node task.js --resume" -- node task.js
    """
    target = _target(ctx.obj, given)
    places = (given["runs"], given["work_dir"])
    check_forms(given)
    check_places(folders=places)
    chosen = mechanisms_of(str(given["mechanisms"]))
    options = Options(
        target=target,
        seed=_int(given["seed"]),
        mechanisms=chosen,
        max_points=_maybe_int(given["max_points"]),
        reached=_int(given["reached"]),
        max_time_s=_finite(given["max_time"]),
        times=_int(given["times"]),
        depth=depth_from(_int(given["depth"])),
        in_flight=in_flight_of(str(given["in_flight"])),
        snapshots=bool(given["snapshots"]),
        faults=kinds_from(str(given["faults"])),
        power_loss=_with_calls("--power-loss", bool(given["power_loss"]), chosen),
        kill=_kill(str(given["kill"])),
        skip_sleeps=_with_calls("--skip-sleeps", bool(given["skip_sleeps"]), chosen),
        resume_after_s=_after_s(given["resume_after"]),
        timeout_s=_finite(given["timeout"]),
        expect=tuple(map(read_declared, _texts(given["expect"]))),
        only=tuple(str(read_schedule(text)) for text in _texts(given["only"])),
        shard=shard_from(str(given["shard"])) if given["shard"] else None,
        fresh=bool(given["fresh"]),
        jobs=jobs_number(str(given["jobs"])),
        runs=str(given["runs"]),
        work_root=str(given["work_dir"] or ""),
    )
    options = with_soak(options, ctx, given)
    check_shard(options)
    out = reading(given)
    line = f"chaoskit: {plain(target.label)}, seed {options.seed}, {options.jobs} workers"
    out.print(line, style="dim", markup=False, soft_wrap=True)
    summary = campaign(options, out, quiet=bool(given["quiet"]))
    asked = None if given["shrink"] is None else bool(given["shrink"])
    summary = shrink_findings(summary, options, out, asked=asked, quiet=bool(given["quiet"]))
    SIGNALS.done = f"chaoskit report {shlex.quote(summary.run)}"
    show(summary, out)
    with Store(Path(summary.run)) as store:
        write_forms(summary, store, given)
    return Verdict(summary.verdict).exit_code


def campaign(options: Options, out: Console, *, quiet: bool = False) -> Summary:
    """Run a campaign to its end, showing it on ``out``; its summary."""
    events = cast("Generator[CampaignEvent, None, None]", run_campaign(options))
    with Live(out, quiet=quiet) as live, closing(events):
        finished = live.follow(events)
    assert isinstance(finished, Finished)
    with Store(finished.folder) as store:
        return summarize(store)


def _target(command: object, given: dict[str, object]) -> Target:
    scenario = given["scenario"]
    words = tuple(map(str, command)) if isinstance(command, tuple) else None
    if words is None:
        if not scenario:
            raise UsageError("give a SCENARIO file, or a command after --")
        for name in (
            *("services", "resume", "control", "env", "outputs", "contract", "behaviours"),
            *("recorded", "tables", "allow", "clean", "key_lifetime", "resumed_within"),
            *("prepare", "ignore", "success", "attempts"),
        ):
            if given[name]:
                option = name.replace("_", "-")
                raise UsageError(
                    f"--{option} goes with a command after --, not with a scenario file"
                )
        return Target(scenario=str(scenario))
    if scenario:
        raise UsageError(f"give either a scenario ({scenario}) or a command after --, not both")
    if not words:
        raise UsageError("there is no command after --")
    tables, codes, lifetimes = given["tables"], given["success"], given["key_lifetime"]
    spec = CommandSpec(
        command=words,
        resume=command_words(str(given["resume"]), "--resume"),
        control=command_words(str(given["control"]), "--control"),
        prepare=command_words(str(given["prepare"]), "--prepare"),
        env=dict(pair(text, "--env") for text in _texts(given["env"])),
        services=tuple(filter(None, str(given["services"]).split(","))),
        outputs=tuple(_texts(given["outputs"])),
        recorded=tuple(_texts(given["recorded"])),
        contract=dict(
            pair(p.strip(), "--contract") for p in str(given["contract"]).split(",") if p
        ),
        behaviours=tuple(_texts(given["behaviours"])),
        ignore=tuple(_texts(given["ignore"])),
        attempts_max=_maybe_int(given["attempts"]) or ATTEMPTS,
        success=SUCCESS if codes is None else exit_codes(str(codes), "--success"),
        allow=tuple(_texts(given["allow"])),
        clean=tuple(_texts(given["clean"])),
        key_lifetime=dict(named_time(text, "--key-lifetime") for text in _texts(lifetimes)),
        resumed_within=_within(str(given["resumed_within"])),
        tables=text_of(tables, "--tables") if isinstance(tables, Path) else "",
        typed=not given["power_loss"],  # which follows the work folder only
    )
    return Target(command=spec)


def _within(text: str) -> str:
    if text:
        parse_duration(text, "--resumed-within")
    return text


def _after_s(value: object) -> int:
    if value is None:
        return 0
    found = parse_clock(f"clock:+{value}")
    if found is None:
        raise UsageError(f"--resume-after takes a time, as in 90s, 5m, 1h or 7d; not {value!r}")
    return found.seconds


def _finite(value: object) -> float | None:
    number = _maybe_float(value)
    if number is not None and not math.isfinite(number):
        raise UsageError(f"a number of seconds is finite, not {number}")
    return number


def _with_calls(option: str, wanted: bool, chosen: Sequence[Mechanism]) -> bool:
    if wanted and "calls" not in chosen:
        raise UsageError(
            f"{option} needs the system calls of the task, and they are not traced: "
            "add calls to --mechanisms; chaoskit doctor says whether that works here"
        )
    return wanted


def _kill(text: str) -> Literal["tree", "leader", "both"]:
    return "leader" if text == "leader" else "both" if text == "both" else "tree"


def _texts(value: object) -> Sequence[str]:
    return [str(item) for item in value] if isinstance(value, tuple) else []


def _int(value: object) -> int:
    assert isinstance(value, int)
    return value


def _maybe_int(value: object) -> int | None:
    return None if value is None else _int(value)


def _maybe_float(value: object) -> float | None:
    assert value is None or isinstance(value, float)
    return value
