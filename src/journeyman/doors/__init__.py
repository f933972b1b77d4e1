"""Ways in for people and programs. Doors ask ``app`` and show what comes back; they decide nothing about a call."""
