"""Dies in the middle of a call."""

import os

from base import serve

serve({"tools/call": lambda _: os._exit(9)})
