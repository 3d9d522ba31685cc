"""The run folder: configuration, metrics, prediction tables, checkpoints, lock; and a run as a Python object."""
