"""The laboratory: the paper's table and figures beside its own numbers, and the questions it leaves."""
