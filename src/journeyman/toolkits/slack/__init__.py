"""Slack for tools: messages of the channels that the bot can read, summaries and analyses of them.

The door in Slack is elsewhere (``doors/slack``); these tools work at every door.
"""

from journeyman.toolkits.slack.client import METHODS, SLACK_API, Pace, SlackReader
from journeyman.toolkits.slack.tools import SlackTools

__all__ = ["METHODS", "SLACK_API", "Pace", "SlackReader", "SlackTools"]
