"""Whom a task may reach: its services and its own servers; strangers are refused at the call."""

from __future__ import annotations

import socket
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from chaoskit.campaign.events import Finished
from chaoskit.campaign.options import Options
from chaoskit.campaign.run import run
from chaoskit.campaign.store import Store
from chaoskit.explore.plan import Mechanism
from chaoskit.model.hosting import Address
from chaoskit.model.schedule import parse_schedule
from chaoskit.model.token import CommandSpec, Target
from chaoskit.reporting.summary import Summary, summarize
from chaoskit.trace.abi import this_abi
from chaoskit.trial.supervisor import Supervisor
from chaoskit.trial.tracing import _ports_of
from tests.trial.traced import Ran, python, with_supervisor

pytestmark = pytest.mark.skipif(
    this_abi() is None, reason="system calls are traced on Linux on x86_64 and aarch64 only"
)


def ran(spec: CommandSpec, schedule: str = "none", *, light: bool = False) -> Ran:
    """One trial; ``light``: traced for strangers only, as most attempts of a campaign are."""
    found: list[Ran] = []

    async def then(supervisor: Supervisor) -> None:
        supervisor.conduct = replace(supervisor.conduct, calls=not light)
        found.append(Ran(await supervisor.run(parse_schedule(schedule))))

    with_supervisor(spec, then)
    return found[0]


class Strange:
    """Sockets of this process, which is no part of any task, at which it hears who comes."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self.path = str(folder / "strange.sock")
        self.sockets = {
            "tcp": socket.socket(),
            "tcp6": socket.socket(socket.AF_INET6),
            "udp": socket.socket(type=socket.SOCK_DGRAM),
            "unix": socket.socket(socket.AF_UNIX),
            "abstract": socket.socket(socket.AF_UNIX),
            "unix-datagrams": socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM),
        }
        for each in self.sockets.values():
            stack.enter_context(closing(each))
            each.setblocking(False)
        self.sockets["tcp"].bind(("127.0.0.1", 0))
        self.sockets["tcp6"].bind(("::1", 0))
        self.sockets["udp"].bind(("127.0.0.1", 0))
        self.sockets["unix"].bind(self.path)
        self.sockets["abstract"].bind(f"\0{self.path}")
        self.sockets["unix-datagrams"].bind(f"{self.path}-d")
        for name in ("tcp", "tcp6", "unix", "abstract"):
            self.sockets[name].listen()

    @property
    def names(self) -> dict[str, str]:
        """What is put into the sources of tasks."""
        ports = {k: str(self.sockets[k].getsockname()[1]) for k in ("tcp", "tcp6", "udp")}
        return {**ports, "path": self.path}

    def heard(self) -> list[str]:
        """Who was reached."""
        found = []
        for name, each in self.sockets.items():
            with suppress(BlockingIOError):
                if "datagrams" in name or name == "udp":
                    each.recv(1)
                else:
                    each.accept()[0].close()
                found.append(name)
        return found


@pytest.fixture
def strange(tmp_path: Path) -> Iterator[Strange]:
    """Servers that no task knows."""
    with ExitStack() as stack:
        yield Strange(stack, tmp_path.resolve())


HEAD = """
    import ctypes, errno, os, socket, struct
    tcp, udp = socket.socket, lambda: socket.socket(type=socket.SOCK_DGRAM)
    unix = lambda: socket.socket(socket.AF_UNIX)
    def tries(call, *words):
        try:
            call(*words)
        except OSError as error:
            print(errno.errorcode[error.errno])
        else:
            print("done")
"""

WAYS = {
    "tcp": ("tries(tcp().connect, ('127.0.0.1', {tcp}))", "127.0.0.1:{tcp}"),
    "tcp by any address": ("tries(tcp().connect, ('0.0.0.0', {tcp}))", "0.0.0.0:{tcp}"),
    "tcp of IPv6": (
        "tries(socket.socket(socket.AF_INET6).connect, ('::1', {tcp6}))",
        "[::1]:{tcp6}",
    ),
    "tcp of IPv4 by a socket of IPv6": (
        "tries(socket.socket(socket.AF_INET6).connect, ('::ffff:127.0.0.1', {tcp}))",
        "127.0.0.1:{tcp}",
    ),
    "tcp without waiting": (
        "s = tcp(); s.setblocking(False); tries(s.connect, ('127.0.0.1', {tcp}))",
        "127.0.0.1:{tcp}",
    ),
    "tcp with the first bytes": (
        "tries(tcp().sendto, b'x', 0x20000000, ('127.0.0.1', {tcp}))",
        "127.0.0.1:{tcp}",
    ),
    "udp": ("tries(udp().sendto, b'x', ('127.0.0.1', {udp}))", "127.0.0.1:{udp}"),
    "udp by a message": (
        "tries(udp().sendmsg, [b'x'], [], 0, ('127.0.0.1', {udp}))",
        "127.0.0.1:{udp}",
    ),
    "udp connected": (
        "s = udp(); s.connect(('127.0.0.1', {udp})); tries(s.send, b'x')",
        "127.0.0.1:{udp}",
    ),
    "udp connected, by a message": (
        "s = udp(); s.connect(('127.0.0.1', {udp})); tries(s.sendmsg, [b'x'])",
        "127.0.0.1:{udp}",
    ),
    "unix": ("tries(unix().connect, {path!r})", "{path}"),
    "unix by a link": (
        "os.symlink({path!r}, 'link'); tries(unix().connect, 'link')",
        "{state}/link",
    ),
    "unix datagrams": (
        "tries(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto, b'x', {path!r} + '-d')",
        "{path}-d",
    ),
    "abstract": ("tries(unix().connect, '\\0' + {path!r})", "@{path}"),
    "another machine": ("tries(tcp().connect, ('192.0.2.1', 443))", "192.0.2.1:443"),
    "another machine by udp": (
        "tries(udp().sendto, b'x', ('192.0.2.1', 8125))",
        "192.0.2.1:8125",
    ),
}
"""What a task does, and whom it is then said to have tried."""


@pytest.mark.parametrize("light", [False, True], ids=["calls", "light"])
def test_no_stranger_is_reached_and_each_is_named(strange: Strange, *, light: bool) -> None:
    """By stream, datagram and message, over IP and Unix sockets, connected or not: the call fails
    as where nobody is, the server hears nothing, and the address is noted.
    """
    names = strange.names
    tries = "\n    ".join(code.format(**names) for code, _ in WAYS.values())
    found = ran(python(f"{HEAD}\n    {tries}\n    print(os.getcwd())"), light=light)
    *said, state = found.output.split()
    assert said == ["ECONNREFUSED"] * len(WAYS), found.output
    assert strange.heard() == []
    whom = {("stranger", whom.format(**names, state=state)) for _, whom in WAYS.values()}
    assert found.notes == sorted(whom)


def test_many_messages_and_plain_writes_reach_nobody(strange: Strange) -> None:
    """sendmmsg is refused for any of its messages, and a connected socket that is written to."""
    spec = python(f"""{HEAD}
    libc = ctypes.CDLL(None, use_errno=True)
    address = struct.pack("=HHI8x", 2, socket.htons({strange.names["udp"]}), 0x0100007F)
    where = ctypes.create_string_buffer(address)
    text = ctypes.create_string_buffer(b"x")
    part = ctypes.create_string_buffer(struct.pack("=QQ", ctypes.addressof(text), 1))
    words = ctypes.addressof(where), 16, ctypes.addressof(part), 1, 0, 0, 0
    head = struct.pack("=QI4xQQQQQ", *words)
    both = ctypes.create_string_buffer((head + bytes(8)) * 2)
    u = udp()
    assert libc.sendmmsg(u.fileno(), both, 2, 0) == -1
    print(errno.errorcode[ctypes.get_errno()])
    s = udp(); s.connect(("127.0.0.1", {strange.names["udp"]}))
    tries(os.write, s.fileno(), b"x")
    """)
    found = ran(spec)
    assert found.output.split() == ["ECONNREFUSED"] * 2
    assert strange.heard() == []
    assert found.notes == [("stranger", f"127.0.0.1:{strange.names['udp']}")]


OWN = """
    import os, socket, subprocess, sys
    def serves(family, kind, address):
        s = socket.socket(family, kind)
        s.bind(address)
        if kind == socket.SOCK_STREAM:
            s.listen()
        return s
    def reached(server, kind, address):
        c = socket.socket(server.family, kind)
        c.connect(address)
        c.send(b"x")
        other = server.accept()[0] if kind == socket.SOCK_STREAM else server
        assert other.recv(1) == b"x"
    stream, datagram = socket.SOCK_STREAM, socket.SOCK_DGRAM
    for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        for kind in (stream, datagram):
            server = serves(family, kind, (host, 0))
            reached(server, kind, server.getsockname()[:2])
    for name in ("own.sock", "OUTSIDE/own.sock", "\\0abstract-OUTSIDE"):
        for kind in (stream, datagram):
            if not name.startswith("\\0") and os.path.exists(name):
                os.unlink(name)
            reached(serves(socket.AF_UNIX, kind, name), kind, name)
    code = "import socket; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1])" \\
           "; import sys; sys.stdout.flush(); s.accept()[0].sendall(b'y')"
    child = subprocess.Popen([sys.executable, "-ISc", code], stdout=subprocess.PIPE)
    port = int(child.stdout.readline())
    assert socket.create_connection(("127.0.0.1", port)).recv(1) == b"y"
    child.wait()
"""


@pytest.mark.parametrize("light", [False, True], ids=["calls", "light"])
def test_a_task_reaches_its_own_servers(tmp_path: Path, *, light: bool) -> None:
    """Of each kind, in the same process or in a child; nobody is called a stranger."""
    found = ran(python(OWN.replace("OUTSIDE", str(tmp_path))), light=light)
    assert found.ends == ["exit 0"], found.output
    assert [note for note in found.notes if note[0] == "stranger"] == []


def test_a_server_that_is_still_to_come_is_no_stranger() -> None:
    """A task may ask for its own server before that listens: it gets the kernel's own answer. A
    port at which nobody ever listened is named, since on another machine somebody may.
    """
    spec = python("""
        import socket
        server = socket.socket()
        server.bind(("127.0.0.1", 0))
        address = server.getsockname()
        assert socket.socket().connect_ex(address) == 111
        server.listen()
        socket.create_connection(address)
        unused = socket.socket()
        unused.bind(("127.0.0.1", 0))
        print(unused.getsockname()[1])
        assert socket.socket().connect_ex(unused.getsockname()) == 111
    """)
    found = ran(spec)
    assert found.ends == ["exit 0"], found.output
    assert found.notes == [("nobody", f"127.0.0.1:{found.output.strip()}")]


@pytest.mark.parametrize("where", ["", "OUTSIDE/"], ids=["inside", "outside"])
def test_a_socket_that_a_dead_attempt_left_is_nobodys(tmp_path: Path, where: str) -> None:
    """The resume is refused by the file, as on any machine, and no stranger is named."""
    path = f"{where.replace('OUTSIDE', str(tmp_path))}left.sock"
    code = f"""
        import os, socket
        if os.path.exists({path!r}):
            print(socket.socket(socket.AF_UNIX).connect_ex({path!r}))
        else:
            s = socket.socket(socket.AF_UNIX)
            s.bind({path!r})
            s.listen()
            os.mkdir("d")
    """
    words = python(code).command
    found = ran(CommandSpec(command=words), "kill@mkdir(d)#1")
    assert found.ends == ["killed 9", "exit 0"]
    assert found.history.last.output_tail.strip() == "111"
    assert [note for note in found.notes if note[0] == "stranger"] == []


def test_the_name_in_a_question_is_noted() -> None:
    """A host that is looked up is named, and no server of names is asked."""
    found = ran(
        python("""
        import socket
        query = b"\\x12\\x34\\1\\0\\0\\1" + bytes(6) + b"\\3api\\6stripe\\3com\\0\\0\\1\\0\\1"
        for connected in (False, True):
            s = socket.socket(type=socket.SOCK_DGRAM)
            if connected:
                s.connect(("127.0.0.53", 53))
            try:
                s.send(query) if connected else s.sendto(query, ("127.0.0.53", 53))
            except ConnectionRefusedError:
                print("refused")
        try:
            socket.getaddrinfo("some.where.example", 443)
        except socket.gaierror:
            print("unknown")
    """)
    )
    assert found.output.split() == ["refused", "refused", "unknown"]
    named = {detail for what, detail in found.notes if what == "stranger"}
    assert {"api.stripe.com", "some.where.example"} <= named


def test_what_asks_only_for_the_way_sends_nothing() -> None:
    """A socket of datagrams may be connected to anybody: programs find out their own address so."""
    found = ran(
        python("""
        import socket
        s = socket.socket(type=socket.SOCK_DGRAM)
        s.connect(("192.0.2.1", 80))
        print(s.getsockname()[0])
    """)
    )
    assert (found.ends, found.notes) == (["exit 0"], [])


PAYS = """
import os, sys, socket, urllib.request
from chaoskit import Scenario

def main():
    {first}
    if not os.path.exists("done"):
        url = os.environ["CHAOSKIT_PAYMENTS_URL"] + "/v1/charges"
        form = b"amount=100&currency=eur&source=tok_visa&description=c"
        head = {{"Authorization": "Bearer sk_test_x", "Idempotency-Key": "k"}}
        urllib.request.urlopen(urllib.request.Request(url, form, head)).read()
        open("done", "w").close()

scenario = Scenario(task=main, services=("payments",), allow={allow!r})
"""


def judged(
    folder: Path,
    first: str,
    allow: tuple[str, ...] = (),
    mechanisms: tuple[Mechanism, ...] = ("windows",),
) -> Summary:
    """A campaign over a sound task that does something ``first``."""
    (folder / "pays.py").write_text(PAYS.format(first=textwrap.dedent(first), allow=allow))
    options = Options(
        target=Target(scenario=str(folder / "pays.py")),
        mechanisms=mechanisms,
        runs=str(folder / "runs"),
    )
    finished = [event for event in run(options) if isinstance(event, Finished)][-1]
    with Store(finished.folder) as store:
        return summarize(store)


@pytest.mark.parametrize("mechanisms", [("windows",), ("calls",)])
def test_a_task_that_is_let_through_is_never_plainly_valid(
    tmp_path: Path, strange: Strange, mechanisms: tuple[Mechanism, ...]
) -> None:
    """It is UNKNOWN, with whom nobody booked, and no copy is used; refused it is VALID, as if the
    server were not there, and the report says whom it tried. Without it there is nothing to say.
    """
    port = strange.names["tcp"]
    there = f"socket.socket().connect_ex(('127.0.0.1', {port}))"
    plain = judged(tmp_path, "pass", mechanisms=mechanisms)
    assert plain.verdict == "VALID"
    assert not any("stranger" in text or "tried" in text for text in plain.remarks)
    refused = judged(tmp_path, there, mechanisms=mechanisms)
    assert strange.heard() == []
    assert (refused.verdict, refused.points) == ("VALID", plain.points)
    assert any(f"it tried 127.0.0.1:{port}" in text for text in refused.remarks)
    assert any(f"refused were 127.0.0.1:{port}" in text for text in refused.not_tested)
    allowed = judged(tmp_path, there, (f"127.0.0.1:{port}",), mechanisms)
    assert strange.heard() == ["tcp"]
    assert (allowed.verdict, allowed.copies, allowed.findings) == ("UNKNOWN", 0, ())
    assert any(f"127.0.0.1:{port}" in reason for reason in allowed.unknowns)


@pytest.mark.parametrize(
    "allow", ["localhost:{tcp}", "127.0.0.1:*", "[::1]:{tcp6}", "{path}"], ids=str
)
def test_who_is_allowed_may_be_named_in_each_way(
    tmp_path: Path, strange: Strange, allow: str
) -> None:
    """By the name or number of a host, by any port, by the path of a socket; nobody else is."""
    names = strange.names
    code = f"""
    import socket
    for family, address in ((2, ("127.0.0.1", {names["tcp"]})), (10, ("::1", {names["tcp6"]})),
                            (1, {names["path"]!r})):
        socket.socket(family).connect_ex(address)
    """
    spec = python(code)
    text = allow.format(**names)
    (tmp_path / "s.py").write_text(
        f"from chaoskit import Scenario\n"
        f"scenario = Scenario(command={spec.command!r}, allow=({text!r},))"
    )
    found: list[Ran] = []

    async def then(supervisor: Supervisor) -> None:
        found.append(Ran(await supervisor.run(parse_schedule("none"))))

    with_supervisor(Target(scenario=str(tmp_path / "s.py")), then)
    assert ("allowed", text) in found[0].notes
    assert len(strange.heard()) == 1
    assert len([note for note in found[0].notes if note[0] == "stranger"]) == 2


ONLY_IN_A_RESUME = """
    if os.path.exists("begun"):
        socket.socket().connect_ex(("127.0.0.1", PORT))
    open("begun", "w").close()
"""


def test_whom_only_a_resume_reaches_is_said_as_well(tmp_path: Path, strange: Strange) -> None:
    """Refused it is named; let through it makes the run UNKNOWN."""
    port = strange.names["tcp"]
    first = ONLY_IN_A_RESUME.strip().replace("PORT", port)
    refused = judged(tmp_path, first)
    assert (refused.verdict, strange.heard()) == ("VALID", [])
    assert any(f"it tried 127.0.0.1:{port}" in text for text in refused.remarks)
    allowed = judged(tmp_path, first, (f"127.0.0.1:{port}",))
    assert (allowed.verdict, strange.heard()) == ("UNKNOWN", ["tcp"])
    assert any(f"127.0.0.1:{port}" in reason for reason in allowed.unknowns)


def test_a_known_host_gets_a_hint(tmp_path: Path) -> None:
    """The report asks whether the service was meant."""
    summary = judged(
        tmp_path,
        """
    try:
        socket.create_connection(("api.stripe.com", 443))
    except OSError:
        pass
    """.strip(),
    )
    assert any(
        "it tried api.stripe.com" in text and "{payments.url}" in text for text in summary.remarks
    )


def test_a_service_that_names_no_port_is_known_by_its_addresses() -> None:
    """An own service that leaves out on which ports it listens is no stranger."""
    url = {"url": "http://127.0.0.1:4021/v1", "other": "redis://localhost:6380", "path": "/a:80"}
    assert _ports_of(Address(url, {})) == {4021, 6380}
    assert _ports_of(Address({}, {"SMS_URL": "http://[::1]:99"})) == {99}
    assert _ports_of(Address(url, {}, (7,))) == {7}
