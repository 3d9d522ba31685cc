"""Integers as digits, the distributions they are drawn from, and the exact theory of GCD counts. Knows no task or model."""
