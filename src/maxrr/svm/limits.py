"""How large and how small numbers may be. Nothing here needs a library, for the sake of worker processes."""

LONGEST = 1e100  # of samples
SMALLEST = 1e-100  # features below this in size count as zero
SMALLEST_PENALTY, LARGEST_PENALTY = 1e-50, 1e50  # for Cᵢ
NO_EXPONENT = -10_000  # the exponent of a row of zeros, or of no numbers
