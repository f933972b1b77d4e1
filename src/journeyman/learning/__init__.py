"""Learning from ended runs: what worked is kept as demonstrations, found again by the request, and given to later runs.

It reads facts and labels, and gives advice. It knows neither the loop nor the database.
"""
