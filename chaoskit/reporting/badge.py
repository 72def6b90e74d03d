"""The verdict as a badge: a small SVG picture for the top of a README."""

from __future__ import annotations

from html import escape

from chaoskit.campaign.store import Store
from chaoskit.reporting.summary import Summary

COLOURS = {"VALID": "#1a7f37", "INVALID": "#c1121f", "UNKNOWN": "#8a6100"}
"""White text on each of them has a contrast of more than 4.5 to 1 (WCAG 2.2, 1.4.3)."""

LABEL = "chaoskit"
_LETTER_PX = 6.6
_PADDING_PX = 7


def render(summary: Summary, store: Store | None = None) -> str:
    """An SVG picture; its title, which screen readers read, has the counts."""
    said = _message(summary)
    left, right = (round(len(text) * _LETTER_PX) + 2 * _PADDING_PX for text in (LABEL, said))
    title = escape(in_a_sentence(summary))
    width = left + right
    return f"""<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" \
aria-label="{title}">
  <title>{title}</title>
  <clipPath id="r"><rect width="{width}" height="20" rx="3"/></clipPath>
  <g clip-path="url(#r)">
    <rect width="{left}" height="20" fill="#444"/>
    <rect x="{left}" width="{right}" height="20" fill="{COLOURS[summary.verdict]}"/>
  </g>
  <g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">
    {_text(LABEL, 0, left)}
    {_text(said, left, right)}
  </g>
</svg>
"""


def in_a_sentence(summary: Summary) -> str:
    """The verdict with the counts that every form has."""
    points = summary.points
    return (
        f"chaoskit: {summary.verdict_in_words}, {summary.trials} trials, "
        f"{points.landed} of {points.total} points, {summary.flaws} flaws in "
        f"{len(summary.findings)} findings"
    )


def _message(summary: Summary) -> str:
    if summary.verdict == "INVALID":
        failed = len({finding.schedule for finding in summary.findings})
        return f"invalid, {failed} trial{'s' if failed != 1 else ''}"
    if summary.verdict == "VALID":
        return f"valid, {summary.points.landed} of {summary.points.total} points"
    return "unknown"


def _text(text: str, at: int, width: int) -> str:
    return (
        f'<text x="{at + _PADDING_PX}" y="14" '
        f'textLength="{width - 2 * _PADDING_PX}">{escape(text)}</text>'
    )
