"""Sequence-to-sequence models behind one interface, and one decoder loop for all. Knows token ids, not integers."""

from gcdformer.models.build import build_model, count_parameters, described_model, flops_per_example
from gcdformer.models.generate import generate
from gcdformer.models.interface import Seq2Seq, autocast, sequence_loss

__all__ = ["Seq2Seq", "autocast", "build_model", "count_parameters", "described_model", "flops_per_example", "generate",
           "sequence_loss"]
