"""The published values, a module for each part of the paper: facts only."""
