"""The reader who tries the pages out notices when they do not hold."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.docs.shown import Change, Command, Save, deeds, difference, shell, told

WORDS = st.lists(st.text("abcxyz", min_size=1, max_size=5), min_size=1, max_size=12)

PAGE = """
Save this as `a/list.txt`:

```text
one
two
```

```console
$ cat \\
    a/list.txt
one
…
$ false
```

In `a/list.txt`:

```diff
 one
-two
+three
```

```python
print("for the eye")
```
"""


def test_a_page_is_read_in_its_order() -> None:
    """Files, changes and commands are found, in their order; other blocks are left alone."""
    assert list(deeds(PAGE)) == [
        Save("a/list.txt", "one\ntwo\n"),
        Command("cat \\\n    a/list.txt", "one\n…"),
        Command("false", ""),
        Change("a/list.txt", "one\ntwo\n", "one\nthree\n"),
    ]


def test_what_a_page_says_is_done(tmp_path: Path) -> None:
    """Files are written and changed, commands are run there, and the next one knows the status."""
    said, problem = told(
        f"{PAGE}\n```console\n$ cat a/list.txt\none\nthree\n```\n", tmp_path, shell()
    )
    assert problem == ""
    assert said == "one\ntwo\none\nthree\n"
    *_, problem = told(
        "```console\n$ false\n$ echo $?\n1\n$ echo no\nyes\n```\n", tmp_path, shell()
    )
    assert "$ echo no" in problem
    *_, problem = told("`gone.txt`:\n\n```diff\n-a\n+b\n```\n", tmp_path, shell())
    assert "gone.txt" in problem


def test_what_is_said_because_time_has_passed_is_left_out(tmp_path: Path) -> None:
    """On a busy machine lines come in between that no page can show; any other line is seen."""
    said = (
        *("two undisturbed runs, 10 s so far (more)", "7 of 60 trials, 0.7/s, 2 INVALID"),
        "8 trials in 12 of 90 s, 0.7/s",
    )
    for line in (*said, "7 of 60 trials"):
        page = f"```console\n$ printf 'one\\n  {line}\\ntwo\\n'\none\ntwo\n```\n"
        *_, problem = told(page, tmp_path, shell())
        assert (problem == "") is (line in said), line


@given(WORDS)
def test_the_same_words_are_as_shown(words: list[str]) -> None:
    """A text is as shown, whatever its white space and its numbers are, and with parts left out."""
    text = " ".join(words)
    assert difference(text, "\n  ".join(words)) == ""
    assert difference(f"{text} 3 of 4, 1.5 s", f"{text}  30 of\n41, 12 s") == ""
    assert difference(f"{words[0]} …", text) == ""
    assert difference(f"… {words[-1]}", text) == ""
    assert difference("…", text) == ""


@given(WORDS, st.data())
def test_another_word_is_seen(words: list[str], data: st.DataObject) -> None:
    """A word that is another one, is missing, or comes besides is a difference."""
    place = data.draw(st.integers(0, len(words) - 1))
    other = [*words[:place], "other", *words[place + 1 :]]
    more = [*words[:place], "other", *words[place:]]
    assert difference(" ".join(other), " ".join(words))
    assert difference(" ".join(more), " ".join(words))
    assert difference(" ".join(words), " ".join(more))
    assert difference(f"… {' '.join(other)} …", " ".join(words))
