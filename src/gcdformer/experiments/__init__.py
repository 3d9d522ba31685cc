"""Presets and, later, the paper's tables and sweeps."""
