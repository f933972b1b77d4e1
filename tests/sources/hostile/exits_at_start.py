"""Cannot start."""

import sys

sys.exit("usage: exits_at_start FOLDER")
