"""The app as Slack is told of it: its scopes and events, to make it from."""

from __future__ import annotations

SCOPES = {
    "app_mentions:read": "hear its name",
    "chat:write": "answer, and edit its status",
    "im:history": "read direct messages to it",
    "channels:history": "read threads and channels that it was invited to",
    "groups:history": "the same in private channels",
    "mpim:history": "the same in conversations of several people",
    "channels:read": "whether a channel is private",
    "groups:read": "who is in a private channel, so that nobody else is told of it",
}
"""What the bot's token must allow, and what for."""
EVENTS = ("app_mention", "message.im")
EXAMPLE_URL = "https://bot.example.com/slack/events"


def manifest(*, http: bool = False) -> str:
    """A manifest in YAML; with ``http``, for signed requests instead of Socket Mode."""
    scopes = "\n".join(f"      - {name}  # {what}" for name, what in SCOPES.items())
    url = f"\n    request_url: {EXAMPLE_URL}  # put yours here" if http else ""
    return f"""\
display_information:
  name: Journeyman
  description: An assistant that asks before it does what cannot be undone
features:
  app_home:
    home_tab_enabled: false
    messages_tab_enabled: true
    messages_tab_read_only_enabled: false  # else nobody can write to it directly
  bot_user:
    display_name: journeyman
    always_online: true
oauth_config:
  scopes:
    bot:
{scopes}
settings:
  event_subscriptions:
    bot_events: [{", ".join(EVENTS)}]{url}
  interactivity:
    is_enabled: true{url}
  org_deploy_enabled: false
  socket_mode_enabled: {"false" if http else "true"}
  token_rotation_enabled: false
"""
