"""Which line of a program's output says why it ended."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.model.last_words import telling_line

PYTHON = """\
starting
Traceback (most recent call last):
  File "bill.py", line 7, in <module>
    done = int(text)
ValueError: invalid literal for int() with base 10: ''
"""
OF_ANOTHER_NAME = """\
Traceback (most recent call last):
  File "a.py", line 1, in <module>
KeyError: 'total'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "a.py", line 3, in <module>
subprocess.TimeoutExpired: Command 'x' timed out after 3 seconds
"""
OF_SEVERAL_LINES = """\
Traceback (most recent call last):
  File "a.py", line 1, in <module>
pydantic_core._pydantic_core.ValidationError: 1 validation error for Order
total
  Field required [type=missing, input_value={}, input_type=dict]
    For further information visit https://errors.pydantic.dev/2/v/missing
"""
NODE = """\
/srv/bill.js:3
  throw new Error(`no total: ${x}`);
  ^

Error: no total: undefined
    at Object.<anonymous> (/srv/bill.js:3:9)
    at new ApiError (/srv/errors.js:1:2)
    at node:internal/main/run_main_module:28:49

Node.js v20.20.2
"""
NODE_WITH_FIELDS = """\
node:fs:573
  return binding.open(
                 ^

Error: ENOENT: no such file or directory, open 'state.json'
    at Object.openSync (node:fs:573:18)
    at node:internal/main/run_main_module:28:49 {
  errno: -2,
  code: 'ENOENT',
  path: 'state.json'
}

Node.js v20.20.2
"""
NODE_WITH_A_CODE = """\
TypeError [ERR_INVALID_ARG_TYPE]: The "path" argument must be of type string
    at open (node:fs:1:1)

Node.js v22.1.0
"""
GO = """\
panic: runtime error: index out of range [5] with length 3

goroutine 1 [running]:
main.main()
\t/srv/bill.go:8 +0x1d
exit status 2
"""
JAVA = """\
Exception in thread "main" java.lang.IllegalStateException: no total
\tat Bill.main(Bill.java:3)
Caused by: java.io.IOException: Disk quota exceeded
\tat Bill.read(Bill.java:9)
\t... 1 more
"""
RUST = """\
thread 'main' panicked at src/main.rs:2:5:
no total
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
"""
LOGGED = "WARNING retry after ConnectionError: refused\nanother run holds the lock\n"
CASES = {
    "python": (PYTHON, "ValueError: invalid literal for int() with base 10: ''"),
    "another-name": (
        OF_ANOTHER_NAME,
        "subprocess.TimeoutExpired: Command 'x' timed out after 3 seconds",
    ),
    "several-lines": (
        OF_SEVERAL_LINES,
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for Order",
    ),
    "node": (NODE, "Error: no total: undefined"),
    "node-fields": (
        NODE_WITH_FIELDS,
        "Error: ENOENT: no such file or directory, open 'state.json'",
    ),
    "node-code": (
        NODE_WITH_A_CODE,
        'TypeError [ERR_INVALID_ARG_TYPE]: The "path" argument must be of type string',
    ),
    "go": (GO, "panic: runtime error: index out of range [5] with length 3"),
    "java": (JAVA, "Caused by: java.io.IOException: Disk quota exceeded"),
    "rust": (RUST, "no total"),
    "bash": (
        "+ bill\nbill.sh: line 3: jq: command not found\n",
        "bill.sh: line 3: jq: command not found",
    ),
    "quoted-in-a-log": (LOGGED, "another run holds the lock"),
    "nothing": ("\n \n", ""),
    "aftermath-alone": ("\nNode.js v20.20.2\n", "Node.js v20.20.2"),
}


@pytest.mark.parametrize(("output", "line"), CASES.values(), ids=CASES)
def test_the_line_that_names_the_error_is_told(output: str, line: str) -> None:
    """Whatever a language prints around its error."""
    assert telling_line(output) == line


@given(st.text())
def test_what_is_told_was_said(output: str) -> None:
    """It is one of the lines, without blanks around it; empty only where all of them are blank."""
    told = telling_line(output)
    assert told in [line.strip() for line in output.splitlines()] or not told
    assert bool(told) == bool(output.strip())


@given(st.lists(st.from_regex(r"[a-z][a-z ]*[a-z]", fullmatch=True)), st.integers(0, 30))
def test_an_error_is_found_whatever_ordinary_words_are_around_it(
    words: list[str], place: int
) -> None:
    """The lines before and after it do not matter."""
    lines = [*words[:place], "app.errors.TornError: line 3", *words[place:]]
    assert telling_line("\n".join(lines)) == "app.errors.TornError: line 3"
