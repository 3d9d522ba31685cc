"""How things are shown: words, terminal, HTML, figures.

Knows tables, scores, explanations and configurations; knows no run folder.
"""
