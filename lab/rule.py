"""The numbers of the rule by which ours are compared with the paper's; `comparison` says why they are these."""

from lab.parts import Kind

RELATIVE = 0.025  # the error of a count, as a part of it
POINTS = 0.025  # the error of a share
MARGINS: dict[Kind, float] = {"accuracy": 0.01, "count": 0.1, "share": 0.05}  # of a count, a part of it
LEVEL = 0.05  # of each of the two tests
