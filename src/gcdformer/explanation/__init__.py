"""Which rules a model follows, how well, and every exception: pure functions over prediction tables.

Knows tables and, for checks on a live model, a function predict(a, b); knows no model and no torch.
"""

from gcdformer.explanation.certificate import Explanation, explain_tables
from gcdformer.explanation.rules import RuleModel

__all__ = ["Explanation", "RuleModel", "explain_tables"]
