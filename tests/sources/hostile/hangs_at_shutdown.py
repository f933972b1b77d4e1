"""Does not end when its input does, nor when it is asked to."""

import signal
import time

from base import serve

signal.signal(signal.SIGTERM, signal.SIG_IGN)
serve({})
while True:
    time.sleep(1)
