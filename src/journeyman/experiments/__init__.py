"""A/B experiments: the same agent with different tools, models or playbooks; a winner only where evidence decides."""

from journeyman.experiments.experiment import Experiment, Progress
from journeyman.experiments.report import Observation, Report
from journeyman.experiments.statistics import assign

__all__ = ["Experiment", "Observation", "Progress", "Report", "assign"]
