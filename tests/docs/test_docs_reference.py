"""The reference is what the code says."""

from __future__ import annotations

import pytest

from docs._reference.pages import FOLDER, PAGES, pages


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    """Each page, made anew."""
    return pages()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_the_code_generates(name: str, made: dict[str, str]) -> None:
    """`make reference` would change nothing."""
    committed = (FOLDER / name).read_text(encoding="utf-8")
    assert committed == made[name], f"docs/reference/{name} is out of date: make reference"


def test_there_is_no_other_page() -> None:
    """Nothing lies in docs/reference that nothing makes."""
    assert {file.name for file in FOLDER.iterdir()} == set(PAGES)
