"""The training loop, its schedules, its signals and its views. Knows batches and scores, not GCDs."""
