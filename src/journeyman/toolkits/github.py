"""Pull requests and issues of GitHub: reading them, and refreshing the attachments that refer to them.

Every refusal of GitHub becomes an error that a model can act on.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

from pydantic import Field

from journeyman.core.calls import ToolContext
from journeyman.core.data import moment, retry_after
from journeyman.core.errors import ErrorCategory, ToolError
from journeyman.core.policy import RiskLevel
from journeyman.core.protocols import SystemClock
from journeyman.core.tasks import Attachment
from journeyman.sensitive import FETCH_SECONDS
from journeyman.sensitive.addresses import check_address
from journeyman.toolkits import invalid
from journeyman.toolkits.tasks.inputs import attachment_not_found
from journeyman.toolkits.tasks.service import TaskService
from journeyman.toolkits.tasks.tools import CATEGORY, MaybeText, about_attachment
from journeyman.toolkits.tasks.wording import refreshed
from journeyman.tools.decorator import tool
from journeyman.tools.tool import Tool

if TYPE_CHECKING:
    from journeyman.stores.tasks import SqlTasks

GITHUB_API = "https://api.github.com"
TOKEN = "GITHUB_TOKEN"
"""The secret that is sent if there is one."""
MOST_BYTES = 2_000_000
LONGEST_BODY = 20_000
_READS: dict[str, Any] = {"category": "github", "risk": RiskLevel.REVERSIBLE, "read_only": True, "cache_seconds": 60}
_READS |= {"secrets": (TOKEN,), "reads": "untrusted"}

_OWNER = r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}"
# Of dots alone a name would be a step up, out of the path that is asked for.
_NAME = r"(?=[A-Za-z0-9._-]*[A-Za-z0-9_-])[A-Za-z0-9._-]{1,100}"
_SHORT = re.compile(rf"(?P<owner>{_OWNER})/(?P<repository>{_NAME})#(?P<number>[0-9]{{1,9}})")
_ADDRESS = re.compile(
    rf"(?:https?://)?(?:www\.)?github\.com/(?P<owner>{_OWNER})/(?P<repository>{_NAME})"
    r"/(?P<kind>pull|issues)/(?P<number>[0-9]{1,9})(?:[/?#].*)?",
    re.IGNORECASE,
)
_REPOSITORY = re.compile(rf"{_OWNER}/{_NAME}")


def _parts_as_reference(given: dict[str, Any]) -> dict[str, Any]:
    """An owner, a repository and a number in place of one reference."""
    repository = given.get("repo", given.get("repository"))
    if "reference" in given or repository is None or not {"owner", "number"} <= given.keys():
        return given
    others = {name: value for name, value in given.items() if name not in ("owner", "repo", "repository", "number")}
    return {**others, "reference": f"{given['owner']}/{repository}#{given['number']}"}


@dataclass(frozen=True, slots=True)
class PullOrIssue:
    """A pull request or an issue of a repository."""

    owner: str
    repository: str
    number: int
    is_issue: bool = False

    def __post_init__(self) -> None:
        good = re.fullmatch(_OWNER, self.owner) and re.fullmatch(_NAME, self.repository)
        if not good or type(self.number) is not int or not 0 < self.number < 10**9:
            raise invalid(
                "INVALID_REFERENCE",
                f"{self.owner!r}, {self.repository!r} and {self.number!r} are no owner, repository and number",
                "Give the names as GitHub shows them, and the number alone",
            )

    def __str__(self) -> str:
        return f"{self.owner}/{self.repository}#{self.number}"

    @classmethod
    def read(cls, reference: str) -> PullOrIssue | None:
        match = _SHORT.fullmatch(reference.strip()) or _ADDRESS.fullmatch(reference.strip())
        if match is None or int(match["number"]) == 0:
            return None
        parts = match.groupdict()
        is_issue = (parts.get("kind") or "").lower() == "issues"
        return cls(parts["owner"], parts["repository"], int(parts["number"]), is_issue)


class GitHub:
    """A client for GitHub's API; ``base_url`` may be that of GitHub Enterprise."""

    def __init__(self, *, base_url: str = GITHUB_API) -> None:
        self._base_url = base_url.rstrip("/")
        # An address that the operator has set may well be inside their own network.
        self._private = self._base_url != GITHUB_API
        check_address(self._base_url, private=self._private)

    async def fetch(self, item: PullOrIssue, *, token: str | None = None) -> dict[str, Any]:
        """A pull request or an issue as GitHub describes it. Raises ToolError."""
        kind = "issues" if item.is_issue else "pulls"
        path = f"/repos/{quote(item.owner, safe='')}/{quote(item.repository, safe='')}/{kind}/{item.number}"
        return await self._ask(path, about=str(item), has="title", token=token)

    async def search(
        self, query: str, *, repository: str | None, limit: int, token: str | None = None
    ) -> list[dict[str, Any]]:
        """Summaries of the pull requests that fit best. Raises ToolError."""
        words = " ".join(query.replace(":", " ").split())  # no qualifiers but ours
        wanted = f"{words} is:pr" + (f" repo:{repository}" if repository else "")
        path = f"/search/issues?q={quote(wanted, safe='')}&per_page={limit}"
        answer = await self._ask(path, about=f"pull requests about {words!r}", has="items", token=token)
        items = answer["items"] if isinstance(answer["items"], list) else []
        kept = ("title", "state", "author", "url", "updated_at")
        summaries = (_summary(item) for item in items[:limit] if isinstance(item, dict))
        return [{name: summary[name] for name in kept} for summary in summaries]

    async def _ask(self, path: str, *, about: str, has: str, token: str | None) -> dict[str, Any]:
        from journeyman.sensitive.fetching import fetch  # later than this module: most commands fetch nothing

        headers = {"Accept": "application/vnd.github+json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        url = self._base_url + path
        # A repository that was renamed counts as not found: redirects are not followed.
        answer = await fetch(url, headers, private=self._private, most=MOST_BYTES, failed=_unreachable)
        if answer.status != 200:
            raise _error(about, answer.status, answer.headers)
        content = answer.json()
        if not isinstance(content, dict) or has not in content:
            raise ToolError(
                "FETCH_FAILED",
                f"GitHub's answer about {about} cannot be read",
                retryable=True,
                recover_action="Try once more later; go on without it if the task allows that",
            )
        return content


def _unreachable(error: Exception) -> ToolError:
    if isinstance(error, TimeoutError):
        return ToolError(
            "GITHUB_TIMEOUT",
            f"GitHub did not answer within {FETCH_SECONDS:g} s",
            category=ErrorCategory.TIMEOUT,
            retryable=True,
            recover_action="Try once more; if it happens again, go on without it and say so",
        )
    return ToolError(
        "GITHUB_UNREACHABLE",
        f"GitHub cannot be reached: {type(error).__name__}",
        category=ErrorCategory.NETWORK,
        retryable=True,
        recover_action="Go on without it, and tell the user that GitHub could not be reached",
        user_guidance="Check this machine's network, and the address of GitHub's API if you have set one",
    )


def _error(item: str, status: int, headers: Mapping[str, str]) -> ToolError:
    limited = status == 429 or (status == 403 and headers.get("x-ratelimit-remaining") == "0")
    wait: float | None = None
    if limited or (status == 403 and "retry-after" in headers):
        wait = retry_after(headers.get("retry-after"), now=time.time())
        when = " later" if wait is None else f" in {wait:g} s"
        code, category = "RATE_LIMITED", ErrorCategory.RATE_LIMIT
        message = f"GitHub answers no more questions for now (asked about {item})"
        recover = f"Do not call it again now; tell the user to try again{when}"
        guidance = f"Set JOURNEYMAN_SECRET_{TOKEN}: with a token GitHub allows far more requests"
    elif status == 401:
        code, category = "GITHUB_TOKEN_REFUSED", ErrorCategory.AUTHENTICATION
        message = "GitHub refuses the token"
        recover = "Tell the user that the GitHub token must be renewed; calling again will not help"
        guidance = f"Put a valid token into JOURNEYMAN_SECRET_{TOKEN}"
    elif status == 403:
        code, category = "FORBIDDEN", ErrorCategory.PERMISSION
        message = f"GitHub does not allow {item} to be read"
        recover = "Tell the user that access is missing; calling again will not help"
        guidance = f"Give the token in JOURNEYMAN_SECRET_{TOKEN} access to this repository"
    elif status in (301, 302, 307, 308, 404, 410):
        code, category = "GITHUB_NOT_FOUND", ErrorCategory.INVALID_INPUT
        message = f"GitHub knows no {item}, or does not show it to us"
        recover = "Check owner, repository and number with the user"
        guidance = f"If the repository is private, put a token with access into JOURNEYMAN_SECRET_{TOKEN}"
    else:
        recover = "Go on without it, and tell the user that GitHub has a problem"
        message, again = f"GitHub answered {status} about {item}", status >= 500
        return ToolError(
            "FETCH_FAILED", message, category=ErrorCategory.NETWORK, retryable=again, recover_action=recover
        )
    retryable = code == "RATE_LIMITED"
    return ToolError(code, message, retryable, recover, category=category, user_guidance=guidance, retry_after=wait)


def _summary(item: dict[str, Any]) -> dict[str, Any]:
    """The fields of a pull request or an issue that a model needs."""
    body = item.get("body") or ""
    fields: dict[str, Any] = {
        "title": item.get("title"),
        "state": "merged" if item.get("merged") else item.get("state"),
        "author": (item.get("user") or {}).get("login"),
        "url": item.get("html_url"),
        "labels": [label.get("name") for label in item.get("labels") or [] if isinstance(label, dict)],
        "created_at": item.get("created_at"),
        "updated_at": item.get("updated_at"),
        "body": body if len(body) <= LONGEST_BODY else body[:LONGEST_BODY] + "…",
    }
    further = ("draft", "mergeable", "additions", "deletions", "changed_files", "comments")
    return fields | {name: item[name] for name in further if name in item}


def github_tools(github: GitHub) -> list[Tool[..., Any]]:
    """The tools over one GitHub, for a ``ToolLibrary``."""

    @tool(
        **_READS,
        tags=("pull request", "pr", "review", "issue"),
        examples=[{"reference": "https://github.com/acme/rocket/pull/7"}],
        adapt=_parts_as_reference,
    )
    async def fetch_github_pr(reference: str, *, context: ToolContext) -> dict[str, Any]:
        """Read a pull request or issue from GitHub. Use when its title, state, author or text matters.

        Returns title, state (open, closed or merged), author, labels, text and numbers. Errors: INVALID_REFERENCE,
        GITHUB_NOT_FOUND, FORBIDDEN, RATE_LIMITED, FETCH_FAILED.

        Args:
            reference: Its address, e.g. "https://github.com/acme/rocket/pull/7", or short "acme/rocket#7".
        """
        item = PullOrIssue.read(reference)
        if item is None:
            recover = 'Give its address, or write it as "owner/repository#number"'
            raise invalid("INVALID_REFERENCE", f"{reference!r} names no pull request or issue", recover)
        return _summary(await github.fetch(item, token=context.secrets.get(TOKEN)))

    @tool(
        **_READS,
        tags=("pull request", "pr", "find"),
        examples=[{"query": "login bug", "repository": "acme/rocket"}],
    )
    async def search_github_pr(
        query: Annotated[str, Field(min_length=1, max_length=200)],
        repository: MaybeText = None,
        limit: Annotated[int, Field(ge=1, le=30)] = 5,
        *,
        context: ToolContext,
    ) -> dict[str, Any]:
        """Search GitHub for pull requests. Use when the user speaks of one without its address.

        Returns the pull requests that fit best, and the address of the first as pr_url. Errors: INVALID_REFERENCE,
        GITHUB_NOT_FOUND, FORBIDDEN, RATE_LIMITED, FETCH_FAILED.

        Args:
            query: Words of its title or text.
            repository: Only in this one, e.g. "acme/rocket".
            limit: How many at most.
        """
        if repository and not _REPOSITORY.fullmatch(repository):
            raise invalid("INVALID_REFERENCE", f"{repository!r} names no repository", 'Write it as "owner/repository"')
        summaries = await github.search(query, repository=repository, limit=limit, token=context.secrets.get(TOKEN))
        if not summaries:
            message = f"GitHub knows no pull request about {query!r}"
            raise invalid("GITHUB_NOT_FOUND", message, "Try other words, or ask the user for its address")
        return {"pr_url": summaries[0]["url"], "pull_requests": summaries}

    return [fetch_github_pr, search_github_pr]


# --- attachments


async def _refreshed(attachment: Attachment, github: GitHub, *, token: str | None) -> Attachment:
    """The attachment with what GitHub has now. Raises ToolError.

    Only addresses of GitHub are fetched: otherwise whoever can write a task could make this machine send requests
    into its own network.
    """
    item = PullOrIssue.read(attachment.reference)
    if item is None:
        message = f"{attachment.reference!r} is no pull request or issue of GitHub, and nothing else is fetched"
        raise invalid("NOT_REFRESHABLE", message, "Tell the user that this attachment is kept as an address only")
    summary = _summary(await github.fetch(item, token=token))
    now = moment(SystemClock().time())
    said = {"title": summary.pop("title"), "content": summary.pop("body") or None}
    metadata = {**attachment.metadata, **summary, "refreshed_at": now.isoformat()}
    return attachment.model_copy(update={**said, "metadata": metadata, "updated_at": now})


def refreshing_tools(service: TaskService, updates: SqlTasks, github: GitHub) -> list[Tool[..., Any]]:
    """``refresh_attachment``, for a ``ToolLibrary``."""

    @tool(
        category=CATEGORY,
        risk=RiskLevel.REVERSIBLE,
        idempotent=True,
        secrets=(TOKEN,),
        tags=("update", "reload", "github"),
        examples=[{"task_id": "login bug", "attachment_id": "https://github.com/acme/rocket/pull/7"}],
        describe=lambda arguments, context: about_attachment(service, arguments, "Fetch anew"),
        render=refreshed,
    )
    async def refresh_attachment(
        attachment_id: str, task_id: MaybeText = None, *, context: ToolContext
    ) -> dict[str, Any]:
        """Fetch what an attachment refers to and keep its title, state and text. Use when the user wants news of it.

        Works for GitHub pull requests and issues. Returns the attachment. Errors: ATTACHMENT_NOT_FOUND,
        TASK_NOT_FOUND, NOT_REFRESHABLE, GITHUB_NOT_FOUND, FORBIDDEN, RATE_LIMITED; AMBIGUOUS_ATTACHMENT
        or AMBIGUOUS_TASK, then ask the user which one.

        Args:
            attachment_id: The attachment: its id or, with task_id, its address or words of its title.
            task_id: The task it belongs to: its id, or words of its title.
        """
        attachment = await service.attachment_named(attachment_id, task=task_id)
        fresh = await _refreshed(attachment, github, token=context.secrets.get(TOKEN))
        if not await updates.update_attachment(fresh):
            raise attachment_not_found(attachment_id, "it was removed a moment ago")
        return fresh.model_dump(mode="json")

    return [refresh_attachment]
