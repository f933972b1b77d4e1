"""One configuration file: read with its positions, checked, shown, watched. What it means for tools is in ``app``."""

from __future__ import annotations

from journeyman.settings.problems import Problem, SettingsError
from journeyman.settings.reading import Loaded, find_file, read_settings
from journeyman.settings.schema import Settings

__all__ = ["Loaded", "Problem", "Settings", "SettingsError", "find_file", "read_settings"]
