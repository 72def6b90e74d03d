"""The HTML report: one page with everything in it, which asks the network for nothing."""

from chaoskit.reporting.html.page import render

__all__ = ["render"]
