"""Which workspaces the bot is in, who its people are there, and what each of them may do."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
from pydantic import TypeAdapter, ValidationError
from slack_sdk.errors import SlackApiError

from journeyman.app import Pace
from journeyman.app.desk import DECIDE
from journeyman.core.data import Latest, name_of
from journeyman.core.errors import ConfigurationError
from journeyman.core.policy import Principal, check_permissions
from journeyman.doors.slack.client import SLACK_API, SlackClient, reason

_PERSON = re.compile(r"slack:(T[A-Z0-9]{2,}):([UW][A-Z0-9]{2,}|\*)")
_WORKSPACE = re.compile(r"T[A-Z0-9]{2,}")
NAME_SECONDS = 3_600.0
"""How long somebody is called as Slack said."""
MOST_NAMES = 10_000
LONGEST_NAME = 80
_NOT_IN_NAMES = frozenset('<>&@|:*`~[]"')
_NOT_FOR_PEOPLE = frozenset({"channel", "here", "everyone", "group"})


@dataclass(frozen=True, slots=True)
class Workspace:
    """One workspace, and who the bot is in it."""

    team: str
    bot_user: str
    bot_id: str
    client: SlackClient
    _names: Latest[str, tuple[float, str]] = field(default_factory=lambda: Latest(MOST_NAMES), compare=False)

    @property
    def token(self) -> str:
        return self.client.token or ""

    async def names(self, users: Iterable[str]) -> dict[str, str]:
        """What people are called, by id, each by a name of their own."""
        names: dict[str, str] = {}
        taken: set[str] = set()
        wanted = list(dict.fromkeys(users))
        for user, name in zip(wanted, await asyncio.gather(*map(self._name, wanted)), strict=True):
            free = (name, *(f"{name} ({number})" for number in range(2, len(wanted) + 2)))
            names[user] = next(shown for shown in free if shown.casefold() not in taken)
            taken.add(names[user].casefold())
        return names

    async def _name(self, user: str) -> str:
        until, name = self._names.get(user, (0.0, user))
        if until > time.monotonic():
            return name
        try:
            name = name_of((await self.client.users_info(user=user)).get("user") or {}) or user
        except SlackApiError:
            pass  # the app was installed without the scope, for example: their id must do
        except (aiohttp.ClientError, TimeoutError):
            return name
        self._names[user] = (time.monotonic() + NAME_SECONDS, name)
        return name


async def find_workspaces(
    tokens: Mapping[str, str], *, base_url: str = SLACK_API, pace: Pace | None = None
) -> dict[str, Workspace]:
    """The workspaces of bot tokens, which are given by workspace id; under "" is one whose workspace Slack tells.

    With ``pace``, Slack is called as often as it allows; without, a pause that it asks for is kept by each call alone.

    Raises ConfigurationError for a token that Slack does not accept, or that is another workspace's.
    """
    workspaces: dict[str, Workspace] = {}
    for named, token in tokens.items():
        about = f"the bot token of workspace {named!r}" if named else "the bot token"
        if named and not _WORKSPACE.fullmatch(named):
            raise ConfigurationError(f"{named!r} is no id of a workspace; it looks like 'T0123ABCD'")
        client = SlackClient(token, base_url=base_url, pace=pace)
        try:
            identity = await client.auth_test()
        except SlackApiError as error:
            raise ConfigurationError(
                f"Slack does not accept {about}: {reason(error)}; take that of the installed app"
            ) from None
        except Exception as error:  # of several libraries: there is no connection
            raise ConfigurationError(f"Slack cannot be reached at {base_url}: {type(error).__name__}") from None
        team = str(identity.get("team_id", ""))
        if named and team != named:
            raise ConfigurationError(f"{about} belongs to workspace {team!r}; name it by that id")
        if team in workspaces:
            raise ConfigurationError(f"there are two bot tokens for workspace {team!r}; leave one out")
        client.team = team
        workspaces[team] = Workspace(team, str(identity.get("user_id", "")), str(identity.get("bot_id") or ""), client)
    return workspaces


@dataclass(frozen=True, slots=True)
class Admission:
    """Who may ask in a workspace, and where: by ids, everybody and everywhere unless given."""

    channels: Collection[str] | None = None
    users: Collection[str] | None = None
    direct_messages: bool = True


def _elsewhere(rule: Admission) -> str:
    if rule.channels:
        return " Ask me in " + " or ".join(f"<#{channel}>" for channel in sorted(rule.channels)[:5]) + "."
    return " Write to me directly." if rule.direct_messages else " Ask whoever runs me where I do."


class People:
    """What people may do, by principal id: ``slack:TEAM:USER``, or ``slack:TEAM:*`` for everybody of a workspace.

    ``everybody`` holds in all workspaces; ``approvers`` may decide about approvals and unknown outcomes besides.
    ``admitted`` says for workspaces who may ask, and where.
    """

    def __init__(
        self,
        permissions: Mapping[str, Iterable[str]] | None = None,
        *,
        approvers: Iterable[str] = (),
        everybody: Iterable[str] = (),
        teams: Iterable[str] | None = None,
        admitted: Mapping[str, Admission] | None = None,
    ) -> None:
        self._everybody = check_permissions(everybody)
        self._teams = None if teams is None else frozenset(teams)
        self._admitted = dict(admitted or {})
        self._held: dict[str, frozenset[str]] = {}
        for person, held in (permissions or {}).items():
            try:
                self._held[_known(person)] = check_permissions(held)
            except ValueError as error:
                raise ConfigurationError(f"{person!r}: {error}") from None
        for person in approvers:
            self._held[_known(person)] = self._held.get(person, frozenset()) | {DECIDE}

    def principal(self, team: str, user: str) -> Principal:
        """A person of a workspace, with all they may do there."""
        person = f"slack:{team}:{user}"
        everybody = self._everybody if self._teams is None or team in self._teams else frozenset()
        held = everybody | self._held.get(f"slack:{team}:*", frozenset()) | self._held.get(person, frozenset())
        return Principal(person, permissions=held)

    def turned_away(self, team: str, user_team: str, user: str, channel: str) -> str | None:
        """Why somebody may not use the bot in a channel of a workspace, in words; None where they may."""
        rule = self._admitted.get(team, Admission())
        if rule.users is not None and (user_team != team or user not in rule.users):
            return ":no_entry: I answer only people whom whoever runs me has named. Ask them to add you."
        if channel.startswith("D"):
            return None if rule.direct_messages else f":no_entry: I do not answer direct messages.{_elsewhere(rule)}"
        if rule.channels is not None and channel not in rule.channels:
            return f":no_entry: I do not answer in this channel.{_elsewhere(rule)}"
        return None

    def now(self, principal: Principal) -> Principal | None:
        """Who a principal is by now; those of other doors are left as they are."""
        person = _PERSON.fullmatch(principal.id)
        return principal if person is None else self.principal(person[1], person[2])

    def deciders(self, team: str) -> Sequence[str]:
        """The users of a workspace who may decide, as far as they are named."""
        named = (person for person in map(_PERSON.fullmatch, self._held) if person is not None and person[1] == team)
        users = (person[2] for person in named if person[2] != "*")
        return [user for user in users if self.principal(team, user).may(DECIDE)]


def _known(person: str) -> str:
    if not _PERSON.fullmatch(person):
        raise ConfigurationError(
            f"{person!r} is nobody of Slack; write 'slack:T0123ABCD:U0456EFGH', or '…:*' for everybody of a workspace"
        )
    return person


def read_people(path: Path) -> dict[str, list[str]]:
    """Permissions from a JSON file: ``{"slack:T0123ABCD:U0456EFGH": ["approvals:decide"]}``."""
    try:
        return TypeAdapter(dict[str, list[str]]).validate_json(path.read_bytes())
    except OSError as error:
        raise ConfigurationError(f"the file of people {str(path)!r} cannot be read: {error.strerror}") from None
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(map(str, problem["loc"])) or "its content"
        raise ConfigurationError(f"the file of people {str(path)!r} is wrong at {where}: {problem['msg']}") from None
