"""What the Slack door holds: ten busy channels beside one, and beside a bot written by hand."""
