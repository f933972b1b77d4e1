"""``journeyman slack``: the assistant in the channels and direct messages of Slack."""

from __future__ import annotations

import asyncio
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from journeyman.app.configuration import SLACK_VARIABLE
from journeyman.app.loading import SLACK, open_at
from journeyman.app.service import slack_pace
from journeyman.core.calls import SECRET_PREFIX
from journeyman.core.errors import ConfigurationError
from journeyman.core.lazy import install_command
from journeyman.doors.cli import options, screen
from journeyman.doors.cli.configured import configuration, file_settings, naming, settings
from journeyman.doors.cli.options import RunOptions, WrongUsageError
from journeyman.doors.cli.program import take_from_environment
from journeyman.doors.cli.serve import agents_and_tools, begun_with, opening, tell_who_answers

if TYPE_CHECKING:
    from journeyman.app.service import Service
    from journeyman.settings.reading import Loaded

BOT_VARIABLE = f"{SECRET_PREFIX}SLACK_BOT_TOKEN"
APP_VARIABLE = "SLACK_APP_TOKEN"
PEOPLE_VARIABLE = "JOURNEYMAN_SLACK_PEOPLE"
SIGNING_VARIABLE = "SLACK_SIGNING_SECRET"
_REFERENCES = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_BOT_TOKENS = re.compile(rf"{BOT_VARIABLE}(?:_([A-Z0-9]+))?")


@options.taking("http manifest agent library model store debug log_level")
def slack(
    bag: RunOptions,
    *,
    http: Annotated[
        bool, typer.Option("--http", help="Take signed requests at /slack/events, instead of Socket Mode.")
    ] = False,
    manifest: Annotated[
        bool, typer.Option("--manifest", help="Print the manifest to make the app in Slack from, and end.")
    ] = False,
) -> None:
    """An assistant in Slack: mentions and direct messages are durable runs, answered and decided in their threads.

    Without --agent, --library and tools in a configuration file its tools are those of the library 'slack', which read
    channels. JOURNEYMAN_SECRET_SLACK_BOT_TOKEN is the bot's token, …_TOKEN_TEAM that of one of several workspaces.
    Socket Mode needs SLACK_APP_TOKEN, --http SLACK_SIGNING_SECRET. All of it can be said under 'doors.slack' in the
    configuration file, and who may ask and decide, and where to listen.
    """
    try:
        from journeyman.doors import slack as door
    except ImportError as error:
        raise ConfigurationError(f"Slack needs more packages: {install_command('slack')}") from error
    if manifest:
        screen.write(door.manifest(http=http), end="")
        return
    said = file_settings()
    # Before anything of the caller's is imported: these two are for no tool.
    app_token = _secret(said, "app_token", APP_VARIABLE, needed=not http)
    signing_secret = _secret(said, "signing_secret", SIGNING_VARIABLE, needed=http)
    if http and not signing_secret:
        raise WrongUsageError(
            f"--http needs {SIGNING_VARIABLE}: 'Signing Secret' under 'Basic Information' of your app"
        )
    if not http and not app_token:
        raise WrongUsageError(
            f"Socket Mode needs {APP_VARIABLE}: make one with the scope 'connections:write' under 'Basic Information' "
            "of your app; or give --http"
        )
    tokens = _bot_tokens(said)
    whole_file = settings()
    given = whole_file.doors.slack
    spaces = given.workspaces
    deciding = [f"slack:{team}:{who}" for team, item in spaces.items() for who in item.approvers]
    listed = {f"slack:{team}:{who}": held for team, item in spaces.items() for who, held in item.permissions.items()}
    if (people := os.environ.get(PEOPLE_VARIABLE) or given.people) is not None:
        with naming("{}", "doors", "slack", "people"):
            listed |= door.read_people(Path(people))
            door.People(listed, approvers=deciding)  # for its mistakes, before Slack is asked for anything
    rules = {"channels", "users", "direct_messages"}
    admitted = {team: door.Admission(**item.model_dump(include=rules)) for team, item in spaces.items()}
    database = open_at(bag.store)
    followed = configuration(database)
    api_url = os.environ.get(SLACK_VARIABLE)
    pace = slack_pace(database, given.limits)
    brings_tools = whole_file.toolkits or whole_file.mcp or any(item.import_ for item in whole_file.tools.values())
    if bag.agent is None and bag.library is None and (followed is None or not brings_tools):
        bag = replace(bag, library=SLACK)
    agents, loaded = agents_and_tools(bag, database)
    begun = begun_with(bag, agents, database)

    def ready(service: Service, where: str) -> None:
        screen.write(f"{where} (Ctrl-C ends)", stderr=True)
        tell_who_answers(service)

    async def whole() -> None:
        base_url = api_url or door.SLACK_API
        workspaces = await door.find_workspaces(tokens, base_url=base_url)
        for team, workspace in workspaces.items():  # where tools find it, whatever the file calls it
            os.environ.setdefault(f"{BOT_VARIABLE}_{team}", workspace.token)
            workspace.client.pace = pace
        who = door.People(
            listed, approvers=deciding, everybody=frozenset(given.permissions), teams=workspaces, admitted=admitted
        )
        async with opening(bag, database, library=loaded, agents=agents, principals=who.now, **begun) as service:
            slack_door = door.SlackDoor(
                service,
                workspaces,
                people=who,
                signing_secret=signing_secret,
                base_url=base_url,
                status_seconds=given.status,
            )
            named = ", ".join(workspaces)
            if http:
                async with door.over_http(slack_door, host=given.host, port=given.port) as bound:
                    where = f"in Slack as {named}, listening on http://{given.host}:{bound}{door.PATH}"
                    await door.until_stopped(lambda: ready(service, where))
            else:
                async with door.over_socket(slack_door, app_token or ""):
                    await door.until_stopped(lambda: ready(service, f"in Slack as {named}, over Socket Mode"))

    asyncio.run(whole())


def _secret(said: Loaded | None, name: str, variable: str, *, needed: bool) -> str | None:
    """A secret by the file, or else of a variable; no variable that holds it is left in the environment."""
    text = None if said is None else getattr(said.settings.doors.slack, name)
    if said is None or text is None:
        return take_from_environment(variable)
    value = _resolved(said, ("doors", "slack", name), text) if needed else None
    for named in (variable, *_REFERENCES.findall(text)):
        take_from_environment(named)
    return value


def _resolved(said: Loaded, key: tuple[str, ...], text: str) -> str:
    try:
        return said.secret(text)
    except ConfigurationError as error:
        raise WrongUsageError(
            str(said.problem(key, f"{error}; set it, or put it into a file and write file:PATH"))
        ) from None


def _bot_tokens(said: Loaded | None) -> dict[str, str]:
    """The bot tokens by workspace; under "" the one whose workspace Slack tells. They stay where tools find them."""
    found = ((_BOT_TOKENS.fullmatch(name), value) for name, value in os.environ.items())
    tokens = {(name[1] or ""): value for name, value in found if name is not None and value}
    for team, workspace in ({} if said is None else said.settings.doors.slack.workspaces).items():
        if said is not None and workspace.bot_token is not None:
            key = ("doors", "slack", "workspaces", team, "bot_token")
            tokens[team] = _resolved(said, key, workspace.bot_token)
    if not tokens:
        raise WrongUsageError(
            f"set {BOT_VARIABLE} to the 'Bot User OAuth Token' of your app, or {BOT_VARIABLE}_TEAM for each workspace, "
            "or name it in the configuration file: doors.slack.workspaces.ID.bot_token"
        )
    return tokens
