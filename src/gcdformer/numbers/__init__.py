"""Integers as digits, the laws they are drawn from, and the exact theory of GCD counts. Knows no task or model."""
