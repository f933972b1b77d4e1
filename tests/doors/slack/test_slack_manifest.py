"""The manifest that the app is made from: what the door needs, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from journeyman.doors.cli.slack import slack as slack_command
from journeyman.doors.slack import manifest
from journeyman.toolkits.slack import METHODS

NEEDED: dict[str, set[str]] = {
    "apps.connections.open": set(),  # with the app-level token
    "auth.test": set(),
    "chat.postEphemeral": {"chat:write"},
    "chat.postMessage": {"chat:write"},
    "chat.update": {"chat:write"},
    "conversations.history": {"channels:history", "groups:history", "im:history", "mpim:history"},
    "conversations.info": {"channels:read", "groups:read", "im:read", "mpim:read"},
    "conversations.members": {"groups:read", "im:read", "mpim:read"},
    "conversations.open": {"im:write"},
    "conversations.replies": {"channels:history", "groups:history", "im:history", "mpim:history"},
    "users.info": {"users:read"},
    "views.open": set(),
    "views.publish": set(),
}
"""As Slack documents its methods, for the conversations that we call them with."""
EVENT_SCOPES = {"app_mention": {"app_mentions:read"}, "message.im": {"im:history"}, "app_home_opened": set[str]()}


def test_the_scopes_are_those_of_the_methods_and_events() -> None:
    app: dict[str, Any] = yaml.safe_load(manifest())
    assert NEEDED.keys() == METHODS.keys()
    scopes = app["oauth_config"]["scopes"]["bot"]
    assert set(scopes) == {"files:read"}.union(*NEEDED.values(), *EVENT_SCOPES.values())
    assert app["settings"]["event_subscriptions"]["bot_events"] == list(EVENT_SCOPES)


@pytest.mark.parametrize("http", [False, True])
def test_the_manifest_says_so(http: bool) -> None:
    app: dict[str, Any] = yaml.safe_load(manifest(http=http))
    settings = app["settings"]
    assert settings["interactivity"]["is_enabled"]
    assert settings["socket_mode_enabled"] is not http
    assert ("request_url" in settings["event_subscriptions"]) is http
    assert ("request_url" in settings["interactivity"]) is http
    home = app["features"]["app_home"]
    assert home["home_tab_enabled"]
    assert home["messages_tab_enabled"]
    assert not home["messages_tab_read_only_enabled"]
    assert len(app["display_information"]["name"]) <= 35
    assert len(app["display_information"]["description"]) <= 140


def test_the_program_prints_it_without_any_token(capsys: pytest.CaptureFixture[str]) -> None:
    slack_command(manifest=True)
    assert capsys.readouterr().out == manifest()
