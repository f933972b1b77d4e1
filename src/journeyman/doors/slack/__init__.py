"""The Slack door: mentions and direct messages become durable runs, shown and decided about in their threads.

Needs the extra ``slack``. What people may see and decide is in ``app/desk``; what tools may read of Slack is theirs.
"""

from journeyman.doors.slack.client import SLACK_API
from journeyman.doors.slack.door import STATUS_SECONDS, SlackDoor
from journeyman.doors.slack.people import Admission, People, Workspace, find_workspaces, read_people
from journeyman.doors.slack.serving import PATH, manifest, over_http, over_socket, until_stopped

__all__ = [
    "PATH",
    "SLACK_API",
    "STATUS_SECONDS",
    "Admission",
    "People",
    "SlackDoor",
    "Workspace",
    "find_workspaces",
    "manifest",
    "over_http",
    "over_socket",
    "read_people",
    "until_stopped",
]
