"""Keep one comment on a pull request up to date: create it, edit it, or leave it as it is.

    python3 comment.py FILE

FILE starts with the marker of `tidegate diff -o markdown`, by which the comment is recognised: the
marker and the author must be ours. `REPOSITORY_PATH` becomes a part of the marker, so that each
path of a repository has its own comment. If the token may not write, as for a pull request from a
fork, the text goes into the job summary.
Only the standard library is used, so that no step before has to install anything.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from posixpath import normpath
from typing import NamedTuple, cast
from urllib.parse import quote

PAGE_SIZE = 100
MAX_PAGES = 30
MAX_LENGTH = 65_000
"""Characters that GitHub accepts in a comment are 65,536."""
NOT_ALLOWED = frozenset({401, 403, 404})
"""Statuses by which GitHub says that a token may not write."""
Environment = Mapping[str, str]


class Comment(NamedTuple):
    """A comment on a pull request."""

    number: int
    body: str
    author: str
    is_bot: bool


class Api:
    """The part of GitHub's API that is about the comments of one pull request."""

    def __init__(self, environment: Environment, pull_request: int) -> None:
        self._address = environment["GITHUB_API_URL"]
        self._root = f"{self._address}/repos/{environment['GITHUB_REPOSITORY']}"
        self._comments = f"{self._root}/issues/{pull_request}/comments"
        self._token = environment.get("GITHUB_TOKEN", "")

    def comments(self) -> Iterator[Comment]:
        """Yield the comments, page by page."""
        for page in range(1, MAX_PAGES + 1):
            entries = json.loads(
                self._request("GET", f"{self._comments}?per_page={PAGE_SIZE}&page={page}")
            )
            for entry in entries:
                user = entry["user"] or {}
                is_bot = user.get("type") == "Bot"
                yield Comment(entry["id"], entry["body"] or "", user.get("login", ""), is_bot)
            if len(entries) < PAGE_SIZE:
                return

    def user(self) -> str:
        """Return the name of the token's user; empty for the token of a job, which has none."""
        try:
            return cast("str", json.loads(self._request("GET", f"{self._address}/user"))["login"])
        except urllib.error.HTTPError as error:
            if error.code not in NOT_ALLOWED:
                raise
            return ""

    def create(self, body: str) -> None:
        self._request("POST", self._comments, {"body": body})

    def edit(self, number: int, body: str) -> None:
        self._request("PATCH", f"{self._root}/issues/comments/{number}", {"body": body})

    def _request(self, method: str, url: str, document: Mapping[str, str] | None = None) -> bytes:
        headers = {
            "Accept": "application/vnd.github+json",
            "Authorization": f"Bearer {self._token}",
            "Content-Type": "application/json",
            "X-GitHub-Api-Version": "2022-11-28",
        }
        data = None if document is None else json.dumps(document).encode()
        request = urllib.request.Request(url, data, headers, method=method)  # noqa: S310 - of the runner
        with urllib.request.urlopen(request, timeout=30) as response:  # noqa: S310
            return cast("bytes", response.read())


def publish(text: str, environment: Environment) -> str:
    """Publish a text, and return what was done: created, edited, unchanged or summary."""
    marker, _, report = text.rstrip("\n").partition("\n")
    body = f"{own_marker(marker, environment)}\n{report}"[:MAX_LENGTH]
    pull_request = pull_request_number(environment)
    if pull_request is None:
        return write_summary(body, environment)
    try:
        return update_comment(Api(environment, pull_request), body)
    except urllib.error.HTTPError as error:
        if error.code not in NOT_ALLOWED:
            raise
        return write_summary(body, environment)


def update_comment(api: Api, body: str) -> str:
    """Create or edit the comment, unless it has this body already."""
    marker = body.partition("\n")[0]
    marked = [entry for entry in api.comments() if entry.body.startswith(f"{marker}\n")]
    user = api.user() if marked else ""
    own = (entry for entry in marked if (entry.author == user if user else entry.is_bot))
    existing = next(own, None)
    if existing is None:
        api.create(body)
        return "created"
    if existing.body.replace("\r\n", "\n").rstrip("\n") == body:
        return "unchanged"
    api.edit(existing.number, body)
    return "edited"


def own_marker(marker: str, environment: Environment) -> str:
    """Return the marker with the path that the report is about, unless it is the repository."""
    path = normpath(environment.get("REPOSITORY_PATH", "."))
    return marker if path == "." else marker.replace(" -->", f" {quote(path)} -->")


def write_summary(body: str, environment: Environment) -> str:
    """Add a text to the summary of the job."""
    with Path(environment["GITHUB_STEP_SUMMARY"]).open("a", encoding="utf-8") as summary:
        summary.write(f"{body}\n")
    return "summary"


def pull_request_number(environment: Environment) -> int | None:
    """Return the number of the pull request that started the job; None if none did."""
    path = environment.get("GITHUB_EVENT_PATH", "")
    event = json.loads(Path(path).read_text(encoding="utf-8")) if path else {}
    return cast("int | None", event.get("pull_request", {}).get("number"))


def main() -> None:
    """Publish the file that the first argument names."""
    done = publish(Path(sys.argv[1]).read_text(encoding="utf-8"), os.environ)
    sys.stdout.write(f"comment: {done}\n")


if __name__ == "__main__":
    main()
