"""A sweep: its file, the trials it means, and the launchers that run them here or on Ray."""
