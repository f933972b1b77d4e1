"""Live runs of any model on an office of stateful tools, with and without a playbook, paired by task."""
