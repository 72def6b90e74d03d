"""The page of findings."""

from __future__ import annotations

from collections.abc import Iterator

from chaoskit.model.findings import FINDING_KINDS
from chaoskit.reporting.explanations import explanation, sentence
from docs._reference.markdown import text


def page() -> Iterator[str]:
    yield "# Findings"
    yield ""
    yield "Every kind of finding, as `chaoskit explain` tells it. The cases are those of the"
    yield "[gallery](../../scenarios/README.md): real failures of real programs."
    for kind in FINDING_KINDS:
        known = explanation(kind)
        yield ""
        yield f"## {kind}"
        yield ""
        yield text(sentence(kind))
        yield ""
        yield text(known.how)
        yield ""
        yield "```text"
        yield known.example
        yield "```"
        yield ""
        yield f"To mend it: {text(known.mend)}"
        if known.cases:
            yield ""
            yield f"Cases: {', '.join(known.cases)}"
