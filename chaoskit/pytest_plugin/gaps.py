"""Known gaps: which findings are expected, which are new, and which are not there any more.

A known gap is a strict expected failure: it is to fail until it is mended, and then to be taken out
of the list. That it was mended is said only of a campaign that tried what could have shown it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from chaoskit.checkers.own import own_checkers
from chaoskit.model.errors import UsageError, nearest, unknown_name
from chaoskit.model.findings import FINDING_KINDS
from chaoskit.reporting.summary import ReportedFinding
from chaoskit.reporting.terminal import groups

EXAMPLE = '{"duplicate_effect@payments.charge": "ticket 7"}'
SHOWN_AT_MOST = 3
"""Of so many trials that showed a finding the schedules are kept in a baseline."""


@dataclass(frozen=True, slots=True)
class Known:
    """A gap that is known.

    Args:
        name: a kind of finding and, after ``@``, an operation or a pattern of them, as in
            ``duplicate_effect@payments.*``; without ``@`` any operation.
        reason: why it is left as it is, for reports.
        shown_at: schedules of trials that showed it when it was recorded; empty where a person
            wrote it down.
        recorded: it stands in the baseline, and not on the marker.
    """

    name: str
    reason: str
    shown_at: tuple[str, ...] = ()
    recorded: bool = False

    def explains(self, finding: ReportedFinding) -> bool:
        """Whether ``finding`` is this gap."""
        if self.recorded:
            return name_of(finding) == self.name
        kind, _, pattern = self.name.partition("@")
        return finding.kind == kind and fnmatchcase(finding.operation, pattern or "*")


@dataclass(frozen=True, slots=True)
class Found:
    """Findings that are told as one: those of one kind and operation that the same gap explains.

    ``known`` is None where nothing does.
    """

    name: str
    findings: tuple[ReportedFinding, ...]
    known: Known | None

    @property
    def schedules(self) -> tuple[str, ...]:
        """The trials that show it, in the order of the plan."""
        return tuple(dict.fromkeys(finding.schedule for finding in self.findings))


@dataclass(frozen=True, slots=True)
class Sorted:
    """What a campaign found, held against what is known.

    Args:
        found: everything, in the order of its first appearance.
        gone: known, not found, although what could have shown it was tried.
        unseen: known, not found, and what could have shown it was not tried.
    """

    found: tuple[Found, ...]
    gone: tuple[Known, ...]
    unseen: tuple[Known, ...]

    @property
    def new(self) -> tuple[Found, ...]:
        """What nobody knew."""
        return tuple(one for one in self.found if one.known is None)

    def instead_of(self, gap: Known) -> str:
        """What was found that nobody knew and that ``gap`` may have meant: it is of the same kind,
        and of the names the nearest one. Empty: there is none.
        """
        kind = gap.name.partition("@")[0]
        names = [one.name for one in self.new if one.findings[0].kind == kind]
        return nearest(gap.name, names)[0] if names else ""


def known_from(given: object) -> tuple[Known, ...]:
    """The gaps that a marker's ``known=`` names.

    Raises:
        UsageError: it is no mapping from names to reasons, or names a kind that does not exist.
    """
    if not isinstance(given, Mapping):
        raise UsageError(f"known is a mapping from findings to reasons, as in known={EXAMPLE}")
    for name, reason in given.items():
        if not isinstance(name, str):
            raise UsageError(f"known names findings, as in known={EXAMPLE}; not {name!r}")
        if not isinstance(reason, str) or not reason.strip():
            raise UsageError(f"known gives a reason for each finding, as in known={EXAMPLE}")
        kind = name.partition("@")[0]
        if kind not in FINDING_KINDS and not own_checkers():  # whose kinds nobody can list
            raise unknown_name("kind of finding in known", kind, FINDING_KINDS)
    return tuple(Known(name, reason) for name, reason in given.items())


def name_of(finding: ReportedFinding) -> str:
    """The name under which findings are told, and recorded: ``kind@operation``.

    Steps that were run again are one gap, as they are in every report: without an operation.
    """
    if finding.kind == "redone_step":
        return finding.kind
    return f"{finding.kind}@{finding.operation}"


def sort_out(
    findings: Sequence[ReportedFinding],
    known: Iterable[Known],
    tried: Callable[[Known], bool],
) -> Sorted:
    """Hold what was found against what is known.

    Args:
        findings: of one campaign.
        known: gaps; the first one that explains a finding counts.
        tried: whether the campaign tried what could show a gap.
    """
    gaps = tuple(known)
    found: list[Found] = []
    for group in groups(findings):
        parts: dict[Known | None, list[ReportedFinding]] = {}
        for finding in group:
            explained = next((gap for gap in gaps if gap.explains(finding)), None)
            parts.setdefault(explained, []).append(finding)
        found += [Found(name_of(part[0]), tuple(part), gap) for gap, part in parts.items()]
    missing = [gap for gap in gaps if not any(gap.explains(finding) for finding in findings)]
    return Sorted(
        tuple(found),
        gone=tuple(gap for gap in missing if tried(gap)),
        unseen=tuple(gap for gap in missing if not tried(gap)),
    )
