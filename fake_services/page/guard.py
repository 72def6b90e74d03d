"""Who may look and who may act: a page on loopback is open to every site that a browser visits.

* **Host** must be this very address, so that a foreign name which was pointed at 127.0.0.1 (DNS
  rebinding) is refused.
* **Origin** and **Sec-Fetch-Site**, where a browser sends them, must not be foreign; only a link to
  the page itself may be followed from anywhere.
* Whoever acts must bring the **token** in a header, which no other site's script can read, and none
  could send without being asked first (CORS), which we never allow.

None of this keeps out a program on the same machine: it can speak to the services themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hmac import compare_digest

from chaoskit.model.visible import visible
from fake_services.core import HttpRequest

TOKEN_HEADER = "chaoskit-page-token"  # noqa: S105 - the name of a header

BODY_BYTES_MAX = 64 * 1024
"""More does not belong to any request of the page."""

HEADERS: Mapping[str, str] = {
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
"""What every answer says: keep it nowhere, show it in no other site, guess no other type."""

_CHARS = 200


@dataclass(frozen=True, slots=True)
class Denied:
    """Why a request is not carried out: an HTTP status, and the words for it."""

    status: int
    message: str


@dataclass(frozen=True, slots=True)
class Guard:
    """Decides for a page on 127.0.0.1 at ``port``; whoever acts brings ``token``."""

    port: int
    token: str

    def denial(self, request: HttpRequest) -> Denied | None:
        """Why the request is refused; None: it may go on."""
        return self._foreign(request) or self._unfit(request)

    def _foreign(self, request: HttpRequest) -> Denied | None:
        headers = request.headers
        hosts = [f"127.0.0.1:{self.port}", f"localhost:{self.port}"]
        host = headers.get("host", "").lower()
        if host not in hosts:
            return Denied(
                403, f"this page is http://{hosts[0]}, not {_quoted(host)}; open it by that address"
            )
        origin = headers.get("origin")
        if origin is not None and origin not in {f"http://{one}" for one in hosts}:
            return Denied(403, f"requests from pages of {_quoted(origin)} are refused")
        site = headers.get("sec-fetch-site", "none")
        if site not in {"none", "same-origin"} and not _follows_a_link(request):
            return Denied(403, f"requests from other pages ({_quoted(site)}) are refused")
        return None

    def _unfit(self, request: HttpRequest) -> Denied | None:
        if request.method == "GET":
            return None
        if request.method != "POST":
            return Denied(405, f"there is no {_quoted(request.method)} here; use GET or POST")
        given = request.headers.get(TOKEN_HEADER, "")
        if not compare_digest(given.encode(), self.token.encode()):
            what = "a wrong one came" if given else "it is missing"
            return Denied(
                403,
                f"the header Chaoskit-Page-Token takes the token that was printed at the start as "
                f"CHAOSKIT_PAGE_TOKEN; {what}",
            )
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            return Denied(415, "send JSON, with Content-Type: application/json")
        if len(request.body) > BODY_BYTES_MAX:
            return Denied(413, f"the body has more than {BODY_BYTES_MAX} bytes")
        return None


def _follows_a_link(request: HttpRequest) -> bool:
    headers = request.headers
    return (
        request.method == "GET"
        and request.path == "/"
        and headers.get("sec-fetch-mode") == "navigate"
        and headers.get("sec-fetch-dest") == "document"
    )


def _quoted(text: str) -> str:
    return repr(visible(text[:_CHARS]))
