"""`python -m docs._reference` writes docs/reference/*.md."""

from docs._reference.pages import write

write()
