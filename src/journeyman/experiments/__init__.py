"""A/B experiments: the same agent with different tools, models or playbooks; a winner only where evidence decides."""

from journeyman.experiments.assignment import assign
from journeyman.experiments.experiment import Experiment, Progress
from journeyman.experiments.report import Report
from journeyman.experiments.results import Observation

__all__ = ["Experiment", "Observation", "Progress", "Report", "assign"]
