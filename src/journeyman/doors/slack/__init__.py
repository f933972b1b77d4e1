"""The Slack door: mentions and direct messages become durable runs, shown and decided about in their threads.

Needs the extra ``slack``. What people may see and decide is in ``app/desk``; what tools may read of Slack is theirs.
"""

from journeyman.doors.slack.client import SLACK_API as SLACK_API
from journeyman.doors.slack.door import STATUS_SECONDS as STATUS_SECONDS
from journeyman.doors.slack.door import SlackDoor as SlackDoor
from journeyman.doors.slack.people import Admission as Admission
from journeyman.doors.slack.people import People as People
from journeyman.doors.slack.people import Workspace as Workspace
from journeyman.doors.slack.people import find_workspaces as find_workspaces
from journeyman.doors.slack.people import read_people as read_people
from journeyman.doors.slack.serving import PATH as PATH
from journeyman.doors.slack.serving import manifest as manifest
from journeyman.doors.slack.serving import over_http as over_http
from journeyman.doors.slack.serving import over_socket as over_socket
from journeyman.doors.slack.serving import until_stopped as until_stopped
