"""Mixed clients and random faults against a real service, for as long as one likes."""
