"""What is known about the user's world: what tools cannot do yet."""
