"""Where in a network a divisor is carried, found by interchange: run (a, b), but at one place put in the value from (a', b).

Reads models, predictors and explanations; knows no run folder and no way of showing things. `analyse` in locate.py does it
all. This file imports nothing, so that the package can load it without torch.
"""
