"""Figures, and one self-contained HTML page of a run or several. Reads runs; draws; computes nothing new."""
