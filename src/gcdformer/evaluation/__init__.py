"""Model and test set to prediction table to scores. The table and the scores need no torch."""

from gcdformer.evaluation.scores import Scores, score
from gcdformer.evaluation.table import UNREADABLE, PredictionTable

__all__ = ["UNREADABLE", "PredictionTable", "Scores", "score"]
