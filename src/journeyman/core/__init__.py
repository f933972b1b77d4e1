"""Plain data and protocols: calls, messages, runs, events, errors, risk. No I/O, no behaviour worth naming."""
