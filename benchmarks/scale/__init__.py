"""What ten processes on one machine do, what one PostgreSQL bears, and how far that reaches by simulation."""
