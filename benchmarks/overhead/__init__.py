"""What the framework adds to every step, beside a hand-written loop and peers. Run with `-m benchmarks.overhead`."""
